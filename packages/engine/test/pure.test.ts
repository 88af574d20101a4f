// The functions that need no process: the argument, the search for the host on every system, the watchdog, the walk.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { completeContract, contractsBelow } from "../complete.ts";
import { findHost, ownPlaces, type Places } from "../host.ts";
import { judge, parseContract, refusal, watchdogMsFor } from "../line.ts";

test("the argument loses blanks, one @ and one pair of quotes, and nothing else", () => {
	for (const [typed, contract] of [
		["c.yaml", "c.yaml"],
		["  c.yaml \n", "c.yaml"],
		["@c.yaml", "c.yaml"],
		['"my dir/c one.yaml"', "my dir/c one.yaml"],
		['@"my dir/c one.yaml"', "my dir/c one.yaml"],
		["'my dir/c one.yaml'", "my dir/c one.yaml"],
		["my dir/c one.yaml", "my dir/c one.yaml"],
		["@@c.yaml", "@c.yaml"],
		['"@c.yaml"', "@c.yaml"],
		['""c.yaml""', '"c.yaml"'],
		['"c.yaml', '"c.yaml'],
		[`"c.yaml'`, `"c.yaml'`],
		['"', '"'],
		['a "b" c', 'a "b" c'],
		["~/c.yaml", "~/c.yaml"],
		["--help", "--help"],
	] as const)
		assert.equal(parseContract(typed), contract, typed);
});

test("a quoted tail is whole text even where it is cut inside a character", () => {
	const stderr = `${"😀".repeat(3_000)}a`;
	const { line } = judge({ code: 9, signal: null, stdout: "", stderr });
	assert.match(line, /; stderr: \ufffd(😀)+a$/u);
	assert.doesNotMatch(line, /\p{Cs}/u);
});

test("a line of this extension's own is one line of plain text", () => {
	const { line } = refusal("USAGE", "a\nb\r\x1b[2J\u2028\u202e\u0085c", 2);
	assert.equal(line, "satyrn-engine: USAGE: a\\nb\\u{d}\\u{1b}[2J\\u{2028}\\u{202e}\\u{85}c");
});

test("the status of a refusal whose host died by a signal is the shell's", () => {
	const end = { code: null, signal: "SIGTERM", stdout: "satyrn-engine: ENGINE_CANCELLED: x\n", stderr: "" } as const;
	assert.deepEqual(judge(end), { line: "satyrn-engine: ENGINE_CANCELLED: x", exit: 143 });
	assert.equal(judge({ ...end, stdout: "satyrn-engine: OK\n" }).exit, 70);
});

test("the longest line of a host is accepted, a longer one is not", () => {
	const stdout = `satyrn-engine: X: ${"😀".repeat(4_096)}`;
	assert.equal(judge({ code: 3, signal: null, stdout, stderr: "" }).exit, 3);
	assert.equal(judge({ code: 3, signal: null, stdout: `${stdout}x`, stderr: "" }).exit, 70);
	// Of more than this the rest was not kept: another line may have followed.
	const code = "A".repeat(16_383 - "satyrn-engine: : x".length);
	assert.equal(judge({ code: 3, signal: null, stdout: `satyrn-engine: ${code}: x`, stderr: "" }).exit, 3);
	assert.equal(judge({ code: 3, signal: null, stdout: `satyrn-engine: ${code}A: x`, stderr: "" }).exit, 70);
});

test("the watchdog is a minute longer than the host's deadline", () => {
	const day = 24 * 3_600_000;
	for (const [deadline, ms] of [
		[undefined, 30_000], ["500ms", 500], ["20s", 20_000], ["2m", 120_000], ["24h", day], ["99h", day],
		// The host may understand what this extension does not.
		["1.5s", day], ["1m30s", day], ["", day], ["0", day], ["forever", day],
	] as const)
		assert.equal(watchdogMsFor(deadline), ms + 60_000, deadline);
});

describe("the search for the host", () => {
	/** A system on which exactly `programs` are programs and `packages` are installed. */
	function places(platform: string, env: Places["env"], programs: string[], packages: Record<string, string> = {}): Places {
		const windows = platform === "win32";
		return {
			env,
			platform,
			arch: "x64",
			home: windows ? "C:\\pi\\engine" : "/pi/engine",
			obstacle: (path) => (programs.includes(path) ? undefined : "no such file"),
			inPackage: (specifier) => packages[specifier],
		};
	}
	const anywhere = ["/pkg/host", "/pi/engine/bin/satyrn-host", "/usr/bin/satyrn-host", "/chosen"];
	const packages = { "@satyrn/host-linux-x64/bin/satyrn-host": "/pkg/host" };

	test("SATYRN_HOST, then the platform package, then bin, then PATH", () => {
		const env = { SATYRN_HOST: "/chosen", PATH: "/usr/local/bin:/usr/bin" };
		assert.deepEqual(findHost(places("linux", env, anywhere, packages)), { path: "/chosen" });
		const noChoice = { PATH: env.PATH };
		assert.deepEqual(findHost(places("linux", noChoice, anywhere, packages)), { path: "/pkg/host" });
		assert.deepEqual(findHost(places("linux", noChoice, anywhere)), { path: "/pi/engine/bin/satyrn-host" });
		assert.deepEqual(findHost(places("linux", noChoice, ["/usr/bin/satyrn-host"])), { path: "/usr/bin/satyrn-host" });
		const musl = { "@satyrn/host-linux-x64-musl/bin/satyrn-host": "/pkg/host" };
		assert.deepEqual(findHost(places("linux", noChoice, ["/pkg/host"], musl)), { path: "/pkg/host" });
		assert.match(JSON.stringify(findHost(places("linux", noChoice, []))), /"problem":"satyrn-host was not found: .*SATYRN_HOST/);
	});

	test("SATYRN_HOST is the only place when it is set", () => {
		for (const [value, problem] of [
			["", /set but empty/],
			["/gone", /^SATYRN_HOST is \/gone: no such file$/],
			["satyrn-host", /must be an absolute path, not satyrn-host$/],
			["./satyrn-host", /must be an absolute path/],
		] as const) {
			const found = findHost(places("linux", { SATYRN_HOST: value, PATH: "/usr/bin" }, [...anywhere, "satyrn-host", "./satyrn-host"], packages));
			assert.match("problem" in found ? found.problem : "", problem);
		}
	});

	test("PATH: empty and relative entries are never the working directory", () => {
		for (const PATH of ["", ":", ".:", "::bin:./bin:../bin", "bin"]) {
			const found = findHost(places("linux", { PATH }, ["satyrn-host", "bin/satyrn-host", "./satyrn-host", "../bin/satyrn-host"]));
			assert.ok("problem" in found, PATH);
		}
		assert.ok("problem" in findHost(places("linux", {}, ["satyrn-host"])));
		assert.deepEqual(findHost(places("linux", { PATH: ".::/usr/bin" }, anywhere.slice(2))), { path: "/usr/bin/satyrn-host" });
	});

	test("Windows: only an .exe, `;` between the entries, drives and shares", () => {
		const exe = "D:\\tools\\satyrn-host.exe";
		const PATH = ".;bin;C:relative;\\rooted;C:\\Windows;D:\\tools";
		const decoys = ["satyrn-host.exe", "bin\\satyrn-host.exe", "C:relative\\satyrn-host.exe", "\\rooted\\satyrn-host.exe", "C:\\Windows\\satyrn-host.cmd", "C:\\Windows\\satyrn-host"];
		assert.deepEqual(findHost(places("win32", { PATH }, [...decoys, exe])), { path: exe });
		assert.ok("problem" in findHost(places("win32", { PATH }, decoys)));
		const share = "\\\\server\\tools\\satyrn-host.exe";
		assert.deepEqual(findHost(places("win32", { PATH: "\\\\server\\tools" }, [share])), { path: share });
		assert.deepEqual(findHost(places("win32", { PATH: "" }, ["C:\\pi\\engine\\bin\\satyrn-host.exe"])), { path: "C:\\pi\\engine\\bin\\satyrn-host.exe" });
		const packaged = { "@satyrn/host-win32-x64/bin/satyrn-host.exe": exe };
		assert.deepEqual(findHost(places("win32", { PATH: "" }, [exe], packaged)), { path: exe });
		assert.deepEqual(findHost(places("win32", { SATYRN_HOST: exe }, [exe])), { path: exe });
		for (const wrong of ["D:\\tools\\satyrn-host.cmd", "satyrn-host.exe", "\\tools\\satyrn-host.exe"])
			assert.ok("problem" in findHost(places("win32", { SATYRN_HOST: wrong }, [wrong])), wrong);
	});

	test("on this system: a program, a file without the x bit, a folder, a link to nothing", (t) => {
		const folder = mkdtempSync(join(tmpdir(), "satyrn-"));
		t.after(() => rmSync(folder, { recursive: true }));
		const { obstacle } = ownPlaces();
		const path = join(folder, "satyrn-host");
		writeFileSync(path, "");
		assert.equal(obstacle(path), "no permission to run it");
		chmodSync(path, 0o755);
		assert.equal(obstacle(path), undefined);
		mkdirSync(join(folder, "d"));
		assert.equal(obstacle(join(folder, "d")), "not a file");
		symlinkSync("nothing", join(folder, "l"));
		assert.equal(obstacle(join(folder, "l")), "no such file");
		assert.equal(obstacle(join(path, "below-a-file")), "no such file");
	});

	test("on this system: the folder is the extension's, and a package that is not there is no error", () => {
		assert.equal(ownPlaces().home, join(import.meta.dirname, ".."));
		assert.equal(ownPlaces().inPackage("@satyrn/host-no-such/bin/satyrn-host"), undefined);
	});
});

test("the walk for contracts is bounded, nearest first, and does not follow links", async (t) => {
	const folder = mkdtempSync(join(tmpdir(), "satyrn-"));
	t.after(() => rmSync(folder, { recursive: true }));
	mkdirSync(join(folder, "a/b"), { recursive: true });
	for (const name of ["a/b/3.yaml", "a/2.yaml", "1.yaml", "0\n.yaml"]) writeFileSync(join(folder, name), "");
	symlinkSync(folder, join(folder, "a/loop"));
	symlinkSync("1.yaml", join(folder, "link.yaml"));
	assert.deepEqual(await contractsBelow(folder), ["1.yaml", "link.yaml", "a/2.yaml", "a/b/3.yaml"]);
	assert.deepEqual(await contractsBelow(folder, 4), ["1.yaml", "link.yaml"]);
	assert.deepEqual(await contractsBelow(folder, 1), []);
	assert.deepEqual(await contractsBelow(join(folder, "gone")), []);
});

test("completion takes whatever is typed", async (t) => {
	const folder = mkdtempSync(join(tmpdir(), "satyrn-"));
	t.after(() => rmSync(folder, { recursive: true }));
	writeFileSync(join(folder, "c.yaml"), "");
	writeFileSync(join(folder, "file"), "");
	symlinkSync("loop.yaml", join(folder, "loop.yaml"));
	for (const typed of ["x".repeat(5_000), "a\0b", "file/below", "none", "@", "'"]) assert.equal(await completeContract(typed, folder), null, typed);
	assert.deepEqual((await completeContract("loop.yaml", folder))?.map((item) => item.value), ["loop.yaml"]);
	assert.equal(await completeContract("c.yaml", folder), null);
	assert.deepEqual((await completeContract("c.y", folder))?.map((item) => item.value), ["c.yaml"]);
});
