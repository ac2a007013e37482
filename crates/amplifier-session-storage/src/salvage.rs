//! Saving what is left of a damaged store.

use amplifier_session_core::{Error, ErrorKind, Result, SessionStorage, storage::SalvageReport};

use crate::store_url::StoreUrl;

/// Writes everything that can still be read of the store at `url`, which is not changed, to the store `to`, which
/// should be empty. No other process may write either of them meanwhile. See [`SessionStorage::salvage`].
///
/// # Errors
///
/// `Unsupported` if the store is not one that can be read without opening it:
/// [`SessionStorage::export_sessions`] leaves out what can't be read too; `StorageConnection` if there is no store, or
/// nothing of one; those of `to`.
pub async fn salvage(url: &StoreUrl, to: &SessionStorage) -> Result<SalvageReport> {
    let (Some(file), Some(salvage)) = (url.file(), url.backend().salvage) else {
        let message = format!("{} stores can only be read by opening them", url.backend().name);
        return Err(Error::new(ErrorKind::Unsupported, message).with_operation("salvage"));
    };
    if !file.try_exists().unwrap_or(true) {
        return Err(Error::new(ErrorKind::StorageConnection, format!("there is no store at {url}")));
    }
    let mut source = salvage(file.to_owned()).await?;
    to.salvage(source.as_mut()).await
}
