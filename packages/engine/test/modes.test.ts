// Where the line goes in each of Pi's modes, the exit status it leaves, and the loader of the TUI.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { BorderedLoader, initTheme } from "@earendil-works/pi-coding-agent";
import { visible } from "../line.ts";
import { showLoader } from "../loader.ts";
import { Bench } from "./double.ts";

const OK = 'echo "satyrn-engine: OK"';
const REFUSED = 'echo "satyrn-engine: REPO_UNAVAILABLE: repo is not a directory: /x"; exit 6';
const REFUSAL = "satyrn-engine: REPO_UNAVAILABLE: repo is not a directory: /x";

describe("the modes", () => {
	for (const mode of ["tui", "rpc"] as const) {
		test(`${mode}: the line is a notice, and Pi's own exit status stays alone`, async (t) => {
			const bench = new Bench(t);
			const before = process.exitCode;
			bench.host(OK);
			assert.deepEqual(await bench.implement("c.yaml", bench.context(mode)), { line: "satyrn-engine: OK", type: "info" });
			bench.host(REFUSED);
			assert.deepEqual(await bench.implement("c.yaml", bench.context(mode)), { line: REFUSAL, type: "error" });
			assert.equal(process.exitCode, before);
		});
	}

	// Pi 0.73 does not say which of the two modes it is in; stderr is right in both.
	for (const [mode, stream] of [["print", "log"], ["json", "error"], ["unnamed", "error"]] as const) {
		test(`${mode} mode: the line goes to console.${stream}, and the status is the host's`, async (t) => {
			const bench = new Bench(t);
			const empty = { log: [], error: [] };
			process.exitCode = undefined;
			bench.host(OK);
			assert.deepEqual(await bench.implementIn(mode, "c.yaml"), { ...empty, [stream]: ["satyrn-engine: OK"] });
			assert.equal(process.exitCode ?? 0, 0);
			bench.host(REFUSED);
			assert.deepEqual(await bench.implementIn(mode, "c.yaml"), { ...empty, [stream]: [REFUSAL] });
			assert.equal(process.exitCode, 6);
			assert.deepEqual(bench.notices, []);
		});
	}

	for (const [name, script, status] of [
		["USAGE", undefined, 2],
		["ENGINE_START_FAILED", "", 69],
		["ENGINE_CRASHED", "exit 0", 70],
	] as const) {
		test(`print: ${name} of this extension leaves status ${status}`, async (t) => {
			const bench = new Bench(t);
			process.exitCode = undefined;
			process.env.SATYRN_HOST = "";
			if (script) bench.host(script);
			const said = await bench.implementIn("print", script === undefined ? "" : "c.yaml");
			assert.match(said.log[0] ?? "", new RegExp(`^satyrn-engine: ${name}: `));
			assert.equal(process.exitCode, status);
		});
	}

	test("print: a refusal is not forgotten when the next check is fine", async (t) => {
		const bench = new Bench(t);
		process.exitCode = undefined;
		bench.host(REFUSED);
		await bench.implementIn("print", "c.yaml");
		bench.host(OK);
		await bench.implementIn("print", "c.yaml");
		assert.equal(process.exitCode, 6);
	});
});

describe("every verdict of the engine", () => {
	const path = new URL("../../../fixtures/protocol/cases.json", import.meta.url);
	const cases = JSON.parse(readFileSync(path, "utf8")) as { name: string; code: string; exit: number; message?: string }[];

	for (const { name, code, exit, message } of cases) {
		test(`${name}: ${code} and ${exit} pass through`, async (t) => {
			const bench = new Bench(t);
			process.exitCode = undefined;
			const line = `satyrn-engine: ${code === "OK" ? "OK" : `${code}: ${visible(message || name).slice(0, 4_000)}`}`;
			writeFileSync(join(bench.folder, "line"), `${line}\n`);
			bench.host(`cat line; exit ${exit}`);
			assert.deepEqual((await bench.implementIn("print", "c.yaml")).log, [line]);
			assert.equal(process.exitCode ?? 0, exit);
		});
	}
});

describe("the loader", () => {
	const LEASHED = 'trap "" TERM; echo up >&2; cat >/dev/null; echo "satyrn-engine: ENGINE_CANCELLED: leash"; exit 143';

	/** What Pi's `custom` does with a component, as far as the loader can tell. */
	function screen(bench: Bench): { shown: Promise<BorderedLoader>; closed: () => boolean } {
		let closed = false;
		const shown = new Promise<BorderedLoader>((resolve) => {
			bench.custom = (factory: (...args: unknown[]) => BorderedLoader) =>
				new Promise<void>((done) => {
					const theme = { fg: (_color: string, text: string) => text };
					const loader = factory({ requestRender() {} }, theme, {}, () => {
						closed = true;
						loader.dispose();
						done();
					});
					resolve(loader);
				});
		});
		return { shown, closed: () => closed };
	}

	test("a long check shows it; Esc stops the host, whose line is printed", async (t) => {
		initTheme();
		const bench = new Bench(t);
		const { shown, closed } = screen(bench);
		bench.host(LEASHED);
		const handled = bench.implement("my contract.yaml", bench.context("tui"));
		const loader = await shown;
		assert.match(loader.render(80).join("\n"), /Checking my contract\.yaml/);
		assert.equal(closed(), false);
		loader.handleInput("\x1b");
		assert.deepEqual(await handled, { line: "satyrn-engine: ENGINE_CANCELLED: leash", type: "error" });
		assert.equal(closed(), true);
	});

	test("a long check that ends by itself closes it", async (t) => {
		initTheme();
		const bench = new Bench(t);
		const { shown, closed } = screen(bench);
		bench.host(`mkfifo go; echo up >&2; cat go >/dev/null; ${OK}`);
		const handled = bench.implement("c.yaml", bench.context("tui"));
		await shown;
		writeFileSync(join(bench.folder, "go"), "");
		assert.deepEqual(await handled, { line: "satyrn-engine: OK", type: "info" });
		assert.equal(closed(), true);
	});

	test("the first 300 ms do not show it", async (t) => {
		initTheme();
		const bench = new Bench(t);
		let loaders = 0;
		const asked = new Promise<void>((resolve) => {
			bench.custom = () => (loaders++, resolve());
		});
		bench.host(`mkfifo go; echo up >&2; cat go >/dev/null; ${OK}`);
		t.mock.timers.enable({ apis: ["setTimeout"] });
		const handled = bench.implement("c.yaml", bench.context("tui"));
		await bench.hostIsUp();
		t.mock.timers.tick(299);
		// What showing it waits for has come by then.
		await import("@earendil-works/pi-coding-agent");
		await new Promise(setImmediate);
		assert.equal(loaders, 0);
		t.mock.timers.tick(1);
		await asked;
		assert.equal(loaders, 1);
		writeFileSync(join(bench.folder, "go"), "");
		assert.deepEqual(await handled, { line: "satyrn-engine: OK", type: "info" });
	});

	test("a short check does not show it", async (t) => {
		const bench = new Bench(t);
		let loaders = 0;
		bench.custom = () => loaders++;
		bench.host(OK);
		t.mock.timers.enable({ apis: ["setTimeout"] });
		await bench.implement("c.yaml", bench.context("tui"));
		t.mock.timers.tick(1_000);
		await new Promise(setImmediate);
		assert.equal(loaders, 0);
	});

	for (const [name, custom] of [
		["refuses it", () => { throw new Error("no room"); }],
		["rejects it", () => Promise.reject(new Error("no room"))],
	] as const) {
		test(`a UI that ${name} does not hinder the check`, async (t) => {
			const bench = new Bench(t);
			const asked = new Promise<void>((resolve) => {
				bench.custom = () => (resolve(), custom());
			});
			bench.host(LEASHED);
			const handled = bench.implement("c.yaml", bench.context("tui"));
			const child = await bench.hostIsUp();
			await asked;
			await bench.fire("session_shutdown");
			await handled;
			assert.equal(child.exitCode, 143);
		});
	}

	for (const [mode, loaders] of [["tui", 1], ["rpc", 0], ["print", 0], ["json", 0], ["unnamed", 0]] as const) {
		test(`${mode} mode: ${loaders} loaders`, async (t) => {
			const bench = new Bench(t);
			let asked = 0;
			bench.custom = () => asked++;
			await showLoader(bench.context(mode), "c.yaml", new Promise(() => {}), () => {});
			assert.equal(asked, loaders);
		});
	}

	test("a session that was replaced gets none, and nothing throws", async (t) => {
		const bench = new Bench(t);
		bench.stale = true;
		await showLoader(bench.context("tui"), "c.yaml", new Promise(() => {}), () => {});
	});
});

describe("completion", () => {
	test("contracts below the session's folder, quoted when needed", async (t) => {
		const bench = new Bench(t);
		const folder = join(bench.folder, "repo");
		for (const part of ["my dir/deep", "node_modules/x", ".git", "a"]) mkdirSync(join(folder, part), { recursive: true });
		for (const file of ["top.yaml", "@odd.yml", "top.txt", "my dir/deep/c one.YML", "node_modules/x/no.yaml", ".git/no.yaml", "a/b.yaml"])
			writeFileSync(join(folder, file), "");
		await bench.fire("session_start", bench.context("tui", folder));
		const complete = async (typed: string) => (await bench.command.getArgumentCompletions?.(typed))?.map((item) => item.value) ?? null;
		assert.deepEqual(await complete(""), ['"@odd.yml"', "top.yaml", "a/b.yaml", '"my dir/deep/c one.YML"']);
		assert.deepEqual(await complete("to"), ["top.yaml"]);
		assert.deepEqual(await complete("./to"), ["top.yaml"]);
		assert.deepEqual(await complete('"C ONE'), ['"my dir/deep/c one.YML"']);
		assert.equal(await complete("nothing like it"), null);
		// A complete path closes the menu: with it open, Enter would not run the command.
		assert.equal(await complete("top.yaml"), null);
		assert.equal(await complete('"my dir/deep/c one.YML"'), null);
	});

	test("what is completed is what the host gets", async (t) => {
		const bench = new Bench(t);
		const names = ["c one.yaml", "@c.yaml", '"q".yaml', "'q'.yaml", "süß.yaml", "-x.yaml"];
		for (const name of names) writeFileSync(join(bench.folder, name), "");
		await bench.fire("session_start", bench.context());
		const items = (await bench.command.getArgumentCompletions?.("")) ?? [];
		assert.deepEqual(items.map((item) => item.label).sort(), [...names].sort());
		for (const { value, label } of items) {
			bench.host('shift 3; printf "%s" "$1" > got; echo "satyrn-engine: OK"');
			await bench.implement(value);
			assert.equal(readFileSync(join(bench.folder, "got"), "utf8"), label);
		}
	});
});
