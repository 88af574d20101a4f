// Packs this extension together with its platform packages, which scripts/platform-package.mjs has put into OUT:
//
//     node scripts/main-package.mjs OUT [--local]
//
// The platform packages become optionalDependencies here and not in the repository: a name that is not published yet
// would break `npm ci`, and anybody could take it. With --local they are named by file, to try them before publishing.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const LICENSES = ["LICENSE-APACHE", "LICENSE-MIT"];
const [out, option] = process.argv.slice(2);
if (out === undefined || (option !== undefined && option !== "--local")) {
	console.error("usage: node scripts/main-package.mjs OUT [--local]");
	process.exit(2);
}

const home = fileURLToPath(new URL("..", import.meta.url));
const { devDependencies, scripts, ...manifest } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
const suffix = `-${manifest.version}.tgz`;
const tarballs = readdirSync(out).filter((name) => name.startsWith("satyrn-host-") && name.endsWith(suffix));
manifest.optionalDependencies = Object.fromEntries(
	tarballs.map((name) => [
		`@satyrn/${name.slice("satyrn-".length, -suffix.length)}`,
		option === "--local" ? `file:${resolve(out, name)}` : manifest.version,
	]),
);

const folder = mkdtempSync(join(tmpdir(), "satyrn-main-"));
try {
	for (const name of manifest.files) copyFileSync(join(home, name), join(folder, name));
	for (const name of LICENSES) copyFileSync(join(home, "../..", name), join(folder, name));
	manifest.files = [...manifest.files, ...LICENSES];
	writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
	execFileSync("npm", ["pack", "--silent", "--pack-destination", resolve(out)], {
		cwd: folder,
		stdio: "inherit",
		shell: process.platform === "win32",
	});
} finally {
	rmSync(folder, { recursive: true });
}
