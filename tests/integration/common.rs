//! What every integration test needs: the binaries, the fixtures, and one way to run a program.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
#[cfg(any(target_os = "linux", windows))]
use std::time::{Duration, Instant};

/// How a program ended and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn fixtures() -> PathBuf {
    std::path::absolute(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")).unwrap()
}

/// The host with an environment that chooses no engine.
pub(crate) fn host() -> Command {
    program(env!("CARGO_BIN_EXE_satyrn-host"))
}

pub(crate) fn program(path: impl AsRef<Path>) -> Command {
    #[cfg(unix)]
    handle_ignored();
    let mut command = Command::new(path.as_ref());
    for name in
        ["SATYRN_ENGINE", "SATYRN_ENGINE_REPO", "SATYRN_DRILL", "SATYRN_DEADLINE", "SATYRN_LOG"]
    {
        command.env_remove(name);
    }
    command
}

/// A suite that runs in the background may ignore SIGINT, and so would every host that it starts.
/// A handled signal does not stay handled across an exec, so they are handled here.
#[cfg(unix)]
fn handle_ignored() {
    use std::sync::{Arc, LazyLock};
    static ONCE: LazyLock<()> = LazyLock::new(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        for signal in (1..32).filter(|signal| mask >> (signal - 1) & 1 == 1) {
            let _ = signal_hook::flag::register(signal, Arc::default());
        }
    });
    LazyLock::force(&ONCE);
}

/// Runs to the end with nothing on stdin.
pub(crate) fn run(command: &mut Command) -> Ran {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Ran {
        exit: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Looks until something holds. Fifteen seconds are far above anything that is promised.
#[cfg(any(target_os = "linux", windows))]
pub(crate) fn await_until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(15);
    while !holds() {
        assert!(Instant::now() < until, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a process runs in a directory, named without links, or below it.
#[cfg(target_os = "linux")]
pub(crate) fn runs_in(dir: &Path) -> bool {
    running_in(dir) > 0
}

/// How many processes do. The working directory of a host is hidden from everybody but root, so
/// one whose command line names the directory counts as well.
#[cfg(target_os = "linux")]
pub(crate) fn running_in(dir: &Path) -> usize {
    let is_there = |process: &std::fs::DirEntry| {
        let process = process.path();
        let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        let dead = stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']));
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let named = String::from_utf8_lossy(&line).contains(dir.to_str().unwrap());
        !dead
            && (named
                || std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir)))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(is_there).count()
}

/// As long as it is one, it cannot be renamed.
#[cfg(windows)]
pub(crate) fn runs_in(dir: &Path) -> bool {
    let elsewhere = dir.with_extension("elsewhere");
    let free = std::fs::rename(dir, &elsewhere).is_ok();
    if free {
        std::fs::rename(&elsewhere, dir).unwrap();
    }
    !free
}

/// A new executable file with the given text.
#[cfg(unix)]
pub(crate) fn script(dir: &Path, name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join(name);
    // Written under another name first, so that no concurrent fork holds it open for writing when
    // it is executed.
    let fresh = dir.join(format!("{name}.fresh"));
    std::fs::write(&fresh, text).unwrap();
    std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&fresh, &path).unwrap();
    path
}

/// What the fixtures hold as base64.
pub(crate) fn base64(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).unwrap()
}

/// Whether a missing program fails its test. A variable that is set but empty is not set.
#[cfg(unix)]
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|set| !set.is_empty())
}
