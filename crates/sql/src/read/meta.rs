//! The table of keys and values, `schema_meta`.

use std::collections::BTreeMap;

use amplifier_session_core::{Result, backend::meta::Generations};

use crate::{Query, Reader};

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
