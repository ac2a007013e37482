//! Whether an index lacks so little that its update can wait.

use std::ops::ControlFlow;

use amplifier_session_core::Result;

use crate::{
    index::SearchIndex,
    part::{IndexPart as _, PartFolder},
    rows::Rows,
    text::TextPart,
    vectors::VectorPart,
};

/// A search reads this many bytes of rows in a few milliseconds. Adding a single row to the index takes as long as some
/// searches: about fifteen files are written and synced to disk.
const FEW_BYTES: usize = 64 << 10;
const FEW_ROWS: usize = 256;

impl SearchIndex {
    /// Whether the index can be used, lacks only a few new rows, and contains nothing of removed or changed ones.
    ///
    /// # Errors
    ///
    /// Errors of `rows`.
    pub fn lacks_little(&self, rows: &mut dyn Rows) -> Result<bool> {
        let (text, vectors, turns) = self.parts();
        Ok(lacks_few_messages(text, rows)?
            && lacks_few_vectors(vectors, rows)?
            && lacks_few_vectors(turns, rows)?)
    }
}

fn lacks_few_messages(folder: &PartFolder<TextPart>, rows: &mut dyn Rows) -> Result<bool> {
    let Some(part) = folder.view(rows)?.part.filter(|part| !part.has_deleted_documents()) else {
        return Ok(false);
    };
    let after = part.store_revision().revision;
    let mut missing = MissingRows::of(part.largest_key());
    rows.messages_after(after, &mut |row| Ok(missing.add(row.key, row.raw.len())))?;
    Ok(missing.is_little && !missing.has_any(&rows.removed_messages_after(after)?))
}

fn lacks_few_vectors<const TURNS: bool>(
    folder: &PartFolder<VectorPart<TURNS>>,
    rows: &mut dyn Rows,
) -> Result<bool> {
    let Some(part) = folder.view(rows)?.part else { return Ok(false) };
    let after = part.store_revision().revision;
    let mut missing = MissingRows::of(part.largest_key());
    rows.vectors_after(TURNS, after, &mut |row| Ok(missing.add(row.key, 0)))?;
    Ok(missing.is_little && !missing.has_any(&rows.removed_vectors_after(TURNS, after)?))
}

/// The rows that a part lacks.
struct MissingRows {
    /// The largest key in the part: a row with this key or a smaller one was changed.
    largest_key: u64,
    rows: usize,
    bytes: usize,
    is_little: bool,
}

impl MissingRows {
    fn of(largest_key: u64) -> Self {
        Self { largest_key, rows: 0, bytes: 0, is_little: true }
    }

    /// Whether the part may have one of these rows.
    fn has_any(&self, keys: &[u64]) -> bool {
        keys.iter().any(|key| *key <= self.largest_key)
    }

    fn add(&mut self, key: u64, bytes: usize) -> ControlFlow<()> {
        (self.rows, self.bytes) = (self.rows + 1, self.bytes + bytes);
        self.is_little = key > self.largest_key && self.rows <= FEW_ROWS && self.bytes <= FEW_BYTES;
        if self.is_little { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
