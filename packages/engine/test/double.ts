// A double of Pi for the extension, and a real host program for it to start.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { ExtensionAPI, ExtensionCommandContext } from "@earendil-works/pi-coding-agent";
import { createOrchestrator, type Seams } from "../orchestrator.ts";

export interface Notice {
	line: string;
	type: string | undefined;
}

type Command = Parameters<ExtensionAPI["registerCommand"]>[1];
/** Pi 0.73 does not name its mode. */
type Mode = "tui" | "rpc" | "json" | "print" | "unnamed";

export class Bench {
	readonly notices: Notice[] = [];
	readonly children: ChildProcess[] = [];
	readonly folder: string;
	/** From here on every use of `ctx` throws, as Pi's does after /new. */
	stale = false;
	custom: unknown = () => {
		throw new Error("this test expects no loader");
	};
	#handlers = new Map<string, (event: unknown, ctx: unknown) => unknown>();
	#command: Command | undefined;
	#t: TestContext;

	constructor(t: TestContext, seams: Seams = {}) {
		this.#t = t;
		this.folder = realpathSync(mkdtempSync(join(tmpdir(), "satyrn pi ")));
		const before = { host: process.env.SATYRN_HOST, exitCode: process.exitCode };
		t.after(() => {
			if (before.host === undefined) delete process.env.SATYRN_HOST;
			else process.env.SATYRN_HOST = before.host;
			process.exitCode = before.exitCode;
			for (const child of this.children) child.kill("SIGKILL");
			rmSync(this.folder, { recursive: true, force: true });
		});
		const watched = ((...args: Parameters<typeof spawn>) => {
			const child = spawn(...args);
			this.children.push(child);
			return child;
		}) as typeof spawn;
		createOrchestrator({ spawn: watched, ...seams })({
			on: (event: string, handler: (event: unknown, ctx: unknown) => unknown) => this.#handlers.set(event, handler),
			registerCommand: (name: string, command: Command) => {
				assert.equal(name, "implement");
				this.#command = command;
			},
		} as unknown as ExtensionAPI);
	}

	get command(): Command {
		if (this.#command === undefined) throw new Error("no command was registered");
		return this.#command;
	}

	/** Writes an executable file into the test's folder. */
	program(name: string, text: string): string {
		const path = join(this.folder, name);
		writeFileSync(path, text);
		chmodSync(path, 0o755);
		return path;
	}

	/** Makes a shell script the host of this test. */
	host(script: string): string {
		return (process.env.SATYRN_HOST = this.program("satyrn-host", `#!/bin/sh\n${script}\n`));
	}

	context(mode: Mode = "rpc", cwd = this.folder): ExtensionCommandContext {
		const ui = {
			notify: (line: string, type?: string) => void this.notices.push({ line, type }),
			custom: (...args: unknown[]) => (this.custom as (...args: unknown[]) => unknown)(...args),
		};
		const values = { ui, cwd, mode: mode === "unnamed" ? undefined : mode, hasUI: mode === "tui" || mode === "rpc" };
		return new Proxy(values, {
			get: (target, key) => {
				if (this.stale) throw new Error("this ctx is stale");
				return Reflect.get(target, key);
			},
		}) as unknown as ExtensionCommandContext;
	}

	/** Runs /implement to its end; the result is the last thing the user was told. */
	async implement(args: string, ctx = this.context()): Promise<Notice | undefined> {
		await this.command.handler(args, ctx);
		return this.notices.at(-1);
	}

	/** Runs /implement in a mode without UI; the result is what the two console functions got. */
	async implementIn(mode: "json" | "print" | "unnamed", args: string): Promise<{ log: string[]; error: string[] }> {
		const said = { log: [] as string[], error: [] as string[] };
		const log = this.#t.mock.method(console, "log", (line: string) => void said.log.push(line));
		const error = this.#t.mock.method(console, "error", (line: string) => void said.error.push(line));
		await this.command.handler(args, this.context(mode));
		log.mock.restore();
		error.mock.restore();
		return said;
	}

	/** Fires a session event, as Pi does: the handler is awaited. */
	async fire(event: "session_start" | "session_shutdown", ctx: unknown = this.context()): Promise<void> {
		await this.#handlers.get(event)?.({ type: event }, ctx);
	}

	/** Waits until the host has said something on stderr, which the scripts here use for "I am there". */
	async hostIsUp(): Promise<ChildProcess> {
		const child = this.children.at(-1);
		if (child?.stderr == null) throw new Error("no host was started");
		await once(child.stderr, "data");
		return child;
	}
}

export function alive(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}
