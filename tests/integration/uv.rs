//! A checkout behind the real `uv`, whose engine is a few lines of Python.

use crate::common::{Ran, fixtures, host, run};
use std::path::Path;

const PYPROJECT: &str = r#"
[project]
name = "stub-engine"
version = "0.0.0"
requires-python = ">=3.8"

[project.scripts]
satyrn-engine = "stub_engine:main"

[build-system]
requires = ["uv_build>=0.9"]
build-backend = "uv_build"
"#;

/// Answers with the length of the request, or does what the contract's name says.
const ENGINE: &str = r#"
import json, os, sys

def main():
    request = json.load(sys.stdin)
    name = os.path.basename(request["contract"])
    assert sys.argv[1:] == ["protocol"], sys.argv
    if name == "good.yaml":
        print(json.dumps({"version": 1, "ok": True, "code": "OK", "message": ""}))
        return 0
    if name == "crash.yaml":
        raise ValueError("on purpose")
    message = "cannot read contract " + request["contract"]
    print(json.dumps({"version": 1, "ok": False, "code": "CONTRACT_UNREADABLE", "message": message}))
    return 3
"#;

/// Whether `uv` can be tested. On a CI machine it must be.
fn has_uv() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|dir| dir.join("uv").is_file());
    assert!(there || !crate::common::is_ci(), "uv is not on PATH (pip install uv)");
    if !there {
        eprintln!("uv is not on PATH: nothing is tested here (pip install uv)");
    }
    there
}

fn implement(checkout: &Path, contract: &Path) -> Ran {
    run(host().args(["implement", "--deadline", "5m", "--engine-repo"]).arg(checkout).arg(contract))
}

#[test]
fn uv_passes_stdin_and_the_exit_code() {
    if !has_uv() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let package = dir.path().join("src/stub_engine");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::write(dir.path().join("pyproject.toml"), PYPROJECT).unwrap();
    std::fs::write(package.join("__init__.py"), ENGINE).unwrap();
    let contracts = fixtures().join("contracts");

    let ran = implement(dir.path(), &contracts.join("good.yaml"));
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), "satyrn-engine: OK\n"), "{ran:?}");

    let missing = contracts.join("missing.yaml");
    let ran = implement(dir.path(), &missing);
    let line =
        format!("satyrn-engine: CONTRACT_UNREADABLE: cannot read contract {}\n", missing.display());
    assert_eq!((ran.exit, ran.stdout), (Some(3), line));

    let ran = implement(dir.path(), Path::new("crash.yaml"));
    assert_eq!(ran.exit, Some(70));
    assert!(ran.stdout.starts_with("satyrn-engine: ENGINE_CRASHED: exit code 1"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("ValueError: on purpose\n"), "{}", ran.stdout);

    // `uv` itself fails: the engine never ran.
    std::fs::write(dir.path().join("pyproject.toml"), "not toml [").unwrap();
    let ran = implement(dir.path(), &contracts.join("good.yaml"));
    assert_eq!(ran.exit, Some(69), "{ran:?}");
    assert!(ran.stdout.starts_with("satyrn-engine: ENGINE_START_FAILED: uv: "), "{}", ran.stdout);
}
