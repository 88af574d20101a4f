//! The values that a drill file's fields hold: lengths of time, signals, and text that is expected.

use std::fmt;
use std::time::Duration;

use regex_lite::Regex;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use crate::duration::parse_deadline;

/// Reads a scalar by a function. Its mistakes are raised while the scalar is being read, which is
/// how they get its place and its field's name.
pub(super) fn parsed<'de, D: Deserializer<'de>, T>(
    what: &'static str,
    parse: impl FnMut(&str) -> Result<T, String>,
    deserializer: D,
) -> Result<T, D::Error> {
    struct Parsed<F>(&'static str, F);
    impl<T, F: FnMut(&str) -> Result<T, String>> Visitor<'_> for Parsed<F> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }

        fn visit_str<E: de::Error>(mut self, text: &str) -> Result<T, E> {
            (self.1)(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Parsed(what, parse))
}

/// A signal, by its name: `SIGTERM`, or `TERM` for short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal(pub String);

const SIGNALS: &[&str] = &[
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGKILL",
    "SIGPIPE", "SIGQUIT", "SIGSEGV", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGUSR1",
    "SIGUSR2", "SIGXCPU",
];

impl<'de> Deserialize<'de> for Signal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed("the name of a signal", |text| Self::try_from(text.to_owned()), deserializer)
    }
}

impl TryFrom<String> for Signal {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let full = if name.starts_with("SIG") { name.clone() } else { format!("SIG{name}") };
        if SIGNALS.contains(&full.as_str()) {
            return Ok(Self(full));
        }
        Err(format!("{name:?} is not a signal; expected one of {}", SIGNALS.join(", ")))
    }
}

/// Text that is expected: exactly this, or, between slashes, a regular expression.
#[derive(Clone, Debug)]
pub struct Text {
    source: String,
    pattern: Option<Regex>,
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(
            "text, or a pattern between slashes",
            |text| Self::try_from(text.to_owned()),
            deserializer,
        )
    }
}

impl TryFrom<String> for Text {
    type Error = String;

    fn try_from(source: String) -> Result<Self, String> {
        let inner = source.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let pattern =
            inner.map(Regex::new).transpose().map_err(|why| format!("{source}: {why}"))?;
        Ok(Self { source, pattern })
    }
}

impl Text {
    /// Whether `text` is what is expected.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.pattern.as_ref().map_or(self.source == text, |pattern| pattern.is_match(text))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.source)
    }
}

/// A length of time with its unit: `500ms`, `2s`. More than zero, at most 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub Duration);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(
            "a length of time, such as 500ms or 2s",
            |text| Self::try_from(text.to_owned()),
            deserializer,
        )
    }
}

impl TryFrom<String> for Length {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_deadline(&text).map(Self).map_err(|why| format!("{text:?} {why}"))
    }
}
