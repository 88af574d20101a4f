// The whole chain meets scripted faulty engines: Pi, this extension, the host, the engine of a drill (SATYRN_DRILL).
// Pi must report exactly the code that the host gives by itself.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { HOST, PI_1, Repo } from "./real.ts";

const list = spawnSync(HOST, ["drill", "--list"], { encoding: "utf8" });
const names = list.status === 0 ? list.stdout.split("\n").filter((name) => name !== "") : [];
// Six of the built-in drills, spread over the list; a host without drills has none to meet.
const chosen = new Set([0, 1, 2, 3, 4, 5].map((sixth) => names[Math.floor((sixth * names.length) / 6)] ?? ""));
chosen.delete("");

const CODE = /^satyrn-engine: ([A-Z0-9_]+)(: |$)/m;

for (const name of chosen) {
	test(`drill ${name}: Pi says what the host says`, async (t) => {
		const repo = new Repo(t);
		// A drill brings its own limits; what chooses another engine or deadline would contradict it.
		delete repo.env.SATYRN_DEADLINE;
		repo.env.SATYRN_DRILL = name;
		const alone = spawnSync(HOST, ["implement", "--", "good.yaml"], { cwd: repo.folder, env: repo.env, encoding: "utf8" });
		const through = await repo.run(PI_1, ["-p", "/implement good.yaml"]);
		assert.match(alone.stdout, CODE);
		assert.equal(CODE.exec(through.stderr)?.[1], CODE.exec(alone.stdout)?.[1]);
		assert.equal(through.code, alone.status);
	});
}
