//! Loading DuckDB's extension VSS.

use std::path::{Path, PathBuf};

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sql::quote;
use duckdb::Connection;

use crate::error::first_line;

/// The name of its file.
const FILE: &str = "vss.duckdb_extension";

/// Loads the extension from `directory`, or from where DuckDB installs extensions. Nothing is downloaded, and DuckDB
/// accepts it only if it is signed and built for its version.
pub(super) fn load(connection: &Connection, directory: Option<&Path>) -> Result<()> {
    let what = match directory {
        None => "vss".to_owned(),
        Some(directory) => {
            let file = find(connection, directory).map_err(|error| missing(&error.to_string()))?;
            let file = file.ok_or_else(|| missing(&format!("{FILE} is not in {}", directory.display())))?;
            quote::text(&file.to_string_lossy())
        }
    };
    connection.execute_batch(&format!("LOAD {what}")).map_err(|error| missing(&error.to_string()))
}

/// Finds the file in a folder that DuckDB installs to, in a Python package with the extension, or in the folder itself.
fn find(connection: &Connection, directory: &Path) -> duckdb::Result<Option<PathBuf>> {
    let text = |sql| connection.query_row(sql, [], |row| row.get::<_, String>(0));
    let of_version = directory.join(text("SELECT library_version FROM pragma_version()")?);
    let of_platform = of_version.join(text("SELECT platform FROM pragma_platform()")?);
    let files = [of_platform, of_version, directory.to_owned()].map(|folder| folder.join(FILE));
    Ok(files.into_iter().find(|file| file.is_file()))
}

fn missing(reason: &str) -> Error {
    let message = format!("DuckDB's extension vss can't be loaded: {}", first_line(reason));
    Error::new(ErrorKind::Unsupported, message)
}
