//! The table of keys and values, `schema_meta`.

use std::collections::BTreeMap;

use amplifier_session_core::{Result, backend::meta::Generations};

use crate::{Columns, Query, Reader, Value};

/// Keys and values.
#[must_use]
pub fn entries() -> Query<(String, String)> {
    Query::new("meta", "SELECT key, value FROM schema_meta", [], |row| Ok((row.text(0)?, row.text(1)?)))
}

/// All entries.
///
/// # Errors
///
/// Those of the database.
pub fn meta(reader: &impl Reader) -> Result<BTreeMap<String, String>> {
    Ok(reader.rows(&entries())?.into_iter().collect())
}

/// The generations of vectors.
///
/// # Errors
///
/// Those of the database.
pub fn generations(reader: &impl Reader) -> Result<Generations> {
    Ok(Generations::of(&meta(reader)?))
}

/// Stores `value` under `key` if the stored value is `expected`; `None` means that there is none. Returns the value that is
/// stored afterwards. `writer` is a connection that may write.
///
/// # Errors
///
/// Those of the database.
pub fn swap(writer: &impl Reader, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>> {
    let text = |text: &str| Value::from(text.to_owned());
    let stored = |row: &dyn Columns| row.text(0);
    let swap = match expected {
        Some(expected) => Query::new(
            "swap_meta",
            "UPDATE schema_meta SET value = ?3 WHERE key = ?1 AND value = ?2 RETURNING value",
            [text(key), text(expected), text(value)],
            stored,
        ),
        None => Query::new(
            "swap_meta",
            "INSERT INTO schema_meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING RETURNING value",
            [text(key), text(value)],
            stored,
        ),
    };
    if let Some(swapped) = writer.rows(&swap)?.pop() {
        return Ok(Some(swapped));
    }
    writer.first(&Query::new(
        "swap_meta",
        "SELECT value FROM schema_meta WHERE key = ?1",
        [text(key)],
        stored,
    ))
}
