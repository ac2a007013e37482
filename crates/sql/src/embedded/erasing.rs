//! Erases data of deleted sessions from files.
//!
//! The rows of a session are removed first. Then their words are erased: from the search index by an update, and from
//! the database by rewriting it. Both need disk space and may fail, or the process may be killed. So the transactions
//! that remove rows also record what must be erased ([`Leftover`]), and the first write of a later process erases it.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
};

use amplifier_session_core::{Result, backend::NotErased};
use amplifier_session_index::WhenBusy;

use super::{EmbeddedDatabase, Indexed, leftover::Leftover};
use crate::backend::{Connections as _, Database as _, on_thread};

impl<D: EmbeddedDatabase> Indexed<D> {
    /// Erases data of deleted sessions from files. Returns the files from which it could not be erased.
    pub(super) async fn erase_leftovers(self: &Arc<Self>) -> Vec<NotErased> {
        let mut remains = Vec::new();
        for leftover in Leftover::ALL {
            if let Err(error) = self.erase_from(leftover).await {
                remains.push(NotErased::new(self.file_of(leftover), error));
            }
        }
        remains
    }

    /// As [`Self::erase_leftovers`], but only once per process, because a later attempt would probably fail for the
    /// same reason.
    pub(super) async fn erase_remains(self: &Arc<Self>) {
        if self.looked_for_remains.swap(true, Ordering::Relaxed) {
            return;
        }
        for NotErased { file, error } in self.erase_leftovers().await {
            tracing::warn!(file = %file.display(), %error, "words of deleted sessions could not be erased yet");
        }
    }

    async fn erase_from(self: &Arc<Self>, leftover: Leftover) -> Result<()> {
        let Some(revision) =
            on_thread(self, move |indexed| indexed.connections().read(|reader| leftover.recorded(reader)))
                .await?
        else {
            return Ok(());
        };
        match leftover {
            Leftover::Index => self.erase_index().await?,
            Leftover::Database => on_thread(self, |indexed| EmbeddedDatabase::erase(&**indexed)).await?,
        }
        // If this fails, it is erased again.
        if let Err(error) = on_thread(self, move |indexed| leftover.clear(&**indexed, &revision)).await {
            tracing::debug!(%error, "a completed erasure could not be recorded");
        }
        Ok(())
    }

    /// Updates the index, or removes it if that is not possible.
    async fn erase_index(self: &Arc<Self>) -> Result<()> {
        let index = self.index();
        let Err(error) = index.fold(WhenBusy::Wait).await else { return Ok(()) };
        // The error of the update is the more useful one.
        index.discard().await.map_err(|_| error)
    }

    fn file_of(&self, leftover: Leftover) -> PathBuf {
        let places = self.info().places;
        let place = places.into_iter().find(|place| place.what == leftover.place());
        let file = place.and_then(|place| place.files.into_iter().next());
        debug_assert!(file.is_some(), "an embedded store names its files");
        file.unwrap_or_default()
    }
}
