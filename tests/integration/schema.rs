//! `satyrn-host schema`: the committed files, from the binary alone, and what the programs really
//! print, held against them.

use crate::common::{fixtures, host, program, run};
use jsonschema::Validator;
use serde_json::{Value, json};

#[test]
fn each_schema_is_printed_as_it_is_committed() {
    for name in satyrn::host::schema::NAMES {
        let ran = run(host().args(["schema", name]));
        let file = fixtures().join(format!("../schemas/{name}.json"));
        assert_eq!((ran.exit, ran.stdout), (Some(0), std::fs::read_to_string(file).unwrap()));
    }
    for words in [&["schema"][..], &["schema", "nope"], &["schema", "drill-1", "x"]] {
        let ran = run(host().args(words));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{words:?}");
        assert!(!ran.stderr.is_empty());
    }
}

pub(crate) fn validator(name: &str) -> Validator {
    let ran = run(host().args(["schema", name]));
    jsonschema::validator_for(&serde_json::from_str(&ran.stdout).unwrap()).unwrap()
}

/// Holds an object against a schema: as it is it fits, and with any member taken away or with one
/// more it does not. Reports have a schema of their own.
pub(crate) fn hold(name: &str, object: &Value) {
    let validator = validator(name);
    if let Err(fault) = validator.validate(object) {
        panic!("{name}: {}: {fault}: {object}", fault.instance_path());
    }
    let report = self::validator("report-1");
    let mut places = Vec::new();
    objects(object, "", &mut places);
    for place in places {
        if place.ends_with("/report") {
            let told = object.pointer(&place).unwrap();
            if let Err(fault) = report.validate(told) {
                panic!("{place}: {fault}: {told}");
            }
            continue;
        }
        let members = object.pointer(&place).unwrap().as_object().unwrap();
        for member in members.keys() {
            let mut wrong = object.clone();
            wrong.pointer_mut(&place).unwrap().as_object_mut().unwrap().remove(member);
            assert!(!validator.is_valid(&wrong), "{name}: without {place}/{member}");
        }
        let mut wrong = object.clone();
        wrong.pointer_mut(&place).unwrap()["zz"] = json!(1);
        assert!(!validator.is_valid(&wrong), "{name}: with {place}/zz");
    }
}

/// The places of all objects, but for what stands in a report.
fn objects(value: &Value, place: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            into.push(place.to_owned());
            for (name, value) in members.iter().filter(|_| !place.ends_with("/report")) {
                objects(value, &format!("{place}/{name}"), into);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                objects(value, &format!("{place}/{index}"), into);
            }
        }
        _ => {}
    }
}

/// What a program prints, one object a line, and its exit code.
fn printed(command: &mut std::process::Command) -> (Option<i32>, Vec<Value>) {
    let ran = run(command.current_dir(fixtures().join("contracts")));
    assert_eq!(ran.stderr, "");
    (ran.exit, ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Changes one member of an object that fits, which then fits no more.
fn refuse(name: &str, object: &Value, changes: &[(&str, Value)]) {
    let validator = validator(name);
    for (place, value) in changes {
        let mut wrong = object.clone();
        *wrong.pointer_mut(place).unwrap() = value.clone();
        assert!(!validator.is_valid(&wrong), "{name}: {place}: {value}");
    }
}

#[test]
fn what_the_engines_check_prints() {
    let engine = || program(env!("CARGO_BIN_EXE_satyrn-engine"));
    let words = ["good.yaml", "missing.yaml", "not-utf-8.yaml", "invalid.yaml", "list.yaml"];
    let (exit, rows) =
        printed(engine().args(["check", "--repo", ".", "--format", "json"]).args(words));
    assert_eq!((exit, rows.len()), (Some(5), words.len()));
    for row in &rows {
        hold("check-1", row);
    }
    let (exit, lost) =
        printed(engine().args(["check", "--repo", "./nowhere", "--format", "json", "good.yaml"]));
    assert_eq!(exit, Some(6));
    hold("check-1", &lost[0]);
    refuse(
        "check-1",
        &rows[0],
        &[
            ("/ok", json!(false)),
            ("/code", json!("CONTRACT_UNREADABLE")),
            ("/message", json!("why")),
            ("/warnings", json!([1])),
            ("/contract", Value::Null),
        ],
    );
    let changes = [("/ok", json!(true)), ("/code", json!("OK")), ("/message", json!(""))];
    refuse("check-1", &rows[1], &changes);
    // A refusal that only a request can have.
    refuse("check-1", &rows[1], &[("/code", json!("INVALID_REQUEST"))]);
}

#[test]
fn what_doctor_prints() {
    let doctor = |words: &[&str], vars: &[(&str, &str)]| {
        let mut doctor = host();
        doctor.args(["doctor", "--format", "json"]).args(words);
        let (exit, objects) = printed(doctor.envs(vars.iter().copied()));
        assert_eq!((objects.len(), exit), (1, Some(i32::from(objects[0]["ok"] == false))));
        hold("doctor-1", &objects[0]);
        objects[0].clone()
    };
    let good = doctor(&[], &[("SATYRN_DEADLINE", "20s"), ("SATYRN_LATER", "x"), ("PATH", "bin:/")]);
    assert_eq!(good["check"]["ok"], true);
    refuse(
        "doctor-1",
        &good,
        &[
            ("/doctor", json!(2)),
            ("/attention", json!([1])),
            ("/check/ok", json!("yes")),
            ("/engine/program", Value::Null),
            ("/engine/refusal", json!("satyrn-engine: USAGE: x")),
            ("/engine/kind", json!("other")),
            ("/variables/0/name", json!("HOME")),
            ("/environment/withheld", json!(-1)),
            ("/path/0/uv", json!("perhaps")),
        ],
    );
    if good["ok"] == true {
        let changes =
            [("/ok", json!(false)), ("/attention", json!(["x"])), ("/check/ok", json!(false))];
        refuse("doctor-1", &good, &changes);
    }
    for (words, vars) in [
        (&["--engine", "/missing"][..], &[][..]),
        (&["--engine-repo", "./missing"], &[]),
        (&["--drill", "crash-exit-5"], &[]),
        (&[], &[("SATYRN_ENGINE", "/a"), ("SATYRN_DRILL", "b")]),
        (&[], &[("SATYRN_DEADLINE", "soon")]),
        (&[], &[("TMPDIR", "/nowhere"), ("TMP", "Z:\\nowhere")]),
    ] {
        let bad = doctor(words, vars);
        assert_eq!(bad["ok"], false, "{bad}");
        refuse("doctor-1", &bad, &[("/ok", json!(true)), ("/attention", json!([]))]);
    }
}

#[test]
fn what_drill_prints() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = if cfg!(windows) { "unix" } else { "windows" };
    let steps = "engine: [{read: all}, {answer: OK}]";
    for (name, text) in [
        ("right", format!("about: x\n{steps}\nexpect: {{code: OK, exit: 0}}\n")),
        ("wrong", format!("about: x\n{steps}\nexpect: {{code: OK, exit: 1}}\n")),
        (
            "away",
            format!("about: x\nneeds: [{elsewhere}]\n{steps}\nexpect: {{code: OK, exit: 0}}\n"),
        ),
        (
            "silent",
            "about: x\nhost: {stdout: closed}\nengine: []\nexpect: {line: '', exit: 0}\n"
                .to_owned(),
        ),
    ] {
        std::fs::write(dir.path().join(format!("{name}.yaml")), text).unwrap();
    }
    let drill = |words: &[&str]| {
        let files = words.iter().map(|name| dir.path().join(format!("{name}.yaml")));
        let (exit, objects) =
            printed(host().args(["drill", "--repeat", "2", "--format", "json"]).args(files));
        assert_eq!(objects.len(), 1);
        hold("drill-results-1", &objects[0]);
        (exit, objects[0].clone())
    };
    let (exit, good) = drill(&["right"]);
    assert_eq!(exit, Some(0));
    let changes = [
        ("/command", json!("conform")),
        ("/passed", json!(-1)),
        ("/results/0/status", json!("failed")),
        ("/results/0/status", json!("good")),
        ("/results/0/failed_runs", json!(1)),
        ("/results/0/runs", json!(0)),
        ("/results/0/report", json!("text")),
        ("/results/0/about", json!("")),
    ];
    refuse("drill-results-1", &good, &changes);
    let (exit, bad) = drill(&["right", "wrong", "away", "silent"]);
    assert_eq!((exit, bad["results"][3]["report"].clone()), (Some(1), Value::Null));
    let changes = [
        ("/results/1/status", json!("passed")),
        ("/results/1/mismatches", json!([])),
        ("/results/1/failed_runs", json!(0)),
        ("/results/2/status", json!("passed")),
        ("/results/2/reason", json!("")),
        ("/results/2/report", json!({})),
    ];
    refuse("drill-results-1", &bad, &changes);
}

#[test]
fn what_conform_prints() {
    let conform = |words: &[&str]| {
        let (exit, objects) = printed(host().args(["conform", "--format", "json"]).args(words));
        assert_eq!(objects.len(), 1);
        hold("conform-results-1", &objects[0]);
        (exit, objects[0].clone())
    };
    let (exit, good) = conform(&["accept", "version-2"]);
    assert_eq!(exit, Some(0));
    let changes = [
        ("/command", json!("drill")),
        ("/skipped", json!(1)),
        ("/results/0/status", json!("failed")),
        ("/results/0/status", json!("skipped")),
        ("/results/0/failed_runs", json!(1)),
        ("/results/0/runs", json!(2)),
        ("/results/0/report", Value::Null),
        ("/results/0/about", json!("x")),
    ];
    refuse("conform-results-1", &good, &changes);
    // An engine that answers nothing has to be written first, which a shell does.
    #[cfg(unix)]
    {
        let dir = tempfile::tempdir().unwrap();
        let engine = crate::common::script(dir.path(), "engine", "#!/bin/sh\nexit 3\n");
        let (exit, bad) = conform(&["--engine", engine.to_str().unwrap(), "accept", "empty"]);
        assert_eq!((exit, bad["failed"].clone()), (Some(1), json!(2)));
        let changes = [
            ("/results/1/status", json!("passed")),
            ("/results/1/mismatches", json!([])),
            ("/results/1/failed_runs", json!(0)),
        ];
        refuse("conform-results-1", &bad, &changes);
    }
}
