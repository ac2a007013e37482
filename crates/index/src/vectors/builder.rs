//! Collects rows for a segment.

use std::{cmp::Ordering, collections::HashMap, io, path::Path};

use super::{
    codes::{Codes, bytes_per_row},
    segment::{SegmentEntry, SegmentKind, SegmentRow, SegmentTable, SortedRows, row_of},
};
use crate::{
    error::PartError,
    rows::{RowSession, SessionOfRow, VectorRow},
};

/// Rows of one generation in any order, to be written as a segment.
pub(super) struct SegmentBuilder {
    kind: SegmentKind,
    sessions: Vec<RowSession>,
    numbers: HashMap<RowSession, usize>,
    rows: Vec<GatheredRow>,
    codes: Codes,
}

struct GatheredRow {
    /// The index of its session in `sessions`.
    session: usize,
    /// The index of its codes.
    codes: usize,
    row: SegmentRow,
}

impl SegmentBuilder {
    pub(super) fn new(kind: SegmentKind) -> Self {
        Self {
            kind,
            sessions: Vec::new(),
            numbers: HashMap::new(),
            rows: Vec::new(),
            codes: Codes::default(),
        }
    }

    pub(super) fn kind(&self) -> SegmentKind {
        self.kind
    }

    pub(super) fn code_bytes(&self) -> u64 {
        (self.codes.coarse.len() + self.codes.fine.len()) as u64
    }

    /// Adds a row of the store, which must belong to the builder's generation.
    pub(super) fn add(&mut self, row: &VectorRow<'_>) {
        let session = self.session(row.session);
        let scales = self.codes.push(row.vector);
        let (key, ts, content_type, role) = (row.key, row.ts, row.content_type, row.role);
        self.put(session, SegmentRow { key, ts, content_type, role, scales });
    }

    /// Adds the rows of a segment for whose keys `keep` returns true.
    pub(super) fn add_segment(
        &mut self,
        table: &SegmentTable,
        keep: impl Fn(u64) -> bool,
    ) -> Result<(), PartError> {
        let sessions = table.sessions.iter();
        let numbers = sessions.map(|(name, rows)| (self.session(name.of_row()), rows));
        let of_row: Vec<usize> =
            numbers.flat_map(|(number, rows)| rows.clone().map(move |_| number)).collect();
        let (coarse, fine) = (table.read_coarse()?, table.read_fine()?);
        for (position, session) in of_row.into_iter().enumerate() {
            if let Some(row) = table.row(position).filter(|row| keep(row.key)) {
                self.codes.coarse.extend_from_slice(row_of(&coarse, position, table.bytes_per_row));
                self.codes.fine.extend_from_slice(row_of(&fine, position, table.bytes_per_row));
                self.put(session, row);
            }
        }
        Ok(())
    }

    /// Adds a row whose codes were just added.
    fn put(&mut self, session: usize, row: SegmentRow) {
        self.rows.push(GatheredRow { session, codes: self.rows.len(), row });
    }

    /// Writes the collected rows; `None` if there are none.
    pub(super) fn write(mut self, folder: &Path, name: String) -> io::Result<Option<SegmentEntry>> {
        if self.rows.is_empty() {
            return Ok(None);
        }
        let sessions = &self.sessions;
        self.rows.sort_by(|a, b| {
            let sessions = || sessions.get(a.session).cmp(&sessions.get(b.session));
            // Comparing names is slow; most neighbours belong to the same session.
            let order = if a.session == b.session { Ordering::Equal } else { sessions() };
            order.then(a.row.key.cmp(&b.row.key))
        });
        let stretches = self.rows.chunk_by(|a, b| a.session == b.session);
        let stretches =
            stretches.filter_map(|rows| Some((sessions.get(rows.first()?.session)?, rows.len() as u32)));
        let bytes = bytes_per_row(self.kind.dimensions);
        let in_order = |codes| self.rows.iter().map(move |row| row_of(codes, row.codes, bytes)).collect();
        SortedRows {
            kind: self.kind,
            sessions: stretches.collect(),
            rows: self.rows.iter().map(|row| row.row).collect(),
            coarse: in_order(&self.codes.coarse),
            fine: in_order(&self.codes.fine),
        }
        .write(folder, name)
        .map(Some)
    }

    /// The index of a session in the sessions.
    fn session(&mut self, row: SessionOfRow<'_>) -> usize {
        // Rows of a session are mostly consecutive.
        if let Some(GatheredRow { session: last, .. }) = self.rows.last()
            && let Some(name) = self.sessions.get(*last)
            && name.of_row() == row
        {
            return *last;
        }
        *self.numbers.entry(row.into()).or_insert_with_key(|name| {
            self.sessions.push(name.clone());
            self.sessions.len() - 1
        })
    }
}
