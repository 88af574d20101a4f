//! Where drills come from: the built-in set, and files.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use include_dir::{Dir, include_dir};

use super::script::{MAX_BYTES, Script};
use crate::host::program::absolute;

/// The drills that ship inside the binary. Adding one is adding a file.
static BUILT_IN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/fixtures/drills");

/// The names of the built-in drills, sorted.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = BUILT_IN
        .files()
        .filter(|file| file.path().extension().is_some_and(|end| end == "yaml"))
        .filter_map(|file| file.path().file_stem()?.to_str())
        .collect();
    names.sort_unstable();
    names
}

/// The text of a built-in drill.
#[must_use]
pub fn built_in(name: &str) -> Option<&'static str> {
    if name.contains(['/', '\\']) {
        return None;
    }
    BUILT_IN.get_file(format!("{name}.yaml"))?.contents_utf8()
}

/// Whether `named` is a path rather than the name of a built-in drill.
#[must_use]
pub fn is_path(named: &str) -> bool {
    named.contains(['/', '\\']) || Path::new(named).extension().is_some()
}

/// What [`load`] takes for a drill that was named on a command line: the name of a built-in one, or
/// an absolute path.
///
/// # Errors
/// A name that is not UTF-8, in one line.
pub fn name(drill: &Path, cwd: &Path) -> Result<String, String> {
    let utf8 = |path: &Path| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(format!("the name of the drill is not UTF-8: {}", path.display())),
    };
    let named = utf8(drill)?;
    if is_path(&named) { utf8(&absolute(cwd, drill)) } else { Ok(named) }
}

/// Why a drill cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not there, or cannot be read.
    Missing(String),
    /// It is there, but is no drill.
    Bad(String),
}

/// Reads a drill by the name of a built-in one, or by its path.
///
/// # Errors
/// Why not, in one line.
pub fn load(named: &str) -> Result<Script, Fault> {
    if !is_path(named) {
        let text = built_in(named).ok_or_else(|| {
            Fault::Missing(format!(
                "no such drill: {named}; `satyrn-host drill --list` names them, and a file is \
                 given by its path"
            ))
        })?;
        return Script::parse(named, text).map_err(Fault::Bad);
    }
    let bytes = read(Path::new(named))
        .map_err(|why| Fault::Missing(format!("cannot read the drill {named}: {why}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|byte| *byte == b'\n').count();
        let last = good.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let column = String::from_utf8_lossy(last).chars().count() + 1;
        Fault::Bad(format!("{named}:{line}:{column}: not UTF-8"))
    })?;
    Script::parse(named, &text).map_err(Fault::Bad)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let found = path.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) | Self::Bad(why) => formatter.write_str(why),
        }
    }
}
