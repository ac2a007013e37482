//! Decisions of people about single secrets: some are harmless, others are removed from the store.

use std::sync::Arc;

use crate::{
    Error, ErrorKind, Result,
    backend::meta::{IGNORED_SECRETS, PURGED_LINES},
    content::{IgnoredSecrets, Redactor},
    model::{Digest, SessionKey},
    storage::{
        at_rest::{SecretDecisions, digests},
        store::StoredSecrets,
    },
};

/// How often a change of a list is tried again if another process changed it.
const TRIES: usize = 20;

impl StoredSecrets<'_> {
    /// Findings that a person has judged to be harmless.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn ignored_secrets(self) -> Result<IgnoredSecrets> {
        Ok(SecretDecisions::of(&self.store.backend.meta().await?).ignored.clone())
    }

    /// From now on, does not list or mask these findings, which have these [digests](IgnoredSecrets::digest), or does so
    /// again. Returns how many of them this changes.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn ignore_secrets(self, findings: &[Digest], ignore: bool) -> Result<u64> {
        let changed = self.change_list(IGNORED_SECRETS, findings, ignore).await?;
        self.store.at_rest.forget();
        Ok(changed)
    }

    /// Masks all secrets in the lines with these digests: in their rows, in superseded lines, in the index and in vectors.
    /// Erases them from files. From now on, the lines are masked whenever a sync reads them. Returns the number of
    /// masked secrets. The lines must belong to the session.
    ///
    /// # Errors
    ///
    /// `Unsupported` without a redactor; errors of the backend. If it is interrupted, repeating it completes it.
    pub async fn purge_secrets(self, key: &SessionKey, lines: &[Digest]) -> Result<u64> {
        self.redactor()?;
        // Comparing once is enough: lines written from now on are either other lines, or have the same secrets.
        if let Some(stored) = self.store.backend.get_session(key).await? {
            self.store.check_unchanged(&stored.session)?;
        }
        self.change_list(PURGED_LINES, lines, true).await?;
        self.store.at_rest.forget();
        let count = self.store.retry_conflicts(|| self.mask_purged(key)).await?;
        self.erase_replaced().await?;
        Ok(count)
    }

    pub(in crate::storage) fn redactor(self) -> Result<Arc<dyn Redactor>> {
        self.store
            .redactor
            .clone()
            .ok_or_else(|| Error::new(ErrorKind::Unsupported, "this build of the library can't find secrets"))
    }

    /// Adds digests to a list, or removes them. Returns how many were not in it, or were.
    async fn change_list(self, key: &str, given: &[Digest], add: bool) -> Result<u64> {
        let mut expected = self.store.backend.meta().await?.remove(key);
        for _ in 0..TRIES {
            let mut list: Vec<Digest> = digests(expected.as_deref().unwrap_or_default()).collect();
            let before = list.len();
            if add {
                given.iter().for_each(|digest| {
                    if !list.contains(digest) {
                        list.push(*digest);
                    }
                });
            } else {
                list.retain(|digest| !given.contains(digest));
            }
            let changed = list.len().abs_diff(before) as u64;
            if changed == 0 {
                return Ok(0);
            }
            let value = list.into_iter().map(String::from).collect::<Vec<_>>().join(" ");
            let held = self.store.backend.swap_meta(key, expected.as_deref(), &value).await?;
            if held.as_deref() == Some(value.as_str()) {
                return Ok(changed);
            }
            expected = held;
        }
        Err(Error::new(ErrorKind::Conflict, "other processes keep changing the store's list of secrets"))
    }
}
