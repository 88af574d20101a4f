//! Any bytes as a request: parsed or refused in one short line, and the same again when encoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satyrn::line::line;
use satyrn::protocol::Request;

fuzz_target!(|bytes: &[u8]| match Request::parse(bytes) {
    Ok(request) => assert_eq!(Request::parse(&request.encode()), Ok(request)),
    Err(problem) => {
        assert!(problem.len() < 1000);
        assert!(!line("INVALID_REQUEST", &problem).contains('\n'));
    }
});
