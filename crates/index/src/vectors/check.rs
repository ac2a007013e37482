//! The entries of the vector index, for a check.

use std::ops::ControlFlow;

use amplifier_session_core::{Result, model::MessageRef};

use super::{
    VectorPart,
    segment::{SegmentKind, SegmentTable},
};
use crate::{
    check::{CheckedPart, checksum},
    error::PartError,
    rows::Rows,
    updater::{RowRefs, VectorRef},
};

impl<const TURNS: bool> CheckedPart for VectorPart<TURNS> {
    fn check_files(&self) -> Result<(), PartError> {
        self.segments
            .iter()
            .try_for_each(|segment| SegmentTable::open(&self.folder, &segment.entry)?.check_codes())
    }

    fn entries(&self, each: &mut dyn FnMut(u64, u64)) -> Result<(), PartError> {
        for segment in &self.segments {
            let (SegmentKind { generation, dimensions }, table) =
                (segment.entry.kind, SegmentTable::open(&self.folder, &segment.entry)?);
            for (session, places) in &table.sessions {
                for row in places.clone().filter_map(|place| table.row(place)) {
                    let fields = (row.ts.as_micros(), row.content_type.code(), row.role as u8);
                    each(row.key, checksum((session.key, generation, dimensions, fields)));
                }
            }
        }
        Ok(())
    }

    fn rows(rows: &mut dyn Rows, each: &mut dyn FnMut(u64, u64, &[u64])) -> Result<()> {
        rows.vectors_after(TURNS, 0, &mut |row| {
            let fields = (row.ts.as_micros(), row.content_type.code(), row.role as u8);
            let entry = checksum((row.session.key, row.generation, row.vector.len(), fields));
            each(row.key, row.revision, &[entry]);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn removed_after(rows: &mut dyn Rows, revision: u64) -> Result<Vec<u64>> {
        rows.removed_vectors_after(TURNS, revision)
    }

    fn messages(rows: &mut dyn RowRefs, keys: &[u64]) -> Result<Vec<Option<MessageRef>>> {
        let vectors = rows.vector_refs(TURNS, keys)?;
        Ok(vectors.into_iter().map(|vector| vector.map(|VectorRef { message, .. }| message)).collect())
    }
}
