// Node 20 finds no .ts test, runs nothing and exits 0. A test command that passes without a test must fail instead.
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
	console.error(`the tests need Node 22.19 or newer, which runs TypeScript; this is ${process.version}`);
	process.exit(1);
}
