//! `satyrn-host conform`: good engines pass, and each fault of a bad one is named.

use crate::common::{Ran, host, run};

fn conform(words: &[&str]) -> Ran {
    run(host().arg("conform").args(words))
}

#[test]
fn our_engine_conforms_embedded_and_as_a_program() {
    for words in [&[][..], &["--engine", env!("CARGO_BIN_EXE_satyrn-engine")]] {
        let ran = conform(words);
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
        let cases = ran.stdout.lines().filter(|line| line.starts_with("ok    ")).count();
        assert!(cases >= 60, "{}", ran.stdout);
        let last = format!("{cases} passed, 0 failed, 0 skipped in ");
        assert!(ran.stdout.lines().last().is_some_and(|line| line.starts_with(&last)));
    }
}

/// An engine that is ours but for one fault, which a shell adds.
#[cfg(unix)]
fn with_fault(dir: &std::path::Path, fault: &str) -> Vec<(String, Vec<String>)> {
    use crate::common::script;
    use serde_json::Value;
    let engine = env!("CARGO_BIN_EXE_satyrn-engine");
    let text = format!("#!/bin/sh\nengine() {{ '{engine}' protocol; }}\n{fault}\n");
    let engine = script(dir, "engine", &text);
    let ran = conform(&["--engine", engine.to_str().unwrap(), "--format", "json"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(1), ""), "{fault}");
    let results: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut failed = Vec::new();
    for row in results["results"].as_array().unwrap() {
        let mismatches = row["mismatches"].as_array().cloned().unwrap_or_default();
        let what = mismatches.iter().map(|found| found["what"].as_str().unwrap().to_owned());
        failed.push((row["name"].as_str().unwrap().to_owned(), what.collect()));
    }
    failed
}

#[cfg(unix)]
#[test]
fn each_fault_of_a_faulty_engine_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for (fault, case, named) in [
        ("engine; exit 0", "version-2", "exit"),
        ("echo noise >&2; engine", "accept", "stderr"),
        ("echo noise; engine", "accept", "response"),
        ("engine; kill -9 $$", "version-2", "exit"),
        ("engine; kill -9 $$", "accept", "response"),
        ("sed 's/\"version\": *[^,}]*/\"version\":1/' | engine", "version-2", "code"),
        ("engine | sed s/unsupported/unknown/; exit 7", "version-2", "message"),
        ("exit 3", "empty", "response"),
    ] {
        let failed = with_fault(dir.path(), fault);
        let (_, what) = failed.iter().find(|(name, _)| name == case).unwrap();
        assert!(what.iter().any(|what| what == named), "{fault}: {case}: {what:?}");
    }
    // One fault in one case fails that case alone.
    let fault = "sed 's/\"operation\":\"run\"/\"operation\":\"check\"/' | engine";
    let failed = with_fault(dir.path(), fault);
    let failed: Vec<_> = failed.into_iter().filter(|(_, what)| !what.is_empty()).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].0, "operation-unknown");
}

#[cfg(unix)]
#[test]
fn an_engine_that_hangs_is_ended_and_named() {
    use crate::common::script;
    let dir = tempfile::tempdir().unwrap();
    let engine = script(dir.path(), "engine", "#!/bin/sh\nread -r x <>/dev/zero & wait\n");
    let words = ["--engine", engine.to_str().unwrap(), "--deadline", "100ms", "accept"];
    let ran = conform(&words);
    assert_eq!(ran.exit, Some(1));
    assert!(ran.stdout.contains("ENGINE_TIMEOUT: no answer within 100ms"), "{}", ran.stdout);
    assert!(ran.stdout.contains("0 passed, 1 failed, 0 skipped"), "{}", ran.stdout);
    let again = format!("again   satyrn-host conform {}\n", words.join(" "));
    assert!(ran.stdout.contains(&again), "{}", ran.stdout);
}

#[test]
fn cases_are_chosen_by_their_names() {
    for (words, passed) in [
        (&["accept", "version-2"][..], 2),
        (&["accept", "version-2", "--filter", "ver"], 1),
        (&["--filter", "operation-unknown"], 1),
    ] {
        let ran = conform(words);
        assert_eq!(ran.exit, Some(0), "{ran:?}");
        assert!(ran.stdout.contains(&format!("{passed} passed, 0 failed")), "{}", ran.stdout);
    }
}

#[test]
fn where_nothing_can_be_tried_it_says_why() {
    for (words, part) in [
        (&["--engine", "engine"][..], "must be a path, not the bare name engine"),
        (&["--engine", "./missing"], "no such program: "),
        (&["--engine-repo", "./missing"], "engine checkout is not a directory: "),
        (&["--filter", "no case has this"], "no case's name contains"),
        (&["--engine", "./x", "--engine-repo", "./y"], "cannot be used with"),
        (&["extra"], "no such case: extra"),
        (&["accept", "--filter", "version"], "no case's name contains"),
        (&["--extra"], "unexpected argument"),
    ] {
        let ran = conform(words);
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}
