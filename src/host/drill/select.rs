//! Which drills were asked for, and which of them cannot run here.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::script::{Need, Script};
use super::set::{Fault, is_path, load, name, names};
use crate::host::cli::drill as cli;
use crate::host::context::Context;
use crate::host::process::observed;
use crate::host::program::{absolute, find};
use crate::line::escape;

/// A drill that can be run.
#[derive(Clone, Debug)]
pub struct Drill {
    /// What it is called in the results.
    pub name: String,
    /// What `--drill` is given: the name of a built-in one, or an absolute path.
    pub named: String,
    /// What it says.
    pub script: Script,
}

/// Finds the drills that were asked for, in the order of the command line.
///
/// # Errors
/// What cannot be read or understood, one line each.
pub fn choose(options: &cli::Drill, cwd: &Path) -> Result<Vec<Drill>, String> {
    let mut drills = Vec::new();
    let mut faults = Vec::new();
    let mut add = |what: &Path| {
        let loaded = name(what, cwd).map_err(Fault::Missing).and_then(|named| {
            let script = load(&named)?;
            let name = if is_path(&named) { stem(what) } else { named.clone() };
            Ok(Drill { name, named, script })
        });
        match loaded {
            Ok(drill) => drills.push(drill),
            Err(Fault::Missing(why) | Fault::Bad(why)) => faults.push(escape(&why)),
        }
    };
    if options.what.is_empty() {
        for name in names() {
            add(name.as_ref());
        }
    }
    for what in &options.what {
        let dir = absolute(cwd, what);
        if !dir.is_dir() {
            add(what);
            continue;
        }
        let shown = escape(&what.to_string_lossy());
        let files = files(&dir).map_err(|why| format!("{shown}: {why}"))?;
        if files.is_empty() {
            return Err(format!("{shown}: no drill (*.yaml) in this directory"));
        }
        for file in files {
            add(&file);
        }
    }
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    if let Some(filter) = &options.filter {
        drills.retain(|drill| drill.name.contains(filter.as_str()));
        if drills.is_empty() {
            return Err(format!("no drill's name contains {filter:?}"));
        }
    }
    Ok(drills)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(dir).map_err(|error| error.to_string())?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(is_yaml))
        .collect();
    files.sort();
    Ok(files)
}

fn is_yaml(end: &OsStr) -> bool {
    end.eq_ignore_ascii_case("yaml") || end.eq_ignore_ascii_case("yml")
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Why a drill cannot run here.
pub(super) fn missing(needs: &[Need], context: &Context) -> Option<String> {
    let path = context.var("PATH");
    needs.iter().find_map(|need| {
        let (there, what) = match need {
            Need::Linux => (cfg!(target_os = "linux"), "needs Linux"),
            Need::Unix => (cfg!(unix), "needs Unix"),
            Need::Windows => (cfg!(windows), "needs Windows"),
            Need::Proc => {
                (observed::has_proc(), "needs a /proc that tells the children of a process")
            }
            Need::Uv => (find("uv", path.as_deref()).is_some(), "needs uv on PATH"),
        };
        (!there).then(|| what.to_owned())
    })
}
