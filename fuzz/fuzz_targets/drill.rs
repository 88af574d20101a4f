//! Any text as a drill file: read or refused in one line, without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use satyrn::host::drill::script::Script;

fuzz_target!(|text: &str| if let Err(why) = Script::parse("F", text) {
    assert!(why.starts_with('F') && !why.contains('\n'), "{why}");
});
