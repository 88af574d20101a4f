// The whole chain meets scripted faulty engines: Pi, this extension, the host, the engine of a drill (SATYRN_DRILL).
// Pi must show exactly the line that the host prints by itself, and end with its exit code.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { HOST, PI_1, Repo } from "./real.ts";

// An acceptance, a refusal, and one of each kind that a host says itself.
const DRILLS = [
	"accepts",
	"stdout-text-before",
	"refuses-and-forges-a-line",
	"hangs-with-a-stubborn-tree",
	"crash-sigsegv",
	"shape-member-missing",
	"descendant-is-a-daemon",
];
const { status } = spawnSync(HOST, ["drill", "--list"]);
const chosen = status === 0 ? DRILLS : [];

test("the host that was built has drills", () => {
	const standIn = HOST.endsWith(".sh");
	assert.equal(chosen.length, standIn ? 0 : DRILLS.length);
});

for (const name of chosen) {
	test(`drill ${name}: Pi says what the host says`, async (t) => {
		const repo = new Repo(t);
		// A drill brings its own limits; what chooses another engine or deadline would contradict it.
		delete repo.env.SATYRN_DEADLINE;
		repo.env.SATYRN_DRILL = name;
		const alone = spawnSync(HOST, ["implement", "--", "good.yaml"], { cwd: repo.folder, env: repo.env, encoding: "utf8" });
		const through = await repo.run(PI_1, ["-p", "/implement good.yaml"]);
		assert.match(alone.stdout, /^satyrn-engine: .+\n$/);
		assert.ok(through.stderr.endsWith(alone.stdout), through.stderr);
		assert.equal(through.code, alone.status);
	});
}
