//! What SQLite says differently in conditions, and how their values are bound.

use amplifier_session_sql::{Conditions, Dialect, Value};
use rusqlite::{ParamsFromIter, params_from_iter, types};

/// Lists are JSON; words are looked for by a function of the library.
pub(crate) const SQLITE: Dialect = Dialect {
    list_holds: |list, value| {
        format!("EXISTS (SELECT 1 FROM json_each({list}) item WHERE item.value = {value})")
    },
    session_says: Some(|text| {
        format!("holds_words({text}, s.name, s.first_prompt, s.session_id, s.description)")
    }),
    event_says: Some(|text| format!("event_says({text}, e.error_type, e.summary)")),
};

/// The values of a statement with these conditions.
pub(crate) fn values(conditions: &Conditions) -> ParamsFromIter<impl Iterator<Item = types::Value>> {
    params_from_iter(conditions.values().iter().map(value))
}

fn value(value: &Value) -> types::Value {
    match value {
        Value::Text(text) => types::Value::Text(text.clone()),
        Value::Integer(number) => types::Value::Integer(*number),
        Value::Time(ts) => types::Value::Text(ts.to_string()),
        _ => types::Value::Null,
    }
}

/// A list as it is stored.
pub(crate) fn json(list: &[String]) -> String {
    serde_json::to_string(list).unwrap_or_default()
}
