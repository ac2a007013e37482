//! Connections: one for writing, several for reading.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError, RwLock, RwLockReadGuard},
};

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sql::{
    backend::Connections,
    embedded::{Idle, lock},
    file, quote,
    staging::{REWRITING, StagingFolder, remove_left},
};
use duckdb::Connection;

use crate::{
    connect::{self, Access},
    connection::{DuckDbReader, DuckDbWriter},
    error::{opening, storage},
    numbers::Numbers,
    open_files::OpenMark,
    schema,
};

/// The connections of this process to one database file.
#[derive(Debug)]
pub struct Pool {
    path: PathBuf,
    access: Access,
    /// Locked for writing while the file is replaced.
    handles: RwLock<Handles>,
    /// Dropped last.
    _closing: Closing,
}

#[derive(Debug)]
struct Handles {
    writer: Mutex<WriteConnection>,
    /// New connections are cloned from it, even while the writer is in use.
    root: Mutex<Connection>,
    readers: Idle<Connection>,
    /// Whether the file was replaced, so that writes would be lost.
    are_of_old_file: bool,
}

/// The connection for writing, with the next numbers. No other process can assign any.
#[derive(Debug)]
struct WriteConnection {
    connection: Connection,
    numbers: Numbers,
}

impl Pool {
    /// Opens the file. If it is missing and may be written, it is created.
    pub(crate) fn open(path: &Path, access: Access, file: OpenMark) -> Result<Self> {
        if !schema::check(path)? {
            match access {
                Access::ReadWrite => connect::make(path, schema::create)?,
                Access::ReadOnly => {
                    let message = "there is no database to read";
                    return Err(
                        Error::new(ErrorKind::StorageConnection, message).with("file", path.display())
                    );
                }
            }
        }
        let handles = Handles::open(path, access)?;
        let made = file::create_folder(&connect::spill_folder(path));
        // A reader may have no permission to write there.
        if access == Access::ReadWrite {
            made.map_err(not_written)?;
            remove_left(path);
            connect::clear_spill_folder(path);
        }
        let _closing = Closing { path: path.to_owned(), _file: file };
        Ok(Self { path: path.to_owned(), access, handles: RwLock::new(handles), _closing })
    }

    /// The database file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it may be written.
    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// Runs `write` in one transaction; waits while another thread writes.
    pub(crate) fn transaction<T>(
        &self,
        operation: &'static str,
        write: impl FnOnce(&mut DuckDbWriter<'_>) -> Result<T>,
    ) -> Result<T> {
        let handles = self.handles()?;
        let mut writer = lock(&handles.writer);
        // DuckDB would create a log that everybody can read.
        file::create(&connect::log_path(&self.path))?;
        let WriteConnection { connection, numbers } = &mut *writer;
        let transaction = connection.transaction().map_err(storage(operation))?;
        let mut writer = DuckDbWriter::new(&transaction, numbers);
        let answer = write(&mut writer)?;
        writer.flush(operation)?;
        drop(writer);
        transaction.commit().map_err(storage(operation))?;
        Ok(answer)
    }

    /// Runs `read` on a read connection.
    fn on_reader<T>(&self, read: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let handles = self.handles()?;
        let mut connection = handles.readers.take().map_or_else(|| self.connection(&handles), Ok)?;
        let answer = read(&mut connection);
        handles.readers.keep(connection);
        answer
    }

    /// Runs `read` on a separate connection. No other read sees its temporary views.
    pub(crate) fn read_apart<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let handles = self.handles()?;
        let connection = self.connection(&handles)?;
        read(&connection)
    }

    fn connection(&self, handles: &Handles) -> Result<Connection> {
        lock(&handles.root).try_clone().map_err(|error| opening(&self.path, error))
    }

    /// Moves the write-ahead log into the database and removes it. DuckDB may refuse while other connections use the
    /// database; the log then stays until it is long or the store is closed.
    pub(crate) fn checkpoint(&self) {
        if self.access == Access::ReadOnly {
            return;
        }
        let Ok(handles) = self.handles() else { return };
        let writer = lock(&handles.writer);
        if let Err(error) = writer.connection.execute_batch("CHECKPOINT") {
            tracing::debug!(%error, "the write-ahead log could not be emptied yet");
        }
    }

    /// Rewrites the database, so that it contains nothing of deleted rows and their space is freed. Meanwhile, there
    /// are no reads or writes.
    ///
    /// DuckDB only marks rows as deleted and blocks as free; their content stays until it is overwritten. The new file
    /// replaces the old one while the old one is still open and locked, so that no other process can write to a file
    /// that is about to disappear.
    pub(crate) fn rewrite(&self) -> Result<()> {
        if self.access == Access::ReadOnly {
            return Ok(());
        }
        let mut handles = self.handles.write().unwrap_or_else(PoisonError::into_inner);
        handles.check(&self.path)?;
        let folder = StagingFolder::beside(&self.path, REWRITING).map_err(not_written)?;
        let fresh = folder.path().join("new.duckdb");
        handles.readers.clear();
        copy(&lock(&handles.writer).connection, &fresh).map_err(storage("rewrite"))?;
        file::make_private(&fresh).map_err(not_written)?;
        fs::File::open(&fresh).and_then(|file| file.sync_all()).map_err(not_written)?;
        fs::rename(&fresh, &self.path).map_err(not_written)?;
        // The old handles refer to a file that no longer has a name.
        handles.are_of_old_file = true;
        *handles = Handles::open(&self.path, self.access)?;
        Ok(())
    }

    fn handles(&self) -> Result<RwLockReadGuard<'_, Handles>> {
        let handles = self.handles.read().unwrap_or_else(PoisonError::into_inner);
        handles.check(&self.path)?;
        Ok(handles)
    }
}

pub(crate) fn not_written(source: std::io::Error) -> Error {
    Error::new(ErrorKind::StorageIo, format!("can't write next to the database: {source}"))
        .with_operation("open")
        .with_source(source)
}

fn copy(connection: &Connection, fresh: &Path) -> duckdb::Result<()> {
    let name: String = connection.query_row("SELECT current_database()", [], |row| row.get(0))?;
    let (name, path) = (quote::name(&name), quote::text(&fresh.to_string_lossy()));
    // The log belongs to the old file, and must be gone before the new one is opened.
    connection.execute_batch("CHECKPOINT")?;
    connection.execute_batch(&format!("ATTACH {path} AS fresh"))?;
    let copied = connection.execute_batch(&format!("COPY FROM DATABASE {name} TO fresh"));
    copied.and(connection.execute_batch("DETACH fresh"))
}

impl Handles {
    fn open(path: &Path, access: Access) -> Result<Self> {
        let root = connect::open(path, access)?;
        schema::accept(path, &root, access)?;
        if access == Access::ReadWrite {
            schema::drop_indexes_of_others(&root).map_err(storage("open"))?;
        }
        let connection = root.try_clone().map_err(|error| opening(path, error))?;
        let numbers = Numbers::read(&connection).map_err(storage("open"))?;
        let writer = Mutex::new(WriteConnection { connection, numbers });
        Ok(Self { writer, root: Mutex::new(root), readers: Idle::default(), are_of_old_file: false })
    }

    fn check(&self, path: &Path) -> Result<()> {
        if !self.are_of_old_file {
            return Ok(());
        }
        let message =
            "the database was rewritten but could not be reopened: close the store and open it again";
        Err(Error::new(ErrorKind::StorageConnection, message).with("file", path.display()))
    }
}

/// Cleans up after the connections are closed.
#[derive(Debug)]
struct Closing {
    path: PathBuf,
    _file: OpenMark,
}

impl Drop for Closing {
    fn drop(&mut self) {
        // The log was created for a write that wrote nothing.
        let log = connect::log_path(&self.path);
        if fs::metadata(&log).is_ok_and(|log| log.len() == 0) {
            let _ = fs::remove_file(log);
        }
        // It stays if another process keeps files there.
        let _ = fs::remove_dir(connect::spill_folder(&self.path));
    }
}

impl Connections for Pool {
    type Reader<'a> = DuckDbReader<'a>;

    fn read<T>(&self, mut read: impl FnMut(&DuckDbReader<'_>) -> Result<T>) -> Result<T> {
        self.on_reader(|connection| read(&DuckDbReader { connection }))
    }

    fn read_snapshot<T>(&self, mut read: impl FnMut(&DuckDbReader<'_>) -> Result<T>) -> Result<T> {
        self.on_reader(|connection| {
            let snapshot = connection.transaction().map_err(storage("read"))?;
            read(&DuckDbReader { connection: &snapshot })
        })
    }
}
