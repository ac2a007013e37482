//! Rows in the form of the search index.

use amplifier_session_core::Result;
use amplifier_session_index::{MessageRow, SessionOfRow, VectorRow};

use crate::{Columns, number};

pub(super) fn message_row(row: &dyn Columns) -> Result<MessageRow<'_>> {
    Ok(MessageRow {
        key: unsigned(row, 0)?,
        revision: unsigned(row, 1)?,
        session: session_of_row(row)?,
        role: row.text_ref(6)?.parse()?,
        ts: row.time(7)?,
        raw: row.line(8)?,
    })
}

pub(super) fn vector_row<'a>(row: &'a dyn Columns, vector: &'a mut Vec<f32>) -> Result<VectorRow<'a>> {
    row.read_vector(10, vector)?;
    Ok(VectorRow {
        key: unsigned(row, 0)?,
        revision: unsigned(row, 1)?,
        session: session_of_row(row)?,
        role: row.text_ref(6)?.parse()?,
        content_type: row.text_ref(7)?.parse()?,
        ts: row.time(8)?,
        generation: number(row, 9)?,
        vector,
    })
}

fn session_of_row(row: &dyn Columns) -> Result<SessionOfRow<'_>> {
    let key = unsigned(row, 2)?;
    Ok(SessionOfRow { key, user: row.text_ref(3)?, project: row.text_ref(4)?, session: row.text_ref(5)? })
}

pub(super) fn unsigned(row: &dyn Columns, index: usize) -> Result<u64> {
    row.integer(index).map(i64::cast_unsigned)
}
