// /implement in the real Pi, without a terminal: RPC, print and JSON mode.
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { type Client, PI_0_73, PI_1, Repo, Rpc } from "./real.ts";

const OK = { message: "satyrn-engine: OK", notifyType: "info" };
const UNREADABLE = /^satyrn-engine: CONTRACT_UNREADABLE: cannot read contract .*gone\.yaml: No such file or directory/;

function rpcTests(pi: Client): void {
	test("RPC: a good contract is OK, a missing one is refused, no contract is USAGE", async (t) => {
		const rpc = new Rpc(new Repo(t), pi);
		assert.deepEqual(await rpc.prompt("/implement good.yaml"), [OK]);
		const [refusal] = await rpc.prompt("/implement gone.yaml");
		assert.match(refusal?.message ?? "", UNREADABLE);
		assert.equal(refusal?.notifyType, "error");
		const [usage] = await rpc.prompt("/implement");
		assert.match(usage?.message ?? "", /^satyrn-engine: USAGE: /);
		assert.equal(await rpc.end(), 0);
	});

	test("RPC: a path with a blank, as Tab completion types it", async (t) => {
		const rpc = new Rpc(new Repo(t), pi);
		assert.deepEqual(await rpc.prompt('/implement "my dir/c one.yaml"'), [OK]);
		assert.deepEqual(await rpc.prompt('/implement @"my dir/c one.yaml"'), [OK]);
		assert.deepEqual(await rpc.prompt("/implement my dir/c one.yaml"), [OK]);
		await rpc.end();
	});

	test("RPC: a host that is missing is named", async (t) => {
		const repo = new Repo(t);
		repo.env.SATYRN_HOST = "/no/such/satyrn-host";
		const rpc = new Rpc(repo, pi);
		const message = "satyrn-engine: ENGINE_START_FAILED: SATYRN_HOST is /no/such/satyrn-host: no such file";
		assert.deepEqual(await rpc.prompt("/implement good.yaml"), [{ message, notifyType: "error" }]);
		await rpc.end();
	});

	for (const [name, end] of [
		["the end of stdin", (rpc: Rpc) => rpc.child.stdin.end()],
		["SIGTERM", (rpc: Rpc) => rpc.child.kill("SIGTERM")],
		["SIGKILL", (rpc: Rpc) => rpc.child.kill("SIGKILL")],
	] as const) {
		test(`RPC: after ${name} of Pi during a check nothing is left running`, async (t) => {
			const repo = new Repo(t);
			const tree = repo.hangingEngine();
			const rpc = new Rpc(repo, pi);
			void rpc.prompt("/implement good.yaml");
			await tree.up;
			end(rpc);
			assert.deepEqual(await tree.gone, []);
			if (rpc.child.exitCode === null && rpc.child.signalCode === null) await once(rpc.child, "exit");
		});
	}

	test("RPC: a new session during a check stops it, and Pi goes on", async (t) => {
		const repo = new Repo(t);
		const tree = repo.hangingEngine();
		const rpc = new Rpc(repo, pi);
		const stopped = rpc.prompt("/implement good.yaml");
		await tree.up;
		assert.equal((await rpc.send({ type: "new_session" })).success, true);
		assert.deepEqual(await tree.gone, []);
		await stopped;
		const [usage] = await rpc.prompt("/implement");
		assert.match(usage?.message ?? "", /^satyrn-engine: USAGE: /);
		assert.equal(await rpc.end(), 0);
	});
}

function oneShotTests(pi: Client): void {
	test("print: the line, and the status of the host", async (t) => {
		const repo = new Repo(t);
		const good = await repo.run(pi, ["-p", "/implement good.yaml"]);
		assert.match(good.stdout + good.stderr, /^satyrn-engine: OK$/m);
		assert.equal(good.code, 0);
		const refused = await repo.run(pi, ["-p", "/implement gone.yaml"]);
		assert.match(refused.stdout + refused.stderr, new RegExp(UNREADABLE, "m"));
		assert.equal(refused.code, 3);
	});

	test("print: SIGTERM during a check leaves nothing running", async (t) => {
		const repo = new Repo(t);
		const tree = repo.hangingEngine();
		const child = repo.start(pi, ["-p", "/implement good.yaml"]);
		child.stdin.end();
		await tree.up;
		child.kill("SIGTERM");
		assert.deepEqual(await tree.gone, []);
	});

	test("JSON: the line is on stderr, and stdout stays JSON", async (t) => {
		const repo = new Repo(t);
		const good = await repo.run(pi, ["--mode", "json", "/implement good.yaml"]);
		assert.match(good.stderr, /^satyrn-engine: OK$/m);
		assert.equal(good.code, 0);
		const refused = await repo.run(pi, ["--mode", "json", "/implement gone.yaml"]);
		assert.match(refused.stderr, new RegExp(UNREADABLE, "m"));
		assert.equal(refused.code, 3);
		for (const line of (good.stdout + refused.stdout).trim().split("\n")) assert.equal(typeof JSON.parse(line), "object");
	});
}

describe("Pi 1.6.0", () => {
	rpcTests(PI_1);
	oneShotTests(PI_1);
});

describe("Pi 0.73.1 on Node 20", () => {
	rpcTests(PI_0_73);
	oneShotTests(PI_0_73);
});
