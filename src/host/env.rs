//! Which environment variables an engine gets (SPEC 4). Data first, one pure function below.

use std::ffi::{OsStr, OsString};

/// The variables that choose something for the host itself.
pub const HOST: [&str; 5] =
    ["SATYRN_ENGINE", "SATYRN_ENGINE_REPO", "SATYRN_DRILL", "SATYRN_DEADLINE", "SATYRN_LOG"];

/// Passed to every engine. A trailing `*` stands for any rest.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Passed as well on Windows, where programs do not start without some of them.
const ALLOWED_WINDOWS: &[&str] = &[
    "SystemRoot",
    "SystemDrive",
    "windir",
    "TEMP",
    "TMP",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "ProgramData",
    "COMSPEC",
    "NUMBER_OF_PROCESSORS",
];

/// Passed as well where `uv` is run, which may have to download.
const ALLOWED_UV: &[&str] = &[
    "UV_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Names that load code into a process or carry credentials. They beat the lists above and are
/// passed only when asked for by name, with a reason.
const DANGEROUS: &[&str] = &[
    "LD_*",
    "DYLD_*",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "NODE_OPTIONS",
    "BASH_ENV",
    "ENV",
    "GIT_ASKPASS",
    "GIT_SSH_COMMAND",
    "SSH_ASKPASS",
    "*_TOKEN",
    "*_API_KEY",
    "*_SECRET",
    "*_PASSWORD",
    "AWS_*",
];

/// Never passed: an engine's output is read by a program.
const NEVER: &[&str] = &["FORCE_COLOR", "CLICOLOR_FORCE"];

/// Set in every engine's environment.
const SET: &[(&str, &str)] = &[("NO_COLOR", "1"), ("GIT_TERMINAL_PROMPT", "0")];

/// One `--env NAME` or `--env NAME=REASON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvRequest {
    /// The variable's name.
    pub name: String,
    /// Why it is needed; must be there for a dangerous name.
    pub reason: Option<String>,
}

impl EnvRequest {
    /// Reads the value of one `--env`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(value: &str) -> Result<Self, String> {
        let (name, reason) = match value.split_once('=') {
            None => (value, None),
            Some((name, reason)) => (name, Some(reason.trim())),
        };
        if name.is_empty() || name.contains('\0') {
            return Err("needs the name of a variable".to_owned());
        }
        if reason == Some("") {
            return Err(format!("needs a reason after '{name}='"));
        }
        if reason.is_none() && matches_any(name.as_ref(), DANGEROUS, true) {
            return Err(format!(
                "'{name}' loads code or carries a credential: pass it as {name}=REASON, with why"
            ));
        }
        Ok(Self { name: name.to_owned(), reason: reason.map(str::to_owned) })
    }
}

/// What the caller asked for.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// `--env`, in order.
    pub wishes: Vec<EnvRequest>,
    /// `--inherit-env`: pass everything but the names that are never passed.
    pub inherit: bool,
    /// Whether `uv` is the program.
    pub uv: bool,
}

/// The environment of an engine, and why each name is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Names and values, for the process.
    pub vars: Vec<(OsString, OsString)>,
    /// Names and reasons, for the report. Never a value.
    pub passed: Vec<(String, String)>,
    /// Wishes that could not be met.
    pub warnings: Vec<String>,
}

/// Selects from the caller's variables. Pure: the same input gives the same environment.
#[must_use]
pub fn select(vars: &[(OsString, OsString)], policy: &Policy) -> Environment {
    let mut out = Environment::default();
    for (name, value) in vars {
        let Some(why) = why(name, policy) else { continue };
        out.vars.push((name.clone(), value.clone()));
        out.passed.push((name.to_string_lossy().into_owned(), why));
    }
    for (name, value) in SET {
        out.vars.push((name.into(), value.into()));
        out.passed.push(((*name).to_owned(), "always set".to_owned()));
    }
    for EnvRequest { name, .. } in &policy.wishes {
        if matches_any(name.as_ref(), NEVER, true) {
            out.warnings.push(format!("--env {name}: never passed to an engine"));
        } else if !vars.iter().any(|(set, _)| same(set, name)) {
            out.warnings.push(format!("--env {name}: not set, so not passed"));
        }
    }
    out
}

/// Why a variable is passed, or `None` where it is not.
fn why(name: &OsStr, policy: &Policy) -> Option<String> {
    if matches_any(name, NEVER, true) || SET.iter().any(|(set, _)| same(name, set)) {
        return None;
    }
    if let Some(wish) = policy.wishes.iter().find(|wish| same(name, &wish.name)) {
        return Some(wish.reason.clone().unwrap_or_else(|| "--env".to_owned()));
    }
    if policy.inherit {
        return Some("--inherit-env".to_owned());
    }
    if matches_any(name, DANGEROUS, true) {
        return None;
    }
    if matches_any(name, ALLOWED, cfg!(windows))
        || (cfg!(windows) && matches_any(name, ALLOWED_WINDOWS, true))
    {
        return Some("allowed".to_owned());
    }
    (policy.uv && matches_any(name, ALLOWED_UV, cfg!(windows))).then(|| "allowed for uv".to_owned())
}

/// Whether two names mean one variable: Windows does not tell them apart by case.
pub(super) fn same(a: &OsStr, b: &str) -> bool {
    if cfg!(windows) { a.eq_ignore_ascii_case(b) } else { a == b }
}

fn matches_any(name: &OsStr, patterns: &[&str], any_case: bool) -> bool {
    let name = name.as_encoded_bytes();
    let eq = |a: &[u8], b: &[u8]| if any_case { a.eq_ignore_ascii_case(b) } else { a == b };
    patterns.iter().any(|pattern| {
        let pattern = pattern.as_bytes();
        match (pattern.strip_suffix(b"*"), pattern.strip_prefix(b"*")) {
            (Some(start), _) => name.len() >= start.len() && eq(&name[..start.len()], start),
            (_, Some(end)) => name.len() >= end.len() && eq(&name[name.len() - end.len()..], end),
            _ => eq(name, pattern),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(set: &[&str], policy: &Policy) -> Vec<String> {
        let vars: Vec<_> = set.iter().map(|name| (name.into(), "v".into())).collect();
        let chosen = select(&vars, policy);
        assert_eq!(chosen.vars.len(), chosen.passed.len());
        assert!(chosen.vars.ends_with(&[
            ("NO_COLOR".into(), "1".into()),
            ("GIT_TERMINAL_PROMPT".into(), "0".into())
        ]));
        chosen.passed[..chosen.passed.len() - 2].iter().map(|(name, _)| name.clone()).collect()
    }

    fn wishes(wishes: &[&str]) -> Policy {
        let wishes = wishes.iter().map(|wish| EnvRequest::parse(wish).unwrap()).collect();
        Policy { wishes, ..Policy::default() }
    }

    #[test]
    fn only_allowed_names_pass() {
        let set = [
            "PATH",
            "HOME",
            "LC_ALL",
            "XDG_RUNTIME_DIR",
            "EDITOR",
            "UV_CACHE_DIR",
            "https_proxy",
            "GITHUB_TOKEN",
            "XDG_TOKEN",
            "LD_PRELOAD",
            "FORCE_COLOR",
            "NO_COLOR",
        ];
        let plain = ["PATH", "HOME", "LC_ALL", "XDG_RUNTIME_DIR"];
        assert_eq!(names(&set, &Policy::default()), plain);
        let uv = Policy { uv: true, ..Policy::default() };
        assert_eq!(names(&set, &uv), [&plain[..], &["UV_CACHE_DIR", "https_proxy"]].concat());
        assert!(!names(&["UV_PUBLISH_TOKEN"], &uv).contains(&"UV_PUBLISH_TOKEN".to_owned()));
    }

    #[test]
    fn every_dangerous_name_is_withheld_unless_it_is_asked_for_with_a_reason() {
        for pattern in DANGEROUS {
            let name = pattern.replace('*', "X");
            assert!(names(&[&name], &Policy { uv: true, ..Policy::default() }).is_empty());
            assert!(EnvRequest::parse(&name).is_err(), "{name}");
            assert!(EnvRequest::parse(&format!("{name}= ")).is_err(), "{name}");
            let policy = wishes(&[&format!("{name}=tests need it")]);
            assert_eq!(names(&[&name], &policy), [name]);
        }
    }

    #[test]
    fn the_page_for_engine_authors_lists_them_all() {
        let page = include_str!("../../docs/protocol.md");
        let lists = [ALLOWED, ALLOWED_WINDOWS, ALLOWED_UV, DANGEROUS, NEVER];
        for name in lists.into_iter().flatten() {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
        for (name, value) in SET {
            assert!(page.contains(&format!("`{name}={value}`")), "{name}");
        }
    }

    #[test]
    fn wishes_and_their_warnings() {
        let policy = wishes(&["EDITOR", "MISSING", "FORCE_COLOR"]);
        let vars = [("EDITOR".into(), "vi".into()), ("FORCE_COLOR".into(), "1".into())];
        let chosen = select(&vars, &policy);
        assert_eq!(chosen.passed[0], ("EDITOR".to_owned(), "--env".to_owned()));
        assert_eq!(chosen.warnings.len(), 2);
        assert!(EnvRequest::parse("").is_err() && EnvRequest::parse("=x").is_err());
        assert!(EnvRequest::parse("EDITOR=").is_err());
    }

    #[test]
    fn inheriting_passes_all_but_the_colour_switches() {
        let policy = Policy { inherit: true, ..Policy::default() };
        assert_eq!(names(&["A_TOKEN", "CLICOLOR_FORCE", "X"], &policy), ["A_TOKEN", "X"]);
    }
}
