//! Old files: recognises them, and detects changes while they are read.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::meta::{VERSION, WRITER},
};
use amplifier_session_sql::{
    file::{beside, refused},
    python::{DatabaseOrigin, DatabaseTables},
};

use crate::{
    database::{OldCell, OldDatabase},
    sqlite,
};

type OpenDatabase = fn(&Path) -> Result<Box<dyn OldDatabase>>;

/// A file of the Python library.
#[derive(Debug)]
pub(crate) struct OldFile {
    pub(crate) path: PathBuf,
    /// The generation of its tables, from 1 to 3.
    pub(crate) generation: u32,
    pub(crate) database: Box<dyn OldDatabase>,
    pub(crate) tables: DatabaseTables,
    seen: Fingerprint,
}

impl OldFile {
    /// Opens a file without changing it or anything beside it; `None` if it is a store of this library or empty.
    ///
    /// This process must not have it open as a store: closing it here would release the store's locks.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        let failed = |error: io::Error| {
            let message = format!("can't read {}: {error}", path.display());
            Error::new(ErrorKind::StorageConnection, message).with_source(error)
        };
        if fs::metadata(path).map_err(failed)?.is_dir() {
            return Err(refused(path, "is a folder"));
        }
        let mut head = Vec::new();
        File::open(path).and_then(|file| file.take(16).read_to_end(&mut head)).map_err(failed)?;
        let (logs, open): (_, OpenDatabase) = match head.as_slice() {
            [] => return Ok(None),
            head if head.starts_with(b"SQLite format 3\0") => (&sqlite::LOGS[..], sqlite::open),
            #[cfg(feature = "duckdb")]
            head if head.get(8..12) == Some(b"DUCK") => (&crate::duckdb::LOGS[..], crate::duckdb::open),
            #[cfg(not(feature = "duckdb"))]
            head if head.get(8..12) == Some(b"DUCK") => {
                let message = "this build cannot read DuckDB files; build it with `--features duckdb`";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            _ => return Err(refused(path, "is neither a SQLite nor a DuckDB database")),
        };
        let seen = Fingerprint::of(path, logs);
        let database = open(path)?;
        // A copy that was made for it may mix two states.
        seen.check(path)?;
        let tables = database.tables()?;
        let [writer, version] = [WRITER, VERSION].map(|key| entry(database.as_ref(), &tables, key));
        match DatabaseOrigin::of(&tables, writer?.as_deref(), version?.as_deref()) {
            DatabaseOrigin::Python { generation } => {
                Ok(Some(Self { path: path.to_owned(), generation, database, tables, seen }))
            }
            DatabaseOrigin::Ours => Ok(None),
            DatabaseOrigin::Foreign if tables.is_empty() => Ok(None),
            origin => Err(origin.refusal(path)),
        }
    }

    /// Fails with `Conflict` if another program has changed the file since it was opened: the rows that were read may
    /// be inconsistent.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.seen.check(&self.path)
    }
}

/// A value in the table of the schema, whatever its columns are.
fn entry(database: &dyn OldDatabase, tables: &DatabaseTables, key: &str) -> Result<Option<String>> {
    if !tables.has("schema_meta", "key") || !tables.has("schema_meta", "value") {
        return Ok(None);
    }
    let mut value = None;
    let sql = format!("SELECT CAST(value AS VARCHAR) FROM schema_meta WHERE CAST(key AS VARCHAR) = '{key}'");
    database.read(&sql, &mut |mut cells| {
        if let Some(OldCell::Text(text)) = cells.pop() {
            value = Some(text);
        }
        Ok(())
    })?;
    Ok(value)
}

/// Detects whether a file or its logs were written.
#[derive(Debug)]
struct Fingerprint(Vec<(PathBuf, Option<Print>)>);

type Print = (u64, Option<SystemTime>);

impl Fingerprint {
    fn of(file: &Path, logs: &[&str]) -> Self {
        let paths = std::iter::once(&"").chain(logs).map(|suffix| beside(file, suffix));
        Self(paths.map(|path| (path.clone(), print(&path))).collect())
    }

    fn check(&self, file: &Path) -> Result<()> {
        if self.0.iter().all(|(path, seen)| print(path) == *seen) {
            return Ok(());
        }
        let message = format!("another program changed {} while it was read", file.display());
        Err(Error::new(ErrorKind::Conflict, message).with_operation("upgrade").retryable())
    }
}

/// The length and the time of the last change. Does not open the file, because closing it would release locks of this
/// process.
fn print(path: &Path) -> Option<Print> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}
