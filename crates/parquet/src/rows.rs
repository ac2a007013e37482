//! Converts records to rows, and back.

use amplifier_session_core::{
    Error, Result,
    model::{Session, Timestamp},
    storage::{Checksum, SessionRecord},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Fields,
    tables::{Kind, OWNER, Table},
};

/// Converts a session to a row. Each field has its own column.
pub(crate) fn of_session(record: &SessionRecord, table: &Table) -> Result<Fields> {
    let mut row = object(record)?;
    if let Some(Value::Object(session)) = row.remove("session") {
        row.extend(session);
    }
    to_columns(row, table)
}

/// Converts a message or an event of `session` to a row.
pub(crate) fn of_part(record: &impl Serialize, session: &Session, table: &Table) -> Result<Fields> {
    let mut row = object(record)?;
    let owner = [session.user_id.as_str(), session.session_id.as_str(), session.project_slug.as_str()];
    row.extend(OWNER.into_iter().zip(owner).map(|(name, id)| (name.to_owned(), id.into())));
    to_columns(row, table)
}

/// Converts a row to a session.
pub(crate) fn to_session(row: Fields, table: &Table) -> Result<SessionRecord> {
    let beside = ["metadata_files", "skipped", "sync_state"];
    let (beside, session): (Fields, Fields) =
        from_columns(row, table)?.into_iter().partition(|(name, _)| beside.contains(&name.as_str()));
    let mut record = beside;
    record.insert("session".to_owned(), Value::Object(session));
    value(record)
}

/// Converts a row to a message or an event.
pub(crate) fn to_part<T: DeserializeOwned>(row: Fields, table: &Table) -> Result<T> {
    value(from_columns(row, table)?)
}

/// Adds the unchangeable parts of a message's or an event's row to the checksum of its session.
pub(crate) fn add_to(checksum: &mut Checksum, row: &Fields) {
    for column in ["sequence", "raw", "raw_hex", "digest"] {
        match row.get(column) {
            None | Some(Value::Null) => checksum.add_part(b""),
            Some(Value::String(text)) => checksum.add_part(text.as_bytes()),
            Some(other) => checksum.add_part(other.to_string().as_bytes()),
        }
    }
}

fn object(record: &impl Serialize) -> Result<Fields> {
    match serde_json::to_value(record) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(Error::validation("archive", "a record can't be written")),
    }
}

fn value<T: DeserializeOwned>(row: Fields) -> Result<T> {
    serde_json::from_value(Value::Object(row))
        .map_err(|source| Error::validation("archive", format!("a row is not an archive record: {source}")))
}

/// Converts fields to the form of columns: times in microseconds, nested values as JSON text.
fn to_columns(mut row: Fields, table: &Table) -> Result<Fields> {
    for (name, kind) in table.columns {
        let Some(value) = row.get_mut(*name).filter(|value| !value.is_null()) else { continue };
        match (kind, &value) {
            (Kind::Json, _) => *value = value.to_string().into(),
            (Kind::Time, Value::String(text)) => *value = Timestamp::parse(text)?.as_micros().into(),
            _ => {}
        }
    }
    Ok(row)
}

/// Converts columns back to fields. Empty columns become missing fields.
fn from_columns(row: Fields, table: &Table) -> Result<Fields> {
    let mut fields = Fields::new();
    for (name, value) in row {
        let kind = table.columns.iter().find(|(column, _)| *column == name).map(|(_, kind)| kind);
        let value = match (kind, value) {
            (_, Value::Null) => continue,
            (Some(Kind::Json), Value::String(text)) => serde_json::from_str(&text).map_err(|source| {
                Error::validation("archive", format!("the column {name:?} is not JSON: {source}"))
            })?,
            (Some(Kind::Time), Value::Number(micros)) => {
                Timestamp::from_micros(micros.as_i64().unwrap_or_default()).to_string().into()
            }
            (_, value) => value,
        };
        fields.insert(name, value);
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::storage::{EventRecord, FileRecord, MessageRecord, Raw};
    use serde_json::json;

    use super::*;
    use crate::tables::{CHECKSUM, EVENTS, MESSAGES, SESSIONS};

    fn session() -> SessionRecord {
        let session = json!({
            "session_id": "s", "user_id": "ana", "host_id": "h", "project_slug": "p",
            "created": "2026-01-05T08:00:00.000001Z", "updated": "2026-01-05T08:00:00Z", "name": "n",
            "description": "d", "bundle": "b", "model": "m", "turn_count": 1, "message_count": 2, "event_count": 3,
            "parent_id": "q", "forked_from_turn": 1, "tags": ["a", "b"], "visibility": "team", "org_id": "o",
            "team_ids": ["t"], "shared_at": "2026-01-05T08:00:00Z", "working_dir": "/", "first_prompt": "f",
            "edited": ["name"],
        });
        SessionRecord {
            session: serde_json::from_value(session).unwrap(),
            metadata_files: vec![FileRecord {
                name: "metadata.json".to_owned(),
                raw: Raw { raw: Some("{\"a\": 1.10}".to_owned()), raw_hex: None },
            }],
            skipped: Vec::new(),
            sync_state: Some("so far".to_owned()),
            embedding_space: None,
        }
    }

    fn names(row: &Fields) -> Vec<&str> {
        let mut names: Vec<_> = row.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    fn columns(table: &Table) -> Vec<&'static str> {
        let mut names: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names
    }

    /// If this fails, a new field of a record has no column yet.
    #[test]
    fn every_field_has_a_column() {
        let record = session();
        let mut row = of_session(&record, &SESSIONS).unwrap();
        // A column without a field: the writer adds it.
        row.insert(CHECKSUM.to_owned(), Value::Null);
        assert_eq!(names(&row), columns(&SESSIONS));
        row.remove(CHECKSUM);
        let back = to_session(row, &SESSIONS).unwrap();
        assert_eq!(serde_json::to_value(back).unwrap(), serde_json::to_value(&record).unwrap());

        let message: MessageRecord = serde_json::from_value(json!({
            "sequence": 0, "role": "user", "turn": 1, "ts": "2026-01-05T08:00:00Z", "ts_estimated": false,
            "ts_source": "stated", "synced_at": "2026-01-05T08:00:00Z", "raw": "{}", "raw_hex": "00",
            "turn_summary": {"text": "a summary", "set_at": "2026-01-06T08:00:00Z"},
        }))
        .unwrap();
        let row = of_part(&message, &record.session, &MESSAGES).unwrap();
        assert_eq!(names(&row), columns(&MESSAGES));
        let event: EventRecord = serde_json::from_value(json!({
            "sequence": 0, "event_id": "e", "event_type": "t", "ts": "2026-01-05T08:00:00Z", "ts_estimated": true,
            "turn": 1, "level": "INFO", "tool_name": "t", "error_type": "e", "model": "m", "provider": "p",
            "summary": {"a": [1]}, "data_size_bytes": 5, "synced_at": "2026-01-05T08:00:00Z",
            "digest": "00", "raw": "{}", "raw_hex": "00",
        }))
        .unwrap();
        let row = of_part(&event, &record.session, &EVENTS).unwrap();
        assert_eq!(names(&row), columns(&EVENTS));
        let back: EventRecord = to_part(row, &EVENTS).unwrap();
        assert_eq!(serde_json::to_value(back).unwrap(), serde_json::to_value(&event).unwrap());
    }
}
