// Makes the npm package that carries satyrn-host for the platform this runs on:
//
//     node scripts/platform-package.mjs BINARY OUT
//
// npm installs it only where os, cpu and libc fit. It has no install script: the program is simply a file in bin/.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const LICENSES = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-LICENSES.md"];
const [binary, out] = process.argv.slice(2);
if (binary === undefined || out === undefined) {
	console.error("usage: node scripts/platform-package.mjs BINARY OUT");
	process.exit(2);
}

const { version, license } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const { platform, arch } = process;
const libc = platform === "linux" ? libcOf(readFileSync(binary)) : undefined;
const target = `${platform}-${arch}${libc === "musl" ? "-musl" : ""}`;

const folder = mkdtempSync(join(tmpdir(), "satyrn-platform-"));
try {
	const program = join(folder, "bin", platform === "win32" ? "satyrn-host.exe" : "satyrn-host");
	mkdirSync(join(folder, "bin"));
	copyFileSync(binary, program);
	chmodSync(program, 0o755);
	for (const name of LICENSES) copyFileSync(new URL(`../../../${name}`, import.meta.url), join(folder, name));
	const manifest = {
		name: `@satyrn/host-${target}`,
		version,
		description: `satyrn-host for ${target}`,
		license,
		os: [platform],
		cpu: [arch],
		...(libc && { libc: [libc] }),
		files: ["bin/", ...LICENSES],
	};
	writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
	mkdirSync(out, { recursive: true });
	execFileSync("npm", ["pack", "--silent", "--pack-destination", resolve(out)], {
		cwd: folder,
		stdio: "inherit",
		shell: platform === "win32",
	});
} finally {
	rmSync(folder, { recursive: true });
}

/** What the program is linked with, by its loader; a static one runs with every libc. */
function libcOf(program) {
	if (program.includes("/ld-musl-")) return "musl";
	return program.includes("/ld-linux") ? "glibc" : undefined;
}
