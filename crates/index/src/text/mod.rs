//! The text part: a tantivy index with a document for each content type of a message.

mod check;
mod directory;
mod fold;
mod newest;
mod schema;
mod search;
mod statistics;
mod tail;
mod terms;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use serde::{Deserialize, Serialize};
use tantivy::{
    Index, ReloadPolicy, Searcher, SegmentReader, TantivyError, columnar::Column,
    directory::error::OpenReadError, fieldnorm::FieldNormReader, schema::Field,
};

use directory::{TextDirectory, TextManifest};
pub(crate) use fold::fold;
pub(crate) use newest::newest;
use schema::{DocumentFields, names, schema};
pub(crate) use search::search;
pub(crate) use tail::TextTailBuffer;
pub(crate) use terms::find_terms;

use crate::{error::PartError, part::IndexPart, rows::StoreRevision};

/// The text index. Opened when a search first needs it.
#[derive(Debug)]
pub(crate) struct TextPart {
    folder: PathBuf,
    note: CommitNote,
    manifest: TextManifest,
    opened: OnceLock<OpenText>,
}

/// The payload of a commit.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CommitNote {
    #[serde(rename = "mark")]
    store_revision: StoreRevision,
    /// The largest key ever added: a message with a larger one is new.
    largest_key: u64,
}

/// The index, ready to be searched.
#[derive(Debug)]
struct OpenText {
    searcher: Searcher,
    fields: DocumentFields,
    /// The filter fields of each segment.
    columns: Vec<SegmentColumns>,
}

/// The filter fields of the documents of a segment.
struct SegmentColumns {
    /// The lengths of the texts as they are stored.
    lengths: FieldNormReader,
    /// Their sum, including deleted documents.
    tokens: u64,
    key: Column<u64>,
    session_key: Column<u64>,
    kind: Column<u64>,
    ts: Column<i64>,
}

impl IndexPart for TextPart {
    const NAME: &'static str = "text index";
    const ROWS: &'static str = "messages";
    const FOLDER: &'static str = "text";
    /// Also changes with the text analysis, the extraction of texts from a line, and tantivy's format.
    const FORMAT: u32 = 7;
    type Manifest = TextManifest;

    fn open(folder: &Path, mut manifest: TextManifest, _before: Option<&Self>) -> Result<Self, PartError> {
        manifest.verify(folder)?;
        let note = CommitNote::of(&manifest)
            .ok_or_else(|| PartError::Damaged("its commit has no payload".to_owned()))?;
        Ok(Self { folder: folder.to_owned(), note, manifest, opened: OnceLock::new() })
    }

    fn store_revision(&self) -> StoreRevision {
        self.note.store_revision
    }

    fn prepare_search(&self) -> Result<(), PartError> {
        if self.opened.get().is_none() {
            let opened = OpenText::open(&self.folder, self.manifest.clone()).map_err(part_error)?;
            self.opened.get_or_init(|| opened);
        }
        Ok(())
    }
}

impl TextPart {
    /// The largest key of a message that was ever added.
    pub(crate) fn largest_key(&self) -> u64 {
        self.note.largest_key
    }

    /// Whether the files contain words of removed or changed messages, because a fold was interrupted.
    pub(crate) fn has_deleted_documents(&self) -> bool {
        self.manifest.has_deleted_documents()
    }
}

impl CommitNote {
    fn of(manifest: &TextManifest) -> Option<Self> {
        serde_json::from_str(&manifest.payload()?).ok()
    }
}

impl OpenText {
    fn open(folder: &Path, manifest: TextManifest) -> tantivy::Result<Self> {
        let index = Index::open(TextDirectory::reader(folder, manifest)?)?;
        let (schema, fields) = schema();
        if index.schema() != schema {
            return Err(TantivyError::SchemaError("the fields are different".to_owned()));
        }
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).doc_store_cache_num_blocks(0);
        let searcher = reader.try_into()?.searcher();
        let columns =
            searcher.segment_readers().iter().map(|segment| SegmentColumns::open(segment, fields.text));
        let columns = columns.collect::<tantivy::Result<_>>()?;
        Ok(Self { searcher, fields, columns })
    }
}

impl fmt::Debug for SegmentColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentColumns").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

impl SegmentColumns {
    fn open(segment: &SegmentReader, text: Field) -> tantivy::Result<Self> {
        let fields = segment.fast_fields();
        let lengths = segment.get_fieldnorms_reader(text)?;
        let tokens = (0..segment.max_doc()).map(|doc| u64::from(lengths.fieldnorm(doc))).sum();
        Ok(Self {
            lengths,
            tokens,
            key: fields.u64(names::KEY)?,
            session_key: fields.u64(names::SESSION_KEY)?,
            kind: fields.u64(names::KIND)?,
            ts: fields.i64(names::TS)?,
        })
    }
}

fn part_error(error: TantivyError) -> PartError {
    match error {
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(path)) => PartError::Gone(path),
        error => PartError::Damaged(error.to_string()),
    }
}
