// /implement in the TUI of the real Pi, inside tmux.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PI_0_73, PI_1, Repo, Terminal } from "./real.ts";

const CANCELLED = /^ Error: satyrn-engine: ENGINE_CANCELLED: /m;
const READY = /^0\.0%/m;

describe("Pi 1.6.0 in a terminal", () => {
	test("a good contract, a missing one, and a path that Tab completed", async (t) => {
		const terminal = new Terminal(new Repo(t), PI_1);
		await terminal.shows(READY);
		await terminal.run("/implement good.yaml");
		await terminal.shows(/^ satyrn-engine: OK$/m);
		await terminal.run("/implement gone.yaml");
		await terminal.shows(/^ Error: satyrn-engine: CONTRACT_UNREADABLE: cannot read contract/m);
		terminal.keys("=/implement c one");
		await terminal.shows(/^→ my dir\/c one\.yaml/m);
		terminal.keys("Tab");
		await terminal.shows(/^\/implement "my dir\/c one\.yaml"/m);
		terminal.keys("Enter");
		// Two notices of success in a row share one place, so there are two lines only because of the refusal between.
		await terminal.shows(/satyrn-engine: OK[^]*satyrn-engine: CONTRACT_UNREADABLE[^]*satyrn-engine: OK/);
	});

	test("a host that is missing is named", async (t) => {
		const repo = new Repo(t);
		repo.env.SATYRN_HOST = "/no/such/satyrn-host";
		const terminal = new Terminal(repo, PI_1);
		await terminal.shows(READY);
		await terminal.run("/implement good.yaml");
		await terminal.shows(/^ Error: satyrn-engine: ENGINE_START_FAILED: SATYRN_HOST is \/no\/such\/satyrn-host: no such file$/m);
	});

	test("Esc stops a long check, and the terminal is free again", async (t) => {
		const repo = new Repo(t);
		const tree = repo.hangingEngine();
		const terminal = new Terminal(repo, PI_1);
		await terminal.shows(READY);
		await terminal.run("/implement good.yaml");
		await tree.up;
		await terminal.shows(/Checking good\.yaml/);
		terminal.keys("Escape");
		const screen = await terminal.shows(CANCELLED);
		assert.deepEqual(await tree.gone, []);
		assert.doesNotMatch(screen, /Checking/);
		terminal.keys("=/implement", "Enter");
		await terminal.shows(/^ Error: satyrn-engine: USAGE: /m);
	});

	test("/quit during a check leaves nothing running", async (t) => {
		const repo = new Repo(t);
		const tree = repo.hangingEngine();
		const terminal = new Terminal(repo, PI_1);
		await terminal.shows(READY);
		await terminal.type("/implement good.yaml");
		// In one go: as soon as the loader is there it takes the keys.
		terminal.keys("Enter", "=/quit", "Enter");
		await terminal.closed();
		assert.deepEqual(await tree.gone, []);
	});

	for (const signal of ["SIGTERM", "SIGHUP", "SIGKILL"] as const) {
		test(`${signal} of Pi during a check leaves nothing running`, async (t) => {
			const repo = new Repo(t);
			const tree = repo.hangingEngine();
			const terminal = new Terminal(repo, PI_1);
			await terminal.shows(READY);
			await terminal.run("/implement good.yaml");
			await tree.up;
			await terminal.shows(/Checking good\.yaml/);
			process.kill(terminal.pid, signal);
			assert.deepEqual(await tree.gone, []);
			await terminal.closed();
		});
	}
});

describe("Pi 0.73.1 on Node 20 in a terminal", () => {
	test("a good contract and a missing one", async (t) => {
		const repo = new Repo(t);
		const terminal = new Terminal(repo, PI_0_73);
		await terminal.shows(READY);
		await terminal.run("/implement good.yaml");
		await terminal.shows(/^ satyrn-engine: OK$/m);
		await terminal.run("/implement gone.yaml");
		await terminal.shows(/^ Error: satyrn-engine: CONTRACT_UNREADABLE: cannot read contract/m);
	});

	test("/quit during a check, which has no loader there, leaves nothing running", async (t) => {
		const repo = new Repo(t);
		const tree = repo.hangingEngine();
		const terminal = new Terminal(repo, PI_0_73);
		await terminal.shows(READY);
		await terminal.run("/implement good.yaml");
		await tree.up;
		terminal.keys("=/quit", "Enter");
		await terminal.closed();
		assert.deepEqual(await tree.gone, []);
	});
});
