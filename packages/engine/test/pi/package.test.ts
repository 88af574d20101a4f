// The package as a user gets it: installed by Pi into a home where nothing else is, from a path and from the tarballs.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { HOST, PI_1, Repo, Rpc } from "./real.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const FLAGS = ["--no-session", "--offline"];

/** A home without settings, in which nothing but the lookup itself leads to a host. */
function freshRepo(t: ConstructorParameters<typeof Repo>[0]): Repo {
	const repo = new Repo(t);
	delete repo.env.SATYRN_HOST;
	delete repo.env.PI_CODING_AGENT_DIR;
	delete repo.env.PI_OFFLINE;
	return repo;
}

async function install(repo: Repo, source: string): Promise<void> {
	const { code, stderr } = await repo.run(PI_1, ["install", source], []);
	assert.equal(code, 0, stderr);
	const list = await repo.run(PI_1, ["list"], []);
	// A heading, the source, and where it is.
	assert.equal(list.stdout.trim().split("\n").length, 3, list.stdout);
}

/** The files of the package and nothing else, so that no host of this checkout is found beside them. */
function checkout(repo: Repo): string {
	const folder = join(repo.folder, "../checkout");
	mkdirSync(folder);
	const { files } = JSON.parse(readFileSync(here("../../package.json"), "utf8")) as { files: string[] };
	for (const name of [...files, "package.json"]) copyFileSync(here(`../../${name}`), join(folder, name));
	return folder;
}

/** The commands of this extension: one, with its plain name. */
async function expectPlainName(repo: Repo): Promise<void> {
	const rpc = new Rpc(repo, PI_1, FLAGS);
	const { data } = await rpc.send({ type: "get_commands" });
	const names = (data as { commands: { name: string }[] }).commands.map((command) => command.name);
	assert.deepEqual(names.filter((name) => name.startsWith("implement")), ["implement"]);
	assert.deepEqual(await rpc.prompt("/implement good.yaml"), [{ message: "satyrn-engine: OK", notifyType: "info" }]);
	await rpc.end();
}

test("installed from a path: the host is found on PATH", async (t) => {
	const repo = freshRepo(t);
	await install(repo, checkout(repo));
	const folder = join(repo.folder, "../tools");
	mkdirSync(folder);
	copyFileSync(HOST, join(folder, "satyrn-host"));
	repo.env.PATH += `${delimiter}${folder}`;
	await expectPlainName(repo);
	const refused = await repo.run(PI_1, ["-p", "/implement gone.yaml"], FLAGS);
	assert.match(refused.stderr, /^satyrn-engine: CONTRACT_UNREADABLE: /m);
	assert.equal(refused.code, 3);
});

test("installed from the tarballs: the host comes with the platform package", async (t) => {
	const repo = freshRepo(t);
	const out = join(repo.folder, "../packed");
	execFileSync(process.execPath, [here("../../scripts/platform-package.mjs"), HOST, out], { stdio: "pipe" });
	execFileSync(process.execPath, [here("../../scripts/main-package.mjs"), out, "--local"], { stdio: "pipe" });
	const [main] = readdirSync(out).filter((name) => name.startsWith("satyrn-engine-"));
	await install(repo, `npm:@satyrn/engine@file:${join(out, main ?? "")}`);
	await expectPlainName(repo);
	const refused = await repo.run(PI_1, ["-p", "/implement gone.yaml"], FLAGS);
	assert.match(refused.stderr, /^satyrn-engine: CONTRACT_UNREADABLE: /m);
	assert.equal(refused.code, 3);
});

test("installed without any host: the line says where one can be put", async (t) => {
	const repo = freshRepo(t);
	await install(repo, checkout(repo));
	const { stderr, code } = await repo.run(PI_1, ["-p", "/implement good.yaml"], FLAGS);
	assert.match(stderr, /^satyrn-engine: ENGINE_START_FAILED: satyrn-host was not found: put it on PATH, or set SATYRN_HOST/m);
	assert.equal(code, 69);
});
