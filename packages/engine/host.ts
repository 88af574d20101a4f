// Where the host program is. The answer is always an absolute path: given a bare name, Windows would look into the
// repository before it looks at PATH, and a repository must never choose the program that judges it.
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname, join, posix, win32 } from "node:path";
import { fileURLToPath } from "node:url";

/** What the search looks at. Tests pass their own, so that the Windows search runs on every system. */
export interface Places {
	env: Record<string, string | undefined>;
	platform: string;
	arch: string;
	/** The folder of this extension; a host may lie in its `bin`. */
	home: string;
	/** What keeps `path` from being run, in words; undefined for a program. */
	obstacle(path: string): string | undefined;
	/** The path of a file in an installed package; undefined when the package is not there. */
	inPackage(specifier: string): string | undefined;
}

export type Found = { path: string } | { problem: string };

/** `SATYRN_HOST` and nothing else when it is set; then the platform package, `bin` beside the extension, PATH. */
export function findHost(places: Places): Found {
	const { env, platform, arch, home, obstacle } = places;
	const windows = platform === "win32";
	const { delimiter, join } = windows ? win32 : posix;
	// `\\tools` is no absolute path on Windows: its drive is that of the working directory.
	const isAbsolute = (path: string) => (windows ? /^([a-z]:[\\/]|[\\/]{2})/i : /^\//).test(path);
	const name = windows ? "satyrn-host.exe" : "satyrn-host";

	const chosen = env.SATYRN_HOST;
	if (chosen !== undefined) {
		if (chosen === "") return { problem: "SATYRN_HOST is set but empty; set it to the absolute path of satyrn-host" };
		if (!isAbsolute(chosen)) return { problem: `SATYRN_HOST must be an absolute path, not ${chosen}` };
		if (windows && !/\.exe$/i.test(chosen)) return { problem: `SATYRN_HOST must name an .exe, not ${chosen}` };
		const problem = obstacle(chosen);
		return problem === undefined ? { path: chosen } : { problem: `SATYRN_HOST is ${chosen}: ${problem}` };
	}

	// npm installs only the platform package whose os, cpu and libc fit, so the order of the two names does not matter.
	const packaged = [`${platform}-${arch}`, `${platform}-${arch}-musl`]
		.map((target) => places.inPackage(`@satyrn/host-${target}/bin/${name}`))
		.filter((path) => path !== undefined);
	// A relative entry would mean the working directory, which is the repository.
	const onPath = (env.PATH ?? "").split(delimiter).filter(isAbsolute).map((folder) => join(folder, name));
	const path = [...packaged, join(home, "bin", name), ...onPath].find((candidate) => obstacle(candidate) === undefined);
	if (path !== undefined) return { path };
	return { problem: "satyrn-host was not found: put it on PATH, or set SATYRN_HOST to its absolute path" };
}

/** The places of the running Pi. */
export function ownPlaces(): Places {
	const home = dirname(fileURLToPath(import.meta.url));
	return {
		env: process.env,
		platform: process.platform,
		arch: process.arch,
		home,
		obstacle,
		// As Node looks for a package, but only above the extension: NODE_PATH may name the repository.
		inPackage(specifier) {
			for (let folder = home; ; folder = dirname(folder)) {
				const path = join(folder, "node_modules", specifier);
				if (obstacle(path) === undefined) return path;
				if (folder === dirname(folder)) return undefined;
			}
		},
	};
}

/** Node tells a missing working directory as a missing program. */
export function startProblem(path: string, cwd: string, { message }: Error): string {
	return existsSync(cwd) ? `cannot start ${path} in ${cwd}: ${message}` : `the working directory ${cwd} does not exist`;
}

function obstacle(path: string): string | undefined {
	try {
		if (!statSync(path).isFile()) return "not a file";
		accessSync(path, constants.X_OK);
		return undefined;
	} catch (error) {
		const { code, message } = error as NodeJS.ErrnoException;
		if (code === "EACCES") return "no permission to run it";
		return code === "ENOENT" || code === "ENOTDIR" ? "no such file" : message;
	}
}
