//! The entries of the text index, for a check.

use std::ops::ControlFlow;

use amplifier_session_core::{Result, model::MessageRef};

use super::{TextPart, schema::kind, tail::texts_of};
use crate::{
    check::{CheckedPart, checksum},
    error::PartError,
    part::IndexPart,
    rows::Rows,
    updater::RowRefs,
};

impl CheckedPart for TextPart {
    fn check_files(&self) -> Result<(), PartError> {
        self.manifest.check_all(&self.folder)
    }

    fn entries(&self, each: &mut dyn FnMut(u64, u64)) -> Result<(), PartError> {
        self.prepare_search()?;
        let Some(opened) = self.opened.get() else { return Ok(()) };
        for (segment, columns) in opened.searcher.segment_readers().iter().zip(&opened.columns) {
            for doc in (0..segment.max_doc()).filter(|doc| !segment.is_deleted(*doc)) {
                let numbers =
                    (columns.session_key.first(doc), columns.kind.first(doc), columns.ts.first(doc));
                each(columns.key.first(doc).unwrap_or(u64::MAX), checksum(numbers));
            }
        }
        Ok(())
    }

    fn rows(rows: &mut dyn Rows, each: &mut dyn FnMut(u64, u64, &[u64])) -> Result<()> {
        rows.messages_after(0, &mut |row| {
            let entry = |content_type| {
                checksum((
                    Some(row.session.key),
                    Some(kind(row.role, content_type)),
                    Some(row.ts.as_micros()),
                ))
            };
            let entries: Vec<u64> =
                texts_of(&row).into_iter().map(|(content_type, _)| entry(content_type)).collect();
            each(row.key, row.revision, &entries);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn removed_after(rows: &mut dyn Rows, revision: u64) -> Result<Vec<u64>> {
        rows.removed_messages_after(revision)
    }

    fn messages(rows: &mut dyn RowRefs, keys: &[u64]) -> Result<Vec<Option<MessageRef>>> {
        rows.message_refs(keys)
    }
}
