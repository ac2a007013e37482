//! A store's setting and decisions about secrets.

use std::{
    collections::{BTreeMap, HashSet},
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{
    Error, ErrorField, ErrorKind, Result,
    backend::meta::{IGNORED_SECRETS, PURGED_LINES, SECRETS},
    content::IgnoredSecrets,
    model::Digest,
};

/// How secrets in stored lines are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SecretsAtRest {
    /// They are stored unchanged.
    Off,
    /// They are stored unchanged. [`StoredSecrets::session_secrets`](crate::storage::StoredSecrets::session_secrets)
    /// lists them.
    #[default]
    Mark,
    /// Their characters are replaced before they are stored.
    Mask,
}

names! {
    SecretsAtRest { Off: "off", Mark: "mark", Mask: "mask" }
}

impl FromStr for SecretsAtRest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|value| value.as_str() == text);
        found.ok_or_else(|| Error::validation(ErrorField::Secrets, "must be off, mark or mask"))
    }
}

impl SecretsAtRest {
    /// The setting in the entries of a store, if there is one.
    ///
    /// # Errors
    ///
    /// `Damaged` if it is no known one. With the default in its place, lines would be stored unmasked.
    pub(super) fn stored(entries: &BTreeMap<String, String>) -> Result<Option<Self>> {
        let damaged = |error| {
            Error::new(ErrorKind::Damaged, "the store's setting for secrets can't be read").with_source(error)
        };
        entries.get(SECRETS).map(|value| value.parse()).transpose().map_err(damaged)
    }
}

/// The store's setting and decisions about secrets.
pub(super) type StoredAtRest = (SecretsAtRest, Arc<SecretDecisions>);

/// The store's setting and decisions about secrets, once they have been read. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct CachedAtRest(Arc<Mutex<Option<StoredAtRest>>>);

impl CachedAtRest {
    pub(super) fn get(&self) -> Option<StoredAtRest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, stored: SecretsAtRest, judged: Arc<SecretDecisions>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((stored, judged));
    }

    /// Makes the next use read them again.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The decisions that a store holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SecretDecisions {
    /// Findings that are no secrets.
    pub(super) ignored: IgnoredSecrets,
    /// Lines whose secrets are masked although others are not.
    pub(super) purged: HashSet<Digest>,
}

impl SecretDecisions {
    pub(super) fn of(held: &BTreeMap<String, String>) -> Arc<Self> {
        let list = |key| held.get(key).map_or("", String::as_str);
        Arc::new(Self {
            ignored: digests(list(IGNORED_SECRETS)).collect(),
            purged: digests(list(PURGED_LINES)).collect(),
        })
    }
}

pub(super) fn digests(list: &str) -> impl Iterator<Item = Digest> {
    list.split_whitespace().filter_map(|digest| digest.to_owned().try_into().ok())
}
