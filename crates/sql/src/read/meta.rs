//! The table of keys and values, `schema_meta`.

use std::collections::BTreeMap;

use amplifier_session_core::{Result, backend::meta::Generations};

use crate::{Query, Reader};

/// All entries.
pub fn meta(reader: &impl Reader) -> Result<BTreeMap<String, String>> {
    let sql = "SELECT key, value FROM schema_meta";
    let entries = reader.rows(&Query::new("meta", sql, [], |row| Ok((row.text(0)?, row.text(1)?))))?;
    Ok(entries.into_iter().collect())
}

/// The generations of vectors.
pub fn generations(reader: &impl Reader) -> Result<Generations> {
    Ok(Generations::of(&meta(reader)?))
}
