//! What a database file contains, and whether it can be opened as a store.

use std::path::Path;

use amplifier_session_core::{Error, Result, backend::meta::SCHEMA_VERSION};

use crate::{file::refused, python::DatabaseOrigin};

/// The contents of a database file.
#[derive(Debug)]
pub enum Contents {
    /// Nothing.
    Empty,
    /// A store with this layout of its schema version.
    Store {
        /// The layout; `None` if it is not a number.
        layout: Option<usize>,
    },
    /// A store of a schema version that this program does not know.
    UnknownVersion(Option<String>),
    /// The database of another program.
    Other(DatabaseOrigin),
}

impl Contents {
    /// The contents of a store that states this schema version and this layout.
    #[must_use]
    pub fn of_store(version: Option<String>, layout: Option<usize>) -> Self {
        match version {
            Some(version) if version == SCHEMA_VERSION.to_string() => Self::Store { layout },
            other => Self::UnknownVersion(other),
        }
    }

    /// Accepts an empty file, and a store with one of the layouts from `oldest` to `newest`.
    ///
    /// # Errors
    ///
    /// `StorageConnection`, with the reason, for everything else.
    pub fn accept(&self, path: &Path, oldest: usize, newest: usize) -> Result<()> {
        match self {
            Self::Store { layout: Some(layout) } if (oldest..=newest).contains(layout) => Ok(()),
            Self::Empty => Ok(()),
            Self::Store { layout: Some(layout) } if *layout < oldest => Err(earlier(path, *layout, oldest)),
            Self::Store { layout } => Err(unknown(path, "layout", layout.map(|of| of.to_string()), newest)),
            Self::UnknownVersion(version) => {
                Err(unknown(path, "schema version", version.clone(), SCHEMA_VERSION as usize))
            }
            Self::Other(origin) => Err(origin.refusal(path)),
        }
    }
}

fn earlier(path: &Path, layout: usize, oldest: usize) -> Error {
    let why =
        format!("has layout {layout} of an earlier version; this program reads layouts from {oldest} on");
    refused(path, &why)
        .with_hint("sync the session files into a new store: pass another file to `sync --store`")
}

fn unknown(path: &Path, what: &str, found: Option<String>, known: usize) -> Error {
    let found = found.unwrap_or_else(|| "none".to_owned());
    refused(path, &format!("has {what} {found}, which this program does not support (it supports {known})"))
}
