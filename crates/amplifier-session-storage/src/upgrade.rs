//! From files that the Python library `amplifier_session_storage` wrote to stores of this one.
//!
//! Opening such a file is an error, of which [`PythonDatabase::cause_of`] tells that an upgrade helps.

use std::sync::Arc;

use amplifier_session_core::{Error, ErrorKind, Result};
use amplifier_session_sqlite::SqliteUpgrade;
pub use amplifier_session_upgrade::{
    Counts, OnProgress, Outcome, Progress, PythonDatabase, Upgrade, UpgradeOptions,
};

use crate::StoreUrl;

/// Makes a store of the file at `url`, if the Python library wrote it; a store is left alone. See
/// [`amplifier_session_upgrade::upgrade`].
///
/// # Errors
///
/// Those of [`amplifier_session_upgrade::upgrade`]; `Unsupported` for a backend that is not built in.
pub async fn upgrade(url: &StoreUrl, options: UpgradeOptions, progress: OnProgress) -> Result<Upgrade> {
    match (url.backend().name, url.file()) {
        ("SQLite", Some(file)) => {
            amplifier_session_upgrade::upgrade(Arc::new(SqliteUpgrade::default()), file, options, progress)
                .await
        }
        #[cfg(feature = "duckdb-system")]
        ("DuckDB", Some(file)) => {
            let driver = amplifier_session_duckdb::DuckDbUpgrade::default();
            amplifier_session_upgrade::upgrade(Arc::new(driver), file, options, progress).await
        }
        (name, _) => {
            let message = format!("the Python library wrote no {name} stores");
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}
