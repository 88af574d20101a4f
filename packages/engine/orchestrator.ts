// /implement CONTRACT: starts one satyrn-host, prints its one line and leaves nothing behind. How an engine is run,
// stopped and judged is the host's business. Nothing in here may throw into Pi: an error in a timer would end it.
import { spawn as nodeSpawn } from "node:child_process";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { completeContract } from "./complete.ts";
import { findHost, ownPlaces, startProblem } from "./host.ts";
import { type HostEnd, judge, MAX_STDOUT, parseContract, refusal, type Verdict, watchdogMsFor } from "./line.ts";
import { type Context, showLoader } from "./loader.ts";

/** What a test replaces. The watchdog stops a host that outlives its own deadline; killMs is from the end of the leash to SIGKILL. */
export interface Seams {
	spawn?: typeof nodeSpawn;
	watchdogMs?: number;
	killMs?: number;
}

/** `ended` never rejects. */
interface Host {
	ended: Promise<HostEnd>;
	stop(): void;
}

export function createOrchestrator(seams: Seams = {}) {
	return (pi: ExtensionAPI): void => {
		const running = new Set<Host>();
		let cwd = process.cwd();
		pi.on("session_start", (_event, ctx) => {
			cwd = ctx.cwd;
		});
		// Pi awaits this before it leaves or replaces the session.
		pi.on("session_shutdown", async () => {
			for (const host of running) host.stop();
			await Promise.all([...running].map((host) => host.ended));
		});
		pi.registerCommand("implement", {
			description: "Check a contract: /implement CONTRACT",
			getArgumentCompletions: (typed) => completeContract(typed, cwd).catch(() => null),
			handler: async (args, ctx: Context) => {
				const verdict = implement(args, ctx, running, seams);
				print(ctx, await verdict.catch((error: unknown) => refusal("ENGINE_START_FAILED", String(error), 69)));
			},
		});
	};
}

export default createOrchestrator();

async function implement(args: string, ctx: Context, running: Set<Host>, seams: Seams): Promise<Verdict> {
	const contract = parseContract(args);
	if (contract === "") return refusal("USAGE", "no contract given; type /implement CONTRACT", 2);
	const found = findHost(ownPlaces());
	if ("problem" in found) return refusal("ENGINE_START_FAILED", found.problem, 69);
	const host = startHost(found.path, contract, ctx.cwd, seams);
	running.add(host);
	const loader = setTimeout(showLoader, 300, ctx, contract, host.ended, host.stop);
	const end = await host.ended;
	clearTimeout(loader);
	running.delete(host);
	return judge(end);
}

/** Throws what `spawn` throws at once; everything later is told by `ended`. */
function startHost(path: string, contract: string, cwd: string, seams: Seams): Host {
	const { SATYRN_DEADLINE, SATYRN_DRILL } = process.env;
	const { spawn = nodeSpawn, watchdogMs = watchdogMsFor(SATYRN_DEADLINE, SATYRN_DRILL), killMs = 5_000 } = seams;
	const child = spawn(path, ["implement", "--leash", "--", contract], { cwd, windowsHide: true });
	const seen = { stdout: "", stderr: "" };
	const timers: NodeJS.Timeout[] = [];
	const after = (ms: number, act: () => void) => timers.push(setTimeout(act, ms));
	// Without a free descriptor a child has no pipes, and one that could not start has no pid.
	const closePipes = () => [child.stdin, child.stdout, child.stderr].forEach((pipe) => pipe?.destroy());
	let settle: (end: Omit<HostEnd, "stdout" | "stderr">) => void = () => {};
	const ended = new Promise<HostEnd>((resolve) => {
		settle = (end) => {
			timers.forEach(clearTimeout);
			closePipes();
			child.unref();
			resolve({ ...seen, ...end });
		};
	});
	child.on("error", (error) => {
		if (child.pid === undefined) settle({ code: null, signal: null, problem: startProblem(path, cwd, error) });
	});
	for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.on("error", () => {});
	child.stdout?.setEncoding("utf8").on("data", (text: string) => {
		if (seen.stdout.length < MAX_STDOUT) seen.stdout += text;
	});
	child.stderr?.setEncoding("utf8").on("data", (text: string) => {
		seen.stderr = (seen.stderr + text).slice(-4_096);
	});
	// `close` waits for the pipes, and a descendant of the host may hold one for ever.
	child.on("exit", () => after(250, closePipes));
	child.on("close", (code, signal) => settle({ code, signal }));
	let stopping = false;
	const stop = () => {
		if (stopping) return;
		stopping = true;
		// The end of the leash stops the host. SIGTERM is for one that does not read it; a new one dies of it without a word.
		child.stdin?.destroy();
		if (process.platform !== "win32") after(250, () => child.kill("SIGTERM"));
		after(killMs, () => {
			child.kill("SIGKILL");
			after(1_000, () => settle({ code: null, signal: "SIGKILL" }));
		});
	};
	after(watchdogMs, stop);
	return { ended, stop };
}

function print(ctx: Context, { line, exit }: Verdict): void {
	try {
		if (ctx.hasUI) return ctx.ui.notify(line, exit === 0 ? "info" : "error");
		// Outside a UI `notify` does nothing, and in JSON mode stdout belongs to Pi.
		if (ctx.mode === "print") console.log(line);
		else console.error(line);
		if (exit !== 0) process.exitCode = exit;
	} catch {
		// The session was replaced (/new): nobody is left to read the line.
	}
}
