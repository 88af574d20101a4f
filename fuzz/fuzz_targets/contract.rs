//! Any text as a contract: accepted or refused, in bounded time, without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satyrn::engine::contract::{Fault, parse};
use satyrn::line::line;

fuzz_target!(|text: &str| match parse("P", text) {
    Ok(contract) => assert!(!contract.id.trim().is_empty() && !contract.task.trim().is_empty()),
    Err(Fault::InvalidYaml(what) | Fault::MissingField(what)) => {
        assert!(!line("X", &what).contains('\n'));
    }
});
