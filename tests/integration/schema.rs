//! `satyrn-host schema`: the committed files, from the binary alone.

use crate::common::{fixtures, host, run};

#[test]
fn each_schema_is_printed_as_it_is_committed() {
    for name in ["drill-1", "report-1", "request-1", "response-1"] {
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
