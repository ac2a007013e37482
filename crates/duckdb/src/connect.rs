//! Opening and creating files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sql::{
    file, quote,
    staging::{MAKING, StagingFolder},
};
use duckdb::{AccessMode, Config, Connection};

use crate::{error::opening, payloads};

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// For reading and writing. One process at a time can do that.
    #[default]
    ReadWrite,
    /// For reading. Several processes can do that while none writes. Writes fail with `Unsupported`.
    ReadOnly,
}

/// The memory limit of DuckDB. Its default is four fifths of the machine's memory, which other programs need too. Data
/// beyond the limit is written to files beside the database.
const MEMORY: &str = "2GB";

/// The size at which the write-ahead log is moved into the database. Each time, DuckDB rewrites the last rows of a
/// table and leaves a gap in their place: with its default of 16 MB, a large sync takes twice as long.
const LOG: &str = "256MB";

/// Settings of a writable database. The first has no effect before the database is open.
///
/// - DuckDB compares vectors four times as slowly if it has to decompress them.
/// - DuckDB plans a prepared statement for the current content of the columns, and keeps the plan when other rows are
///   added: a prepared `ORDER BY n` of numbers below 256 reads 300 as 44
///   (<https://github.com/duckdb/duckdb/issues/23704>; later versions than 1.5.5 disable the optimisation for prepared
///   statements).
const WRITABLE: &str = "SET GLOBAL disabled_compression_methods = 'alp,alprd';
     SET GLOBAL disabled_optimizers = 'statistics_propagation';";

/// Opens the database in the file `path`, which exists.
pub(crate) fn open(path: &Path, access: Access) -> Result<Connection> {
    let open = || {
        let connection = Connection::open_with_flags(path, config(path, access)?)?;
        payloads::register(&connection)?;
        match access {
            Access::ReadWrite => connection.execute_batch(WRITABLE)?,
            Access::ReadOnly => connection.execute_batch(&confined(path))?,
        }
        Ok(connection)
    };
    open().map_err(|error| opening(path, error))
}

/// The statements that confine a read-only database, which accepts any query: no access to other files, the network or
/// extensions while it is open. Results can be written to the folder for temporary data.
fn confined(path: &Path) -> String {
    let spill = spill_folder(path);
    let folder = std::path::absolute(&spill).unwrap_or(spill);
    let folder = quote::text(&format!("{}/", folder.to_string_lossy()));
    format!(
        "SET GLOBAL allowed_directories = [{folder}];
         SET GLOBAL enable_external_access = false;
         SET GLOBAL lock_configuration = true;"
    )
}

/// Opens a database in memory that spills to files beside `path`.
pub(crate) fn in_memory(path: &Path) -> duckdb::Result<Connection> {
    Connection::open_in_memory_with_flags(bounds(path)?)
}

fn config(path: &Path, access: Access) -> duckdb::Result<Config> {
    let access = match access {
        Access::ReadWrite => AccessMode::ReadWrite,
        Access::ReadOnly => AccessMode::ReadOnly,
    };
    bounds(path)?.access_mode(access)
}

/// The limits of every database of this program.
fn bounds(path: &Path) -> duckdb::Result<Config> {
    Config::default()
        .max_memory(MEMORY)?
        .with("temp_directory", spill_folder(path).to_string_lossy())?
        .with("checkpoint_threshold", LOG)?
        // Nothing is downloaded unless requested.
        .with("autoinstall_known_extensions", "false")?
        .with("autoload_known_extensions", "false")
}

/// Creates a database with `fill` and moves it to `path` when it is complete, unless another process was faster. If the
/// process is killed before, a staging folder remains, which the next opening removes, and there is no file at `path`.
///
/// DuckDB creates files that everybody may read, as far as the umask allows. So it works in a folder that only the
/// owner may enter until the file is private.
pub(crate) fn make(path: &Path, fill: impl FnOnce(&Connection) -> Result<()>) -> Result<()> {
    let failed = |source: io::Error| {
        Error::new(ErrorKind::StorageConnection, format!("can't create the database: {source}"))
            .with("file", path.display())
            .with_source(source)
    };
    file::create_folder(file::folder_of(path)).map_err(failed)?;
    let folder = StagingFolder::beside(path, MAKING).map_err(failed)?;
    let fresh = folder.path().join("new.duckdb");
    let connection = config(&fresh, Access::ReadWrite)
        .and_then(|config| Connection::open_with_flags(&fresh, config.access_mode(AccessMode::Automatic)?))
        .map_err(|error| opening(path, error))?;
    connection.execute_batch(WRITABLE).map_err(|error| opening(path, error))?;
    fill(&connection)?;
    connection.close().map_err(|(_, error)| opening(path, error))?;
    file::make_private(&fresh).map_err(failed)?;
    // An empty file counts as missing.
    let is_empty = fs::metadata(path).is_ok_and(|file| file.len() == 0);
    let placed = if is_empty { fs::rename(&fresh, path) } else { fs::hard_link(&fresh, path) };
    match placed {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    }
}

/// The folder for data that does not fit into memory.
pub(crate) fn spill_folder(path: &Path) -> PathBuf {
    file::beside(path, ".tmp")
}

/// Removes what killed processes left in [`spill_folder`]. No other process may have the database open: DuckDB itself
/// removes these files only when it writes such files again.
pub(crate) fn clear_spill_folder(path: &Path) {
    for entry in fs::read_dir(spill_folder(path)).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b"duckdb_temp_") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The write-ahead log of a database.
pub(crate) fn log_path(path: &Path) -> PathBuf {
    file::beside(path, ".wal")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn cached_statements_see_later_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.duckdb");
        make(&path, |connection| {
            connection.execute_batch("CREATE TABLE numbers (n BIGINT)").unwrap();
            Ok(())
        })
        .unwrap();
        let connection = open(&path, Access::ReadWrite).unwrap();
        let highest = || {
            let questions =
                ["SELECT n FROM numbers ORDER BY n DESC LIMIT 1", "SELECT max(n) FROM numbers WHERE n > 100"];
            questions.map(|sql| {
                let mut statement = connection.prepare_cached(sql).unwrap();
                statement.query_row([], |row| row.get::<_, Option<i64>>(0)).unwrap()
            })
        };
        connection.execute("INSERT INTO numbers VALUES (1)", []).unwrap();
        assert_eq!(highest(), [Some(1), None]);
        connection.execute("INSERT INTO numbers SELECT unnest(range(2, 301))", []).unwrap();
        assert_eq!(highest(), [Some(300), Some(300)]);
    }
}
