//! The protocol between a host and an engine: one JSON request on stdin, one JSON response on
//! stdout (SPEC 1).
//!
//! Floor 0, pure and total: no input panics. Host and engine both build on this file and on
//! nothing of each other.

use std::collections::HashSet;

use serde::Serialize;

use crate::json::{Members, Readable, json, reason};
use crate::line::shorten;

/// The one protocol version there is.
pub const VERSION: u64 = 1;

/// The one operation there is.
pub const OPERATION: &str = "check";

/// The largest request, in bytes; also the host's default cap on a response.
pub const MAX_BYTES: usize = 1 << 20;

/// The verdicts an engine can reach, each with the exit code that mirrors it (SPEC 1).
///
/// 1 is reserved for crashes and 8 to 14 for later engines; neither may be used for another code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The contract is accepted.
    Ok,
    /// The command line was not understood. On the protocol only a host may say so.
    Usage,
    /// The contract file could not be read, or is not UTF-8.
    ContractUnreadable,
    /// The contract is not one YAML document that the reference accepts.
    ContractInvalidYaml,
    /// The contract is no mapping, or `id` or `task` is not a non-empty string.
    ContractMissingField,
    /// The repository is not a directory.
    RepoUnavailable,
    /// The request was malformed.
    InvalidRequest,
}

impl Code {
    /// Every code, in the order of their exit codes.
    pub const ALL: [Self; 7] = [
        Self::Ok,
        Self::Usage,
        Self::ContractUnreadable,
        Self::ContractInvalidYaml,
        Self::ContractMissingField,
        Self::RepoUnavailable,
        Self::InvalidRequest,
    ];

    /// The name as it stands in a response and in the line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Usage => "USAGE",
            Self::ContractUnreadable => "CONTRACT_UNREADABLE",
            Self::ContractInvalidYaml => "CONTRACT_INVALID_YAML",
            Self::ContractMissingField => "CONTRACT_MISSING_FIELD",
            Self::RepoUnavailable => "REPO_UNAVAILABLE",
            Self::InvalidRequest => "INVALID_REQUEST",
        }
    }

    /// The process exit code that mirrors the verdict.
    #[must_use]
    pub const fn exit(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Usage => 2,
            Self::ContractUnreadable => 3,
            Self::ContractInvalidYaml => 4,
            Self::ContractMissingField => 5,
            Self::RepoUnavailable => 6,
            Self::InvalidRequest => 7,
        }
    }

    /// The code of that name, if section 1 has it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }

    /// The code that an exit code mirrors, if any.
    #[must_use]
    pub fn from_exit(exit: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|code| i64::from(code.exit()) == exit)
    }
}

/// A well-formed request of operation `check`: two paths as the caller gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The repository the contract speaks of. The engine only asks whether it is a directory.
    pub repo: String,
    /// The contract file.
    pub contract: String,
}

impl Request {
    /// Reads one request, in the order of SPEC 1: UTF-8, JSON, object, version, operation, repo,
    /// contract.
    ///
    /// # Errors
    /// The problem in one phrase, for the message of an `INVALID_REQUEST`. Never more than a few
    /// hundred characters of the input are echoed.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MAX_BYTES {
            return Err(format!("request is larger than {MAX_BYTES} bytes"));
        }
        let text = json(bytes).map_err(|fault| format!("request is not valid JSON: {fault}"))?;
        let members = Members::read(text).map_err(|problem| format!("request {problem}"))?;
        for name in ["version", "operation", "repo", "contract"] {
            if members.count(name) > 1 {
                return Err(format!("request field '{name}' stands more than once"));
            }
        }
        match members.raw("version") {
            Some("1") => {}
            Some(other) => {
                let other = shown(other);
                return Err(format!("unsupported protocol version {other}; expected {VERSION}"));
            }
            None => return Err(format!("request field 'version' is missing; expected {VERSION}")),
        }
        match (members.string("operation"), members.raw("operation")) {
            (Some(name), _) if name == OPERATION => {}
            (_, Some(other)) => {
                let other = shown(other);
                return Err(format!("unsupported operation {other}; expected '{OPERATION}'"));
            }
            (_, None) => {
                return Err(format!(
                    "request field 'operation' is missing; expected '{OPERATION}'"
                ));
            }
        }
        let path = |name: &str| match members.string(name) {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(format!("request field '{name}' must be a non-empty string")),
        };
        Ok(Self { repo: path("repo")?, contract: path("contract")? })
    }

    /// The request as bytes, compact, without a line feed.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Wire<'a> {
            version: u64,
            operation: &'a str,
            repo: &'a str,
            contract: &'a str,
        }
        encode(&Wire {
            version: VERSION,
            operation: OPERATION,
            repo: &self.repo,
            contract: &self.contract,
        })
    }
}

/// A well-formed response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Whether the contract is accepted; true exactly with code `OK`.
    pub ok: bool,
    /// The verdict's name: `[A-Z][A-Z0-9_]*`, and none that only a host may say.
    pub code: String,
    /// What to tell the person; empty on acceptance.
    pub message: String,
    /// Remarks that change no verdict. Left out of the JSON when there are none.
    pub warnings: Vec<String>,
}

impl Response {
    /// An acceptance.
    #[must_use]
    pub fn accepted(warnings: Vec<String>) -> Self {
        Self { ok: true, code: Code::Ok.name().to_owned(), message: String::new(), warnings }
    }

    /// A refusal.
    #[must_use]
    pub fn refused(code: Code, message: String) -> Self {
        Self { ok: false, code: code.name().to_owned(), message, warnings: Vec::new() }
    }

    /// The response as bytes: compact, in the order of SPEC 1, ending in one LF.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Wire<'a> {
            version: u64,
            ok: bool,
            code: &'a str,
            message: &'a str,
            #[serde(skip_serializing_if = "<[String]>::is_empty")]
            warnings: &'a [String],
        }
        let mut bytes = encode(&Wire {
            version: VERSION,
            ok: self.ok,
            code: &self.code,
            message: &self.message,
            warnings: &self.warnings,
        });
        bytes.push(b'\n');
        bytes
    }

    /// Reads the members of a response out of text that is known to be one JSON value
    /// (see [`json`]). Members that this version does not know are ignored, but must be readable.
    ///
    /// # Errors
    /// What is wrong with the shape, naming the member.
    pub fn parse(text: &str) -> Result<Self, String> {
        let members = Members::read(text).map_err(|problem| format!("response {problem}"))?;
        let mut names = HashSet::with_capacity(members.0.len());
        for (name, raw) in &members.0 {
            if !names.insert(name.as_str()) {
                let name = shorten(name, 64);
                return Err(format!("member '{name}' stands more than once"));
            }
            if let Err(error) = serde_json::from_str::<Readable>(raw.get()) {
                let name = shorten(name, 64);
                return Err(format!("member '{name}' cannot be read: {}", reason(&error)));
            }
        }
        let must = |name: &str, what: &str| match members.raw(name) {
            None => format!("member '{name}' is missing"),
            Some(raw) => format!("member '{name}' must be {what}, not {}", shown(raw)),
        };
        if members.raw("version") != Some("1") {
            return Err(must("version", "the integer 1"));
        }
        let ok = match members.raw("ok") {
            Some("true") => true,
            Some("false") => false,
            _ => return Err(must("ok", "true or false")),
        };
        let code = members.string("code").ok_or_else(|| must("code", "a string"))?;
        let message = members.string("message").ok_or_else(|| must("message", "a string"))?;
        let warnings = match members.raw("warnings") {
            None => Vec::new(),
            Some(raw) => {
                serde_json::from_str(raw).map_err(|_| must("warnings", "an array of strings"))?
            }
        };
        if !is_code(&code) {
            return Err(must("code", "a name of A-Z, 0-9 and _"));
        }
        if ok != (code == Code::Ok.name()) {
            let code = shorten(&code, 64);
            return Err(format!("member 'ok' is {ok}, but member 'code' is '{code}'"));
        }
        if is_host_only(&code) {
            let code = shorten(&code, 64);
            return Err(format!("member 'code' is '{code}', which only a host may say"));
        }
        Ok(Self { ok, code, message, warnings })
    }
}

/// A value of the input as a person may see it: strings in single quotes, anything long cut.
fn shown(raw: &str) -> String {
    match serde_json::from_str::<String>(raw) {
        Ok(text) => format!("'{}'", shorten(&text, 64)),
        Err(_) => shorten(raw, 64),
    }
}

fn is_code(code: &str) -> bool {
    code.starts_with(|c: char| c.is_ascii_uppercase())
        && code.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

fn is_host_only(code: &str) -> bool {
    code == Code::Usage.name() || code == "HOST_FAILED" || code.starts_with("ENGINE_")
}

/// Serialising plain structs of strings and numbers cannot fail; an empty answer would be seen as
/// a malformed one, never as an acceptance.
fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"{"version":1,"operation":"check","repo":"/r","contract":"/c"}"#;

    #[test]
    fn codes_are_distinct_and_stable() {
        assert_eq!(Code::ALL.map(Code::exit), [0, 2, 3, 4, 5, 6, 7]);
        for code in Code::ALL {
            assert_eq!(Code::from_name(code.name()), Some(code));
            assert_eq!(Code::from_exit(i64::from(code.exit())), Some(code));
        }
        assert_eq!((Code::from_name("NOPE"), Code::from_exit(1)), (None, None));
    }

    #[test]
    fn a_request_survives_the_way_out_and_in() {
        let request = Request { repo: "/r \"q\"".into(), contract: "/ü\n".into() };
        assert_eq!(Request::parse(&request.encode()), Ok(request));
        assert_eq!(Request { repo: "/r".into(), contract: "/c".into() }.encode(), GOOD.as_bytes());
    }

    #[test]
    fn accepted_requests() {
        let nested = "[".repeat(126) + &"]".repeat(126);
        for text in [
            GOOD.to_owned(),
            format!(" \r\n\t{GOOD}\n\n"),
            GOOD.replace('{', r#"{"future":{"a":[1,"\ud800",1e999]},"#),
            GOOD.replace('{', r#"{"x":1,"x":2,"#),
            GOOD.replace('{', &format!("{{\"x\":{nested},")),
            GOOD.replace("check", "\\u0063heck"),
        ] {
            assert!(Request::parse(text.as_bytes()).is_ok(), "{text}");
        }
    }

    #[test]
    fn refused_requests_name_the_problem() {
        let nested = "[".repeat(127) + &"]".repeat(127);
        let cases = [
            (String::new(), "request is not valid JSON: empty at byte 0"),
            (" \n".into(), "request is not valid JSON: empty at byte 0"),
            (format!("\u{feff}{GOOD}"), "request is not valid JSON: byte order mark at byte 0"),
            (format!("{GOOD} x"), "request is not valid JSON: text after at byte 62"),
            (format!("{GOOD}{GOOD}"), "request is not valid JSON: text after at byte 61"),
            (GOOD.replace('}', ""), "request is not valid JSON: cut short at byte 60"),
            ("nope".into(), "request is not valid JSON: text before at byte 0"),
            ("[1]".into(), "request must be a JSON object, not an array"),
            ("null".into(), "request must be a JSON object, not null"),
            ("\"x\"".into(), "request must be a JSON object, not a string"),
            ("7".into(), "request must be a JSON object, not a number"),
            ("true".into(), "request must be a JSON object, not a boolean"),
            ("{}".into(), "request field 'version' is missing; expected 1"),
            (GOOD.replace(":1,", ":2,"), "unsupported protocol version 2; expected 1"),
            (GOOD.replace(":1,", ":1.0,"), "unsupported protocol version 1.0; expected 1"),
            (GOOD.replace(":1,", ":true,"), "unsupported protocol version true; expected 1"),
            (GOOD.replace(":1,", ":\"1\","), "unsupported protocol version '1'; expected 1"),
            (GOOD.replace(":1,", ":null,"), "unsupported protocol version null; expected 1"),
            (GOOD.replace("check", "run"), "unsupported operation 'run'; expected 'check'"),
            (GOOD.replace("\"check\"", "7"), "unsupported operation 7; expected 'check'"),
            (
                GOOD.replace("\"operation\":\"check\",", ""),
                "request field 'operation' is missing; expected 'check'",
            ),
            (GOOD.replace("/r", ""), "request field 'repo' must be a non-empty string"),
            (GOOD.replace("\"/r\"", "null"), "request field 'repo' must be a non-empty string"),
            (GOOD.replace("/c", ""), "request field 'contract' must be a non-empty string"),
            (GOOD.replace("/c", "\\ud800"), "request field 'contract' must be a non-empty string"),
            (GOOD.replace('{', "{\"repo\":\"/x\","), "request field 'repo' stands more than once"),
            (
                GOOD.replace('{', &format!("{{\"x\":{nested},")),
                "request is nested 128 levels or deeper",
            ),
            ("[".repeat(200_000), "request is not valid JSON: cut short at byte 200000"),
            ("[".repeat(200_000) + &"]".repeat(200_000), "request is nested 128 levels or deeper"),
            (GOOD.replace("/c", &"x".repeat(MAX_BYTES)), "request is larger than 1048576 bytes"),
        ];
        for (text, problem) in cases {
            let start: String = text.chars().take(80).collect();
            assert_eq!(Request::parse(text.as_bytes()), Err(problem.to_owned()), "{start}");
        }
        // At the bound it is still read.
        let padded = |length: usize| GOOD.to_owned() + &" ".repeat(length - GOOD.len());
        assert!(Request::parse(padded(MAX_BYTES).as_bytes()).is_ok());
        assert!(Request::parse(padded(MAX_BYTES + 1).as_bytes()).is_err());
        let long = GOOD.replace("check", &"x".repeat(100_000));
        assert!(Request::parse(long.as_bytes()).is_err_and(|problem| problem.len() < 200));
        let invalid = b"{\"version\":1,\"repo\":\"\xff\"}";
        let problem = "request is not valid JSON: invalid UTF-8 at byte 21";
        assert_eq!(Request::parse(invalid), Err(problem.to_owned()));
    }

    const OK: &str = r#"{"version":1,"ok":true,"code":"OK","message":""}"#;
    const NO: &str = r#"{"version":1,"ok":false,"code":"SOME_CODE","message":"why"}"#;

    #[test]
    fn a_response_survives_the_way_out_and_in() {
        let accepted = Response::accepted(Vec::new());
        assert_eq!(accepted.encode(), format!("{OK}\n").as_bytes());
        assert_eq!(Response::parse(OK), Ok(accepted));
        let refused = Response::refused(Code::RepoUnavailable, "a \"b\"\n".into());
        let text = String::from_utf8(refused.encode()).unwrap();
        assert_eq!(Response::parse(&text), Ok(refused));
        let warned = Response::accepted(vec!["w".into()]);
        assert!(warned.encode().ends_with(b",\"warnings\":[\"w\"]}\n"));
    }

    #[test]
    fn responses_of_another_shape_name_the_member() {
        let nested = "[".repeat(127) + &"]".repeat(127);
        let cases = [
            ("[1,true,\"OK\",\"\"]".to_owned(), "response must be a JSON object, not an array"),
            ("null".into(), "response must be a JSON object, not null"),
            (OK.replace("\"version\":1,", ""), "member 'version' is missing"),
            (OK.replace(":1,", ":2,"), "member 'version' must be the integer 1, not 2"),
            (OK.replace(":1,", ":1.0,"), "member 'version' must be the integer 1, not 1.0"),
            (OK.replace(":1,", ":\"1\","), "member 'version' must be the integer 1, not '1'"),
            (OK.replace("\"ok\":true,", ""), "member 'ok' is missing"),
            (OK.replace("true", "1"), "member 'ok' must be true or false, not 1"),
            (OK.replace("true", "null"), "member 'ok' must be true or false, not null"),
            (OK.replace("\"code\":\"OK\",", ""), "member 'code' is missing"),
            (OK.replace("\"OK\"", "0"), "member 'code' must be a string, not 0"),
            (OK.replace(",\"message\":\"\"", ""), "member 'message' is missing"),
            (OK.replace("\"\"", "[]"), "member 'message' must be a string, not []"),
            (OK.replace("true", "false"), "member 'ok' is false, but member 'code' is 'OK'"),
            (NO.replace("false", "true"), "member 'ok' is true, but member 'code' is 'SOME_CODE'"),
            (
                NO.replace("SOME_CODE", "some"),
                "member 'code' must be a name of A-Z, 0-9 and _, not 'some'",
            ),
            (NO.replace("SOME_CODE", ""), "member 'code' must be a name of A-Z, 0-9 and _, not ''"),
            (
                NO.replace("SOME_CODE", "USAGE"),
                "member 'code' is 'USAGE', which only a host may say",
            ),
            (
                NO.replace("SOME_CODE", "HOST_FAILED"),
                "member 'code' is 'HOST_FAILED', which only a host may say",
            ),
            (
                NO.replace("SOME_CODE", "ENGINE_TIMEOUT"),
                "member 'code' is 'ENGINE_TIMEOUT', which only a host may say",
            ),
            (OK.replace('}', ",\"ok\":true}"), "member 'ok' stands more than once"),
            (OK.replace('}', ",\"x\":1,\"x\":2}"), "member 'x' stands more than once"),
            (OK.replace('}', ",\"x\":1e999}"), "member 'x' cannot be read: number out of range"),
            (
                OK.replace('}', ",\"warnings\":\"w\"}"),
                "member 'warnings' must be an array of strings, not 'w'",
            ),
            (
                OK.replace('}', &format!(",\"x\":{nested}}}")),
                "response is nested 128 levels or deeper",
            ),
        ];
        for (text, problem) in cases {
            assert_eq!(Response::parse(&text), Err(problem.to_owned()), "{text}");
        }
        let lone = NO.replace("why", "\\ud800");
        assert!(Response::parse(&lone).is_err_and(|p| p.contains("member 'message'")));
    }

    #[test]
    fn responses_with_more_in_them_are_read() {
        for text in [
            OK.replace('}', ",\"x\":{\"a\":[null]}}"),
            OK.replace('}', &format!(",\"x\":{}{}}}", "[".repeat(126), "]".repeat(126))),
            NO.replace("SOME_CODE", "X9_"),
            NO.replace("why", "\\ud83d\\ude00"),
        ] {
            assert!(Response::parse(&text).is_ok(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::parse(&bytes);
            if let Ok(text) = json(&bytes) {
                let _ = Response::parse(text);
            }
        }

        #[test]
        fn mutated_responses_do_not_panic(at in 0..OK.len(), byte in any::<u8>(), cut in any::<bool>()) {
            let mut bytes = OK.as_bytes().to_vec();
            bytes[at] = byte;
            if cut {
                bytes.truncate(at);
            }
            if let Ok(text) = json(&bytes) {
                let _ = Response::parse(text);
            }
        }
    }
}
