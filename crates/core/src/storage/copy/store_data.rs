//! Data that belongs to no session: settings of the store, the space of its vectors, and remembered deletions.

use std::collections::BTreeMap;

use super::{CopyReport, vectors::CopiedGenerations};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{SessionQuery, StorageBackendExt, meta},
    content::MASKING,
    model::{SessionKey, UserId},
    storage::{
        at_rest::SecretsAtRest,
        store::{
            Rederivation, StoreContext, StoreCopying, StoreSalvage, StoreUsers, StoredSecrets, StoredVectors,
        },
    },
};

impl StoreCopying<'_> {
    /// Prepares `to` for sessions of this store. Returns how vectors are copied; `None` if they are not.
    pub(super) async fn prepare_copy(
        self,
        to: &StoreContext,
        report: &mut CopyReport,
    ) -> Result<Option<CopiedGenerations>> {
        let held = self.store.backend.meta().await?;
        Rederivation::new(to).rederive().await?;
        self.take_over_secrets(to, &held).await?;
        if let Some(user) = held.get(meta::USER_ID).and_then(|user| UserId::new(user).ok()) {
            StoreUsers::new(to).pin_user(&user).await?;
        }
        take_over_rules(to, &held).await?;
        self.generations_to_copy(to, report).await
    }

    /// A new store treats secrets like this one. Lines are copied unchanged, so a store that masks secrets only accepts
    /// masked lines.
    async fn take_over_secrets(self, to: &StoreContext, held: &BTreeMap<String, String>) -> Result<()> {
        let any = SessionQuery::new(Scope::Everyone).with_limit(1);
        if to.backend.list_sessions(&any).await?.is_empty() {
            for key in [meta::SECRETS, meta::MASKED, meta::IGNORED_SECRETS, meta::PURGED_LINES] {
                if let Some(value) = held.get(key) {
                    to.backend.put_meta_if_absent(key, value).await?;
                }
            }
        }
        StoredSecrets::new(to).apply_secrets_setting().await?;
        let is_masked = held.get(meta::MASKED).is_some_and(|rules| *rules == MASKING.to_string());
        if StoredSecrets::new(to).secrets_at_rest().await? == SecretsAtRest::Mask && !is_masked {
            let message =
                "the target masks secrets in lines, and the source does not: a copy would contain them";
            return Err(Error::new(ErrorKind::Unsupported, message).with_operation("copy"));
        }
        Ok(())
    }

    async fn generations_to_copy(
        self,
        to: &StoreContext,
        report: &mut CopyReport,
    ) -> Result<Option<CopiedGenerations>> {
        let held = self.store.generations().await?;
        let Some(current) = &held.current else { return Ok(None) };
        if !StoredVectors::new(self.store).has_vectors(&held).await? {
            return Ok(None);
        }
        report.space = Some(current.space.clone());
        match StoredVectors::new(to).claim_space(&current.space).await? {
            Ok(number) => {
                let dimensions = current.space.dimensions;
                Ok(Some(CopiedGenerations { from: current.number, to: number, dimensions }))
            }
            Err(_) => {
                report.other_space = StoredVectors::new(to).embedding_space().await?;
                Ok(None)
            }
        }
    }

    /// Makes `to` remember the sessions that were deleted from this store. Returns the number of sessions that it did
    /// not remember before.
    pub(super) async fn copy_deletions(self, to: &StoreContext, scope: &Scope) -> Result<u64> {
        let users = match scope {
            Scope::User(user) => [user.clone()].into(),
            Scope::Visible(viewer) if !viewer.reads_of(&viewer.user_id) => Default::default(),
            Scope::Visible(viewer) => [viewer.user_id.clone()].into(),
            Scope::Everyone => StoreUsers::new(self.store).users_with_sessions().await?,
        };
        let mut count = 0;
        for user in users {
            let known = to.backend.deleted_sessions(&user).await?;
            let deleted = self.store.backend.deleted_sessions(&user).await?.into_iter();
            let unknown = deleted.filter(|session| !known.contains(session));
            let keys = unknown.map(|session| SessionKey::new(user.clone(), session)).collect();
            count += StoreSalvage::new(to).remember_deletions(keys).await?;
        }
        Ok(count)
    }
}

/// If data of the source is derived by earlier rules, the next write to the target derives it again.
async fn take_over_rules(to: &StoreContext, held: &BTreeMap<String, String>) -> Result<()> {
    let of_target = to.backend.meta().await?;
    for key in [meta::EXTRACTION, meta::SUMMARIES, meta::TITLES] {
        let number = |entries: &BTreeMap<String, String>| {
            entries.get(key).map_or(Some(1), |value| value.parse::<u32>().ok())
        };
        let (Some(from), Some(current)) = (number(held), number(&of_target)) else { continue };
        if from < current {
            let expected = of_target.get(key).map(String::as_str);
            to.backend.swap_meta(key, expected, &from.to_string()).await?;
        }
    }
    Ok(())
}
