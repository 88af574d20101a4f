//! Completions and man pages: made anew from the command lines and compared with what is committed.

use crate::common::{host, run};
use clap::Command;
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Set to anything, it makes the test write the files.
const UPDATE: &str = "SATYRN_UPDATE_PAGES";

const HINT: &str =
    "SATYRN_UPDATE_PAGES=1 cargo test --test integration pages::what writes them anew";

/// Every file, by its path below the repository.
type Files = BTreeMap<PathBuf, String>;

#[test]
fn what_is_committed_is_what_the_command_lines_give() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = made();
    if std::env::var_os(UPDATE).is_some() {
        for path in committed(root).keys().filter(|path| !made.contains_key(*path)) {
            std::fs::remove_file(root.join(path)).unwrap();
        }
        for (path, text) in &made {
            std::fs::write(root.join(path), text).unwrap();
        }
        // The compiler does not see new files.
        let includes = std::fs::File::options().append(true).open(root.join("src/host/pages.rs"));
        includes.unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    }
    let committed = committed(root);
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&committed), names(&made), "{HINT}");
    for (path, text) in &made {
        assert!(committed[path] == *text, "{} is out of date; {HINT}", path.display());
    }
}

#[test]
fn the_binary_prints_what_is_committed() {
    for (path, text) in made() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut command = host();
        let program = if name.contains("satyrn-engine") { "satyrn-engine" } else { "satyrn-host" };
        if path.starts_with("man") {
            command.args(["man", name.strip_suffix(".1").unwrap()]);
        } else {
            let shell = match path.extension().and_then(|end| end.to_str()) {
                Some("bash") => "bash",
                Some("fish") => "fish",
                Some("ps1") => "powershell",
                _ => "zsh",
            };
            command.args(["completions", shell, program]);
        }
        let ran = run(&mut command);
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{name}");
        assert!(ran.stdout == text, "{name}: {HINT}");
    }
    let page = |words: &[&str]| run(host().args(words)).stdout;
    assert_eq!(page(&["man"]), page(&["man", "satyrn-host"]));
    assert_eq!(page(&["completions", "fish"]), page(&["completions", "fish", "satyrn-host"]));
    for words in [&["man", "x"][..], &["man", "../Cargo"], &["completions"], &["completions", "sh"]]
    {
        let ran = run(host().args(words));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(!ran.stderr.is_empty());
    }
}

/// Bash itself completes a command, an option and a value.
#[cfg(unix)]
#[test]
fn bash_takes_its_completions() {
    let bash = Path::new("/bin/bash");
    if !bash.exists() {
        eprintln!("no /bin/bash: its completions are not tried");
        return;
    }
    let ask = "source completions/satyrn-host.bash
        asked=$(complete -p satyrn-host); asked=${asked#*-F }
        COMP_WORDS=(satyrn-host \"$@\"); COMP_CWORD=$#
        ${asked%% *} satyrn-host \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"
        echo \"${COMPREPLY[@]}\"";
    for (words, expected) in [
        (&["impl"][..], "implement\n"),
        (&["implement", "--dea"], "--deadline\n"),
        (&["implement", "--req"], "\n"),
        (&["implement", "--format", "j"], "json\n"),
        (&["man", "satyrn-host-i"], "satyrn-host-implement\n"),
    ] {
        let mut command = std::process::Command::new(bash);
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["--norc", "-c", ask, "bash"]);
        let ran = run(command.args(words));
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (expected, ""), "{words:?}");
    }
}

fn committed(root: &Path) -> Files {
    let mut files = Files::new();
    for dir in ["completions", "man"] {
        for entry in std::fs::read_dir(root.join(dir)).unwrap() {
            let name = entry.unwrap().file_name();
            let path = Path::new(dir).join(name);
            files.insert(path.clone(), std::fs::read_to_string(root.join(&path)).unwrap());
        }
    }
    files
}

fn made() -> Files {
    let mut files = Files::new();
    for command in [satyrn::host::cli::command(), satyrn::engine::cli::command()] {
        for shell in [Shell::Bash, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let name = command.get_name().to_owned();
            let mut text = Vec::new();
            generate(shell, &mut visible(&command), &name, &mut text);
            let file = clap_complete::Generator::file_name(&shell, &name);
            let text = String::from_utf8(text).unwrap();
            // For bash, a hyphen in a program's name is written in two ways that do not meet, so
            // that nothing is completed after a command (clap-rs/clap#6421). One way is enough.
            let text = text.replace("satyrn__subcmd__", "satyrn__");
            files.insert(Path::new("completions").join(file), text);
        }
        let mut command = command.disable_help_subcommand(true);
        command.build();
        for page in std::iter::once(&command).chain(command.get_subcommands()) {
            let name = page.get_display_name().unwrap_or_else(|| page.get_name());
            let file = Path::new("man").join(format!("{name}.1"));
            files.insert(file, man(page, &command));
        }
    }
    files
}

/// A command without what its help hides, which completions would offer.
fn visible(command: &Command) -> Command {
    // The names of a command that is made must last as long as the program.
    let lasting = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let mut shown = Command::new(lasting(command.get_name()))
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().map(visible));
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        shown = shown.version(lasting(version));
    }
    shown
}

/// A man page. The tables of the help become sections whose lines stay as they are.
fn man(page: &Command, program: &Command) -> String {
    let source = format!("{} {}", program.get_name(), env!("CARGO_PKG_VERSION"));
    let man = Man::new(page.clone()).source(source);
    let mut out = Vec::new();
    man.render_title(&mut out).unwrap();
    man.render_name_section(&mut out).unwrap();
    man.render_synopsis_section(&mut out).unwrap();
    man.render_description_section(&mut out).unwrap();
    man.render_options_section(&mut out).unwrap();
    if page.has_subcommands() {
        man.render_subcommands_section(&mut out).unwrap();
    }
    for text in [page.get_after_help(), page.get_before_help()].into_iter().flatten() {
        sections(&text.to_string()).to_writer(&mut out).unwrap();
    }
    if page.get_name() != program.get_name() {
        let mut also = Roff::new();
        also.control("SH", ["SEE ALSO"]).text([roman(format!("{}(1)", program.get_name()))]);
        also.to_writer(&mut out).unwrap();
    }
    let text = String::from_utf8(out).unwrap();
    // Each part begins with the same definitions; once is enough.
    let mut definitions = Vec::new();
    Roff::new().to_writer(&mut definitions).unwrap();
    let definitions = String::from_utf8(definitions).unwrap();
    assert!(definitions.lines().count() == 2 && text.starts_with(&definitions), "{definitions}");
    definitions.clone() + &text.replace(&definitions, "")
}

/// `Heading:` and the lines below it, up to a blank one.
fn sections(text: &str) -> Roff {
    let mut roff = Roff::new();
    for section in text.split("\n\n") {
        let lines = if let Some((heading, lines)) = section.split_once(":\n") {
            roff.control("SH", [heading.to_uppercase().as_str()]);
            lines
        } else {
            roff.control("PP", []);
            section
        };
        roff.control("nf", []);
        for line in lines.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    roff
}
