//! Salvages a damaged store.

use amplifier_session_core::{Error, ErrorKind, Result, SessionStorage, storage::SalvageReport};

use crate::store_url::StoreUrl;

/// Writes everything that can still be read of the store at `url` to the store `to`, which should be empty. Does not
/// change the store at `url`. Meanwhile, no other process may write to either store. See
/// [`StoreSalvage::take_from`](amplifier_session_core::storage::StoreSalvage::take_from).
///
/// # Errors
///
/// `Unsupported` if this kind of store can't be read without opening it
/// ([`ArchiveTransfer::export_sessions`](amplifier_session_core::storage::ArchiveTransfer::export_sessions) also leaves
/// out what can't be read); `StorageConnection` if there is no store, or nothing of it can be read; errors of `to`.
pub async fn salvage(url: &StoreUrl, to: &SessionStorage) -> Result<SalvageReport> {
    let (Some(file), Some(salvage)) = (url.file(), url.backend().salvage) else {
        let message = format!("{} stores can't be read without opening them", url.backend().name);
        return Err(Error::new(ErrorKind::Unsupported, message).with_operation("salvage"));
    };
    if !file.try_exists().unwrap_or(true) {
        return Err(Error::new(ErrorKind::StorageConnection, format!("there is no store at {url}")));
    }
    let mut source = salvage(file.to_owned()).await?;
    to.salvage().take_from(source.as_mut()).await
}
