//! Collects rows for a segment.

use std::{cmp::Ordering, collections::HashMap, io, path::Path};

use super::{
    codes::quantise,
    segment::{Kind, SegmentEntry, SegmentRow, SortedRows, Table},
};
use crate::{
    error::PartError,
    rows::{SessionName, SessionOfRow, VectorRow},
};

/// Rows of one generation in any order, to be written as a segment.
pub(super) struct SegmentBuilder {
    kind: Kind,
    sessions: Vec<SessionName>,
    numbers: HashMap<SessionName, usize>,
    rows: Vec<GatheredRow>,
    codes: Vec<u8>,
}

struct GatheredRow {
    /// The index of its session in `sessions`.
    session: usize,
    /// The start of its codes.
    codes: usize,
    row: SegmentRow,
}

impl SegmentBuilder {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, sessions: Vec::new(), numbers: HashMap::new(), rows: Vec::new(), codes: Vec::new() }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn code_bytes(&self) -> u64 {
        self.codes.len() as u64
    }

    /// Adds a row of the store, which must belong to the builder's generation.
    pub(super) fn add(&mut self, row: &VectorRow<'_>) {
        let session = self.session(row.session);
        let codes = self.codes.len();
        let scale = quantise(row.vector, &mut self.codes);
        let (key, ts, content_type, role) = (row.key, row.ts, row.content_type, row.role);
        self.rows.push(GatheredRow {
            session,
            codes,
            row: SegmentRow { key, ts, content_type, role, scale },
        });
    }

    /// Adds the rows of a segment for whose keys `keep` returns true.
    pub(super) fn add_segment(&mut self, table: &Table, keep: impl Fn(u64) -> bool) -> Result<(), PartError> {
        let sessions = table.sessions.iter();
        let numbers = sessions.map(|(name, rows)| (self.session(name.of_row()), rows));
        let of_row: Vec<usize> =
            numbers.flat_map(|(number, rows)| rows.clone().map(move |_| number)).collect();
        table.stream_codes(&mut |first, codes| {
            for (position, codes) in (first..).zip(codes.chunks_exact(table.dimensions.max(1))) {
                if let Some(row) = table.row(position).filter(|row| keep(row.key))
                    && let Some(session) = of_row.get(position)
                {
                    self.rows.push(GatheredRow { session: *session, codes: self.codes.len(), row });
                    self.codes.extend_from_slice(codes);
                }
            }
        })
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
        let codes = self.rows.iter().map(|row| self.codes.get(row.codes..row.codes + self.kind.dimensions));
        SortedRows {
            kind: self.kind,
            sessions: stretches.collect(),
            rows: self.rows.iter().map(|row| row.row).collect(),
            codes: codes.map(Option::unwrap_or_default).collect(),
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
