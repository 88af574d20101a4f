//! The documentation, held against what really happens: each command in it is run and shows what
//! the page says, or stands below with the reason why it is not run; what it names exists.
//!
//! A `console` block is one session of `sh`, since pages use `$?`, `export` and pipes; the blocks of
//! a page share a directory. In an output `...` stands for anything, alone on a line for any lines;
//! a length of time stands for any other. A command without an output has to succeed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{fixtures, host, program, run, script};
use regex_lite::Regex;

/// A command that no test here runs.
struct NotRun {
    command: &'static str,
    why: &'static str,
    /// A file that tries it, and the words with which it does; `None` if only people do.
    tried: Option<(&'static str, &'static str)>,
}

const NOT_RUN: &[NotRun] = &[
    NotRun {
        command: "cargo run --release -- implement fixtures/contracts/good.yaml",
        why: "a release build takes minutes",
        tried: Some((".ci/run", "cargo run --quiet --release --locked -- implement")),
    },
    NotRun {
        command: "cargo install --path .",
        why: "a release build takes minutes",
        tried: Some((".ci/install", "cargo install --quiet --locked --path .")),
    },
    NotRun {
        command: "uv tool install .",
        why: "a release build takes minutes",
        tried: Some((".ci/install", "uv tool install --quiet .")),
    },
    NotRun {
        command: "cargo test",
        why: "it is what runs this",
        tried: Some((".ci/run", "cargo test --locked")),
    },
    NotRun {
        command: "cargo test --lib",
        why: "it is a part of what runs this",
        tried: Some((".ci/run", "cargo test --locked")),
    },
    NotRun {
        command: "cargo clippy --all-targets",
        why: "it builds everything a second time",
        tried: Some((".ci/run", "cargo clippy --quiet --all-targets --locked")),
    },
    NotRun {
        command: ".ci/run",
        why: "it runs this",
        tried: Some((".github/workflows/ci.yml", "- run: .ci/run")),
    },
    NotRun {
        command: ".ci/install",
        why: "it builds releases",
        tried: Some((".ci/run", ".ci/install")),
    },
    NotRun {
        command: ".ci/cross",
        why: "it runs this, on other systems",
        tried: Some((".ci/run", ".ci/cross")),
    },
    NotRun {
        command: "cargo bench --bench whole_process",
        why: "a bench measures an idle machine, for minutes",
        tried: None,
    },
    NotRun {
        command: "cargo bench --bench whole_process -- --json --runs 500",
        why: "a bench measures an idle machine, for minutes",
        tried: None,
    },
    NotRun {
        command: "cargo build --release",
        why: "a release build takes minutes",
        tried: Some((".ci/instructions", "cargo build --release --locked")),
    },
    NotRun {
        command: "cargo build --release --target x86_64-unknown-linux-musl",
        why: "not every machine has that standard library",
        tried: Some((".github/workflows/release.yml", "target: x86_64-unknown-linux-musl")),
    },
    NotRun {
        command: "cargo bench --target x86_64-unknown-linux-musl --bench whole_process -- --slow --plain target/release/satyrn-host",
        why: "a bench measures an idle machine, for minutes",
        tried: None,
    },
    NotRun {
        command: "perf record -F 20000 -a -- sh -c 'i=0; while [ $i -lt 1000 ]; do satyrn-host implement contract.yaml; i=$((i+1)); done'",
        why: "few machines let one sample the whole system",
        tried: None,
    },
    NotRun { command: "perf report --sort comm,dso", why: "there is no recording", tried: None },
    NotRun {
        command: "RUSTFLAGS=\"-C target-feature=+crt-static\" cargo build --release --target x86_64-unknown-linux-gnu",
        why: "a release build takes minutes",
        tried: Some((".ci/tarball", "-C target-feature=+crt-static")),
    },
    NotRun {
        command: ".ci/tarball x86_64-unknown-linux-musl out",
        why: "a release build takes minutes",
        tried: Some((".github/workflows/release.yml", ".ci/tarball \"$TARGET\" files")),
    },
    NotRun {
        command: ".ci/install tarball",
        why: "it builds releases",
        tried: Some((".ci/run", ".ci/install")),
    },
    NotRun {
        command: ".ci/install wheel",
        why: "it builds releases",
        tried: Some((".ci/run", ".ci/install")),
    },
    NotRun {
        command: ".ci/install npm",
        why: "it builds releases",
        tried: Some((".ci/run", ".ci/install")),
    },
    NotRun {
        command: "sha256sum --check SHA256SUMS",
        why: "there is no release",
        tried: Some((".ci/install", "sha256sum --check")),
    },
    NotRun {
        command: "SATYRN_UPDATE_PAGES=1 cargo test --test integration pages::what",
        why: "it writes into the checkout",
        tried: Some(("tests/integration/pages.rs", "SATYRN_UPDATE_PAGES")),
    },
    NotRun { command: "touch src/host/drill/set.rs", why: "it changes the checkout", tried: None },
    NotRun {
        command: "rustup target add x86_64-unknown-linux-musl",
        why: "not every machine has rustup",
        tried: Some((".github/workflows/ci.yml", "targets: x86_64-unknown-linux-musl")),
    },
    NotRun { command: "perf stat -e page-faults", why: "few machines have it", tried: None },
    NotRun { command: ".ci/soak 20000", why: "it takes five minutes", tried: None },
    NotRun { command: ".ci/stress 20", why: "it runs this, for a quarter of an hour", tried: None },
    NotRun {
        command: ".ci/notices",
        why: "it asks cargo, and the lock file may have been changed on purpose",
        tried: Some((".ci/run", ".ci/notices")),
    },
    NotRun {
        command: "cargo about generate --locked --fail about.hbs -o THIRD-PARTY-LICENSES.md",
        why: "not every machine has cargo-about",
        tried: None,
    },
    NotRun {
        command: ".ci/instructions",
        why: "a release build takes minutes",
        tried: Some((".ci/run", ".ci/instructions")),
    },
    NotRun {
        command: "pi",
        why: "Pi is not there; it takes the terminal",
        tried: Some(("packages/engine/test/pi/terminal.test.ts", "/implement good.yaml")),
    },
    NotRun {
        command: "pi install ./packages/engine",
        why: "Pi is not there",
        tried: Some(("packages/engine/test/pi/package.test.ts", "installed from a path")),
    },
    NotRun {
        command: "node packages/engine/scripts/platform-package.mjs target/debug/satyrn-host target/npm",
        why: "Node is not there",
        tried: Some(("packages/engine/test/pi/package.test.ts", "scripts/platform-package.mjs")),
    },
    NotRun {
        command: "node packages/engine/scripts/main-package.mjs target/npm --local",
        why: "Node is not there",
        tried: Some(("packages/engine/test/pi/package.test.ts", "scripts/main-package.mjs")),
    },
    NotRun {
        command: "pi install \"npm:@satyrn/engine@file:$PWD/target/npm/satyrn-engine-0.1.0.tgz\"",
        why: "Pi is not there",
        tried: Some(("packages/engine/test/pi/package.test.ts", "npm:@satyrn/engine@file:")),
    },
    NotRun {
        command: "pi list",
        why: "Pi is not there",
        tried: Some(("packages/engine/test/pi/package.test.ts", "[\"list\"]")),
    },
    NotRun { command: "pi remove", why: "Pi is not there", tried: None },
    NotRun {
        command: "pi -e packages/engine/orchestrator.ts",
        why: "Pi is not there",
        tried: Some(("packages/engine/test/pi/real.ts", "\"-e\", EXTENSION")),
    },
    NotRun {
        command: "pi -p -e packages/engine/orchestrator.ts \"/implement contract.yaml\"",
        why: "Pi is not there",
        tried: Some(("packages/engine/test/pi/drills.test.ts", "repo.env.SATYRN_DRILL = name")),
    },
    NotRun {
        command: "pi -p --no-session --offline -ne -ns -np -nc -e \"$EXTENSION\" \"/implement gone.yaml\" </dev/null 2>&1 | tail -n 1",
        why: "Pi is not there",
        tried: Some((
            "packages/engine/test/pi/headless.test.ts",
            "[\"-p\", \"/implement gone.yaml\"]",
        )),
    },
    NotRun {
        command: "pi -p --no-session --offline -ne -ns -np -nc -e \"$EXTENSION\" \"/implement gone.yaml\" </dev/null 2>/dev/null; echo $?",
        why: "Pi is not there",
        tried: Some((
            "packages/engine/test/pi/headless.test.ts",
            "[\"-p\", \"/implement gone.yaml\"]",
        )),
    },
    NotRun {
        command: "export SATYRN_HOST=\"$PWD/target/debug/satyrn-host\" EXTENSION=\"$PWD/packages/engine/orchestrator.ts\"",
        why: "the script that it begins needs Pi",
        tried: Some(("packages/engine/test/pi/headless.test.ts", "/implement gone.yaml")),
    },
    NotRun {
        command: "npm run test:pi",
        why: "it installs Pi",
        tried: Some((".ci/run", "npm run --silent test:pi")),
    },
    NotRun {
        command: "npm test",
        why: "Node is not there",
        tried: Some((".ci/run", "npm run --silent test")),
    },
    NotRun {
        command: "npm run check",
        why: "Node is not there",
        tried: Some((".ci/run", "npm run --silent check")),
    },
    NotRun {
        command: "satyrn-host drill",
        why: "another test runs all drills",
        tried: Some(("tests/integration/drill.rs", "fn every_built_in_drill_holds")),
    },
    NotRun {
        command: "satyrn-engine protocol",
        why: "it waits for a request",
        tried: Some(("docs/protocol.md", "| satyrn-engine protocol")),
    },
    NotRun {
        command: "satyrn-host implement --leash -- CONTRACT",
        why: "it waits for whoever holds the leash",
        tried: Some(("tests/integration/containment.rs", "&[\"--leash\"]")),
    },
];

/// What looks like the name of a drill and is none.
const NO_DRILLS: &[&str] = &["uv-failed"];

struct Page {
    name: String,
    text: String,
}

/// A fenced block: the word behind its fence, the number of its first line, and its lines.
struct Block<'a> {
    language: &'a str,
    line: usize,
    lines: Vec<&'a str>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<Page> {
    let mut names: Vec<String> =
        ["README.md", "CONTRIBUTING.md", "packages/engine/README.md"].map(str::to_owned).into();
    for dir in ["docs", "docs/spec"] {
        for entry in std::fs::read_dir(root().join(dir)).unwrap() {
            names.push(format!("{dir}/{}", entry.unwrap().file_name().to_str().unwrap()));
        }
    }
    names.retain(|name| Path::new(name).extension().is_some_and(|end| end == "md"));
    names.sort();
    let text = |name: &String| std::fs::read_to_string(root().join(name)).unwrap();
    names.into_iter().map(|name| Page { text: text(&name), name }).collect()
}

/// The blocks of a page, and its prose with a blank line in the place of each.
fn parts(text: &str) -> (Vec<Block<'_>>, String) {
    let (mut blocks, mut prose, mut open) = (Vec::new(), String::new(), None::<Block<'_>>);
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open = Some(Block { language, line: index + 2, lines: Vec::new() });
                prose.push('\n');
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.lines.push(line),
            (None, None) => prose = prose + line + "\n",
        }
    }
    assert!(open.is_none(), "a block is never closed");
    (blocks, prose)
}

/// The commands of a session, each with the lines that the page shows below it.
fn commands<'a>(block: &Block<'a>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in &block.lines {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => {
                let bare = command.split_once("  #").map_or(command, |(command, _)| command);
                commands.push((bare.trim_end(), Vec::new()));
            }
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => panic!("line {}: an output without a command", block.line),
        }
    }
    commands
}

/// The commands that stand in a sentence.
fn inline(prose: &str) -> Vec<String> {
    let programs = "satyrn-host|satyrn-engine|cargo|npm|node|pi|rustup|sha256sum|perf|touch";
    let command = format!(r"`((?:[A-Z_]+=\S+ )?(?:{programs}) [^`]+|\.ci/[a-z]+[^`]*)`");
    let command = Regex::new(&command).unwrap();
    let prose = prose.replace('\n', " ");
    command.captures_iter(&prose).map(|found| found[1].to_owned()).collect()
}

fn is_listed(command: &str) -> bool {
    NOT_RUN.iter().any(|not_run| not_run.command == command)
}

/// Whether a command builds, installs or asks a network: it is listed, or it is a mistake.
fn has_to_be_listed(command: &str) -> bool {
    let program = command.split(' ').find(|word| !word.contains('=')).unwrap_or_default();
    let others = ["cargo", "npm", "node", "pi", "rustup", "sha256sum", "perf", "touch"];
    others.contains(&program) || program.starts_with(".ci/")
}

/// What the pages speak of, so that their commands can be run as they stand.
fn furnish(base: &Path) -> PathBuf {
    let home = base.join("me");
    for dir in ["me/contracts", "service", "engine", "bin"] {
        std::fs::create_dir_all(base.join(dir)).unwrap();
    }
    std::os::unix::fs::symlink(fixtures(), home.join("fixtures")).unwrap();
    for contract in ["CONTRACT", "contract.yaml", "contracts/one.yaml", "contracts/two.yaml"] {
        std::fs::copy(fixtures().join("contracts/good.yaml"), home.join(contract)).unwrap();
    }
    std::fs::write(base.join("engine/pyproject.toml"), "").unwrap();
    script(&base.join("bin"), "uv", "#!/bin/sh\nexec satyrn-engine protocol\n");
    script(&home, "my-engine", "#!/bin/sh\nexec satyrn-engine \"$@\"\n");
    home
}

/// Runs commands in one shell. For each its exit code and what it printed, on both streams.
fn session(home: &Path, commands: &[&str]) -> Vec<(String, String)> {
    let mark = r#"s=$?; printf '\036%s\036' "$s"; (exit $s)"#;
    let mut text = format!("exec 2>&1\n{mark}\n");
    for command in commands {
        text = text + command + "\n" + mark + "\n";
    }
    let binaries = Path::new(env!("CARGO_BIN_EXE_satyrn-host")).parent().unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", home.join("../bin").display(), binaries.display());
    let ran = run(program("/bin/sh")
        .args(["-c", &text])
        .current_dir(home)
        .env("HOME", home)
        .env("PATH", path));
    let parts: Vec<&str> = ran.stdout.split('\u{1e}').collect();
    assert_eq!(parts.len(), 2 * commands.len() + 3, "{commands:?}: {ran:?}");
    parts[2..2 * commands.len() + 2]
        .chunks(2)
        .map(|part| (part[1].to_owned(), part[0].to_owned()))
        .collect()
}

/// Whether an output is the one that a page shows.
fn shows(shown: &str, seen: &str) -> bool {
    let lines = |text| str::lines(text).collect::<Vec<_>>();
    fits(&lines(shown), &lines(seen))
}

fn fits(shown: &[&str], seen: &[&str]) -> bool {
    match (shown, seen) {
        ([], seen) => seen.is_empty(),
        (["...", rest @ ..], seen) => (0..=seen.len()).any(|skipped| fits(rest, &seen[skipped..])),
        ([line, rest @ ..], [first, seen @ ..]) => line_fits(line, first) && fits(rest, seen),
        (_, []) => false,
    }
}

fn line_fits(shown: &str, seen: &str) -> bool {
    let Some((start, rest)) = shown.split_once("...") else { return shown == seen };
    let Some(seen) = seen.strip_prefix(start) else { return false };
    let bounds = seen.char_indices().map(|(at, _)| at).chain([seen.len()]);
    bounds.into_iter().any(|at| line_fits(rest, &seen[at..]))
}

/// An output without what differs each time: times, and where the page's directory really is.
fn settled(output: &str, home: &Path) -> String {
    let time = Regex::new(r"\d+(\.\d+)? m?s\b").unwrap();
    let output = output.replace(home.to_str().unwrap(), "/home/me");
    time.replace_all(output.trim_end(), "TIME").into_owned()
}

#[test]
fn every_command_shows_what_the_page_says() {
    let (mut ran, mut faults) = (0, Vec::new());
    for Page { name, text } in pages() {
        let base = tempfile::tempdir().unwrap();
        let home = furnish(&base.path().canonicalize().unwrap());
        let (blocks, prose) = parts(&text);
        for block in blocks {
            // A file of the page's own is named in its first line.
            let file = block.lines.first().and_then(|line| line.strip_prefix("# "));
            if let ("yaml", Some(file)) = (block.language, file) {
                std::fs::write(home.join(file), block.lines.join("\n") + "\n").unwrap();
            }
            if block.language != "console" {
                continue;
            }
            let mut left_out = false;
            let mut chosen = commands(&block);
            chosen.retain(|(command, _)| {
                // How a command ended that was not run is not known.
                left_out = is_listed(command) || (left_out && *command == "echo $?");
                let unlisted = !left_out && has_to_be_listed(command);
                assert!(!unlisted, "{name}: neither run nor listed: {command}");
                !left_out
            });
            let words: Vec<&str> = chosen.iter().map(|(command, _)| *command).collect();
            ran += words.len();
            for ((command, shown), (exit, seen)) in chosen.iter().zip(session(&home, &words)) {
                let place = format!("{name}, block at line {}: {command}", block.line);
                let shown = settled(&shown.join("\n"), &home);
                let seen = settled(&seen, &home);
                if shown.is_empty() && exit != "0" {
                    faults.push(format!("{place}\nexit {exit}\n{seen}"));
                } else if !shown.is_empty() && !shows(&shown, &seen) {
                    faults.push(format!("{place}\nthe page:\n{shown}\nseen:\n{seen}"));
                }
            }
        }
        for command in inline(&prose) {
            if !is_listed(&command) {
                assert!(!has_to_be_listed(&command), "{name}: neither run nor listed: {command}");
                ran += 1;
                let (exit, seen) = session(&home, &[command.as_str()]).remove(0);
                if exit != "0" {
                    faults.push(format!("{name}: {command}\nexit {exit}\n{seen}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(ran > 25, "{ran}");
}

#[test]
fn no_command_hides_and_no_data_is_broken() {
    for Page { name, text } in pages() {
        let (blocks, prose) = parts(&text);
        let mut before = "";
        for line in prose.lines() {
            let indented = before.is_empty() && line.starts_with("    ");
            assert!(!indented, "{name}: a block without a fence: {line}");
            before = line;
        }
        for Block { language, line, lines } in blocks {
            let place = format!("{name}:{line}");
            match language {
                "console" => assert!(lines[0].starts_with("$ "), "{place}"),
                "sh" => assert!(is_listed(lines[0]), "{place}: neither run nor listed"),
                "json" => {
                    for line in &lines {
                        serde_json::from_str::<serde_json::Value>(line).expect(&place);
                    }
                }
                "yaml" | "text" => {
                    let prompt = lines.iter().find(|line| line.starts_with("$ "));
                    assert_eq!(prompt, None, "{place}: a session is `console`");
                }
                other => panic!("{place}: nobody knows what to do with '{other}'"),
            }
        }
    }
}

#[test]
fn what_is_not_run_here_is_still_there_and_tried_where_it_says() {
    let mut used = BTreeSet::new();
    for Page { text, .. } in pages() {
        let (blocks, prose) = parts(&text);
        used.extend(inline(&prose));
        for block in &blocks {
            match block.language {
                "console" => used.extend(commands(block).iter().map(|(it, _)| (*it).to_owned())),
                "sh" => used.extend([block.lines[0].to_owned()]),
                _ => {}
            }
        }
    }
    for NotRun { command, why, tried } in NOT_RUN {
        assert!(used.contains(*command), "no page has it any more: {command}");
        assert!(!why.is_empty(), "{command}");
        if let Some((file, words)) = tried {
            let text = std::fs::read_to_string(root().join(file)).unwrap();
            assert!(text.contains(words), "{command}: {file} has no {words}");
        }
    }
}

#[test]
fn every_drill_and_test_that_is_named_exists() {
    let listed = run(host().args(["drill", "--list"])).stdout;
    let drills: BTreeSet<&str> = listed.lines().collect();
    let families: BTreeSet<&str> =
        drills.iter().filter_map(|name| Some(name.split_once('-')?.0)).collect();
    let span = Regex::new("`([^`]+)`").unwrap();
    let chosen = Regex::new("(?:SATYRN_DRILL=|--drill |--show )([a-z0-9][a-z0-9-]*)").unwrap();
    let mut named = 0;
    for Page { name, text } in pages() {
        for found in span.captures_iter(&parts(&text).1) {
            let (word, family) = (found.get(1).unwrap().as_str(), found[1].split_once('-'));
            let looks =
                word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            if looks && family.is_some_and(|(family, _)| families.contains(family)) {
                let known = drills.contains(word) || NO_DRILLS.contains(&word);
                assert!(known, "{name}: there is no drill {word}");
                named += 1;
            }
        }
        for found in chosen.captures_iter(&text) {
            assert!(drills.contains(&found[1]), "{name}: there is no drill {}", &found[1]);
        }
    }
    assert!(named > 50, "{named}");
    // Each trap has something that shows it.
    let gotchas = std::fs::read_to_string(root().join("docs/gotchas.md")).unwrap();
    for entry in gotchas.split("\n### ").skip(1) {
        let (_, shows) = entry.split_once("\nShown by: ").expect(entry);
        let shows = shows.split("\n\n").next().unwrap().replace('\n', " ");
        let mut source = String::new();
        for found in span.captures_iter(&shows) {
            let what = &found[1];
            if Path::new(what).extension().is_some_and(|end| end == "rs") {
                let dir = if what.contains('/') { "" } else { "tests/integration" };
                source = std::fs::read_to_string(root().join(dir).join(what)).expect(what);
            } else if what.contains('_') {
                assert!(source.contains(&format!("fn {what}(")), "there is no test {what}");
            } else {
                assert!(drills.contains(what), "there is no drill {what}");
            }
        }
    }
}

#[test]
fn every_link_leads_somewhere_and_the_index_has_every_page() {
    let link = Regex::new(r"\]\(([^)#]*)(?:#([^)]*))?\)").unwrap();
    for Page { name, text } in pages() {
        let here = root().join(&name);
        for found in link.captures_iter(&parts(&text).1) {
            let to = &found[1];
            if to.starts_with("https://") {
                continue;
            }
            let path = if to.is_empty() { here.clone() } else { here.parent().unwrap().join(to) };
            let there = std::fs::read_to_string(&path);
            assert!(there.is_ok() || path.is_dir(), "{name}: {to} leads nowhere");
            if let Some(anchor) = found.get(2) {
                let slug = |line: &str| {
                    let kept = line.trim_start_matches('#').trim().to_lowercase();
                    kept.replace(|c: char| !c.is_alphanumeric() && c != ' ' && c != '-', "")
                        .replace(' ', "-")
                };
                let there = there.unwrap();
                let mut headings = there.lines().filter(|line| line.starts_with('#')).map(slug);
                assert!(headings.any(|it| it == anchor.as_str()), "{name}: {}", anchor.as_str());
            }
        }
    }
    let index = std::fs::read_to_string(root().join("docs/README.md")).unwrap();
    for Page { name, .. } in pages() {
        if let Some(page) = name.strip_prefix("docs/").filter(|page| *page != "README.md") {
            assert!(index.contains(&format!("| [{page}]({page}) |")), "the index lacks {page}");
        }
    }
}

#[test]
fn outputs_are_compared_as_said() {
    for (shown, seen, expected) in [
        ("a\nb", "a\nb", true),
        ("a", "a\nb", false),
        ("a\n...", "a\nb\nc", true),
        ("a\n...", "a", true),
        ("...\nc", "a\nb\nc", true),
        ("...\nb", "a\nb\nc", false),
        ("a ... c", "a b c", true),
        ("a ...", "a b c", true),
        ("a ... d", "a b c", false),
        ("took 3 ms", "took 1.5 s", true),
        ("took 3 ms", "took 3 m", false),
        ("at /home/me/x", "at /real/x", true),
    ] {
        let home = Path::new("/real");
        let (shown, seen) = (settled(shown, home), settled(seen, home));
        assert_eq!(shows(&shown, &seen), expected, "{shown:?} {seen:?}");
    }
}

/// Every word that a report may have for a `reason` stands on the page, and no other.
#[test]
fn every_reason_stands_on_the_page_of_refusals() {
    let forms = [
        r#"start_failed\(\s*"([a-z0-9-]+)""#,
        r#"reason: "([a-z0-9-]+)""#,
        r#"=> (?:Some)?\(?"([a-z0-9-]+)""#,
        r#"const UV_FAILED: &str = "([a-z0-9-]+)""#,
    ];
    let mut said = BTreeSet::new();
    for file in [
        "implement/engines",
        "exchange/observation",
        "implement/plan",
        "implement/refusal",
        "implement/judge",
        "implement/mod",
        "drill/mod",
    ] {
        let text = std::fs::read_to_string(root().join(format!("src/host/{file}.rs"))).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for form in forms {
            let found = Regex::new(form).unwrap();
            said.extend(found.captures_iter(text).map(|found| found[1].to_owned()));
        }
    }
    let page = std::fs::read_to_string(root().join("docs/refusals.md")).unwrap();
    let (_, table) = page.split_once("## Said by the host").unwrap();
    let word = Regex::new("`([a-z0-9-]+)`").unwrap();
    let cells = table.lines().filter_map(|row| row.split('|').nth(3));
    let named = cells.flat_map(|cell| word.captures_iter(cell).map(|found| found[1].to_owned()));
    assert_eq!(named.collect::<BTreeSet<_>>(), said);
}
