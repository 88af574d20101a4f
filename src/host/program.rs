//! Programs: made absolute, found on PATH, quoted for a shell. Looks at the file system, starts nothing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Joins a path to the working directory, resolving nothing on disk.
#[must_use]
pub fn absolute(cwd: &Path, path: &Path) -> PathBuf {
    // `std::path::absolute` also tidies `.` and doubled separators, and knows Windows' drives.
    let joined = cwd.join(path);
    std::path::absolute(&joined).unwrap_or(joined)
}

/// Finds a program on PATH, as [`look`] does.
#[must_use]
pub fn find(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    look(name, path).find_map(|(_, place)| match place {
        Place::Program(program) => Some(program),
        Place::Skipped | Place::Nothing => None,
    })
}

/// What there is at one entry of PATH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It was not looked at.
    Skipped,
    /// No file of that name that can be run.
    Nothing,
    /// The program.
    Program(PathBuf),
}

/// Looks for a program at the entries of PATH, one after the other. Empty and relative ones are
/// skipped: they would mean the working directory, which is often somebody else's repository.
pub fn look(name: &str, path: Option<&OsStr>) -> impl Iterator<Item = (PathBuf, Place)> {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    path.into_iter().flat_map(std::env::split_paths).map(move |dir| {
        let candidate = dir.join(&name);
        let place = match dir.is_absolute() {
            false => Place::Skipped,
            true if is_executable(&candidate) => Place::Program(candidate),
            true => Place::Nothing,
        };
        (dir, place)
    })
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// A command as it can be given to a shell again.
pub(in crate::host) fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    if cfg!(windows) {
        // No file's name holds a quote there, and both shells take what stands between two.
        let plain = |c: char| c.is_alphanumeric() || "\\/:.-_".contains(c);
        let bare = |word: &str| !word.is_empty() && word.chars().all(plain);
        let quoted = |word: &str| if bare(word) { word.to_owned() } else { format!("\"{word}\"") };
        return words.into_iter().map(quoted).collect::<Vec<_>>().join(" ");
    }
    // What no shell can be given is a NUL, which no word of a command line holds.
    shlex::Quoter::new().allow_nul(true).join(words).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use super::*;

    #[cfg(unix)]
    #[test]
    fn uv_is_found_on_absolute_entries_of_path_only() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let uv = dir.path().join("uv");
        std::fs::write(&uv, "").unwrap();
        let path = |text: String| find("uv", Some(OsStr::new(&text)));
        let there = dir.path().display();
        assert_eq!(path(format!("/nowhere:{there}")), None, "not executable");
        std::fs::set_permissions(&uv, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(path(format!("::.:/nowhere:{there}")), Some(uv.clone()));
        let places: Vec<_> = look("uv", Some(OsStr::new(&format!(":bin:/nowhere:{there}"))))
            .map(|(entry, place)| (entry.to_str().unwrap().to_owned(), place))
            .collect();
        let expected = [
            (String::new(), Place::Skipped),
            ("bin".to_owned(), Place::Skipped),
            ("/nowhere".to_owned(), Place::Nothing),
            (there.to_string(), Place::Program(uv)),
        ];
        assert_eq!(places, expected);
        assert_eq!(path(":.:".to_owned()), None);
        assert_eq!(find("uv", None), None);
    }
}
