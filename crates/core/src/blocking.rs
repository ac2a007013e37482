//! Work that waits for a disk.

use crate::{Error, ErrorKind, Result};

/// Runs `work` on a thread where waiting holds nobody up.
///
/// # Errors
///
/// `StorageIo` when it panicked.
///
/// # Panics
///
/// Outside of a runtime of tokio.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|source| {
        Error::new(ErrorKind::StorageIo, "a thread for blocking work failed").with_source(source)
    })
}
