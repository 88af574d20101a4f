//! Reads a contract file that may be hostile: never waits, never reads more than the bound.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The largest contract, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The text of a regular file of at most 1 MiB of UTF-8.
///
/// # Errors
/// Why it cannot be had, in the system's words where there are some.
pub(super) fn read(path: &Path) -> Result<String, String> {
    if cfg!(windows) && is_device(&path.to_string_lossy()) {
        return Err("a device, not a regular file".to_owned());
    }
    // Asked first, since opening a device can have effects of its own; asked again on the open
    // file, since the path may name another file by then.
    let say = |error: std::io::Error| match error.kind() {
        ErrorKind::InvalidInput => "the path contains a NUL character".to_owned(),
        _ => error.to_string(),
    };
    regular(&path.metadata().map_err(say)?)?;
    let file = open(path).map_err(say)?;
    regular(&file.metadata().map_err(say)?)?;
    text(file)
}

/// Whether Windows takes a path for a device or a pipe, and not for a file. Told by the name, since
/// merely looking at one can wait, or have effects.
pub(super) fn is_device(path: &str) -> bool {
    let path = path.replace('/', "\\").to_ascii_lowercase();
    let is_drive = |text: &str| {
        text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && text[1..].starts_with(r":\")
    };
    // On any server, a share of these names leads to pipes.
    let is_pipe = |server: &str| {
        let share = server.split('\\').nth(1).unwrap_or_default();
        matches!(share, "pipe" | "mailslot" | "ipc$")
    };
    if let Some(verbatim) = path.strip_prefix(r"\\?\") {
        return match verbatim.strip_prefix(r"unc\") {
            Some(server) => is_pipe(server),
            None => !is_drive(verbatim),
        };
    }
    if path.starts_with(r"\\.\") || path.starts_with(r"\??\") {
        return true;
    }
    if path.strip_prefix(r"\\").is_some_and(is_pipe) {
        return true;
    }
    // The reserved names, in any directory and with any ending.
    let name = path.rsplit('\\').next().unwrap_or_default();
    let name = name.split(['.', ':']).next().unwrap_or_default().trim_end();
    let numbered = name.strip_prefix("com").or_else(|| name.strip_prefix("lpt"));
    let is_number = |rest: &str| {
        let mut chars = rest.chars();
        chars.next().is_some_and(|c| c.is_ascii_digit() || "¹²³".contains(c))
            && chars.next().is_none()
    };
    matches!(name, "con" | "prn" | "aux" | "nul" | "conin$" | "conout$" | "clock$")
        || numbered.is_some_and(is_number)
}

/// The text of at most 1 MiB of UTF-8 that a stream holds up to its end.
///
/// # Errors
/// As [`read`].
pub(super) fn text(stream: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    stream.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("larger than {MAX_BYTES} bytes"));
    }
    String::from_utf8(bytes)
        .map_err(|error| format!("not UTF-8 (byte {})", error.utf8_error().valid_up_to()))
}

fn regular(metadata: &Metadata) -> Result<(), String> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(if metadata.is_dir() { "is a directory" } else { "not a regular file" }.to_owned())
}

/// Opens without waiting for a writer, should the path have become a FIFO since it was looked at.
#[cfg(unix)]
fn open(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_up_to_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.yaml");
        std::fs::write(&path, vec![b'a'; 1 << 20]).unwrap();
        assert_eq!(read(&path).map(|text| text.len()), Ok(1 << 20));
        std::fs::write(&path, vec![b'a'; (1 << 20) + 1]).unwrap();
        assert_eq!(read(&path), Err("larger than 1048576 bytes".to_owned()));
    }

    #[test]
    fn bytes_that_are_not_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.yaml");
        std::fs::write(&path, "id: ü").unwrap();
        assert_eq!(read(&path), Ok("id: ü".to_owned()));
        std::fs::write(&path, b"id: \xff").unwrap();
        assert_eq!(read(&path), Err("not UTF-8 (byte 4)".to_owned()));
    }

    #[test]
    fn paths_that_name_no_regular_file() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), Err("is a directory".to_owned()));
        assert!(read(&dir.path().join("missing")).is_err());
        let nul = read(Path::new("a\0b"));
        assert_eq!(nul, Err("the path contains a NUL character".to_owned()));
        assert!(read(&dir.path().join("x".repeat(300))).is_err());
    }

    #[test]
    fn devices_of_windows_are_known_by_their_names() {
        for path in [
            "NUL",
            "nul.yaml",
            "con",
            r"C:\a\CON",
            r"C:\a\aux .txt",
            r"C:\a\COM1",
            "lpt9.yaml",
            "COM¹",
            "prn:",
            "CONIN$",
            r"\\.\pipe\x",
            r"\\.\NUL",
            "//./pipe/x",
            r"\\?\pipe\x",
            r"\\?\GLOBALROOT\Device\NamedPipe\x",
            r"\\server\pipe\x",
            r"\\?\UNC\server\pipe\x",
            r"\??\C:\x",
        ] {
            assert!(is_device(path), "{path}");
        }
        for path in [
            "c.yaml",
            "",
            r"C:\a\console.yaml",
            r"C:\a\com.yaml",
            r"C:\a\com10",
            r"C:\nul\c.yaml",
            r"\\server\share\c.yaml",
            r"\\server\share\pipe\c.yaml",
            r"\\?\C:\a\nul",
            r"\\?\UNC\server\share\c.yaml",
            "/home/x/c.yaml",
        ] {
            assert!(!is_device(path), "{path}");
        }
    }

    #[cfg(windows)]
    #[test]
    fn devices_of_windows_are_refused_without_waiting() {
        for path in ["NUL", "CON", "COM1", r"\\.\pipe\nobody"] {
            let absolute = std::path::absolute(path).unwrap();
            assert_eq!(read(&absolute), Err("a device, not a regular file".to_owned()), "{path}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn devices_pipes_and_loops_are_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let (fifo, ring) = (dir.path().join("fifo"), dir.path().join("ring"));
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        std::os::unix::fs::symlink(&ring, &ring).unwrap();
        assert_eq!(read(&fifo), Err("not a regular file".to_owned()));
        // The second look, on the open file, does not wait either.
        assert!(open(&fifo).is_ok_and(|file| !file.metadata().unwrap().is_file()));
        assert_eq!(read(Path::new("/dev/zero")), Err("not a regular file".to_owned()));
        // Each C library has its own words for it.
        assert!(read(&ring).is_err_and(|why| why.to_lowercase().contains("symbolic link")));
    }
}
