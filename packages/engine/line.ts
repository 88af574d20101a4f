// What goes in and what comes out, as pure functions: the argument of /implement, and the one line of the host.
import { constants } from "node:os";

/** `exit` is the status that the line stands for, as docs/pi.md lists it. */
export interface Verdict {
	line: string;
	exit: number;
}

/** How a host ended. `problem` says why it never started; the other members are then empty. */
export interface HostEnd {
	code: number | null;
	signal: NodeJS.Signals | null;
	stdout: string;
	stderr: string;
	problem?: string;
}

/** How much of a host's stdout is kept, in UTF-16 units: the longest line has 4,096 characters. What is longer is no line. */
export const MAX_STDOUT = 16_384;

/** Pi's Tab completion types `@path`, `"path with blanks"` and `@"path with blanks"`: one `@` and one pair go. */
export function parseContract(args: string): string {
	const path = args.trim().replace(/^@/, "");
	return /^(["'])(.*)\1$/s.exec(path)?.[2] ?? path;
}

/** The host is believed when its whole stdout is one line and OK stands exactly with exit 0. */
export function judge({ code, signal, stdout, stderr, problem }: HostEnd): Verdict {
	if (problem !== undefined) return refusal("ENGINE_START_FAILED", problem, 69);
	const line = /^(satyrn-engine: (?:OK|(?!OK:)[A-Z][A-Z0-9_]*: [^\p{Cc}\p{Zl}\p{Zp}]{0,4096}))(?:\r?\n)?$/u.exec(stdout)?.[1];
	const exit = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
	if (line !== undefined && stdout.length < MAX_STDOUT && (line === "satyrn-engine: OK") === (exit === 0)) return { line, exit };
	const said = stdout === "" ? "nothing on stdout" : `${JSON.stringify(stdout.slice(0, 200))} on stdout`;
	const tail = stderr.trim() === "" ? "" : `; stderr: ${stderr.trim().slice(-1_000)}`;
	return refusal("ENGINE_CRASHED", `satyrn-host ended with ${signal ?? `exit ${code}`} and ${said}${tail}`, 70);
}

/** A line of this extension's own. What it quotes cannot break the line or move the cursor. */
export function refusal(code: string, detail: string, exit: number): Verdict {
	return { line: `satyrn-engine: ${code}: ${whole(visible(detail).slice(0, 4_000))}`, exit };
}

/** A cut may leave half of a surrogate pair, which no strict reader of JSON takes. */
function whole(text: string): string {
	return text.replace(/\p{Cs}/gu, "\ufffd");
}

export function visible(text: string): string {
	return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) =>
		char === "\n" ? "\\n" : `\\u{${char.codePointAt(0)?.toString(16)}}`,
	);
}

/**
 * When a host counts as broken: a minute after its own deadline, which is 30 s unless `SATYRN_DEADLINE` says otherwise.
 * A value that is not understood here may be fine for the host, and a drill may have a deadline of its own; both get
 * the longest deadline that a host accepts.
 */
export function watchdogMsFor(deadline?: string, drill?: string): number {
	deadline ??= drill === undefined ? "30s" : "24h";
	const [, number, unit] = /^(\d+)(ms|s|m|h)$/.exec(deadline.trim()) ?? [undefined, "24", "h"];
	const ms = Number(number) * { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[unit as "ms" | "s" | "m" | "h"];
	return Math.min(ms, 24 * 3_600_000) + 60_000;
}
