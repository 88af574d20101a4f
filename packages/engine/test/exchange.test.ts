// /implement against a real host program that does what a broken host might do. Each refusal has a success beside it.
import assert from "node:assert/strict";
import { execFile, type spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { alive, Bench } from "./double.ts";

const OK = 'echo "satyrn-engine: OK"';
const OK_NOTICE = { line: "satyrn-engine: OK", type: "info" };

async function expectOk(bench: Bench, args = "c.yaml"): Promise<void> {
	assert.deepEqual(await bench.implement(args), OK_NOTICE);
}

async function expectRefusal(bench: Bench, pattern: RegExp, args = "c.yaml"): Promise<void> {
	const notice = await bench.implement(args);
	assert.match(notice?.line ?? "", pattern);
	assert.equal(notice?.type, "error");
}

describe("the answer", () => {
	for (const [name, script] of [
		["one line", OK],
		["a line that ends in CR LF", 'printf "satyrn-engine: OK\\r\\n"'],
		["a line without an end", 'printf "satyrn-engine: OK"'],
		["a line beside noise on stderr", `echo noise >&2; ${OK}`],
		["a line in two pieces", 'printf "satyrn-engine"; printf ": OK\\n"'],
	] as const) {
		test(`${name} is accepted`, async (t) => {
			const bench = new Bench(t);
			bench.host(script);
			await expectOk(bench);
		});
	}

	test("a refusal is printed as it stands, with every character", async (t) => {
		const bench = new Bench(t);
		const line = "satyrn-engine: CONTRACT_UNREADABLE: cannot read contract /tmp/süß 合 \u{1f600}.yaml: 100 %s \\n \"x\"";
		bench.host(`printf '%s\\n' '${line}'; exit 3`);
		assert.deepEqual(await bench.implement("c.yaml"), { line, type: "error" });
	});

	test("a code of a later engine is printed as it stands", async (t) => {
		const bench = new Bench(t);
		bench.host('echo "satyrn-engine: SOME_NEW_2: why"; exit 65');
		await expectRefusal(bench, /^satyrn-engine: SOME_NEW_2: why$/);
	});

	for (const [name, script, pattern] of [
		["two lines", `${OK}; ${OK}`, /ended with exit 0 and "satyrn-engine: OK\\nsatyrn-engine: OK\\n" on stdout$/],
		["an empty line before", `echo; ${OK}`, /ended with exit 0 and "\\nsatyrn/],
		["no line", "true", /ended with exit 0 and nothing on stdout$/],
		["a foreign line", 'echo "hello"', /ended with exit 0 and "hello\\n" on stdout$/],
		["a line on stderr only", `${OK} >&2`, /exit 0 and nothing on stdout; stderr: satyrn-engine: OK$/],
		["OK with exit 7", `${OK}; exit 7`, /ended with exit 7 and "satyrn-engine: OK\\n" on stdout$/],
		["OK as the code of a refusal", 'echo "satyrn-engine: OK: not really"; exit 3', /exit 3 and "satyrn-engine: OK: not really/],
		["OK with a detail", 'echo "satyrn-engine: OK: really"', /exit 0 and "satyrn-engine: OK: really/],
		["a refusal with exit 0", 'echo "satyrn-engine: USAGE: x"', /exit 0 and "satyrn-engine: USAGE: x\\n" on stdout$/],
		["a code in small letters", 'echo "satyrn-engine: usage: x"; exit 2', /exit 2 and "satyrn-engine: usage: x/],
		["an escape sequence", 'printf "satyrn-engine: USAGE: \\033[2J\\n"; exit 2', /exit 2 and "satyrn-engine: USAGE: \\u001b\[2J/],
		["OK and death by a signal", `${OK}; kill -SEGV $$`, /ended with SIGSEGV and "satyrn-engine: OK\\n" on stdout$/],
		["death by a signal", "echo deep trouble >&2; kill -SEGV $$", /SIGSEGV and nothing on stdout; stderr: deep trouble$/],
		["a panic", 'printf "line 1\\nline 2\\n" >&2; exit 101', /exit 101 and nothing on stdout; stderr: line 1\\nline 2$/],
	] as const) {
		test(`${name} is ENGINE_CRASHED`, async (t) => {
			const bench = new Bench(t);
			bench.host(script);
			await expectRefusal(bench, pattern);
			assert.match(bench.notices[0]?.line ?? "", /^satyrn-engine: ENGINE_CRASHED: satyrn-host ended with .*$/);
		});
	}

	test("a flood on stderr costs no memory and does not delay the line", async (t) => {
		const bench = new Bench(t);
		bench.host(`head -c 100000000 /dev/zero | tr '\\0' x >&2; ${OK}`);
		const before = process.resourceUsage().maxRSS;
		await expectOk(bench);
		assert.ok(process.resourceUsage().maxRSS - before < 64 * 1024);
	});

	test("a flood on stdout costs no memory and is no answer, even when it begins like one", async (t) => {
		const bench = new Bench(t);
		bench.host(`${OK}; head -c 100000000 /dev/zero | tr '\\0' x; exit 0`);
		const before = process.resourceUsage().maxRSS;
		await expectRefusal(bench, /^satyrn-engine: ENGINE_CRASHED: .{0,400}$/);
		assert.ok(process.resourceUsage().maxRSS - before < 64 * 1024);
	});

	for (const [name, redirect] of [
		["stdout", ">&1 2>/dev/null"],
		["stderr", ">/dev/null"],
		["both pipes", ""],
	] as const) {
		test(`a process that holds ${name} after the host's exit does not delay the line`, async (t) => {
			const bench = new Bench(t);
			bench.host(`sleep 300 ${redirect} & echo $! > "${bench.folder}/pid"; ${OK}`);
			const started = performance.now();
			await expectOk(bench);
			assert.ok(performance.now() - started < 5_000);
			const pid = Number(readFileSync(join(bench.folder, "pid"), "utf8"));
			assert.ok(alive(pid), "the process was not there to hold the pipe");
			process.kill(pid, "SIGKILL");
		});
	}
});

describe("the start", () => {
	test("the host gets exactly these arguments, in the session's folder, on a leash", async (t) => {
		const bench = new Bench(t);
		bench.host(`for a; do echo "<$a>" >> args; done; ${OK}`);
		await expectOk(bench, ` @"my dir/it's \\"a\\" $HOME *.yaml" `);
		const args = readFileSync(join(bench.folder, "args"), "utf8");
		assert.equal(args, `<implement>\n<--leash>\n<-->\n<my dir/it's \\"a\\" $HOME *.yaml>\n`);
	});

	for (const args of ["", "  ", "@", '""', '@""', "''"]) {
		test(`the argument '${args}' is USAGE and starts nothing`, async (t) => {
			const bench = new Bench(t);
			bench.host(OK);
			await expectRefusal(bench, /^satyrn-engine: USAGE: no contract given; type \/implement CONTRACT$/, args);
			assert.equal(bench.children.length, 0);
		});
	}

	test("a host that is missing is ENGINE_START_FAILED, and is looked for nowhere else", async (t) => {
		const bench = new Bench(t);
		process.env.SATYRN_HOST = join(bench.folder, "gone");
		await expectRefusal(bench, /^satyrn-engine: ENGINE_START_FAILED: SATYRN_HOST is .*\/gone: no such file$/);
		bench.host(OK);
		await expectOk(bench);
	});

	test("a host that is not executable is ENGINE_START_FAILED", async (t) => {
		const bench = new Bench(t);
		chmodSync(bench.host(OK), 0o644);
		await expectRefusal(bench, /^satyrn-engine: ENGINE_START_FAILED: SATYRN_HOST is .*: no permission to run it$/);
		bench.host(OK);
		await expectOk(bench);
	});

	test("a host without its interpreter is ENGINE_START_FAILED", async (t) => {
		const bench = new Bench(t);
		process.env.SATYRN_HOST = bench.program("satyrn-host", "#!/no/such/interpreter\n");
		await expectRefusal(bench, /^satyrn-engine: ENGINE_START_FAILED: cannot start .*\/satyrn-host in .*: spawn .* ENOENT$/);
	});

	test("a working directory that is gone is named, not taken for a missing host", async (t) => {
		const bench = new Bench(t);
		bench.host(OK);
		const notice = await bench.implement("c.yaml", bench.context("rpc", "/no/such/folder"));
		assert.equal(
			notice?.line,
			"satyrn-engine: ENGINE_START_FAILED: the working directory /no/such/folder does not exist",
		);
		await expectOk(bench);
	});

	test("an argument that no program can be given is ENGINE_START_FAILED on one line", async (t) => {
		const bench = new Bench(t);
		bench.host(OK);
		await expectRefusal(bench, /^satyrn-engine: ENGINE_START_FAILED: TypeError.*null bytes.*$/, "a\0b");
		await expectRefusal(bench, /^satyrn-engine: ENGINE_START_FAILED: .*E2BIG.*$/, "x".repeat(4_000_000));
		await expectOk(bench);
	});

	test("a spawn that throws is ENGINE_START_FAILED", async (t) => {
		const bench = new Bench(t, {
			spawn: (() => {
				throw new Error("no processes today\nreally");
			}) as unknown as typeof spawn,
		});
		bench.host(OK);
		await expectRefusal(bench, /^satyrn-engine: ENGINE_START_FAILED: Error: no processes today\\nreally$/);
	});

	test("a spawn without free descriptors, which makes no pipes, is ENGINE_START_FAILED", async (t) => {
		const bench = new Bench(t, {
			spawn: (() => {
				const child = Object.assign(new EventEmitter(), { kill: () => false, unref: () => {} });
				process.nextTick(() => child.emit("error", new Error("spawn EMFILE")));
				return child;
			}) as unknown as typeof spawn,
		});
		bench.host(OK);
		await expectRefusal(bench, /^satyrn-engine: ENGINE_START_FAILED: cannot start .*: spawn EMFILE$/);
	});
});

describe("the stop", () => {
	// A good host ends when its stdin ends. `cat` waits for that; TERM is left to the tests below.
	const LEASHED = 'trap "" TERM; echo up >&2; cat >/dev/null; echo "satyrn-engine: ENGINE_CANCELLED: leash"; exit 143';
	const IGNORES_ALL = 'trap "" TERM; echo up >&2; while :; do sleep 300; done';

	test("shutdown ends the leash, waits for the host and lets it say so", async (t) => {
		const bench = new Bench(t);
		bench.host(LEASHED);
		const handled = bench.implement("c.yaml");
		const child = await bench.hostIsUp();
		await bench.fire("session_shutdown");
		assert.equal(child.exitCode, 143);
		assert.deepEqual(await handled, { line: "satyrn-engine: ENGINE_CANCELLED: leash", type: "error" });
	});

	test("shutdown sends SIGTERM to a host that does not read its leash", async (t) => {
		const bench = new Bench(t);
		bench.host("echo up >&2; exec sleep 300");
		const handled = bench.implement("c.yaml");
		const child = await bench.hostIsUp();
		await bench.fire("session_shutdown");
		assert.equal(child.signalCode, "SIGTERM");
		assert.match((await handled)?.line ?? "", /ENGINE_CRASHED: satyrn-host ended with SIGTERM and nothing on stdout; stderr: up$/);
	});

	test("shutdown kills a host that ignores both", async (t) => {
		const bench = new Bench(t, { killMs: 50 });
		bench.host(IGNORES_ALL.replace("sleep 300", 'sleep 300 & echo $! > pid; wait'));
		const handled = bench.implement("c.yaml");
		const child = await bench.hostIsUp();
		await bench.fire("session_shutdown");
		assert.equal(child.signalCode, "SIGKILL");
		assert.match((await handled)?.line ?? "", /ENGINE_CRASHED: satyrn-host ended with SIGKILL/);
		process.kill(Number(readFileSync(join(bench.folder, "pid"), "utf8")), "SIGKILL");
	});

	test("shutdown waits for every running check, and is nothing without one", async (t) => {
		const bench = new Bench(t);
		await bench.fire("session_shutdown");
		bench.host(LEASHED);
		const handled = [bench.implement("a.yaml"), bench.implement("b.yaml")];
		await Promise.all(bench.children.map((child) => once(child.stderr ?? child, "data")));
		await bench.fire("session_shutdown");
		assert.deepEqual(bench.children.map((child) => child.exitCode), [143, 143]);
		await Promise.all(handled);
	});

	test("shutdown is nothing for a check that has ended", async (t) => {
		const bench = new Bench(t);
		bench.host(OK);
		await expectOk(bench);
		const timeouts = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
		const before = timeouts();
		await bench.fire("session_shutdown");
		assert.equal(timeouts(), before);
	});

	test("the watchdog stops a host that outlives its own deadline", async (t) => {
		const bench = new Bench(t, { watchdogMs: 50, killMs: 50 });
		bench.host("trap '' TERM; exec sleep 300");
		await expectRefusal(bench, /^satyrn-engine: ENGINE_CRASHED: satyrn-host ended with SIGKILL and nothing on stdout$/);
		assert.equal(alive(bench.children[0]?.pid ?? 0), false);
		bench.host(OK);
		await expectOk(bench);
	});

	test("a host that cannot be killed is left after a bound", async (t) => {
		let child: EventEmitter | undefined;
		const bench = new Bench(t, {
			killMs: 10,
			spawn: (() => (child = Object.assign(new EventEmitter(), { pid: 1, kill: () => true, unref: () => {} }))) as unknown as typeof spawn,
		});
		bench.host(OK);
		const handled = bench.implement("c.yaml");
		await bench.fire("session_shutdown");
		assert.match((await handled)?.line ?? "", /^satyrn-engine: ENGINE_CRASHED: satyrn-host ended with SIGKILL/);
		child?.emit("error", new Error("kill EPERM"));
	});

	test("EPIPE on the leash is no failure", async (t) => {
		const bench = new Bench(t);
		bench.host(`exec 0<&-; echo up >&2; mkfifo go; echo fifo >&2; cat go >/dev/null; ${OK}`);
		const handled = bench.implement("c.yaml");
		const child = await bench.hostIsUp();
		// No listener of this test's own: the error must find one.
		const error = await new Promise((told) => child.stdin?.write("anything", told));
		assert.equal((error as NodeJS.ErrnoException).code, "EPIPE");
		writeFileSync(join(bench.folder, "go"), "");
		assert.deepEqual(await handled, OK_NOTICE);
	});

	test("a host that closes all its streams and stays can still be stopped", async (t) => {
		const bench = new Bench(t);
		bench.host("echo up >&2; exec 0<&- 1>&- 2>&-; exec sleep 300");
		const handled = bench.implement("c.yaml");
		const child = await bench.hostIsUp();
		await bench.fire("session_shutdown");
		assert.equal(child.signalCode, "SIGTERM");
		await handled;
	});

	test("nothing throws when the session was replaced meanwhile", async (t) => {
		const bench = new Bench(t);
		bench.host(LEASHED);
		const handled = bench.implement("c.yaml");
		await bench.hostIsUp();
		bench.stale = true;
		await bench.fire("session_shutdown", undefined);
		assert.equal(await handled, undefined);
		bench.stale = false;
		bench.host(OK);
		await expectOk(bench);
	});

	test("a ctx that is stale from the start throws nothing either", async (t) => {
		const bench = new Bench(t);
		bench.host(OK);
		bench.stale = true;
		assert.equal(await bench.implement("c.yaml"), undefined);
	});

	// A timer, child or pipe that is left would keep `pi -p` from ending.
	for (const [name, script] of [
		["a check", OK],
		["a check whose pipes are held", `sleep 300 & echo $! > pid; ${OK}`],
	] as const) {
		test(`${name} leaves nothing that keeps a process alive`, async (t) => {
			const bench = new Bench(t);
			bench.host(script);
			const program = `
				import extension from ${JSON.stringify(new URL("../orchestrator.ts", import.meta.url).href)};
				const ctx = { cwd: ${JSON.stringify(bench.folder)}, mode: "print", hasUI: false };
				extension({ on() {}, registerCommand: (_name, command) => command.handler("c.yaml", ctx) });`;
			const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], { timeout: 20_000 });
			assert.equal(stdout, "satyrn-engine: OK\n");
			if (script !== OK) process.kill(Number(readFileSync(join(bench.folder, "pid"), "utf8")), "SIGKILL");
		});
	}
});
