//! Deleting sessions, and erasing what they have left in files.
//!
//! The rows of a session are removed first. Then their words are erased: from the search index, by an update, and from
//! the database, by rewriting it. Both need space on the disk and may fail, or the process may be killed. So the
//! transactions that remove rows also record what is to be erased ([`Leftover`]), and the first write of a later process
//! erases it.

use std::{path::PathBuf, sync::atomic::Ordering};

use amplifier_session_core::{Result, backend::Remains, model::SessionKey};
use amplifier_session_index::WhenBusy;

use super::Embedded;
use crate::{
    embedded::{
        Database,
        write::{self, Leftover},
    },
    is_disk_full,
};

impl<D: Database> Embedded<D> {
    /// Removes the rows of a session; returns whether it existed. If the disk is full, removes the index, which can be
    /// made anew, and tries again in small steps.
    pub(super) async fn delete(&self, key: &SessionKey) -> Result<bool> {
        let delete = |is_tight| {
            let key = key.clone();
            self.run(move |database| write::delete_session(database, &key, is_tight))
        };
        match delete(false).await {
            Err(error) if is_disk_full(&error) => {
                match self.database().index().discard().await {
                    Ok(()) => tracing::info!("the disk is full: the search index was removed to make room"),
                    Err(error) => {
                        tracing::info!(%error, "the disk is full, and the search index can't be removed")
                    }
                }
                delete(true).await
            }
            deleted => deleted,
        }
    }

    /// Erases what deleted sessions have left in files. Returns the files from which it could not be erased.
    pub(super) async fn erase(&self) -> Vec<Remains> {
        let mut remains = Vec::new();
        for leftover in Leftover::ALL {
            if let Err(error) = self.erase_from(leftover).await {
                remains.push(Remains::new(self.file_of(leftover), error));
            }
        }
        remains
    }

    /// As [`Self::erase`], once for each process: a later attempt would probably fail for the same reason.
    pub(super) async fn erase_remains(&self) {
        if self.0.looked_for_remains.swap(true, Ordering::Relaxed) {
            return;
        }
        for Remains { file, error } in self.erase().await {
            tracing::warn!(file = %file.display(), %error, "words of deleted sessions could not be erased yet");
        }
    }

    async fn erase_from(&self, leftover: Leftover) -> Result<()> {
        let Some(revision) = self.read(move |reader| leftover.recorded(reader)).await? else { return Ok(()) };
        match leftover {
            Leftover::Index => self.erase_index().await?,
            Leftover::Database => self.run(D::erase).await?,
        }
        // If this fails, it is erased once more.
        if let Err(error) = self.run(move |database| leftover.clear(database, &revision)).await {
            tracing::debug!(%error, "a completed erasure could not be recorded");
        }
        Ok(())
    }

    /// Updates the index, or removes it if that is not possible.
    async fn erase_index(&self) -> Result<()> {
        let index = self.database().index();
        let Err(error) = index.fold(WhenBusy::Wait).await else { return Ok(()) };
        // The error of the update is the more useful one.
        index.discard().await.map_err(|_| error)
    }

    fn file_of(&self, leftover: Leftover) -> PathBuf {
        let places = self.database().info().places;
        let place = places.into_iter().find(|place| place.what == leftover.place());
        place.and_then(|place| place.files.into_iter().next()).unwrap_or_default()
    }
}
