// Installs what the real-Pi tests run: Pi 1.6.0, which is a devDependency of the package, and Pi 0.73.1 with Node 20
// below 0.73/. Both come from a lock file and without install scripts; a second call does nothing.
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";

function modified(path) {
	return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

for (const folder of ["../../", "0.73/"].map((path) => fileURLToPath(new URL(path, import.meta.url)))) {
	// npm writes this file when an installation is complete.
	if (modified(`${folder}node_modules/.package-lock.json`) >= modified(`${folder}package-lock.json`)) continue;
	console.log(`npm ci in ${folder}`);
	const windows = process.platform === "win32";
	const { status } = spawnSync("npm", ["ci", "--ignore-scripts"], { cwd: folder, stdio: "inherit", shell: windows });
	if (status !== 0) process.exit(1);
}
