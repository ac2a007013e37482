//! Results as Parquet files.

use std::{fs, io, path::Path};

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sql::{
    file, quote,
    staging::{MAKING, StagingFolder, remove_left_in},
};
use duckdb::Connection;

use super::prepare::Prepared;
use crate::error;

/// Writes the result of a query to `target`; returns the number of rows.
///
/// DuckDB may write only in the folder `allowed`, so the file is written there and then moved.
pub(super) fn write(connection: &Connection, query: &Prepared, allowed: &Path, target: &Path) -> Result<u64> {
    let failed = |source: io::Error| {
        Error::new(ErrorKind::StorageIo, format!("cannot write the file: {source}"))
            .with_operation("sql")
            .with("file", target.display())
            .with_source(source)
    };
    let named = query.select(|name, column| format!("{name} AS {}", quote::name(&column.name)));
    let result = Path::new("result.parquet");
    remove_left_in(allowed, result);
    let folder = StagingFolder::within(allowed, result, MAKING).map_err(failed)?;
    let fresh = folder.path().join(result);
    let to = quote::text(&fresh.to_string_lossy());
    let copy = format!("COPY ({named}) TO {to} (FORMAT parquet, COMPRESSION zstd)");
    let rows = connection.execute(&copy, []).map_err(error::query)?;
    file::make_private(&fresh).map_err(failed)?;
    // If the path is a link, its target is replaced, not the link.
    let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    // On another file system, it is copied completely before it replaces an existing file.
    if fs::rename(&fresh, &target).is_err() {
        let beside = tempfile::NamedTempFile::new_in(file::folder_of(&target)).map_err(failed)?;
        fs::copy(&fresh, beside.path()).map_err(failed)?;
        beside.persist(&target).map_err(|error| failed(error.error))?;
    }
    Ok(rows as u64)
}
