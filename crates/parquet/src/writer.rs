//! Writes a folder of files.

use std::{
    fs::OpenOptions,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::Session,
    storage::{ArchiveWriter, Checksum, Record},
};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::{metadata::KeyValue, properties::WriterProperties},
};

use crate::{
    FORMAT_KEY, Fields, WRITER_KEY, batches, failed, rows,
    tables::{CHECKSUM, EVENTS, Kind, MESSAGES, SESSIONS, Table},
};

/// Maximum number of rows in a batch, and bytes of their lines.
const BATCH_ROWS: usize = 1_024;
const BATCH_BYTES: usize = 16 << 20;
/// Size of a row group in bytes.
const GROUP_BYTES: usize = 64 << 20;

/// Writes an archive to three files in a folder. The rows of a session are kept in memory until it is complete.
#[derive(Debug)]
pub struct ParquetWriter {
    folder: PathBuf,
    files: Option<Files>,
    current: Option<Session>,
    sessions: Vec<Fields>,
    messages: Vec<Fields>,
    events: Vec<Fields>,
}

#[derive(Debug)]
struct Files {
    sessions: File,
    messages: File,
    events: File,
}

#[derive(Debug)]
struct File {
    table: &'static Table,
    path: PathBuf,
    writer: ArrowWriter<std::fs::File>,
}

impl ParquetWriter {
    /// Creates a writer for `folder`, which must exist and be empty.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            files: None,
            current: None,
            sessions: Vec::new(),
            messages: Vec::new(),
            events: Vec::new(),
        }
    }

    fn session(&self) -> Result<&Session> {
        self.current.as_ref().ok_or_else(out_of_place)
    }

    fn clear(&mut self) {
        self.current = None;
        self.sessions.clear();
        self.messages.clear();
        self.events.clear();
    }

    fn end(&mut self) -> Result<()> {
        let files = self.files.as_mut().ok_or_else(out_of_place)?;
        let mut checksum = Checksum::default();
        self.messages.iter().chain(&self.events).for_each(|row| rows::add_to(&mut checksum, row));
        for session in &mut self.sessions {
            session.insert(CHECKSUM.to_owned(), checksum.digits().into());
        }
        files.sessions.write(&self.sessions)?;
        files.messages.write(&self.messages)?;
        files.events.write(&self.events)?;
        self.clear();
        Ok(())
    }
}

impl ArchiveWriter for ParquetWriter {
    fn put(&mut self, record: Record) -> Result<()> {
        match record {
            Record::Archive { format, writer, .. } => {
                let file = |table| File::create(&self.folder, table, format, &writer);
                let (sessions, messages, events) = (file(&SESSIONS)?, file(&MESSAGES)?, file(&EVENTS)?);
                self.files = Some(Files { sessions, messages, events });
            }
            Record::Session(record) => {
                self.sessions.push(rows::of_session(&record, &SESSIONS)?);
                self.current = Some(record.session);
            }
            Record::Message(record) => {
                let row = rows::of_part(&record, self.session()?, &MESSAGES)?;
                self.messages.push(row);
            }
            Record::Event(record) => {
                let row = rows::of_part(&record, self.session()?, &EVENTS)?;
                self.events.push(row);
            }
            // The tables are for queries about the current sessions.
            Record::Superseded(_) => {}
            Record::Again => self.clear(),
            Record::End { .. } => self.end()?,
            // An incomplete Parquet file has no footer and can't be read.
            Record::Complete { .. } => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let Files { sessions, messages, events } = self.files.take().ok_or_else(out_of_place)?;
        [sessions, messages, events].into_iter().try_for_each(File::close)
    }
}

impl File {
    fn create(folder: &Path, table: &'static Table, format: u32, writer: &str) -> Result<Self> {
        let path = folder.join(table.file);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|source| failed("write", &path, source))?;
        let header = [(FORMAT_KEY, format.to_string()), (WRITER_KEY, writer.to_owned())];
        let header = header.map(|(key, value)| KeyValue::new(key.to_owned(), value));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(header.to_vec()));
        let schema = table.schema(Kind::stored);
        let writer = ArrowWriter::try_new(file, schema, Some(properties.build()))
            .map_err(|source| failed("write", &path, source))?;
        Ok(Self { table, path, writer })
    }

    fn write(&mut self, rows: &[Fields]) -> Result<()> {
        for rows in pieces(rows) {
            let batch = batches::of_rows(rows, self.table);
            let batch = batch.map_err(|source| failed("write", &self.path, source))?;
            self.writer.write(&batch).map_err(|source| failed("write", &self.path, source))?;
            if self.writer.in_progress_size() > GROUP_BYTES {
                self.writer.flush().map_err(|source| failed("write", &self.path, source))?;
            }
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        let Self { path, writer, .. } = self;
        let file = writer.into_inner().map_err(|source| failed("write", &path, source))?;
        file.sync_all().map_err(|source| failed("write", &path, source))
    }
}

/// Splits rows into batches.
fn pieces(rows: &[Fields]) -> impl Iterator<Item = &[Fields]> {
    let mut bytes = 0;
    rows.chunk_by(move |row, _| {
        bytes += row.get("raw").and_then(|raw| raw.as_str()).map_or(0, str::len);
        let fits = bytes < BATCH_BYTES;
        if !fits {
            bytes = 0;
        }
        fits
    })
    .flat_map(|rows| rows.chunks(BATCH_ROWS))
}

fn out_of_place() -> Error {
    Error::new(ErrorKind::StorageIo, "the records of the archive are in the wrong order")
}
