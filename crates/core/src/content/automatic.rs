//! Lines that a program wrote on behalf of the user, according to their metadata.

use serde_json::{Map, Value};

/// Whether the metadata of a line says that no person and no model wrote it:
///
/// - `ephemeral`: it was only for one request;
/// - `amplifier_input.kind` is `service`: a host asked the question by itself;
/// - `amplifier_visible_reference`: it repeats what was said elsewhere, for the model.
///
/// Such a line starts no turn, is no title, and ranks last in searches.
pub(crate) fn is_automatic(line: &Map<String, Value>) -> bool {
    let Some(metadata) = line.get("metadata").filter(|metadata| metadata.is_object()) else { return false };
    let is_set = |name: &str| metadata.get(name).is_some_and(is_true);
    let kind = metadata.get("amplifier_input").and_then(|input| input.get("kind")).and_then(Value::as_str);
    is_set("ephemeral") || is_set("amplifier_visible_reference") || kind == Some("service")
}

/// Whether a value counts as true for the programs that write it.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_metadata_tells_who_wrote_a_line() {
        let of = |metadata: Value| is_automatic(json!({"metadata": metadata}).as_object().unwrap());
        for automatic in [
            json!({"ephemeral": true}),
            json!({"ephemeral": "turn"}),
            json!({"amplifier_input": {"version": 1, "kind": "service", "id": "7", "source": "local-job-recovery"}}),
            json!({"amplifier_visible_reference": true}),
            json!({"amplifier_visible_reference": {"session": "s"}}),
        ] {
            assert!(of(automatic.clone()), "{automatic}");
        }
        for typed in [
            json!(null),
            json!("ephemeral"),
            json!({}),
            json!({"ephemeral": false, "amplifier_visible_reference": null}),
            json!({"amplifier_input": {"kind": "typed"}}),
            json!({"amplifier_input": "service"}),
        ] {
            assert!(!of(typed.clone()), "{typed}");
        }
        assert!(!is_automatic(json!({"ephemeral": true}).as_object().unwrap()));
    }
}
