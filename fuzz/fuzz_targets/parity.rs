//! The recorded verdicts of the reference stand, whatever comments come before a contract.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use satyrn::engine::contract::{Fault, parse};

/// The texts of the corpus with the reference's codes, but for those that begin with something
/// that has a meaning only there: a byte order mark.
static ROWS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    include_str!("../../fixtures/contracts/parity.jsonl").lines().filter_map(row).collect()
});

fn row(line: &str) -> Option<(String, String)> {
    let member = |name: &str| line.split(&format!("\"{name}\": \"")).nth(1)?.split('"').next();
    let text = String::from_utf8(base64(member("base64")?)).ok()?;
    let code = match member("code")? {
        "CRASH" => "CONTRACT_INVALID_YAML",
        code => code,
    };
    (!text.starts_with('\u{feff}')).then(|| (text, code.to_owned()))
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> =
        text.chars().filter_map(|c| DIGITS.find(c)).map(|digit| digit as u32).collect();
    let group = |group: &[u32]| {
        let bits = (0..4).fold(0, |bits, place| bits << 6 | group.get(place).copied().unwrap_or(0));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

fuzz_target!(|input: (u16, Vec<String>)| {
    let (text, code) = &ROWS[usize::from(input.0) % ROWS.len()];
    let mut whole = String::new();
    for comment in input.1.iter().take(4) {
        let comment: String = comment.chars().filter(|c| matches!(c, ' '..='~' | 'ä')).collect();
        whole.push_str(&format!("# {comment}\n\n"));
    }
    whole.push_str(text);
    let found = match parse("P", &whole) {
        Ok(_) => "OK",
        Err(Fault::InvalidYaml(_)) => "CONTRACT_INVALID_YAML",
        Err(Fault::MissingField(_)) => "CONTRACT_MISSING_FIELD",
    };
    assert_eq!(found, code, "{whole:?}");
});
