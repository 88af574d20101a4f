//! The command line of `satyrn-host`: clap's types, and nothing that acts.

use std::ffi::{OsStr, OsString};

use clap::{CommandFactory, Parser, Subcommand};

pub mod doctor;
pub mod drill;
pub mod implement;

use super::pages::{self, PAGES, PROGRAMS, SHELLS};
use super::schema::NAMES;
use crate::line::escape_args;
use doctor::Doctor;
use implement::{Implement, short};

const SCHEMA_EXAMPLES: &str = "\
Examples:
  satyrn-host schema report-1
  satyrn-host schema drill-1 >drill-1.json";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  satyrn-host completions bash >~/.local/share/bash-completion/completions/satyrn-host
  satyrn-host completions zsh >~/.zfunc/_satyrn-host
  satyrn-host completions fish >~/.config/fish/completions/satyrn-host.fish
  satyrn-host completions powershell >>$PROFILE";

const MAN_EXAMPLES: &str = "\
Examples:
  satyrn-host man | man -l -
  satyrn-host man satyrn-host-implement >~/.local/share/man/man1/satyrn-host-implement.1";

/// The exit codes of a command that prints a text which is compiled in.
const PRINT_EXITS: &str = "\
Exit codes:
  0  printed
  1  it cannot be printed
  2  the command line was not understood";

const PROTOCOL_EXAMPLES: &str = "\
Examples:
  satyrn-host protocol <request.json";

/// As an engine has them; a test compares them with the protocol's codes.
const PROTOCOL_EXITS: &str = "\
Exit codes:
  0  OK
  1  -                       a defect; nothing is printed
  2  USAGE                   a word after `protocol`
  3  CONTRACT_UNREADABLE     the contract file cannot be read, or is not UTF-8
  4  CONTRACT_INVALID_YAML   the contract is not one YAML document
  5  CONTRACT_MISSING_FIELD  no mapping, or id or task is not a non-empty string
  6  REPO_UNAVAILABLE        the repository is not a directory
  7  INVALID_REQUEST         the request is malformed";

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// Run one exchange.
    Implement(Box<Implement>),
    /// Run drills.
    Drill(drill::Drill),
    /// Try an engine on the protocol's cases.
    Conform(drill::Conform),
    /// Say what would run here, and try it.
    Doctor(Doctor),
    /// Print a schema.
    Schema(&'static str),
    /// A mistake in an `implement` command: the line's detail, and a hint for stderr.
    Usage {
        /// One line.
        detail: String,
        /// clap's own words.
        hint: String,
    },
    /// Text to print: help, version or a page on stdout, another command's mistake on stderr.
    Print {
        /// The text, with its line feed.
        text: String,
        /// 0 for stdout, 2 for stderr.
        exit: u8,
    },
}

/// One-shot process host: runs an engine once and turns whatever happens into one named line.
#[derive(Parser)]
#[command(
    name = "satyrn-host",
    version = concat!(env!("CARGO_PKG_VERSION"), " (protocol 1)"),
    before_help = implement::EXAMPLES,
    after_help = implement::TABLES
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Have a contract judged by an engine and print one line
    #[command(before_help = implement::EXAMPLES, after_help = implement::TABLES)]
    Implement(Box<Implement>),
    /// Run scripted engines that fail in known ways, and see that the host takes each as it must
    #[command(before_help = drill::DRILL_EXAMPLES, after_help = drill::EXITS)]
    Drill(drill::Drill),
    /// Try an engine on every case of the protocol, and see whether a host will understand it
    #[command(before_help = drill::CONFORM_EXAMPLES, after_help = drill::EXITS)]
    Conform(drill::Conform),
    /// Say which engine would run here and why, and try it once; all that a bug report needs
    #[command(before_help = doctor::EXAMPLES, after_help = doctor::TABLES)]
    Doctor(Doctor),
    /// Print the JSON Schema of what is read, a drill file for one, or of what is printed as JSON
    #[command(before_help = SCHEMA_EXAMPLES, after_help = PRINT_EXITS)]
    Schema {
        /// Which one
        #[arg(value_parser = NAMES)]
        name: String,
    },
    /// Print a shell's completions
    #[command(before_help = COMPLETIONS_EXAMPLES, after_help = PRINT_EXITS)]
    Completions {
        /// For which shell
        #[arg(value_parser = SHELLS)]
        shell: String,
        /// For which program
        #[arg(value_parser = PROGRAMS, default_value = PROGRAMS[0])]
        program: String,
    },
    /// Print a man page
    #[command(before_help = MAN_EXAMPLES, after_help = PRINT_EXITS)]
    Man {
        /// Which one: a program, or PROGRAM-COMMAND
        #[arg(value_parser = PAGES, default_value = PROGRAMS[0], hide_possible_values = true)]
        page: String,
    },
    /// Serve the engine's protocol: one JSON request on stdin, one JSON response on stdout
    #[command(before_help = PROTOCOL_EXAMPLES, after_help = PROTOCOL_EXITS)]
    Protocol,
}

/// The whole command line of `satyrn-host`, for whoever makes pages of it.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Reads a command line; `args[0]` is the program's own name.
#[must_use]
pub fn parse(args: &[OsString]) -> Invocation {
    if let Some([word, words @ ..]) = args.get(1..)
        && word == "implement"
        && let Some(options) = short(words)
    {
        return Invocation::Implement(Box::new(options));
    }
    match Cli::try_parse_from(args) {
        Ok(Cli { command: Command::Implement(options) }) => Invocation::Implement(options),
        Ok(Cli { command: Command::Drill(options) }) => Invocation::Drill(options),
        Ok(Cli { command: Command::Conform(options) }) => Invocation::Conform(options),
        Ok(Cli { command: Command::Doctor(options) }) => Invocation::Doctor(options),
        Ok(Cli { command: Command::Schema { name } }) => {
            // clap lets no other name pass.
            Invocation::Schema(NAMES.into_iter().find(|known| *known == name).unwrap_or(NAMES[0]))
        }
        // clap lets no other name pass here either.
        Ok(Cli { command: Command::Completions { shell, program } }) => {
            let text = pages::completions(&shell, &program).unwrap_or_default();
            Invocation::Print { text: text.to_owned(), exit: 0 }
        }
        Ok(Cli { command: Command::Man { page } }) => {
            let text = pages::man(&page).unwrap_or_default();
            Invocation::Print { text: text.to_owned(), exit: 0 }
        }
        Ok(Cli { command: Command::Protocol }) => {
            // `protocol` alone is served before this point, so there is a mistake in how it is
            // reached; the help says how.
            Invocation::Print { text: Cli::command().render_help().to_string(), exit: 2 }
        }
        Err(error) => {
            // What was typed is quoted in it, so it is parsed again in a form that can be shown.
            let error = Cli::try_parse_from(escape_args(args)).err().unwrap_or(error);
            let text = error.to_string();
            if !error.use_stderr() {
                return Invocation::Print { text, exit: 0 };
            }
            if args.get(1).is_none_or(|arg| arg != "implement") {
                return Invocation::Print { text, exit: 2 };
            }
            let (detail, hint) = text.split_once("\n\n").unwrap_or((&text, ""));
            let detail = detail.trim_start_matches("error: ");
            let detail = detail.split_whitespace().collect::<Vec<_>>().join(" ");
            Invocation::Usage { detail, hint: hint.to_owned() }
        }
    }
}

/// Whether `--format json` stands anywhere before `--`: also a command line that is otherwise not
/// understood is then answered with a report.
#[must_use]
pub fn wants_json(args: &[OsString]) -> bool {
    let options = || args.iter().take_while(|arg| *arg != "--");
    options().any(|arg| arg == "--format=json")
        || options().zip(options().skip(1)).any(|(a, b)| a == "--format" && b == "json")
}

/// A path as text, since JSON cannot carry anything else.
///
/// # Errors
/// The line's detail.
pub fn utf8(what: &str, path: &OsStr) -> Result<String, String> {
    match path.to_str() {
        Some("") => Err(format!("{what} is empty")),
        Some(text) => Ok(text.to_owned()),
        None => Err(format!("{what} is not UTF-8: {}", path.to_string_lossy())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::observation::CancelledBy;
    use super::super::implement::refusal::Refusal;
    use super::implement::Format;
    use super::*;
    use crate::protocol::{self, Code};
    use std::path::PathBuf;
    use std::time::Duration;

    fn args(words: &[&str]) -> Vec<OsString> {
        std::iter::once(&"satyrn-host").chain(words).map(OsString::from).collect()
    }

    fn usage(words: &[&str]) -> String {
        match parse(&args(words)) {
            Invocation::Usage { detail, .. } => detail,
            other => panic!("{words:?}: {other:?}"),
        }
    }

    #[test]
    fn clap_is_well_formed() {
        Cli::command().debug_assert();
    }

    /// The words of which command lines are made below; `x` and an empty one are paths, if anything.
    const WORDS: [&str; 26] = [
        "c.yaml",
        "x",
        "",
        "-",
        "--",
        "-v",
        "--leash",
        "--leash=x",
        "--repo",
        "--repo=r",
        "--repo=",
        "--engine",
        "--engine=./e=f",
        "--engine-repo",
        "--drill=d",
        "--deadline",
        "--deadline=5s",
        "--deadline=5",
        "2m",
        "--format",
        "--format=json",
        "json",
        "--env=EDITOR",
        "--inherit-env",
        "--help",
        "--rep=r",
    ];

    #[test]
    fn the_short_way_says_what_clap_says() {
        let by_clap = |words: &[&str]| {
            let words = ["satyrn-host", "implement"].iter().chain(words);
            match Cli::try_parse_from(words) {
                Ok(Cli { command: Command::Implement(options) }) => Some(format!("{options:?}")),
                _ => None,
            }
        };
        let (mut short_ways, mut lines) = (0, 0);
        let mut check = |words: &[&str]| {
            lines += 1;
            let given: Vec<_> = words.iter().map(OsString::from).collect();
            if let Some(options) = short(&given) {
                short_ways += 1;
                assert_eq!(Some(format!("{options:?}")), by_clap(words), "{words:?}");
            }
        };
        check(&[]);
        for a in WORDS {
            check(&[a]);
            for b in WORDS {
                check(&[a, b]);
                for c in WORDS {
                    check(&[a, b, c]);
                }
            }
        }
        for a in WORDS {
            for b in WORDS {
                check(&["--repo=r", "--format", "json", a, "--deadline=1h", b]);
            }
        }
        assert!(short_ways > 100, "only {short_ways} of {lines} command lines went the short way");
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            assert!(short(&[OsStr::from_bytes(b"a\xff").to_owned()]).is_none());
        }
    }

    #[test]
    fn the_version_names_the_protocol() {
        let version = format!("{} (protocol {})", env!("CARGO_PKG_VERSION"), protocol::VERSION);
        assert_eq!(Cli::command().get_version(), Some(version.as_str()));
    }

    /// The rows of a table of exit codes that name a code.
    fn rows(table: &str) -> Vec<(String, String)> {
        let named = |line: &str| {
            let (exit, rest) = line.trim_start().split_once("  ")?;
            let code = rest.split_whitespace().next()?;
            let is_code =
                code.len() > 1 && code.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            is_code.then(|| (exit.to_owned(), code.to_owned()))
        };
        let table = table.split("\n\n").next().unwrap();
        table.lines().skip(1).filter_map(named).collect()
    }

    #[test]
    fn the_help_has_every_code_with_its_exit() {
        let codes = Code::ALL.map(|code| (code.exit().to_string(), code.name().to_owned()));
        assert_eq!(rows(PROTOCOL_EXITS), codes);
        let mut expected = codes.to_vec();
        for refusal in Refusal::each() {
            let exit = match &refusal {
                Refusal::Cancelled { by: CancelledBy::Signal(..), .. } => "128+".to_owned(),
                refusal => refusal.exit().to_string(),
            };
            expected.push((exit, refusal.code().to_owned()));
        }
        expected.sort();
        // Both vocabularies have USAGE.
        expected.dedup();
        let mut found = rows(implement::TABLES);
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_command_shows_examples_first_and_its_exit_codes_last() {
        let mut command = Cli::command();
        command.build();
        for command in std::iter::once(&command).chain(command.get_subcommands()) {
            let name = command.get_name();
            if name == "help" {
                continue;
            }
            let help = command.clone().render_long_help().to_string();
            assert!(help.starts_with("Examples:\n  satyrn-host "), "{name}: {help}");
            let (options, exits) = (help.find("\nOptions:\n"), help.find("\nExit codes"));
            assert!(options.is_some() && options < exits, "{name}: {help}");
        }
    }

    #[test]
    fn a_doctor_tries_what_implement_would_run() {
        for (option, value) in [("--engine", "./e"), ("--engine-repo", "-d"), ("--drill", "d")] {
            let chosen = format!("{option}={value}");
            let Invocation::Doctor(doctor) = parse(&args(&["doctor", &chosen])) else {
                panic!("{chosen}")
            };
            let words = doctor.words("/r".as_ref(), "/c".as_ref());
            let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(words, ["--format=json", "--leash", &chosen, "--repo=/r", "--", "/c"]);
            let words: Vec<_> = ["implement"].into_iter().chain(words).collect();
            assert!(matches!(parse(&args(&words)), Invocation::Implement(_)), "{words:?}");
        }
        for words in [&["doctor", "--engine=/e", "--drill=d"][..], &["doctor", "x"]] {
            assert!(matches!(parse(&args(words)), Invocation::Print { exit: 2, .. }), "{words:?}");
        }
    }

    #[test]
    fn good_command_lines() {
        let words =
            ["implement", "--deadline", "2m", "--format=json", "--leash", "-vv", "--", "-c"];
        let Invocation::Implement(options) = parse(&args(&words)) else { panic!("refused") };
        assert_eq!(options.contract, PathBuf::from("-c"));
        assert_eq!(options.deadline, Some(Duration::from_mins(2)));
        assert_eq!((options.format, options.leash, options.verbose), (Format::Json, true, 2));
    }

    #[test]
    fn mistakes_of_implement_are_one_line() {
        for (words, part) in [
            (&["implement"][..], "<CONTRACT>"),
            (&["implement", ""], "<CONTRACT>"),
            (&["implement", "--repo", "", "a"], "--repo <DIR>"),
            (&["implement", "a", "b"], "unexpected argument 'b'"),
            (&["implement", "--nope", "a"], "unexpected argument '--nope'"),
            (&["implement", "--deadline", "0s", "a"], "more than zero"),
            (&["implement", "--engine", "/e", "--engine-repo", "/r", "a"], "cannot be used with"),
            (&["implement", "--drill", "d", "--engine", "/e", "a"], "cannot be used with"),
            (&["implement", "--engine-repo", "/r", "--drill", "d", "a"], "cannot be used with"),
            (&["implement", "--env", "A_TOKEN", "a"], "A_TOKEN=REASON"),
            (&["implement", "--format", "xml", "a"], "invalid value 'xml'"),
            (&["implement", "--\u{1b}[2J\nx"], "--\\u{1b}[2J\\nx"),
        ] {
            let detail = usage(words);
            assert!(detail.contains(part) && !detail.contains('\n'), "{words:?}: {detail}");
        }
    }

    #[test]
    fn help_and_version_succeed_and_other_mistakes_go_to_stderr() {
        for (words, exit) in [
            (&["--help"][..], 0),
            (&["implement", "--help"], 0),
            (&["-V"], 0),
            (&[], 2),
            (&["x"], 2),
        ] {
            match parse(&args(words)) {
                Invocation::Print { exit: found, text } => {
                    assert_eq!(found, exit, "{words:?}");
                    assert!(text.ends_with('\n'));
                }
                other => panic!("{words:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn json_is_wanted_only_before_the_end_of_the_options() {
        for (words, expected) in [
            (&["implement", "--format", "json"][..], true),
            (&["implement", "--format=json", "--nope"], true),
            (&["implement", "--", "--format=json"], false),
            (&["implement", "--format", "line"], false),
            (&["implement", "json"], false),
        ] {
            assert_eq!(wants_json(&args(words)), expected, "{words:?}");
        }
    }

    #[test]
    fn paths_must_be_text() {
        assert_eq!(utf8("CONTRACT", OsStr::new("a b")), Ok("a b".to_owned()));
        assert!(utf8("CONTRACT", OsStr::new("")).is_err());
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            assert!(utf8("CONTRACT", OsStr::from_bytes(b"a\xff")).is_err());
        }
    }
}
