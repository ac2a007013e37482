//! Blocking work, such as file access.

use crate::{Error, ErrorKind, Result};

/// Runs `work` on a thread for blocking work.
///
/// # Errors
///
/// `StorageIo` if `work` panics.
///
/// # Panics
///
/// If called outside of a tokio runtime.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|source| {
        Error::new(ErrorKind::StorageIo, "a thread for blocking work failed").with_source(source)
    })
}
