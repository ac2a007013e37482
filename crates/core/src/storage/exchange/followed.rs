//! The place up to which this store has followed another one.

use crate::{Error, ErrorKind, Result, backend::meta, model::UserId, storage::store::SessionExchange};

/// The most attempts to store a place while others store theirs.
const ATTEMPTS: u32 = 3;

impl SessionExchange<'_> {
    /// The cursor of the feed of the store at `address` up to which this store has all sessions of a user; `None` if it
    /// never had.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn followed(self, address: &str, user: &UserId) -> Result<Option<String>> {
        Ok(self.store.backend.meta().await?.remove(&key_of(address, user)))
    }

    /// Stores the cursor that [`Self::followed`] returns.
    ///
    /// # Errors
    ///
    /// Errors of the backend; `Conflict` if several programs follow the store at the same time.
    pub async fn set_followed(self, address: &str, user: &UserId, cursor: &str) -> Result<()> {
        let key = key_of(address, user);
        for _ in 0..ATTEMPTS {
            let before = self.followed(address, user).await?;
            let stored = self.store.backend.swap_meta(&key, before.as_deref(), cursor).await?;
            if stored.as_deref() == Some(cursor) {
                return Ok(());
            }
        }
        let message = format!("another program follows {address} into this store");
        Err(Error::new(ErrorKind::Conflict, message))
    }
}

fn key_of(address: &str, user: &UserId) -> String {
    format!("{}{address} {user}", meta::FOLLOWED)
}
