//! What the process was born into, read once.

use std::ffi::OsString;
use std::path::PathBuf;

use super::env::same;
use super::process;

/// The environment, the working directory and the executable.
#[derive(Clone, Debug)]
pub struct Context {
    /// The environment.
    pub vars: Vec<(OsString, OsString)>,
    /// The working directory, or why there is none.
    pub cwd: Result<PathBuf, String>,
    /// The host's own executable, or why it cannot be named.
    pub exe: Result<PathBuf, String>,
}

impl Context {
    /// A variable of the snapshot, by its name as the system compares names.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<OsString> {
        self.vars.iter().find(|(set, _)| same(set, name)).map(|(_, value)| value.clone())
    }
}

/// The environment, the working directory and the executable, read once.
#[must_use]
pub fn context(name: Option<&OsString>) -> Context {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads them")]
    let vars = std::env::vars_os().collect();
    Context {
        vars,
        cwd: std::env::current_dir().map_err(|error| error.to_string()),
        exe: std::env::current_exe()
            .or_else(|_| std::path::absolute(process::own_executable(name)))
            .map_err(|error| error.to_string()),
    }
}
