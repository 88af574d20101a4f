//! What a contract is: a YAML mapping whose `id` and `task` are non-empty strings (SPEC 1).

use serde_yaml::Value;

/// A contract that is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The contract's name.
    pub id: String,
    /// What is to be done.
    pub task: String,
    /// Remarks for the person that change no verdict.
    pub warnings: Vec<String>,
}

/// Why a text is no contract: complete messages, without the code's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not one YAML document that the reference accepts.
    InvalidYaml(String),
    /// No mapping, or fields that are not non-empty strings.
    MissingField(String),
}

/// Reads a contract. `path` is only used in messages.
///
/// # Errors
/// The first fault; several field problems are told in one, in the order id, task.
pub fn parse(path: &str, text: &str) -> Result<Contract, Fault> {
    let value: Value = serde_yaml::from_str(text)
        .map_err(|error| Fault::InvalidYaml(format!("invalid YAML in {path}: {error}")))?;
    let Value::Mapping(mapping) = &value else {
        let kind = kind(&value);
        return Err(Fault::MissingField(format!(
            "top level of {path} must be a mapping, not {kind}"
        )));
    };
    let field = |name: &str| match mapping.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        Some(Value::String(_) | Value::Null) => {
            Err(format!("required field '{name}' must be a non-empty string"))
        }
        Some(other) => Err(format!(
            "required field '{name}' must be a non-empty string (read as {}; quote it)",
            kind(other)
        )),
        None => Err(format!("missing required field '{name}'")),
    };
    match (field("id"), field("task")) {
        (Ok(id), Ok(task)) => Ok(Contract { id, task, warnings: Vec::new() }),
        (id, task) => {
            let problems: Vec<String> = [id.err(), task.err()].into_iter().flatten().collect();
            Err(Fault::MissingField(problems.join("; ")))
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a float",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Sequence(_) => "a list",
        Value::Mapping(_) => "a mapping",
        Value::Tagged(_) => "a tagged value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts() {
        let (id, task) =
            ("required field 'id' must be a non-empty string", "missing required field 'task'");
        let cases = [
            ("id: a\ntask: do it\n", Ok(("a", "do it"))),
            ("task: |\n  x\nid: 'y'\nextra: 1\n", Ok(("y", "x\n"))),
            ("", Err(Fault::MissingField("top level of P must be a mapping, not null".into()))),
            (
                "- a",
                Err(Fault::MissingField("top level of P must be a mapping, not a list".into())),
            ),
            ("x: 1", Err(Fault::MissingField(format!("missing required field 'id'; {task}")))),
            ("id: ' '", Err(Fault::MissingField(format!("{id}; {task}")))),
            (
                "id: 7\ntask: x",
                Err(Fault::MissingField(format!("{id} (read as an integer; quote it)"))),
            ),
            ("id:\ntask: x", Err(Fault::MissingField(id.to_owned()))),
        ];
        for (text, expected) in cases {
            let found = parse("P", text);
            let found =
                found.as_ref().map(|c| (c.id.as_str(), c.task.as_str())).map_err(Clone::clone);
            assert_eq!(found, expected, "{text}");
        }
        let Err(Fault::InvalidYaml(what)) = parse("P", "id: [") else { panic!("accepted") };
        assert!(what.starts_with("invalid YAML in P: "), "{what}");
    }
}
