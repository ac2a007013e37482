//! Reads a folder of files.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Error, Result,
    events::MAX_LINE_BYTES,
    model::Session,
    storage::{ArchiveReader, Checksum, Record},
};
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder},
    file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
};

use crate::{
    FORMAT_KEY, Fields, WRITER_KEY, batches, failed, rows,
    tables::{CHECKSUM, EVENTS, MESSAGES, OWNER, SESSIONS, Table},
};

/// The maximum number of rows read at a time: few, because lines may be long.
const ROWS: usize = 64;
/// The size of the rows read at a time, if they are of average length.
const BYTES: u64 = 64 << 20;
/// The maximum average size of a value: a line has at most 64 MB, and escaping makes it up to six times as long.
const LARGEST_VALUE: u64 = 6 * MAX_LINE_BYTES as u64;

/// Reads an archive from a folder that [`ParquetWriter`](crate::ParquetWriter) wrote.
#[derive(Debug)]
pub struct ParquetReader {
    sessions: File,
    messages: File,
    events: File,
    state: State,
    /// The position of the last record.
    place: (&'static str, u64),
    mark: Option<Mark>,
}

/// A position within a session to return to.
#[derive(Debug)]
struct Mark {
    messages: u64,
    events: u64,
    parts: Box<Parts>,
}

/// The next part to read.
#[derive(Debug)]
enum State {
    Archive,
    Session,
    Parts(Box<Parts>),
    Nothing,
}

/// A session whose messages and events are read.
#[derive(Debug, Clone)]
struct Parts {
    session: Session,
    /// Its checksum when it was written, if the archive has it.
    stated: Option<String>,
    /// The checksum of its rows so far.
    checksum: Checksum,
}

#[derive(Debug)]
struct File {
    table: &'static Table,
    path: PathBuf,
    /// The format and the writer.
    header: Option<(u32, String)>,
    file: std::fs::File,
    metadata: ArrowReaderMetadata,
    batches: ParquetRecordBatchReader,
    rows: VecDeque<Fields>,
    /// Number of rows read.
    taken: u64,
}

impl ParquetReader {
    /// Opens `folder`.
    ///
    /// # Errors
    ///
    /// `StorageIo` if a file is missing or is not a Parquet file.
    pub fn open(folder: &Path) -> Result<Self> {
        let file = |table| File::open(folder, table);
        Ok(Self {
            sessions: file(&SESSIONS)?,
            messages: file(&MESSAGES)?,
            events: file(&EVENTS)?,
            state: State::Archive,
            place: (SESSIONS.file, 0),
            mark: None,
        })
    }

    fn archive(&mut self) -> Result<Record> {
        let header = self.sessions.header.take();
        let (format, writer) = header.ok_or_else(|| {
            Error::validation("archive", format!("{} is not part of an export", self.sessions.path.display()))
        })?;
        self.state = State::Session;
        Ok(Record::Archive { format, writer, checksums: true })
    }

    fn session(&mut self) -> Result<Record> {
        let Some(mut row) = self.sessions.take()? else { return self.complete() };
        self.place = self.sessions.place();
        self.state = State::Session;
        let stated = row.remove(CHECKSUM).and_then(|digits| digits.as_str().map(str::to_owned));
        let owner = owner_of(&row);
        let record = match rows::to_session(row, &SESSIONS) {
            Ok(record) => record,
            Err(error) => {
                for file in [&mut self.messages, &mut self.events] {
                    while file.take_of(&owner)?.is_some() {}
                }
                return Err(error);
            }
        };
        let session = record.session.clone();
        self.state = State::Parts(Box::new(Parts { session, stated, checksum: Checksum::default() }));
        Ok(Record::Session(Box::new(record)))
    }

    fn part(&mut self, mut parts: Box<Parts>) -> Result<Record> {
        let Session { user_id, session_id, .. } = &parts.session;
        let owner = [user_id.to_string(), session_id.to_string()].map(Some);
        if let Some(row) = self.messages.take_of(&owner)? {
            self.place = self.messages.place();
            rows::add_to(&mut parts.checksum, &row);
            self.state = State::Parts(parts);
            return Ok(Record::Message(Box::new(rows::to_part(row, &MESSAGES)?)));
        }
        if let Some(row) = self.events.take_of(&owner)? {
            self.place = self.events.place();
            rows::add_to(&mut parts.checksum, &row);
            self.state = State::Parts(parts);
            return Ok(Record::Event(Box::new(rows::to_part(row, &EVENTS)?)));
        }
        self.state = State::Session;
        self.place = self.sessions.place();
        let Parts { session, stated, checksum } = *parts;
        if let Some(stated) = stated.filter(|stated| *stated != checksum.digits()) {
            let message =
                "the rows of the session are not the ones that were exported: the checksum does not match";
            return Err(Error::validation("archive", message).with("checksum", stated));
        }
        let (messages, events) = (session.message_count, session.event_count);
        Ok(Record::End { messages, events, checksum: None })
    }

    /// Fails if rows remain: rows after the last session belong to no session.
    fn complete(&mut self) -> Result<Record> {
        self.state = State::Nothing;
        for file in [&mut self.messages, &mut self.events] {
            if file.take()?.is_some() {
                let (what, number) = file.place();
                let message =
                    "the row does not belong to any session, or is not next to the other rows of its session";
                return Err(Error::validation("archive", message).with(what, number));
            }
        }
        Ok(Record::Complete { sessions: self.sessions.taken, checksum: None })
    }
}

impl ArchiveReader for ParquetReader {
    fn next(&mut self) -> Result<Option<Record>> {
        let record = match std::mem::replace(&mut self.state, State::Nothing) {
            State::Archive => self.archive(),
            State::Session => self.session(),
            State::Parts(parts) => self.part(parts),
            State::Nothing => return Ok(None),
        };
        let (what, number) = self.place;
        record
            .map(Some)
            .map_err(|error| if error.context(what).is_some() { error } else { error.with(what, number) })
    }

    fn place(&self) -> (&'static str, u64) {
        self.place
    }

    fn mark(&mut self) -> bool {
        self.mark = match &self.state {
            State::Parts(parts) => {
                let (messages, events) = (self.messages.taken, self.events.taken);
                Some(Mark { messages, events, parts: parts.clone() })
            }
            _ => None,
        };
        self.mark.is_some()
    }

    fn go_back(&mut self) -> Result<()> {
        let Some(Mark { messages, events, parts }) = self.mark.take() else { return Ok(()) };
        self.messages.go_to(messages)?;
        self.events.go_to(events)?;
        self.state = State::Parts(parts);
        Ok(())
    }
}

impl File {
    fn open(folder: &Path, table: &'static Table) -> Result<Self> {
        let path = folder.join(table.file);
        let file = std::fs::File::open(&path).map_err(|source| failed("read", &path, source))?;
        let metadata = unless_broken(&path, || ArrowReaderMetadata::load(&file, Default::default()))?
            .map_err(|source| failed("read", &path, source))?;
        check_sizes(&path, metadata.metadata())?;
        let header = metadata.metadata().file_metadata().key_value_metadata();
        let header = |key: &str| header?.iter().find(|header| header.key == key)?.value.clone();
        let format = header(FORMAT_KEY).and_then(|format| format.parse().ok());
        let header = format.map(|format| (format, header(WRITER_KEY).unwrap_or_default()));
        let batches = batches_from(0, &path, &file, &metadata)?;
        Ok(Self { table, path, header, file, metadata, batches, rows: VecDeque::new(), taken: 0 })
    }

    /// Continues with row number `taken`, counted from 0.
    fn go_to(&mut self, taken: u64) -> Result<()> {
        self.batches = batches_from(taken, &self.path, &self.file, &self.metadata)?;
        self.rows.clear();
        self.taken = taken;
        Ok(())
    }

    fn peek(&mut self) -> Result<Option<&Fields>> {
        while self.rows.is_empty() {
            let Some(batch) = unless_broken(&self.path, || self.batches.next())? else { break };
            let batch = batch.map_err(|source| failed("read", &self.path, source))?;
            self.rows = unless_broken(&self.path, || batches::to_rows(&batch, self.table))??.into();
        }
        Ok(self.rows.front())
    }

    fn take(&mut self) -> Result<Option<Fields>> {
        self.peek()?;
        self.taken += u64::from(!self.rows.is_empty());
        Ok(self.rows.pop_front())
    }

    /// The next row, if it belongs to this user and session.
    fn take_of(&mut self, owner: &[Option<String>; 2]) -> Result<Option<Fields>> {
        if self.peek()?.is_some_and(|row| owner_of(row) == *owner) { self.take() } else { Ok(None) }
    }

    fn place(&self) -> (&'static str, u64) {
        (self.table.file, self.taken)
    }
}

/// Reads the rows of a file from row number `first` on.
fn batches_from(
    first: u64,
    path: &Path,
    file: &std::fs::File,
    metadata: &ArrowReaderMetadata,
) -> Result<ParquetRecordBatchReader> {
    let cannot = |source| failed("read", path, source);
    let file = file.try_clone().map_err(|source| failed("read", path, source))?;
    let first = usize::try_from(first).map_err(|source| failed("read", path, source))?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
    let rows = rows_at_once(metadata.metadata());
    unless_broken(path, || builder.with_batch_size(rows).with_offset(first).build())?.map_err(cannot)
}

/// Refuses a file that, after decompression, would be larger than its rows can be. A small file can claim to be a lot.
fn check_sizes(path: &Path, metadata: &ParquetMetaData) -> Result<()> {
    for (number, group) in (1..).zip(metadata.row_groups()) {
        let most = LARGEST_VALUE.saturating_mul(count(group.num_rows()).max(1));
        let is_too_large = |column: &&ColumnChunkMetaData| count(column.uncompressed_size()) > most;
        if let Some(column) = group.columns().iter().find(is_too_large) {
            let message = format!(
                "row group {number} claims {} bytes for {} values in the column {}, which is more than lines have",
                column.uncompressed_size(),
                group.num_rows(),
                column.column_path()
            );
            return Err(failed("read", path, message));
        }
    }
    Ok(())
}

/// The number of rows to read at a time, by the average size of the rows in the group with the largest ones.
fn rows_at_once(metadata: &ParquetMetaData) -> usize {
    let average = |group: &RowGroupMetaData| {
        let bytes: u64 = group.columns().iter().map(|column| count(column.uncompressed_size())).sum();
        bytes / count(group.num_rows()).max(1)
    };
    let largest = metadata.row_groups().iter().map(average).max().unwrap_or_default();
    let rows = usize::try_from(BYTES / largest.max(1)).unwrap_or(ROWS);
    rows.clamp(1, ROWS)
}

/// A count in a file; 0 if it is negative.
fn count(stated: i64) -> u64 {
    u64::try_from(stated).unwrap_or_default()
}

/// The user and the session of a row.
fn owner_of(row: &Fields) -> [Option<String>; 2] {
    let [user, session, _] = OWNER;
    [user, session].map(|name| row.get(name).and_then(|value| value.as_str()).map(str::to_owned))
}

/// Calls `read`, and turns a panic into an error, because the parquet crate panics on some damaged files. The reader is
/// not used after a panic.
fn unless_broken<T>(path: &Path, read: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| failed("read", path, "the file is damaged"))
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::storage::ArchiveWriter as _;

    use super::*;
    use crate::ParquetWriter;

    /// The metadata of a file with one session, as if each column had `size` bytes.
    fn metadata_of(size: i64) -> ParquetMetaData {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = ParquetWriter::new(folder.path());
        let session = serde_json::json!({"record": "session", "session": {
            "session_id": "s", "user_id": "ana", "host_id": "h", "project_slug": "p",
            "created": "2026-01-05T08:00:00Z", "updated": "2026-01-05T08:00:00Z", "turn_count": 0,
            "message_count": 0, "event_count": 0, "tags": [], "visibility": "private", "team_ids": [], "edited": []},
            "metadata_files": [], "skipped": [], "sync_state": null});
        for record in [
            Record::Archive { format: 1, writer: "test".to_owned(), checksums: false },
            serde_json::from_value(session).unwrap(),
            Record::End { messages: 0, events: 0, checksum: None },
            Record::Complete { sessions: 1, checksum: None },
        ] {
            writer.put(record).unwrap();
        }
        writer.finish().unwrap();
        let metadata =
            ParquetReader::open(folder.path()).unwrap().sessions.metadata.metadata().as_ref().clone();
        let mut builder = metadata.into_builder();
        let column = |column: &ColumnChunkMetaData| {
            column.clone().into_builder().set_total_uncompressed_size(size).build().unwrap()
        };
        let group = |group: RowGroupMetaData| {
            let columns = group.columns().iter().map(column).collect();
            group.into_builder().set_column_metadata(columns).build().unwrap()
        };
        let groups = builder.take_row_groups().into_iter().map(group).collect();
        builder.set_row_groups(groups).build()
    }

    #[test]
    fn a_file_that_claims_more_than_its_rows_can_have_is_refused() {
        let path = Path::new("sessions.parquet");
        assert!(check_sizes(path, &metadata_of(1_000)).is_ok());
        assert!(check_sizes(path, &metadata_of(-1)).is_ok());
        let error = check_sizes(path, &metadata_of(4 << 30)).unwrap_err();
        let expected =
            "can't read sessions.parquet: row group 1 claims 4294967296 bytes for 1 values in the column";
        assert!(error.message().starts_with(expected), "{error}");
    }

    #[test]
    fn fewer_rows_are_read_at_a_time_if_they_are_large() {
        assert_eq!(rows_at_once(&metadata_of(1_000)), ROWS);
        assert!((2..ROWS).contains(&rows_at_once(&metadata_of(1 << 20))));
        assert_eq!(rows_at_once(&metadata_of(1 << 30)), 1);
    }
}
