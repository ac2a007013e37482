//! Updates the text index from the rows.

use std::ops::ControlFlow;

use amplifier_session_core::{Error, Result, known_json};
use tantivy::{
    Index, IndexSettings, IndexWriter, TantivyDocument, Term,
    indexer::{IndexWriterOptions, LogMergePolicy, MergePolicy, NoMergePolicy, UserOperation},
    tokenizer::TextAnalyzer,
};

use super::{
    CommitNote, TextPart,
    directory::{TextDirectory, TextManifest},
    part_error,
    schema::{DocumentFields, TOKENIZER, TextTokenizer, kind, schema},
    tail::RowTexts,
};
use crate::{
    error::{tantivy_error, unreadable},
    part::{PartFolded, PartFolder, step_revision},
    rows::{MessageRow, Rows, StoreRevision},
};

/// Memory for the terms of a new segment.
const ARENA_BYTES: usize = 48 << 20;

/// Number of operations passed to the indexing thread at a time: waking it takes as long as indexing some documents.
const OPERATIONS_AT_ONCE: usize = 64;

/// A commit deletes at most this many messages: tantivy needs some hundred bytes for each.
const DELETIONS_AT_ONCE: usize = 10_000;

/// Updates the text index from the rows. The caller holds the writer's lock.
pub(crate) fn fold(
    part_folder: &PartFolder<TextPart>,
    rows: &mut dyn Rows,
    step_bytes: u64,
) -> Result<PartFolded> {
    let view = part_folder.view_for_fold(rows)?;
    let mut folded = PartFolded { rows: 0, rebuilt: view.reason };
    let (manifest, note) = match view.part {
        Some(part) => (part.manifest.clone(), part.note.clone()),
        None => (TextManifest::default(), CommitNote::new(view.now.store)),
    };
    part_folder.sweep(|name| manifest.names(name));
    if note.store_revision == view.now && !manifest.has_deleted_documents() {
        return Ok(folded);
    }
    let mut fold = TextFold::open(part_folder, manifest, note, step_bytes)?;
    folded.rows = fold.put_rows(rows, view.now)?;
    fold.drop_deleted()?;
    let manifest = fold.directory.committed();
    part_folder.sweep(|name| manifest.names(name));
    Ok(folded)
}

struct TextFold {
    directory: TextDirectory,
    index: Index,
    fields: DocumentFields,
    note: CommitNote,
    step_bytes: u64,
    /// Operations that were not passed to the indexing thread yet.
    operations: Vec<UserOperation>,
}

impl TextFold {
    fn open(
        part_folder: &PartFolder<TextPart>,
        manifest: TextManifest,
        note: CommitNote,
        step_bytes: u64,
    ) -> Result<Self> {
        let directory = TextDirectory::writer(&part_folder.folder, manifest, part_folder.manifest_path())
            .map_err(tantivy_error)?;
        let (schema, fields) = schema();
        let index = Index::builder().schema(schema).settings(IndexSettings::default());
        let index = index.open_or_create(directory.clone()).map_err(|error| give_up(part_folder, error))?;
        index.tokenizers().register(TOKENIZER, TextAnalyzer::builder(TextTokenizer::default()).build());
        Ok(Self { directory, index, fields, note, step_bytes, operations: Vec::new() })
    }

    /// Adds the rows above the revision of the part, step by step, and returns their number.
    fn put_rows(&mut self, rows: &mut dyn Rows, now: StoreRevision) -> Result<u64> {
        let mut writer = self.writer(Box::new(LogMergePolicy::default()))?;
        let count = self.steps(&mut writer, rows, now);
        // Also after a failure: a merge that still runs would write and remove files beside the next update.
        let merged = writer.wait_merging_threads().map_err(tantivy_error);
        count.and_then(|count| merged.map(|()| count))
    }

    fn steps(&mut self, writer: &mut IndexWriter, rows: &mut dyn Rows, now: StoreRevision) -> Result<u64> {
        let mut count = 0;
        while self.note.store_revision != now {
            count += self.step(writer, rows, now)?;
        }
        Ok(count)
    }

    /// Adds rows up to the first revision after `step_bytes`, and commits. Returns their number.
    fn step(&mut self, writer: &mut IndexWriter, rows: &mut dyn Rows, now: StoreRevision) -> Result<u64> {
        let after = self.note.store_revision.revision;
        for (count, key) in (1..).zip(rows.removed_messages_after(after)?) {
            self.delete(key);
            if self.operations.len() >= OPERATIONS_AT_ONCE {
                self.hand_over(writer)?;
            }
            if count % DELETIONS_AT_ONCE == 0 {
                // tantivy keeps a query for each deletion until the next commit. The revision does not change.
                self.commit(writer)?;
            }
        }
        // Every message occurs once, so messages that were added now need not be deleted.
        let known_keys = self.note.largest_key;
        let (mut last, mut count) = (after, 0);
        let (mut bytes, mut waiting) = (0, 0);
        let mut end = None;
        rows.messages_after(after, &mut |row| {
            if row.revision != last && bytes >= self.step_bytes {
                end = Some(last);
                return Ok(ControlFlow::Break(()));
            }
            if waiting >= self.step_bytes / 2 {
                // tantivy limits the number of documents waiting to be indexed, but not their size. The revision does
                // not change: documents beyond it are masked until the end of the step.
                self.commit(writer)?;
                waiting = 0;
            }
            if row.key <= known_keys {
                self.delete(row.key);
            }
            self.put(&row);
            if self.operations.len() >= OPERATIONS_AT_ONCE {
                self.hand_over(writer)?;
            }
            let length = row.raw.len() as u64;
            (last, count) = (row.revision, count + 1);
            (bytes, waiting) = (bytes + length, waiting + length);
            Ok(ControlFlow::Continue(()))
        })?;
        self.note.store_revision = step_revision(end, rows, now)?;
        self.commit(writer)?;
        Ok(count)
    }

    fn delete(&mut self, key: u64) {
        self.operations.push(UserOperation::Delete(Term::from_field_u64(self.fields.key, key)));
    }

    fn put(&mut self, row: &MessageRow<'_>) {
        self.note.largest_key = self.note.largest_key.max(row.key);
        let fields = &self.fields;
        let RowTexts { texts, tools } = RowTexts::of(row);
        for (content_type, text) in texts {
            let mut document = TantivyDocument::default();
            document.add_text(fields.text, text);
            document.add_u64(fields.key, row.key);
            document.add_u64(fields.session_key, row.session.key);
            document.add_text(fields.user, row.session.user);
            document.add_text(fields.project, row.session.project);
            document.add_text(fields.session, row.session.session);
            tools.iter().for_each(|tool| document.add_text(fields.tool, tool));
            document.add_u64(fields.kind, kind(row.role, content_type));
            document.add_i64(fields.ts, row.ts.as_micros());
            self.operations.push(UserOperation::Add(document));
        }
    }

    fn hand_over(&mut self, writer: &IndexWriter) -> Result<()> {
        writer.run(std::mem::take(&mut self.operations)).map_err(tantivy_error)?;
        Ok(())
    }

    fn commit(&mut self, writer: &mut IndexWriter) -> Result<()> {
        self.hand_over(writer)?;
        let note = known_json(&self.note);
        let mut commit = writer.prepare_commit().map_err(tantivy_error)?;
        commit.set_payload(&note);
        commit.commit().map_err(tantivy_error)?;
        Ok(())
    }

    /// Rewrites every segment with deleted documents, because their words are still in its files.
    fn drop_deleted(&self) -> Result<()> {
        if !self.directory.committed().has_deleted_documents() {
            return Ok(());
        }
        let mut writer = self.writer(Box::new(NoMergePolicy))?;
        for segment in self.index.searchable_segment_metas().map_err(tantivy_error)? {
            if segment.has_deletes() {
                writer.merge(&[segment.id()]).wait().map_err(tantivy_error)?;
            }
        }
        writer.wait_merging_threads().map_err(tantivy_error)
    }

    fn writer(&self, policy: Box<dyn MergePolicy>) -> Result<IndexWriter> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(1)
            .memory_budget_per_thread(ARENA_BYTES)
            .build();
        let writer: IndexWriter = self.index.writer_with_options(options).map_err(tantivy_error)?;
        writer.set_merge_policy(policy);
        Ok(writer)
    }
}

/// Files that passed the check can't be opened: the next fold rebuilds the part.
fn give_up(part_folder: &PartFolder<TextPart>, error: tantivy::TantivyError) -> Error {
    match part_folder.clear() {
        Ok(()) => unreadable(part_error(error)).retryable(),
        Err(error) => error,
    }
}

impl CommitNote {
    fn new(store: [u8; 16]) -> Self {
        Self { store_revision: StoreRevision { store, revision: 0, nonce: 0 }, largest_key: 0 }
    }
}
