//! The engine: judges one contract (SPEC 1). Synchronous; knows nothing of a host.

pub mod cli;
pub mod contract;
mod file;
pub mod yaml;

use std::io::{Read, Write};
use std::path::Path;

use crate::protocol::{Code, MAX_BYTES, Request, Response};
use contract::{Contract, Fault};

/// Why a contract is not accepted. `Display` is the detail of the line, [`Refusal::code`] its cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The file could not be read: the path as given, and why.
    #[error("cannot read contract {path}: {why}")]
    ContractUnreadable {
        /// The path as it was given.
        path: String,
        /// The system's words, or ours where the system has none.
        why: String,
    },
    /// Not one YAML document that the reference accepts.
    #[error("{0}")]
    ContractInvalidYaml(String),
    /// No mapping, or a field that is not a non-empty string.
    #[error("{0}")]
    ContractMissingField(String),
    /// The repository, as given, is not a directory.
    #[error("repo is not a directory: {0}")]
    RepoUnavailable(String),
    /// The request's problem.
    #[error("{0}")]
    InvalidRequest(String),
}

impl Refusal {
    /// The name and exit code of this refusal.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::ContractUnreadable { .. } => Code::ContractUnreadable,
            Self::ContractInvalidYaml(_) => Code::ContractInvalidYaml,
            Self::ContractMissingField(_) => Code::ContractMissingField,
            Self::RepoUnavailable(_) => Code::RepoUnavailable,
            Self::InvalidRequest(_) => Code::InvalidRequest,
        }
    }
}

/// Judges a contract: the file, then its fields, then the repository. The first refusal wins.
///
/// # Errors
/// The refusal.
pub fn check(repo: &Path, contract: &Path) -> Result<Contract, Refusal> {
    judge(repo, &contract.to_string_lossy(), file::read(contract))
}

/// Judges a contract that a stream holds, in the same order; messages call it `-`.
///
/// # Errors
/// The refusal.
pub fn check_stream(repo: &Path, contract: impl Read) -> Result<Contract, Refusal> {
    judge(repo, "-", file::text(contract))
}

fn judge(repo: &Path, path: &str, text: Result<String, String>) -> Result<Contract, Refusal> {
    let text = text.map_err(|why| Refusal::ContractUnreadable { path: path.to_owned(), why })?;
    let contract = contract::parse(path, &text).map_err(|fault| match fault {
        Fault::InvalidYaml(what) => Refusal::ContractInvalidYaml(what),
        Fault::MissingField(what) => Refusal::ContractMissingField(what),
    })?;
    let is_device = cfg!(windows) && file::is_device(&repo.to_string_lossy());
    if is_device || !repo.is_dir() {
        return Err(Refusal::RepoUnavailable(repo.to_string_lossy().into_owned()));
    }
    Ok(contract)
}

/// A verdict as a response.
#[must_use]
pub fn respond(verdict: Result<Contract, Refusal>) -> Response {
    match verdict {
        Ok(contract) => Response::accepted(contract.warnings),
        Err(refusal) => Response::refused(refusal.code(), refusal.to_string()),
    }
}

/// Answers the bytes of one request.
#[must_use]
pub fn answer(request: &[u8]) -> Response {
    let request = Request::parse(request).map_err(Refusal::InvalidRequest);
    respond(
        request
            .and_then(|Request { repo, contract }| check(Path::new(&repo), Path::new(&contract))),
    )
}

/// Serves the protocol once: reads `input` to its end, writes one response, and returns the exit
/// code. Above 1 MiB the rest of the input is read and dropped, so that the writer is not cut off
/// by a closed pipe before it has read the refusal.
///
/// # Errors
/// The input could not be read, or the response not written: a transport failure for the caller
/// to see, never a refusal.
pub fn serve(mut input: impl Read, mut output: impl Write) -> std::io::Result<u8> {
    let mut request = Vec::new();
    let limit = MAX_BYTES as u64 + 1;
    if input.by_ref().take(limit).read_to_end(&mut request)? as u64 == limit {
        std::io::copy(&mut input, &mut std::io::sink())?;
    }
    let response = answer(&request);
    output.write_all(&response.encode())?;
    output.flush()?;
    Ok(Code::from_name(&response.code).map_or(1, Code::exit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(repo: &Path, contract: &Path) -> Vec<u8> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        Request { repo: text(repo), contract: text(contract) }.encode()
    }

    #[test]
    fn the_contract_is_judged_before_the_repo() {
        let dir = tempfile::tempdir().unwrap();
        let (good, bad) = (dir.path().join("good.yaml"), dir.path().join("bad.yaml"));
        std::fs::write(&good, "id: a\ntask: b\n").unwrap();
        std::fs::write(&bad, "id: a\n").unwrap();
        let missing = dir.path().join("missing");
        assert!(check(dir.path(), &good).is_ok());
        assert_eq!(check(&missing, &bad).map_err(|r| r.code()), Err(Code::ContractMissingField));
        assert_eq!(check(&missing, &good).map_err(|r| r.code()), Err(Code::RepoUnavailable));
        assert_eq!(check(&good, &good).map_err(|r| r.code()), Err(Code::RepoUnavailable));
    }

    #[test]
    fn serving_mirrors_the_verdict_in_the_exit_code() {
        let dir = tempfile::tempdir().unwrap();
        let good = dir.path().join("good.yaml");
        std::fs::write(&good, "id: a\ntask: b\n").unwrap();
        let mut out = Vec::new();
        assert_eq!(serve(&request(dir.path(), &good)[..], &mut out).unwrap(), 0);
        assert_eq!(out, b"{\"version\":1,\"ok\":true,\"code\":\"OK\",\"message\":\"\"}\n");
        let mut out = Vec::new();
        assert_eq!(serve(&b"{}"[..], &mut out).unwrap(), 7);
        assert!(out.starts_with(b"{\"version\":1,\"ok\":false,\"code\":\"INVALID_REQUEST\""));
    }

    #[test]
    fn a_request_above_the_bound_is_read_to_its_end_and_refused() {
        let mut input = std::io::Cursor::new(vec![b' '; 3 * MAX_BYTES]);
        let mut out = Vec::new();
        assert_eq!(serve(&mut input, &mut out).unwrap(), 7);
        assert_eq!(input.position(), 3 * MAX_BYTES as u64);
        assert!(out.len() < 200);
    }
}
