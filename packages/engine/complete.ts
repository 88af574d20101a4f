// Completion of the argument of /implement: the contract files below the working directory.
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseContract } from "./line.ts";

/** How many directory entries one completion looks at, and so how many folders it opens: a key press must stay cheap in the largest repository. */
const MAX_ENTRIES = 5_000;
const MAX_ITEMS = 50;
const SKIPPED = new Set(["node_modules", ".git"]);

/** What Pi's menu shows (`label`) and types (`value`). Null closes the menu. */
export async function completeContract(typed: string, cwd: string): Promise<{ value: string; label: string }[] | null> {
	// With the menu open the Enter key would choose an item, perhaps another file, so a complete path must close it.
	const named = parseContract(typed);
	if (named !== "" && (await isFile(resolve(cwd, named)))) return null;
	const wanted = typed.replace(/^"/, "").replace(/^\.\//, "").toLowerCase();
	const starts = (path: string) => path.toLowerCase().startsWith(wanted);
	const found = (await contractsBelow(cwd)).filter((path) => path.toLowerCase().includes(wanted));
	found.sort((a, b) => Number(starts(b)) - Number(starts(a)));
	const items = found.slice(0, MAX_ITEMS).map((path) => ({ value: quoteIfNeeded(path), label: path }));
	return items.length === 0 ? null : items;
}

/** What cannot be looked at is none: a name that is too long, a circle of links, a folder of somebody else. */
function isFile(path: string): Promise<boolean> {
	return stat(path).then((found) => found.isFile(), () => false);
}

/** Nearest first, `/` between the parts. Linked folders are not entered, so the walk cannot go in a circle. */
export async function contractsBelow(cwd: string, maxEntries = MAX_ENTRIES): Promise<string[]> {
	const contracts: string[] = [];
	const folders = [""];
	let left = maxEntries;
	for (let folder = folders.shift(); folder !== undefined && left > 0; folder = folders.shift()) {
		// A folder that cannot be read has nothing to offer.
		const entries = await readdir(join(cwd, folder), { withFileTypes: true }).catch(() => []);
		entries.sort((a, b) => (a.name < b.name ? -1 : 1));
		for (const entry of entries.slice(0, left)) {
			const path = folder + entry.name;
			if (entry.isDirectory()) {
				if (!SKIPPED.has(entry.name)) folders.push(`${path}/`);
			} else if (/\.ya?ml$/i.test(entry.name) && !/\p{Cc}/u.test(path)) {
				contracts.push(path);
			}
		}
		left -= entries.length;
	}
	return contracts;
}

/** Pi quotes a path with a blank; a leading `@` or quote must be quoted because /implement drops it. */
function quoteIfNeeded(path: string): string {
	return /\s|^[@"']/.test(path) ? `"${path}"` : path;
}
