//! The verdicts equal the reference's: our own corpus exactly, a shared one (if it is there) in
//! every scalar row and in at least 99 % of all rows.

use crate::common::base64;
use satyrn::engine::contract::{Fault, parse};
use serde_json::Value;
use std::path::{Path, PathBuf};

struct Row {
    name: String,
    bytes: Vec<u8>,
    code: String,
}

#[test]
fn our_corpus_gives_the_codes_of_the_reference() {
    let rows = rows(&root().join("fixtures/contracts/parity.jsonl"));
    assert!(rows.len() > 1000, "only {} rows", rows.len());
    let differing = differing(&rows);
    assert!(differing.is_empty(), "{} rows differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn the_shared_corpus_gives_the_codes_of_the_reference() {
    let path = root().join("../shared/parity/contracts.jsonl");
    if !path.exists() {
        return;
    }
    let rows = rows(&path);
    let differing = differing(&rows);
    let in_scalars = differing.iter().any(|row| row.starts_with("scalar"));
    let few = differing.len() * 100 <= rows.len();
    assert!(few && !in_scalars, "{} rows differ:\n{}", differing.len(), differing.join("\n"));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn differing(rows: &[Row]) -> Vec<String> {
    rows.iter()
        .filter_map(|row| {
            let (code, wanted) = (verdict(&row.bytes), wanted(row));
            (code != wanted).then(|| format!("{}: {code}, not {wanted}", row.name))
        })
        .collect()
}

fn verdict(bytes: &[u8]) -> &'static str {
    match std::str::from_utf8(bytes).map(|text| parse("contract.yaml", text)) {
        Err(_) => "CONTRACT_UNREADABLE",
        Ok(Ok(_)) => "OK",
        Ok(Err(Fault::InvalidYaml(_))) => "CONTRACT_INVALID_YAML",
        Ok(Err(Fault::MissingField(_))) => "CONTRACT_MISSING_FIELD",
    }
}

/// Where the reference dies, the engine refuses by name.
fn wanted(row: &Row) -> &str {
    match row.code.as_str() {
        "CRASH" if std::str::from_utf8(&row.bytes).is_err() => "CONTRACT_UNREADABLE",
        "CRASH" => "CONTRACT_INVALID_YAML",
        code => code,
    }
}

fn rows(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let member = |name: &str| row[name].as_str().unwrap().to_owned();
            Row { name: member("name"), bytes: base64(&member("base64")), code: member("code") }
        })
        .collect()
}
