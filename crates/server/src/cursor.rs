//! Cursors: where a list goes on.
//!
//! A cursor of the API, with a hash of it and of the rest of the request, so that a cursor of another list, or one that
//! was changed, is an error instead of a wrong page. It carries no rights: the scope is applied again.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::problem::HttpProblem;

/// The length of the hash in bytes.
const HASH: usize = 8;
/// The field with the cursor.
const AFTER: &str = "after";

/// Makes a cursor for clients of one of the API, for the request with these fields.
pub(crate) fn wrapped(list: &str, user: &str, fields: &Map<String, Value>, position: &str) -> String {
    let mut bytes = hash(list, user, fields, position).to_vec();
    bytes.extend_from_slice(position.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Replaces the cursor of a client by that of the API.
pub(crate) fn unwrap(list: &str, user: &str, fields: &mut Map<String, Value>) -> Result<(), HttpProblem> {
    let Some(Value::String(cursor)) = fields.get(AFTER) else { return Ok(()) };
    let wrong = || {
        let detail = "it is no cursor of this list with these filters; begin without it, and use `next` of the answers";
        HttpProblem::of_parameter(AFTER, detail)
    };
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
    let (claimed, position) = bytes.split_at_checked(HASH).ok_or_else(wrong)?;
    let position = std::str::from_utf8(position).map_err(|_| wrong())?.to_owned();
    if claimed != hash(list, user, fields, &position) {
        return Err(wrong());
    }
    fields.insert(AFTER.to_owned(), position.into());
    Ok(())
}

fn hash(list: &str, user: &str, fields: &Map<String, Value>, position: &str) -> [u8; HASH] {
    // The order of parameters and the size of pages do not change a list.
    let mut filters: Vec<(&String, &Value)> =
        fields.iter().filter(|(name, _)| !matches!(name.as_str(), AFTER | "limit" | "full")).collect();
    filters.sort_by_key(|(name, _)| *name);
    let mut hasher = Sha256::new();
    for part in [list, user, position] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    for (name, value) in filters {
        hasher.update(format!("{name}={value}\n"));
    }
    let mut first = [0; HASH];
    for (to, from) in first.iter_mut().zip(hasher.finalize()) {
        *to = from;
    }
    first
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_cursor_belongs_to_its_list() {
        let filter = json!({"scope": "visible", "tags": ["x"], "limit": 2});
        let cursor = wrapped("sessions", "ana", &fields(filter), "2026-01-01 ana/first");
        let after = |list: &str, user: &str, filter: Value| {
            let mut fields = fields(filter);
            fields.insert("after".to_owned(), cursor.clone().into());
            unwrap(list, user, &mut fields).map(|()| fields["after"].clone())
        };
        let same = json!({"tags": ["x"], "limit": 50, "scope": "visible"});
        assert_eq!(after("sessions", "ana", same.clone()).unwrap(), "2026-01-01 ana/first");
        assert!(after("events", "ana", same.clone()).is_err());
        assert!(after("sessions", "ben", same).is_err());
        assert!(after("sessions", "ana", json!({"tags": ["x"]})).is_err());
        assert!(after("sessions", "ana", json!({"scope": "visible", "tags": ["y"]})).is_err());
    }

    #[test]
    fn a_changed_cursor_is_refused() {
        let cursor = wrapped("sessions", "ana", &Map::new(), "2026");
        let bytes = URL_SAFE_NO_PAD.decode(&cursor).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            let mut fields = Map::new();
            fields.insert("after".to_owned(), URL_SAFE_NO_PAD.encode(changed).into());
            assert_eq!(unwrap("sessions", "ana", &mut fields).unwrap_err().field(), Some("after"));
        }
        for text in ["", "x", "not base64!", "2026-01-01 ana/first"] {
            let mut fields = Map::new();
            fields.insert("after".to_owned(), text.into());
            assert!(unwrap("sessions", "ana", &mut fields).is_err(), "{text}");
        }
    }
}
