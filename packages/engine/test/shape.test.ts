// What the package promises about itself: thin, complete, nothing to install or run behind anybody's back.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const manifest = JSON.parse(read("package.json")) as Record<string, Record<string, string> | undefined> & { files: string[] };

test("orchestrator.ts has at most 120 lines, comments included", () => {
	assert.ok(read("orchestrator.ts").trimEnd().split("\n").length <= 120);
});

test("every module is packed, and imports only Node, Pi and the others", () => {
	const modules = readdirSync(new URL("..", import.meta.url)).filter((name) => name.endsWith(".ts"));
	assert.deepEqual(manifest.files.filter((name) => name.endsWith(".ts")).sort(), modules.sort());
	for (const name of modules) {
		for (const [, type, specifier = ""] of read(name).matchAll(/^import (type )?.*?"(.*)";$/gm)) {
			const known = specifier.startsWith("node:") || modules.includes(specifier.replace("./", ""));
			assert.ok(known || (type !== undefined && specifier === "@earendil-works/pi-coding-agent"), `${name}: ${specifier}`);
		}
	}
});

test("nothing is installed with it and nothing runs at its installation", () => {
	assert.equal(manifest.dependencies, undefined);
	assert.deepEqual(manifest.peerDependencies, { "@earendil-works/pi-coding-agent": "*" });
	for (const name of ["preinstall", "install", "postinstall", "prepare"]) assert.equal(manifest.scripts?.[name], undefined);
	for (const version of Object.values(manifest.devDependencies ?? {})) assert.match(version, /^\d+\.\d+\.\d+$/);
});

test("the lock files name no registry", () => {
	for (const path of ["package-lock.json", "test/pi/0.73/package-lock.json"]) assert.doesNotMatch(read(path), /"resolved": "http/);
});
