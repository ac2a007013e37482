//! The rows as values of the model.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::{
        RemainingMessage, RemainingSession, RemainingTurns, SalvageSource, StoredSession,
        meta::{EMBEDDING_SPACE, Generations, VERSION},
    },
    model::{
        MetadataFile, Payload, RawJson, Session, SessionKey, StoredEvent, SupersededPiece, SupersededRef,
        Timestamp, VectorRecord,
    },
};
use amplifier_session_sql::{
    Columns, damaged,
    file::refused,
    rows::{self, EVENT, MESSAGES, SESSION, SESSION_STATE, SYNC_STATE, VECTOR, encoding},
    superseded, turns,
};
use amplifier_session_sqlite_reader::{PageFile, RowPlace, RowRecord, StoredValue};

use super::{
    catalog::{Catalog, FoundRows},
    scan::scan,
    tables::SalvagedTable,
};
use crate::{
    columns::{read_vector, stored_line},
    schema::APPLICATION_ID,
};

/// The page size of our files, if the header is unreadable.
const PAGE_SIZE: usize = 8192;

/// The rest of the store in a file.
#[derive(Debug)]
pub(crate) struct Salvage {
    pages: PageFile,
    catalog: Catalog,
}

impl Salvage {
    /// Finds what is left of the store in the file `path`, with its log.
    ///
    /// # Errors
    ///
    /// `StorageConnection` if the file can't be opened, or if it is intact but not a store.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let pages = PageFile::open(path, PAGE_SIZE).map_err(|source| {
            Error::new(ErrorKind::StorageConnection, format!("can't open the file: {source}"))
                .with("file", path.display())
                .with_source(source)
        })?;
        if pages.application_id().is_some_and(|application| application != APPLICATION_ID) {
            return Err(refused(path, "is not a store of this program"));
        }
        let catalog = scan(&pages);
        if catalog.sessions.is_empty() && catalog.meta.is_empty() {
            return Err(refused(path, "contains no part of a store"));
        }
        Ok(Self { pages, catalog })
    }

    fn found(&self, key: &SessionKey) -> Result<&FoundRows> {
        self.catalog.sessions.get(key).ok_or_else(lost)
    }

    /// Reads a row with these columns. Columns of the session are taken from `session`.
    fn read<T>(
        &self,
        table: SalvagedTable,
        place: RowPlace,
        columns: &str,
        session: Option<&Session>,
        read: impl Fn(&dyn Columns) -> Result<T>,
    ) -> Result<T> {
        let row = self.pages.row(place).ok_or_else(lost)?;
        let own = table.columns();
        let stored = self.catalog.columns.get(&table).unwrap_or(&own);
        let columns = columns.split(',').map(|column| column.trim().rsplit('.').next().unwrap_or_default());
        let values = columns.map(|column| match (column, session) {
            ("host_id", Some(session)) => Some(StoredValue::Text(session.host_id.as_str().as_bytes())),
            ("project_slug", Some(session)) => {
                Some(StoredValue::Text(session.project_slug.as_str().as_bytes()))
            }
            _ => value(&row, stored, column),
        });
        read(&Picked(values.collect()))
    }

    fn stored_session(&self, key: &SessionKey) -> Result<StoredSession> {
        let place = self.found(key)?.record.ok_or_else(lost)?;
        let columns = format!("{SESSION}, {SESSION_STATE}, {SYNC_STATE}");
        self.read(SalvagedTable::Sessions, place, &columns, None, rows::stored_session)
    }

    /// The readable metadata files of a session, and why others are missing, if so.
    fn metadata_files(&self, key: &SessionKey) -> Result<(Vec<MetadataFile>, Option<String>)> {
        let found = self.found(key)?;
        let file = |place: &RowPlace| {
            self.read(SalvagedTable::MetadataFiles, *place, "name, raw", None, |row| {
                Ok(MetadataFile { name: row.text(0)?, raw: RawJson::new(row.bytes(1)?) })
            })
        };
        let files: Vec<_> = found.metadata.values().filter_map(|place| file(place).ok()).collect();
        let lost = if files.len() < found.metadata.len() || found.metadata.keys().ne(&positions(files.len()))
        {
            Some("a metadata file of the session can't be read")
        } else if files.is_empty() && self.catalog.has_lost(SalvagedTable::MetadataFiles) {
            Some("the metadata files of the session, if it had any, can't be read")
        } else {
            None
        };
        Ok((files, lost.map(str::to_owned)))
    }

    /// The vectors of a message of the current generation, and when they were made.
    fn vectors(&self, found: &FoundRows, sequence: u32) -> (Vec<VectorRecord>, Option<Timestamp>) {
        let generation = i64::from(Generations::of(&self.catalog.meta).current_number());
        let (mut records, mut created) = (Vec::new(), None);
        let mut texts = BTreeSet::new();
        for place in found.vectors.range((sequence, i64::MIN)..=(sequence, i64::MAX)).map(|(_, place)| place)
        {
            let columns = format!("{VECTOR}, generation, created_at");
            let read = self.read(SalvagedTable::Vectors, *place, &columns, None, |row| {
                Ok((rows::record(row)?, row.integer(7)?, row.time(8)?))
            });
            if let Ok((record, of, at)) = read
                && of == generation
                && texts.insert((record.text, record.chunk_index))
            {
                records.push(record);
                created = Some(at);
            }
        }
        (records, created)
    }

    /// The vector of the turn that a message begins, of the current generation.
    fn turn_vector(&self, found: &FoundRows, sequence: u32) -> Option<VectorRecord> {
        let generation = i64::from(Generations::of(&self.catalog.meta).current_number());
        let columns = format!("{}, generation", turns::RECORD);
        let mut places = found.turn_vectors.range((sequence, i64::MIN)..=(sequence, i64::MAX));
        places.find_map(|(_, place)| {
            let read = self.read(SalvagedTable::TurnVectors, *place, &columns, None, |row| {
                Ok((turns::record(row)?.1, row.integer(9)?))
            });
            read.ok().filter(|(_, of)| *of == generation).map(|(record, _)| record)
        })
    }

    fn payload(
        &self,
        found: &FoundRows,
        sequence: u32,
        place: RowPlace,
        chunks: Option<u32>,
    ) -> Result<Payload> {
        let (encoding, bytes) = self.read(SalvagedTable::Events, place, "encoding, raw", None, |row| {
            let encoding = row.integer(0)?;
            let has_bytes = matches!(encoding, encoding::PLAIN | encoding::ZSTD);
            Ok((encoding, if has_bytes { row.bytes(1)? } else { Vec::new() }))
        })?;
        match encoding {
            encoding::NONE => Ok(Payload::None),
            encoding::PLAIN => Ok(Payload::Plain(bytes)),
            encoding::ZSTD => Ok(Payload::Zstd(bytes)),
            encoding::CHUNKS => {
                let chunk = |index: u32| {
                    let place = *found.chunks.get(&(sequence, index)).ok_or_else(lost)?;
                    self.read(SalvagedTable::Chunks, place, "chunk_data", None, |row| row.bytes(0))
                };
                let count = chunks.ok_or_else(|| damaged("chunked payload"))?;
                Ok(Payload::Chunks((0..count).map(chunk).collect::<Result<_>>()?))
            }
            _ => Err(damaged("payload")),
        }
    }
}

impl SalvageSource for Salvage {
    fn meta(&self) -> BTreeMap<String, String> {
        let mut entries = self.catalog.meta.clone();
        // Vectors of an unknown space can't be used.
        if Generations::of(&entries).current.is_none() {
            entries.remove(EMBEDDING_SPACE);
        }
        entries
    }

    fn deleted_sessions(&self) -> Vec<SessionKey> {
        let distinct: BTreeSet<_> = self.catalog.deleted.iter().cloned().collect();
        distinct.into_iter().collect()
    }

    fn sessions(&self) -> Vec<SessionKey> {
        self.catalog.sessions.keys().cloned().collect()
    }

    fn session(&mut self, key: &SessionKey) -> Result<RemainingSession> {
        let (metadata_files, lost_metadata) = self.metadata_files(key)?;
        let stored = self.stored_session(key);
        let found = self.found(key)?;
        let mut remaining = RemainingSession {
            stored: Err(lost()),
            metadata_files: Vec::new(),
            project: found.project.clone(),
            created: found.created,
            lost_metadata,
            messages: found.messages.keys().copied().collect(),
            events: found.events.keys().copied().collect(),
            superseded: found.superseded.keys().cloned().collect(),
        };
        match stored {
            Ok(stored) => remaining.stored = Ok(StoredSession { metadata_files, ..stored }),
            Err(error) => {
                remaining.stored = Err(of_kind_damaged(error));
                remaining.metadata_files = metadata_files;
            }
        }
        Ok(remaining)
    }

    fn message(&mut self, session: &Session, sequence: u32) -> Result<RemainingMessage> {
        let found = self.found(&session.key())?;
        let place = *found.messages.get(&sequence).ok_or_else(lost)?;
        let columns = MESSAGES.trim_start_matches("SELECT ").split(" FROM ").next().unwrap_or_default();
        let message = self.read(SalvagedTable::Messages, place, columns, Some(session), rows::message)?;
        let (mut vectors, vectors_created) = self.vectors(found, sequence);
        vectors.extend(self.turn_vector(found, sequence));
        Ok(RemainingMessage { message, vectors, vectors_created })
    }

    fn event(&mut self, session: &Session, sequence: u32) -> Result<StoredEvent> {
        let found = self.found(&session.key())?;
        let place = *found.events.get(&sequence).ok_or_else(lost)?;
        let event = self.read(SalvagedTable::Events, place, EVENT, Some(session), rows::event)?;
        let payload = self.payload(found, sequence, place, event.chunk_count)?;
        Ok(StoredEvent { event, payload })
    }

    fn superseded(&mut self, piece: &SupersededRef) -> Result<SupersededPiece> {
        let place = *self.found(&piece.session)?.superseded.get(&piece.id).ok_or_else(lost)?;
        self.read(SalvagedTable::Superseded, place, superseded::LINES.columns[0], None, superseded::piece)
    }

    fn turns(&mut self, session: &SessionKey) -> Result<RemainingTurns> {
        let (found, mut remaining) = (self.found(session)?, RemainingTurns::default());
        for (user, place) in &found.summaries {
            let columns = turns::SUMMARIES.columns[0];
            match self.read(SalvagedTable::Summaries, *place, columns, None, turns::summary_of_row) {
                Ok(summary) => remaining.summaries.push(summary),
                Err(_) => remaining.lost_summaries.push(*user),
            }
        }
        Ok(remaining)
    }

    fn unreadable(&self) -> Vec<String> {
        let mut pages = self.catalog.unreadable.clone();
        pages.sort_unstable();
        let name = |(page, table): (u32, Option<SalvagedTable>)| match table {
            Some(table) => format!("page {page} ({})", table.contents()),
            None => format!("page {page} (the list of tables)"),
        };
        pages.into_iter().map(name).collect()
    }

    fn lost(&self) -> Vec<String> {
        let is_lost = |table: &SalvagedTable| match table {
            SalvagedTable::Meta => !self.catalog.meta.contains_key(VERSION),
            _ => self.catalog.unreadable.iter().any(|(_, of)| *of == Some(*table)),
        };
        [
            SalvagedTable::Meta,
            SalvagedTable::Deleted,
            SalvagedTable::Superseded,
            SalvagedTable::Summaries,
            SalvagedTable::TurnVectors,
        ]
        .iter()
        .filter(|table| is_lost(table))
        .map(|table| table.contents().to_owned())
        .collect()
    }
}

/// The positions of `count` metadata files.
fn positions(count: usize) -> Vec<i64> {
    (0..count as i64).collect()
}

/// The error for a row that can't be read.
fn lost() -> Error {
    Error::new(ErrorKind::Damaged, "the part of the store that held it can't be read")
}

/// A value that violates the model was not stored that way.
fn of_kind_damaged(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Validation => Error::new(ErrorKind::Damaged, error.message()).with_source(error),
        _ => error,
    }
}

/// The value of a column. Rows that were written before a column was added end before it.
fn value<'a>(row: &'a RowRecord, stored: &[String], column: &str) -> Option<StoredValue<'a>> {
    let index = stored.iter().position(|name| name == column);
    match index {
        Some(index) if index < row.len() => row.get(index),
        _ => Some(match column {
            "edited" => StoredValue::Text(b"[]"),
            "source" => StoredValue::Text(b"amplifier"),
            "ts_source" => StoredValue::Text(b"file"),
            "generation" => StoredValue::Integer(0),
            _ => StoredValue::Null,
        }),
    }
}

/// The chosen columns of a row. A value that can't be read is `None`.
struct Picked<'a>(Vec<Option<StoredValue<'a>>>);

impl Picked<'_> {
    fn get(&self, index: usize) -> Result<StoredValue<'_>> {
        self.0.get(index).copied().flatten().ok_or_else(|| damaged("value"))
    }
}

impl Columns for Picked<'_> {
    fn text_ref(&self, index: usize) -> Result<&str> {
        match self.get(index)? {
            StoredValue::Text(text) => std::str::from_utf8(text).map_err(|_| damaged("text")),
            _ => Err(damaged("text")),
        }
    }

    fn maybe_text(&self, index: usize) -> Result<Option<String>> {
        match self.get(index)? {
            StoredValue::Null => Ok(None),
            _ => self.text(index).map(Some),
        }
    }

    fn maybe_integer(&self, index: usize) -> Result<Option<i64>> {
        match self.get(index)? {
            StoredValue::Null => Ok(None),
            StoredValue::Integer(number) => Ok(Some(number)),
            _ => Err(damaged("number")),
        }
    }

    fn flag(&self, index: usize) -> Result<bool> {
        Ok(self.integer(index)? != 0)
    }

    fn maybe_time(&self, index: usize) -> Result<Option<Timestamp>> {
        match self.get(index)? {
            StoredValue::Null => Ok(None),
            _ => Timestamp::parse(self.text_ref(index)?).map(Some),
        }
    }

    fn bytes_ref(&self, index: usize) -> Result<&[u8]> {
        match self.get(index)? {
            StoredValue::Text(bytes) | StoredValue::Blob(bytes) => Ok(bytes),
            _ => Err(damaged("line")),
        }
    }

    fn line(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        stored_line(self.bytes_ref(index)?)
    }

    fn texts(&self, index: usize) -> Result<Vec<String>> {
        serde_json::from_str(self.text_ref(index)?).map_err(|_| damaged("list"))
    }

    fn read_vector(&self, index: usize, into: &mut Vec<f32>) -> Result<()> {
        read_vector(self.bytes_ref(index)?, into)
    }
}
