//! Opening DuckDB stores by their URL.

use std::{path::PathBuf, sync::Arc};

use amplifier_session_core::{
    Result,
    backend::{BackendFactory, Open, OpenRequest, StorageBackend},
    config::Setting,
};

use crate::{Access, DuckDb, HnswOptions};

/// DuckDB stores: `duckdb:[PATH]`.
pub static FACTORY: BackendFactory = BackendFactory {
    name: "DuckDB",
    schemes: &["duckdb"],
    form: "duckdb:[PATH]",
    help: "a file for SQL queries, which one program at a time may write",
    read_only: true,
    sql: true,
    settings: &[
        Setting::switch(
            "hnsw",
            "AMPLIFIER_SESSIONS_HNSW",
            "Also keep an HNSW index, which needs DuckDB's extension VSS",
        )
        .with_default("false"),
        Setting::text(
            "extension_directory",
            "AMPLIFIER_SESSIONS_EXTENSION_DIRECTORY",
            "The folder with DuckDB's extensions, if it is not DuckDB's default",
        ),
    ],
    backup: None,
    salvage: None,
    restrict_roles: None,
    open: Open::File {
        default: Some("~/.amplifier/sessions.duckdb"),
        open: |path, request| Box::pin(open(path, request)),
    },
};

async fn open(path: PathBuf, request: OpenRequest) -> Result<Arc<dyn StorageBackend>> {
    let wants_hnsw = request.settings.switch("hnsw")?;
    let access = if request.read_only { Access::ReadOnly } else { Access::ReadWrite };
    let store = DuckDb::open(path, access).await?;
    if wants_hnsw {
        let extensions = request.settings.path("extension_directory");
        store.use_hnsw(HnswOptions::default().with_extension_directory(extensions));
    }
    Ok(Arc::new(store))
}
