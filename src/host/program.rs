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

/// The program that Windows may run for a path: an `.exe`, which a name without an extension gets
/// as a shell would give it. Never a `.bat` or `.cmd`, whose arguments go through a command
/// interpreter, in whatever way it is written.
///
/// # Errors
/// Why it is not run.
pub fn windows_program(path: PathBuf, is_dir: fn(&Path) -> bool) -> Result<PathBuf, String> {
    let text = path.to_string_lossy();
    let refuse = |why: &str| Err(format!("cannot run {text}: {why}"));
    // A verbatim path is taken as it is written; every other one is tidied by the system.
    let name = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let (file, stream) = match name.split_once(':') {
        Some((file, stream)) => (file, Some(stream)),
        None => (name, None),
    };
    let plain = file.trim_end_matches(['.', ' ']);
    let extension = plain.rsplit_once('.').map(|(_, end)| end.trim_end().to_ascii_lowercase());
    match extension.as_deref() {
        Some("bat" | "cmd") => {
            refuse("a .bat or .cmd file is never run, only an .exe; name the program behind it")
        }
        _ if stream.is_some() => refuse("a stream of a file is never run, only an .exe"),
        _ if plain != file => refuse("its name ends in a dot or blank, which Windows leaves out"),
        _ if text.starts_with("\\\\.\\") => refuse("a device is never run, only an .exe"),
        Some("exe") => Ok(path),
        _ if is_dir(&path) => refuse("it is a directory"),
        None => {
            let mut path = path.into_os_string();
            path.push(".exe");
            Ok(path.into())
        }
        Some(_) => refuse("on Windows only an .exe is run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_runs_nothing_but_an_exe() {
        let program = |text: &str| {
            windows_program(text.into(), |path| path.to_string_lossy().ends_with("dir"))
                .map(|path| path.to_string_lossy().into_owned())
        };
        for (text, runs) in [
            (r"C:\a b\engine.exe", r"C:\a b\engine.exe"),
            (r"C:\ü\ENGINE.EXE", r"C:\ü\ENGINE.EXE"),
            (r"C:\a\engine.bat.exe", r"C:\a\engine.bat.exe"),
            (r"\\server\share\engine.exe", r"\\server\share\engine.exe"),
            (r"\\?\C:\long\engine.exe", r"\\?\C:\long\engine.exe"),
            (r"C:\a\engine", r"C:\a\engine.exe"),
            (r"C:\a.bat\engine", r"C:\a.bat\engine.exe"),
            ("C:/a/engine", "C:/a/engine.exe"),
        ] {
            assert_eq!(program(text), Ok(runs.to_owned()), "{text}");
        }
        for text in [
            r"C:\a\x.bat",
            r"C:\a\x.cmd",
            r"C:\a\x.CMD",
            r"C:\a\x.bAt",
            r"C:\a\x.bat.",
            r"C:\a\x.bat . .",
            r"C:\a\x.cmd ",
            r"C:\a\x.bat::$DATA",
            r"C:\a\x.bat:stream",
            r"C:\a\x.cmd. ::$DATA",
            r"C:\a\x.bat:.exe",
            r"C:\a\x.bat\..\x.cmd",
            "C:/a/x.bat",
            r"C:\a\engine.exe.",
            r"C:\a\engine.exe ",
            r"C:\a\engine.exe::$DATA",
            r"C:\a\engine.",
            r"C:\a\engine.com",
            r"C:\a\engine.ps1",
            r"C:\a\engine.py",
            r"C:\a\dir",
            r"\\.\pipe\x.exe",
            r"\\.\NUL",
        ] {
            let refusal = program(text).unwrap_err();
            assert!(refusal.starts_with(&format!("cannot run {text}: ")), "{refusal}");
            let batch = text.to_ascii_lowercase();
            let batch = batch.contains("x.bat") || batch.contains("x.cmd");
            assert_eq!(refusal.contains("never run, only an .exe; name"), batch);
        }
    }

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
