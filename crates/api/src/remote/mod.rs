//! The operations of a store behind a server, for faces that read and edit it as if it were on their machine.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `lists.rs` | lists that may need several requests to a server |
//! | `operations.rs` | the table of operations that a server answers, and their methods on [`AnyApi`] |
//! | `call.rs` | a call of an operation and its answer, as JSON |
//! | `places.rs` | folders in requests, which are those of the caller's machine |
//! | `special.rs` | the operations whose answers are written piece by piece, or with progress |
//!
//! A server finds an operation by its [path](ApiOperation::path), and answers with [`ApiOperation::answer`]. A face calls
//! the methods of [`AnyApi`], which ask either an [`Api`] or a server.

mod call;
mod lists;
mod operations;
mod places;
mod special;

use std::{
    fmt,
    io::Write,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use amplifier_session_core::model::DamagedRow;
use async_trait::async_trait;
use jiff::Zoned;

pub use call::{ExportEnd, OperationAnswer, OperationCall, read_request};
pub use lists::PagedRequest;
pub use operations::ApiOperation;

use crate::{Api, ApiError};

/// The path of the route that exports sessions: lines of an archive, and after them an [`ExportEnd`].
pub const EXPORT_PATH: &str = "/v1/operations/export";

/// The field of a problem that a server reports with the [`ApiError`] of an operation.
pub const ERROR_FIELD: &str = "error";

/// A server that answers operations.
#[async_trait]
pub trait OperationServer: fmt::Debug + Send + Sync {
    /// The answer to a call, as JSON: an [`OperationAnswer`].
    ///
    /// # Errors
    ///
    /// The error of the operation; errors of the connection as [`ApiError::Storage`].
    async fn call(&self, operation: ApiOperation, call: &OperationCall) -> Result<Vec<u8>, ApiError>;

    /// Writes the archive of an export to `out`, and returns what comes after it.
    ///
    /// # Errors
    ///
    /// As [`Self::call`]; `StorageIo` with the cause if `out` fails.
    async fn export(&self, call: &OperationCall, out: &mut (dyn Write + Send))
    -> Result<ExportEnd, ApiError>;
}

/// The operations on a store behind a server, for the owner of a token.
#[derive(Debug, Clone, Copy)]
pub struct RemoteApi<'a> {
    /// The server.
    pub server: &'a dyn OperationServer,
    /// The time at the caller, in their time zone: dates in requests are relative to it.
    pub now: &'a Zoned,
    /// The caller's home folder.
    pub home: Option<&'a Path>,
    /// Gets the sessions that the server skipped because they can't be read.
    pub skipped: &'a SkippedSessions,
    /// Whether secrets are masked in all that is read, also in the caller's own sessions. Operations that change something
    /// are refused then.
    pub masked: bool,
}

/// Sessions that a server skipped because they can't be read. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SkippedSessions(Arc<Mutex<Vec<DamagedRow>>>);

impl SkippedSessions {
    /// Adds sessions, each once.
    fn add(&self, rows: Vec<DamagedRow>) {
        let mut skipped = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            if !skipped.contains(&row) {
                skipped.push(row);
            }
        }
    }

    /// The sessions.
    #[must_use]
    pub fn rows(&self) -> Vec<DamagedRow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The operations on a store here or behind a server.
#[derive(Debug, Clone, Copy)]
pub enum AnyApi<'a> {
    /// A store that this program has opened.
    Here(Api<'a>),
    /// A store behind a server.
    There(RemoteApi<'a>),
}
