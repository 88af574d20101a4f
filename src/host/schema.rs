//! The JSON Schemas of everything that is read or printed as JSON or YAML, compiled in.

/// A schema by its name, `drill-1` for one.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    SCHEMAS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names, sorted.
pub const NAMES: [&str; 8] = [
    "check-1",
    "conform-results-1",
    "doctor-1",
    "drill-1",
    "drill-results-1",
    "report-1",
    "request-1",
    "response-1",
];

const SCHEMAS: [(&str, &str); 8] = [
    (NAMES[0], include_str!("../../schemas/check-1.json")),
    (NAMES[1], include_str!("../../schemas/conform-results-1.json")),
    (NAMES[2], include_str!("../../schemas/doctor-1.json")),
    (NAMES[3], include_str!("../../schemas/drill-1.json")),
    (NAMES[4], include_str!("../../schemas/drill-results-1.json")),
    (NAMES[5], include_str!("../../schemas/report-1.json")),
    (NAMES[6], include_str!("../../schemas/request-1.json")),
    (NAMES[7], include_str!("../../schemas/response-1.json")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::drill::script::Script;
    use crate::host::drill::set::{built_in, names};
    use jsonschema::Validator;
    use serde_json::Value;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    fn schema(name: &str) -> (Value, Validator) {
        let schema: Value = serde_json::from_str(text(name).unwrap()).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
        let validator = jsonschema::validator_for(&schema).unwrap();
        (schema, validator)
    }

    fn faults(validator: &Validator, value: &Value) -> Vec<String> {
        let at =
            |fault: jsonschema::ValidationError<'_>| format!("{}: {fault}", fault.instance_path());
        validator.iter_errors(value).map(at).collect()
    }

    fn fixtures() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/protocol")
    }

    #[test]
    fn each_file_is_compiled_in_under_its_name() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        let mut files: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        assert_eq!(files, NAMES);
        assert!(NAMES.iter().all(|name| text(name).is_some_and(|text| text.ends_with("}\n"))));
        assert_eq!(text("nope"), None);
    }

    /// What is only printed lists every member with a word on it, and has no others. The report is
    /// left open, so that what a version adds later passes a schema of today.
    #[test]
    fn every_member_of_what_is_printed_is_described_and_there_are_no_others() {
        fn walk(at: &str, schema: &Value, tried: &mut usize) {
            if let Some(members) = schema["properties"].as_object() {
                assert_eq!(schema["additionalProperties"], false, "{at}");
                let required = words(&schema["required"]);
                for (name, member) in members {
                    let at = format!("{at}/{name}");
                    let about = member["description"].as_str().unwrap_or_default();
                    assert!(about.ends_with('.'), "{at}: {about:?}");
                    // These two depend on what came of it.
                    let may_be_missing = ["mismatches", "reason"].contains(&name.as_str());
                    assert_eq!(required.contains(name), !may_be_missing, "{at}");
                    *tried += 1;
                    walk(&at, member, tried);
                }
            }
            if schema["items"].is_object() {
                walk(&format!("{at}/*"), &schema["items"], tried);
            }
            for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
                walk(&format!("{at}#{name}"), part, tried);
            }
        }
        for (name, count) in
            [("check-1", 5), ("conform-results-1", 18), ("doctor-1", 38), ("drill-results-1", 19)]
        {
            let (schema, _) = schema(name);
            let mut tried = 0;
            walk(name, &schema, &mut tried);
            assert_eq!(tried, count, "{name}");
        }
    }

    #[test]
    fn requests() {
        let (_, validator) = schema("request-1");
        let cases = std::fs::read_to_string(fixtures().join("cases.json")).unwrap();
        let cases: Vec<Value> = serde_json::from_str(&cases).unwrap();
        let mut tried = 0;
        for case in &cases {
            let name = case["name"].as_str().unwrap();
            let text = match &case["request"] {
                request if request["text"].is_string() => request["text"].clone(),
                request if request["file"].is_string() => {
                    let file = fixtures().join(request["file"].as_str().unwrap());
                    std::fs::read_to_string(file).unwrap().into()
                }
                _ => continue,
            };
            let Ok(request) = serde_json::from_str(text.as_str().unwrap()) else { continue };
            tried += 1;
            // What a schema cannot say: how a number is written, and what stands twice or deep.
            let beyond = ["version-float", "version-exponent", "nested-128-deep"].contains(&name)
                || name.ends_with("-repeated");
            let expected = case["code"] != "INVALID_REQUEST" || beyond;
            assert_eq!(faults(&validator, &request).is_empty(), expected, "{name}");
        }
        assert!(tried > 40, "{tried}");
    }

    #[test]
    fn responses() {
        let (_, validator) = schema("response-1");
        for entry in std::fs::read_dir(fixtures()).unwrap() {
            let path = entry.unwrap().path();
            if path.to_str().unwrap().ends_with(".response.json") {
                let text = std::fs::read_to_string(&path).unwrap();
                let found = faults(&validator, &serde_json::from_str(&text).unwrap());
                assert_eq!(found, Vec::<String>::new(), "{}", path.display());
            }
        }
        // The drills' answers of another shape are of another shape here too.
        let mut tried = 0;
        for name in names().into_iter().filter(|name| name.starts_with("shape-")) {
            let drill: Value = serde_yaml::from_str(built_in(name).unwrap()).unwrap();
            let text = drill["engine"][1]["write"]["text"].as_str().unwrap();
            let beyond = ["shape-member-twice", "shape-version-float"].contains(&name);
            let Ok(response) = serde_json::from_str(text) else { continue };
            tried += 1;
            assert_eq!(faults(&validator, &response).is_empty(), beyond, "{name}");
        }
        assert!(tried > 12, "{tried}");
    }

    #[test]
    fn drills() {
        let (_, validator) = schema("drill-1");
        for name in names() {
            let drill: Value = serde_yaml::from_str(built_in(name).unwrap()).unwrap();
            assert_eq!(faults(&validator, &drill), Vec::<String>::new(), "{name}");
        }
        for bad in [
            "about: x\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nstart: {program: x}\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nexpect: {exit: 0}\n",
            "about: x\nengine: []\nexpect: {code: OK}\n",
            "about: x\nengine: [{raed: all}]\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: [{write: {}}]\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: [{start: {steps: [{die: NOPE}]}}]\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: [{ignore: [KILL]}]\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: [{start: {ignore: [SIGSEGV]}}]\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: [{exit: 256}]\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nexpect: {code: OK, exit: 0}\nlimits: {deadline: 5}\n",
            "about: x\nengine: []\nexpect: {code: OK, exit: 0}\nlimits: {deadline: 0.0s}\n",
            "about: x\nengine: []\nexpect: {code: OK, exit: 0, within: 0ms}\n",
            "about: ' '\nengine: []\nexpect: {code: OK, exit: 0}\n",
            "about: \"x\\ny\"\nengine: []\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: [{write: {base64: a}}]\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nhost: {options: [\"\\0\"]}\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nhost: {environment: {A=B: x}}\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nhost: {environment: {'': x}}\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nfiles: {../a: {text: x}}\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nfiles: {a//b: {text: x}}\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nfiles: {/a: {text: x}}\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nfiles: {a/.: {text: x}}\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nfiles: {'a\\b': {text: x}}\nexpect: {code: OK, exit: 0}\n",
        ] {
            let drill: Value = serde_yaml::from_str(bad).unwrap();
            assert!(!faults(&validator, &drill).is_empty(), "{bad}");
            assert!(Script::parse("x", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_odd_and_good_is_good_to_both() {
        let (_, validator) = schema("drill-1");
        for good in [
            "about: |\n  x\nengine: []\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nexpect: {code: OK, exit: 0, within: 0.5ms}\n",
            "about: x\nengine: []\nexpect: {code: OK, exit: TERM}\nlimits: {deadline: 24h}\n",
            "about: x\nengine: [{write: {base64: ''}}]\nexpect: {line: 5, exit: 0}\n",
            "about: x\nengine: []\nhost: {options: [5, a b]}\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nhost: {environment: {A: 5}}\nexpect: {code: OK, exit: 0}\n",
            "about: x\nengine: []\nfiles: {a/..b/.c: {text: x}}\nexpect: {code: OK, exit: 0}\n",
        ] {
            let drill: Value = serde_yaml::from_str(good).unwrap();
            assert_eq!(faults(&validator, &drill), Vec::<String>::new(), "{good}");
            Script::parse("x", good).unwrap_or_else(|why| panic!("{good}: {why}"));
        }
    }

    /// The reader, asked with a field that nobody has, names those that it has.
    #[test]
    fn the_schema_of_drills_has_every_field_of_the_reader() {
        let (schema, _) = schema("drill-1");
        let step = |name: &str| {
            let steps = schema["$defs"]["step"]["oneOf"].as_array().unwrap();
            let found = steps.iter().find(|step| !step["properties"][name].is_null());
            found.unwrap()["properties"][name]["properties"].clone()
        };
        let keys =
            |of: &Value| of.as_object().unwrap().keys().cloned().collect::<BTreeSet<String>>();
        let variants = |of: &Value| {
            let name = |variant: &Value| match variant["const"].as_str() {
                Some(word) => word.to_owned(),
                None => variant["required"][0].as_str().unwrap().to_owned(),
            };
            of.as_array().unwrap().iter().map(name).collect::<BTreeSet<String>>()
        };
        let fields = &schema["properties"];
        for (text, expected) in [
            ("zz: 1", keys(fields)),
            ("limits: {zz: 1}", keys(&fields["limits"]["properties"])),
            ("host: {zz: 1}", keys(&fields["host"]["properties"])),
            ("files: {a: {zz: 1}}", keys(&fields["files"]["additionalProperties"]["properties"])),
            ("start: {zz: 1}", variants(&fields["start"]["oneOf"])),
            ("needs: [zz]", words(&fields["needs"]["items"]["enum"])),
            ("engine: [{zz: 1}]", variants(&schema["$defs"]["step"]["oneOf"])),
            ("engine: [{write: {zz: 1}}]", keys(&step("write"))),
            ("engine: [{start: {zz: 1}}]", keys(&step("start"))),
            ("when_ready: [{zz: 1}]", variants(&fields["when_ready"]["items"]["oneOf"])),
            ("expect: {zz: 1}", keys(&fields["expect"]["properties"])),
            ("engine: [{die: zz}]", {
                let all = words(&schema["$defs"]["signal"]["enum"]);
                all.into_iter().filter(|name| name.starts_with("SIG")).collect()
            }),
        ] {
            let why = Script::parse("x", &format!("{text}\n")).unwrap_err();
            let (_, named) = why.split_once("expected ").unwrap_or_else(|| panic!("{why}"));
            let named: BTreeSet<_> = named
                .split([' ', ',', '`'])
                .filter(|word| !word.is_empty() && !["one", "of", "or"].contains(word))
                .map(str::to_owned)
                .collect();
            assert_eq!(named, expected, "{text}");
        }
    }

    fn words(of: &Value) -> BTreeSet<String> {
        of.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    }
}
