//! The tree ends with the host, on every system that can contain it: seen from outside.

use crate::common::{await_until, host, runs_in};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// An engine with four processes below it, which hold its stdout, and which never ends.
const HANGING: &str = "about: A tree that never ends.
engine:
  - start: {deep: 4, holds: [stdout], steps: [{sleep: forever}]}
  - ready
  - sleep: forever
expect: {code: ENGINE_TIMEOUT, exit: 124}
";

/// Everything that a test starts has this directory as its working directory.
struct Stage {
    dir: TempDir,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("hanging.yaml"), HANGING).unwrap();
        std::fs::write(dir.path().join("c.yaml"), "id: a\ntask: b\n").unwrap();
        // To it the engine writes when it is ready.
        std::fs::write(dir.path().join(".satyrn-drill-ready"), "").unwrap();
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// A host whose engine's tree stands.
    fn start(&self, options: &[&str]) -> Child {
        let child = host()
            .current_dir(self.dir.path())
            .args(["implement", "--drill", "./hanging.yaml"])
            .args(options)
            .arg(self.path().join("c.yaml"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ready = self.dir.path().join(".satyrn-drill-ready");
        await_until("the tree stands", || ready.metadata().is_ok_and(|file| file.len() > 0));
        assert!(runs_in(&self.path()));
        child
    }
}

#[test]
fn killing_the_host_ends_the_tree_and_says_nothing() {
    let stage = Stage::new();
    let mut host = stage.start(&[]);
    host.kill().unwrap();
    host.wait().unwrap();
    await_until("nothing runs", || !runs_in(&stage.path()));
    let mut said = String::new();
    host.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn the_end_of_the_leash_ends_the_tree() {
    let stage = Stage::new();
    let mut host = stage.start(&["--leash"]);
    drop(host.stdin.take());
    let output = host.wait_with_output().unwrap();
    assert!(!runs_in(&stage.path()));
    assert_eq!(output.status.code(), Some(143));
    let line = "satyrn-engine: ENGINE_CANCELLED: cancelled: the caller closed the leash\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), line);
}

#[test]
fn the_deadline_ends_the_tree_before_the_line_is_printed() {
    let stage = Stage::new();
    let mut host = stage.start(&["--deadline", "5s", "--format", "json"]);
    let mut stdout = host.stdout.take().unwrap();
    let mut first = [0];
    stdout.read_exact(&mut first).unwrap();
    // The host itself runs there too, until it has been waited for.
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(host.wait().unwrap().code(), Some(124));
    assert!(!runs_in(&stage.path()));
    for part in [r#""survivors":0"#, r#""contained":true"#, r#""code":"ENGINE_TIMEOUT""#] {
        assert!(rest.contains(part), "{part}: {rest}");
    }
}
