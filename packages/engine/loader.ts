// The moving line under a check that takes long, with Esc to stop it. Only Pi's TUI has it.
import type { ExtensionCommandContext } from "@earendil-works/pi-coding-agent";
import { visible } from "./line.ts";

/** Pi 0.73 has no `mode`. */
export type Context = ExtensionCommandContext & { mode?: string };

/** Stays until `ended`, also after Esc: the host is then still cleaning up. Never rejects. */
export async function showLoader(
	ctx: Context,
	contract: string,
	ended: Promise<unknown>,
	stop: () => void,
): Promise<void> {
	let over = false;
	void ended.then(() => {
		over = true;
	});
	try {
		if (ctx.mode !== "tui") return;
		// The one import of Pi that is not erased. It is dynamic because Pi 0.73 does not know the name.
		const { BorderedLoader } = await import("@earendil-works/pi-coding-agent");
		if (over) return;
		await ctx.ui.custom<void>((tui, theme, _keys, done) => {
			const loader = new BorderedLoader(tui, theme, `Checking ${visible(contract)}`);
			loader.onAbort = stop;
			ended.then(() => done()).catch(() => {});
			return loader;
		});
	} catch {
		// Without the loader, or in a session that is gone, the check itself goes on.
	}
}
