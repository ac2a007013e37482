//! Payloads in rows of `event_chunks`, which were too large for one row.

use std::collections::HashMap;

use amplifier_session_core::Result;

use crate::{database::OldDatabase, old::OldFile, tables::OldTable};

/// Which rows belong to which events.
#[derive(Debug)]
pub(crate) struct EventChunks {
    table: OldTable,
    /// The numbers of the rows in order, by event and session. Not every file contains the session.
    rows: HashMap<[String; 2], Vec<i64>>,
}

impl EventChunks {
    /// The chunks of a database, if it has any.
    pub(crate) fn find(old: &OldFile) -> Result<Option<Self>> {
        const COLUMNS: [&str; 4] = ["event_id", "session_id", "chunk_index", "chunk_data"];
        let Some(table) = OldTable::of(&old.tables, "event_chunks", &COLUMNS) else { return Ok(None) };
        let mut rows: HashMap<[String; 2], Vec<i64>> = HashMap::new();
        table.row_numbers(
            old.database.as_ref(),
            ["event_id", "session_id"],
            Some("chunk_index"),
            &mut |number, key| {
                rows.entry(key).or_default().push(number);
            },
        )?;
        Ok(Some(Self { table, rows }))
    }

    /// The payload of an event, joined.
    pub(crate) fn payload(
        &self,
        database: &dyn OldDatabase,
        event: &str,
        session: &str,
    ) -> Result<Option<String>> {
        let key = |session: &str| [event.to_owned(), session.to_owned()];
        let Some(numbers) = self.rows.get(&key(session)).or_else(|| self.rows.get(&key(""))) else {
            return Ok(None);
        };
        let rows = self.table.rows(database, numbers)?;
        let chunks: Vec<String> = rows.iter().filter_map(|(_, row)| row.text(&["chunk_data"])).collect();
        Ok(Some(joined(&chunks)))
    }
}

/// Chunks are pieces of one text, plain or each as a JSON string.
fn joined(chunks: &[String]) -> String {
    let decoded: Option<String> =
        chunks.iter().map(|chunk| serde_json::from_str::<String>(chunk).ok()).collect();
    decoded.unwrap_or_else(|| chunks.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_as_they_are_or_decoded() {
        let of = |chunks: &[&str]| joined(&chunks.iter().map(|&chunk| chunk.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[r#"{"a": "x"#, r#"y"}"#]), r#"{"a": "xy"}"#);
        assert_eq!(of(&[r#""{\"a\": \"x""#, r#""y\"}""#]), r#"{"a": "xy"}"#);
    }
}
