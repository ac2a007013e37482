//! Removed messages whose texts blocks still have.

use std::collections::HashSet;

use amplifier_session_core::Result;
use amplifier_session_sql::{Columns as _, rows::removed::MESSAGE};
use tokio_postgres::types::Type;

use super::block::{TextKey, decode_texts};
use crate::{columns::PgRow, connection::PgReader};

/// The keys of removed messages.
#[derive(Debug, Default)]
pub(super) struct RemovedKeys {
    pub(super) keys: HashSet<i64>,
}

/// A block that may have texts of removed messages.
#[derive(Debug)]
pub(super) struct TouchedBlock {
    pub(super) user: String,
    pub(super) number: i64,
    pub(super) texts: Vec<(TextKey, u32)>,
}

impl RemovedKeys {
    /// Those that the blocks may still have.
    pub(super) fn read(reader: &PgReader<'_>, operation: &'static str) -> Result<Self> {
        let sql = "SELECT DISTINCT key FROM removed WHERE kind = $1";
        let rows = reader.query(operation, sql, &[(&MESSAGE, Type::INT8)])?;
        let keys = rows.iter().map(|row| PgRow(row).integer(0)).collect::<Result<_>>()?;
        Ok(Self { keys })
    }

    /// Whether the message of a text was removed.
    pub(super) fn have(&self, text: TextKey) -> bool {
        self.keys.contains(&text.key())
    }

    /// The blocks with texts of removed messages.
    pub(super) fn blocks(&self, reader: &PgReader<'_>, operation: &'static str) -> Result<Vec<TouchedBlock>> {
        let Some((first, last)) = self.keys.iter().min().zip(self.keys.iter().max()) else {
            return Ok(Vec::new());
        };
        let sql = "SELECT user_id, block, texts FROM text_blocks WHERE first_key <= $2 AND last_key >= $1";
        let rows = reader.query(operation, sql, &[(first, Type::INT8), (last, Type::INT8)])?;
        let mut blocks = Vec::new();
        for row in &rows {
            let row = PgRow(row);
            let texts = decode_texts(row.bytes_ref(2)?)?;
            if texts.iter().any(|(text, _)| self.have(*text)) {
                blocks.push(TouchedBlock { user: row.text(0)?, number: row.integer(1)?, texts });
            }
        }
        Ok(blocks)
    }
}
