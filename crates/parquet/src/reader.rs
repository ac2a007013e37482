//! Reads a folder of files.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Error, Result,
    model::Session,
    storage::{ArchiveReader, Record},
};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::{
    FORMAT_KEY, Fields, WRITER_KEY, batches, failed, rows,
    tables::{EVENTS, MESSAGES, OWNER, SESSIONS, Table},
};

/// Number of rows read at a time: few, because lines may be long.
const ROWS: usize = 64;

/// Reads an archive from a folder that [`ParquetWriter`](crate::ParquetWriter) wrote.
#[derive(Debug)]
pub struct ParquetReader {
    sessions: File,
    messages: File,
    events: File,
    state: State,
    /// The position of the last record.
    place: (&'static str, u64),
}

/// What to read next.
#[derive(Debug)]
enum State {
    Archive,
    Session,
    Parts(Box<Session>),
    Nothing,
}

#[derive(Debug)]
struct File {
    table: &'static Table,
    path: PathBuf,
    /// The format and the writer.
    header: Option<(u32, String)>,
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
        })
    }

    fn archive(&mut self) -> Result<Record> {
        let header = self.sessions.header.take();
        let (format, writer) = header.ok_or_else(|| {
            Error::validation("archive", format!("{} is not part of an export", self.sessions.path.display()))
        })?;
        self.state = State::Session;
        Ok(Record::Archive { format, writer })
    }

    fn session(&mut self) -> Result<Record> {
        let Some(row) = self.sessions.take()? else { return self.complete() };
        self.place = self.sessions.place();
        let record = rows::to_session(row, &SESSIONS)?;
        self.state = State::Parts(Box::new(record.session.clone()));
        Ok(Record::Session(Box::new(record)))
    }

    fn part(&mut self, session: Session) -> Result<Record> {
        if let Some(row) = self.messages.take_of(&session)? {
            self.place = self.messages.place();
            self.state = State::Parts(Box::new(session));
            return Ok(Record::Message(Box::new(rows::to_part(row, &MESSAGES)?)));
        }
        if let Some(row) = self.events.take_of(&session)? {
            self.place = self.events.place();
            self.state = State::Parts(Box::new(session));
            return Ok(Record::Event(Box::new(rows::to_part(row, &EVENTS)?)));
        }
        self.state = State::Session;
        self.place = self.sessions.place();
        Ok(Record::End { messages: session.message_count, events: session.event_count })
    }

    /// Rows after those of the last session belong to no session.
    fn complete(&mut self) -> Result<Record> {
        self.state = State::Nothing;
        for file in [&mut self.messages, &mut self.events] {
            if file.take()?.is_some() {
                let (what, number) = file.place();
                let message =
                    "the row belongs to no session, or is not next to the other rows of its session";
                return Err(Error::validation("archive", message).with(what, number));
            }
        }
        Ok(Record::Complete { sessions: self.sessions.taken })
    }
}

impl ArchiveReader for ParquetReader {
    fn next(&mut self) -> Result<Option<Record>> {
        let record = match std::mem::replace(&mut self.state, State::Nothing) {
            State::Archive => self.archive(),
            State::Session => self.session(),
            State::Parts(session) => self.part(*session),
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
}

impl File {
    fn open(folder: &Path, table: &'static Table) -> Result<Self> {
        let path = folder.join(table.file);
        let file = std::fs::File::open(&path).map_err(|source| failed("read", &path, source))?;
        let builder = unless_broken(&path, || ParquetRecordBatchReaderBuilder::try_new(file))?
            .map_err(|source| failed("read", &path, source))?;
        let header = builder.metadata().file_metadata().key_value_metadata();
        let header = |key: &str| header?.iter().find(|header| header.key == key)?.value.clone();
        let format = header(FORMAT_KEY).and_then(|format| format.parse().ok());
        let header = format.map(|format| (format, header(WRITER_KEY).unwrap_or_default()));
        let batches = unless_broken(&path, || builder.with_batch_size(ROWS).build())?
            .map_err(|source| failed("read", &path, source))?;
        Ok(Self { table, path, header, batches, rows: VecDeque::new(), taken: 0 })
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

    /// The next row, if it belongs to `session`.
    fn take_of(&mut self, session: &Session) -> Result<Option<Fields>> {
        let ids = [session.user_id.as_str(), session.session_id.as_str()];
        let is_of = |row: &Fields| {
            OWNER
                .iter()
                .zip(ids)
                .all(|(name, id)| row.get(*name).and_then(|value| value.as_str()) == Some(id))
        };
        if self.peek()?.is_some_and(is_of) { self.take() } else { Ok(None) }
    }

    fn place(&self) -> (&'static str, u64) {
        (self.table.file, self.taken)
    }
}

/// Calls `read`, and turns a panic into an error: the parquet crate panics on some damaged files. The reader is not
/// used after a panic.
fn unless_broken<T>(path: &Path, read: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|_| failed("read", path, "the file is damaged"))
}
