//! What a doctor found, and what of it needs attention, as text or as JSON. Pure.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use crate::host::cli::doctor::DoctorFormat;
use crate::host::drill::formats::printable;
use crate::host::program::command_line;
use crate::line::{MAX_CHARS, escape, shorten};

/// The version of the JSON object's shape.
const DOCTOR: u32 = 1;

/// Everything that was found. Text is as it was met; it is escaped where it is printed.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// Of the host.
    pub version: &'static str,
    /// Of the protocol.
    pub protocol: u64,
    /// What it runs on.
    pub system: System,
    /// The host's own executable, if it can be named.
    pub executable: Option<String>,
    /// The working directory, if there is one.
    pub directory: Option<String>,
    /// What would run.
    pub engine: Engine,
    /// The variables whose names are the host's own.
    pub variables: Vec<Variable>,
    /// What the engine would be given, if one would run.
    pub environment: Option<Environment>,
    /// The path of `uv`, if it is on PATH.
    pub uv: Option<String>,
    /// The path of `pi`, if it is on PATH.
    pub pi: Option<String>,
    /// Where `uv` was looked for.
    pub path: Vec<Place>,
    /// What came of the exchange.
    pub check: Check,
}

/// The system.
#[derive(Clone, Debug, Serialize)]
pub struct System {
    /// Its name, `linux` for one.
    pub os: &'static str,
    /// The processor that the host was built for.
    pub arch: &'static str,
    /// The C library that the host was built for, where that is a choice: `gnu`, `musl`, `msvc`.
    pub abi: Option<&'static str>,
    /// The release of the kernel, where a file tells it.
    pub kernel: Option<String>,
    /// Whether `/proc` tells the children of a process.
    pub tells_children: bool,
}

/// The engine that would run, or why none would.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Engine {
    /// `embedded`, `program`, `checkout` or `drill`; none where two were chosen.
    pub kind: Option<&'static str>,
    /// The flag or the variable, or `default`.
    pub chosen_by: Option<&'static str>,
    /// An absolute path.
    pub program: Option<String>,
    /// The words after it.
    pub args: Vec<String>,
    /// The directory that it would run in.
    pub cwd: Option<String>,
    /// How long it may take, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// The line that `implement` would end with before anything is started.
    pub refusal: Option<String>,
}

/// A variable that is set.
#[derive(Clone, Debug, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, where the host reads it.
    pub value: Option<String>,
}

/// The names of variables, never a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// What the engine would be given.
    pub passed: Vec<String>,
    /// How many others are set.
    pub withheld: usize,
}

/// An entry of PATH.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// The entry.
    pub entry: String,
    /// `there`, `not-there`, or `skipped`: it is empty or relative.
    pub uv: &'static str,
}

/// The exchange that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The host's line.
    pub line: Option<String>,
    /// Whether the contract was accepted.
    pub ok: bool,
    /// The whole host process, from its start to its end, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// Whether every descendant of the engine was within reach; unknown where none ran.
    pub contained: Option<bool>,
    /// Why there is no line.
    pub trouble: Option<String>,
}

impl Check {
    /// One that could not be made.
    #[must_use]
    pub fn impossible(why: String) -> Self {
        Self { line: None, ok: false, elapsed_ms: None, contained: None, trouble: Some(why) }
    }

    /// Its line, or why there is none.
    fn in_words(&self) -> &str {
        self.line.as_deref().or(self.trouble.as_deref()).unwrap_or("no line")
    }
}

impl Facts {
    /// What is not as it should be, one sentence each.
    #[must_use]
    pub fn attention(&self) -> Vec<String> {
        let mut found = Vec::new();
        if !self.check.ok {
            found.push(format!("the self-check: {}", self.check.in_words()));
        }
        if self.check.contained == Some(false) && holds_by(self.system.os).is_some() {
            let why = "descendants of an engine may get away; `satyrn-host implement -v` says why";
            found.push(why.to_owned());
        }
        found
    }

    /// The text for stdout, with its last line feed.
    #[must_use]
    pub fn render(&self, format: DoctorFormat) -> String {
        match format {
            DoctorFormat::Text => self.text(),
            DoctorFormat::Json => self.json(),
        }
    }

    fn text(&self) -> String {
        let mut rows = self.context();
        rows.extend(self.chosen());
        let path = |path: &Option<String>| path.clone().unwrap_or_else(|| "not on PATH".to_owned());
        rows.extend([("uv", path(&self.uv)), ("pi", path(&self.pi))]);
        rows.extend(self.path.iter().map(|place| {
            let note = match place.uv {
                "there" => "uv is there",
                "skipped" => "skipped: it would mean the working directory",
                _ => "no uv that can be run",
            };
            ("PATH", format!("{}: {note}", place.entry))
        }));
        rows.push(("contained", self.containment()));
        rows.push(("self-check", self.check.in_words().to_owned()));
        rows.extend(self.check.elapsed_ms.map(|ms| ("took", format!("{ms} ms"))));
        let attention = self.attention();
        if attention.is_empty() {
            rows.push(("attention", "nothing needs it".to_owned()));
        }
        rows.extend(attention.into_iter().map(|what| ("attention", what)));
        let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        let mut out = String::new();
        for (label, fact) in rows {
            let _ = writeln!(out, "{label:width$}  {}", shorten(&escape(&fact), MAX_CHARS));
        }
        out
    }

    fn context(&self) -> Vec<(&'static str, String)> {
        let System { os, arch, abi, kernel, .. } = &self.system;
        let abi = abi.map_or(String::new(), |abi| format!(" {abi}"));
        let kernel = kernel.as_ref().map_or(String::new(), |kernel| format!(", kernel {kernel}"));
        let unknown = |path: &Option<String>| path.clone().unwrap_or_else(|| "unknown".to_owned());
        vec![
            ("version", format!("satyrn-host {} (protocol {})", self.version, self.protocol)),
            ("system", format!("{os} {arch}{abi}{kernel}")),
            ("executable", unknown(&self.executable)),
            ("directory", unknown(&self.directory)),
        ]
    }

    fn chosen(&self) -> Vec<(&'static str, String)> {
        let engine = &self.engine;
        let mut rows = vec![("engine", engine.kind.unwrap_or("none").to_owned())];
        rows.extend(engine.chosen_by.map(|by| {
            let none = "default: no flag and no variable chooses one";
            ("chosen by", if by == "default" { none } else { by }.to_owned())
        }));
        rows.extend(engine.program.as_ref().map(|program| {
            let words = std::iter::once(program).chain(&engine.args).map(String::as_str);
            ("command", command_line(words))
        }));
        rows.extend(engine.cwd.as_ref().map(|cwd| ("runs in", cwd.clone())));
        let deadline = |ms| ("deadline", format!("{:?}", Duration::from_millis(ms)));
        rows.extend(engine.deadline_ms.map(deadline));
        rows.extend(engine.refusal.as_ref().map(|line| ("refused", line.clone())));
        rows.extend(self.variables.iter().map(|Variable { name, value }| {
            let value =
                value.as_ref().map_or(" (not read by the host)".to_owned(), |v| format!("={v}"));
            ("variable", format!("{name}{value}"))
        }));
        if let Some(Environment { passed, withheld }) = &self.environment {
            rows.push(("passed on", passed.join(", ")));
            rows.push(("withheld", format!("{withheld} other variables")));
        }
        rows
    }

    fn containment(&self) -> String {
        let children = if self.system.tells_children { "tells" } else { "does not tell" };
        let proc = match self.system.os {
            "linux" => format!("; /proc {children} the children of a process"),
            _ => String::new(),
        };
        let means = holds_by(self.system.os).unwrap_or("a process group, which can be left");
        let had = match self.check.contained {
            Some(true) => "yes, as the self-check saw",
            Some(false) => "no, as the self-check saw",
            None => "unknown, since no engine ran",
        };
        format!("{had}; by {means}{proc}")
    }
}

/// What keeps every descendant within reach on a system, if anything does.
fn holds_by(os: &str) -> Option<&'static str> {
    match os {
        "linux" => Some("a subreaper"),
        "windows" => Some("a job"),
        _ => None,
    }
}

impl Facts {
    fn json(&self) -> String {
        #[derive(Serialize)]
        struct Object<'a> {
            doctor: u32,
            ok: bool,
            attention: &'a [String],
            #[serde(flatten)]
            facts: &'a Facts,
        }
        let attention = self.attention();
        let ok = attention.is_empty();
        let object = Object { doctor: DOCTOR, ok, attention: &attention, facts: self };
        // Plain structs of strings and numbers always serialise.
        printable(&serde_json::to_string(&object).unwrap_or_default()) + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn facts() -> Facts {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Facts {
            version: "1.2.3",
            protocol: 1,
            system: System {
                os: "linux",
                arch: "x86_64",
                abi: Some("musl"),
                kernel: Some("6.1".to_owned()),
                tells_children: true,
            },
            executable: Some("/bin/satyrn-host".to_owned()),
            directory: Some("/here".to_owned()),
            engine: Engine {
                kind: Some("checkout"),
                chosen_by: Some("--engine-repo"),
                program: Some("/bin/uv".to_owned()),
                args: names(&["run", "--project", "/two words"]),
                cwd: Some("/two words".to_owned()),
                deadline_ms: Some(30_000),
                refusal: None,
            },
            variables: vec![
                Variable { name: "SATYRN_DEADLINE".to_owned(), value: Some("30s".to_owned()) },
                Variable { name: "SATYRN_X".to_owned(), value: None },
            ],
            environment: Some(Environment { passed: names(&["PATH", "NO_COLOR"]), withheld: 7 }),
            uv: Some("/bin/uv".to_owned()),
            pi: None,
            path: vec![
                Place { entry: "bin".to_owned(), uv: "skipped" },
                Place { entry: "/sbin".to_owned(), uv: "not-there" },
                Place { entry: "/bin".to_owned(), uv: "there" },
            ],
            check: Check {
                line: Some("satyrn-engine: OK".to_owned()),
                ok: true,
                elapsed_ms: Some(12),
                contained: Some(true),
                trouble: None,
            },
        }
    }

    #[test]
    fn one_aligned_fact_a_line() {
        let expected = "\
version     satyrn-host 1.2.3 (protocol 1)
system      linux x86_64 musl, kernel 6.1
executable  /bin/satyrn-host
directory   /here
engine      checkout
chosen by   --engine-repo
command     /bin/uv run --project '/two words'
runs in     /two words
deadline    30s
variable    SATYRN_DEADLINE=30s
variable    SATYRN_X (not read by the host)
passed on   PATH, NO_COLOR
withheld    7 other variables
uv          /bin/uv
pi          not on PATH
PATH        bin: skipped: it would mean the working directory
PATH        /sbin: no uv that can be run
PATH        /bin: uv is there
contained   yes, as the self-check saw; by a subreaper; /proc tells the children of a process
self-check  satyrn-engine: OK
took        12 ms
attention   nothing needs it
";
        // As the system's own shell takes it.
        let quote = if cfg!(windows) { "\"" } else { "'" };
        assert_eq!(facts().render(DoctorFormat::Text), expected.replace('\'', quote));
    }

    #[test]
    fn what_needs_attention() {
        let mut refused = facts();
        let line = "satyrn-engine: ENGINE_START_FAILED: no such program: /missing";
        refused.check.line = Some(line.to_owned());
        refused.check.ok = false;
        refused.check.contained = None;
        assert_eq!(refused.attention(), [format!("the self-check: {line}")]);
        let text = refused.render(DoctorFormat::Text);
        assert!(text.ends_with(&format!("\nattention   the self-check: {line}\n")), "{text}");
        assert!(text.contains("\ncontained   unknown, since no engine ran; by "), "{text}");

        let mut loose = facts();
        loose.check.contained = Some(false);
        assert_eq!(loose.attention().len(), 1);
        assert!(loose.attention()[0].contains("may get away"));
        // Nothing can be done about it where the system has no means.
        loose.system.os = "macos";
        assert_eq!(loose.attention(), [""; 0]);
        let text = loose.render(DoctorFormat::Text);
        assert!(text.contains("no, as the self-check saw; by a process group, which"), "{text}");

        let mut nothing = facts();
        nothing.check = Check::impossible("the disk is full".to_owned());
        assert_eq!(nothing.attention(), ["the self-check: the disk is full"]);
    }

    #[test]
    fn one_object_with_the_same_facts() {
        let text = facts().render(DoctorFormat::Json);
        assert!(text.starts_with(r#"{"doctor":1,"ok":true,"attention":[],"version":"1.2.3","#));
        assert_eq!(text.matches('\n').count(), 1);
        let object: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["engine"]["args"][2], "/two words");
        assert_eq!(object["variables"][1]["value"], Value::Null);
        assert_eq!(object["check"]["elapsed_ms"], 12);
        assert_eq!(object["path"][0]["uv"], "skipped");
    }

    /// Whatever a path or a variable holds, it is one line and moves no cursor.
    #[test]
    fn text_of_others_is_escaped() {
        let evil = "a\u{1b}[2J\nself-check  satyrn-engine: OK\u{202e}";
        let mut facts = facts();
        for field in [&mut facts.executable, &mut facts.directory, &mut facts.uv, &mut facts.pi] {
            *field = Some(evil.to_owned());
        }
        facts.engine.program = Some(evil.to_owned());
        facts.engine.args = vec![evil.to_owned()];
        facts.engine.refusal = Some(evil.to_owned());
        facts.variables[0].name = evil.to_owned();
        facts.variables[0].value = Some(evil.to_owned());
        facts.path[0].entry = evil.to_owned();
        facts.system.kernel = Some(evil.to_owned());
        facts.check = Check::impossible(evil.to_owned());
        let text = facts.render(DoctorFormat::Text);
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
        assert_eq!(text.matches("\nself-check").count(), 1, "{text}");
        let json = facts.render(DoctorFormat::Json);
        assert!(!json.contains(['\u{1b}', '\u{202e}']), "{json}");
        let object: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(object["executable"], evil);
        facts.executable = Some("x".repeat(10_000));
        let longest = facts.render(DoctorFormat::Text).lines().map(str::len).max();
        assert!(longest.is_some_and(|length| length < 5000), "{longest:?}");
    }
}
