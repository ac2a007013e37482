//! The options of the last sync of a root, which a refresh uses too.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use amplifier_session_core::{
    Result, SessionStorage, backend::StorageBackendExt, known_json, model::Timestamp, storage::EventDetail,
};
use serde::{Deserialize, Serialize};

use crate::{files::absolute, options::SyncOptions};

/// The key in the store's meta table. The value is an object with an entry for each root.
const KEY: &str = "last_syncs";

/// The options of a sync, and when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastSync {
    user: String,
    /// Microseconds since the epoch, by the storage's clock.
    begun: i64,
    exclude: Vec<String>,
    events: String,
}

impl LastSync {
    fn new(storage: &SessionStorage, options: &SyncOptions, begun: Timestamp) -> Self {
        let events = match storage.settings().events {
            EventDetail::Full => "full",
            EventDetail::Summary => "summary",
            EventDetail::None => "none",
        };
        Self {
            user: options.user.to_string(),
            begun: begun.as_micros(),
            exclude: options.exclude.clone(),
            events: events.to_owned(),
        }
    }

    /// Stores entries for a sync that has ended.
    pub(crate) async fn write(
        storage: &SessionStorage,
        options: &SyncOptions,
        begun: Timestamp,
    ) -> Result<()> {
        let backend = storage.backend();
        let before = backend.meta().await?.remove(KEY);
        let mut syncs = before.as_deref().map(parse).unwrap_or_default();
        let last = Self::new(storage, options, begun);
        syncs.extend(options.roots.iter().map(|root| (absolute(root), last.clone())));
        let value = known_json(&syncs);
        match before {
            // If another sync ends at the same time, one of the two is stored.
            Some(before) => backend.replace_meta(KEY, &before, &value).await.map(drop),
            None => backend.put_meta_if_absent(KEY, &value).await.map(drop),
        }
    }

    fn events(&self) -> EventDetail {
        match self.events.as_str() {
            "summary" => EventDetail::Summary,
            "none" => EventDetail::None,
            _ => EventDetail::Full,
        }
    }
}

/// The last sync of each root; `None` for a root that was not synced.
#[derive(Debug)]
pub(crate) struct LastSyncs(Vec<(PathBuf, Option<LastSync>)>);

impl LastSyncs {
    /// Reads the entries of the last syncs with the roots and the user of `options`.
    pub(crate) async fn read(storage: &SessionStorage, options: &SyncOptions) -> Result<Self> {
        let entries = storage.backend().meta().await?;
        let mut known = entries.get(KEY).map(|value| parse(value)).unwrap_or_default();
        let last = |root: &PathBuf| {
            let last = known.remove(&absolute(root)).filter(|last| last.user == options.user.as_str());
            (root.clone(), last)
        };
        Ok(Self(options.roots.iter().map(last).collect()))
    }

    fn known(&self) -> impl Iterator<Item = &LastSync> {
        self.0.iter().filter_map(|(_, last)| last.as_ref())
    }

    /// The sessions that they left out.
    pub(crate) fn exclude(&self) -> Vec<String> {
        self.known().flat_map(|last| last.exclude.clone()).collect()
    }

    /// How much of event logs they stored, if known.
    pub(crate) fn events(&self) -> Option<EventDetail> {
        self.known().map(LastSync::events).next()
    }

    /// Which of the roots were synced.
    pub(crate) fn known_roots(&self) -> Vec<(&Path, bool)> {
        self.0.iter().map(|(root, last)| (root.as_path(), last.is_some())).collect()
    }

    /// Whether that of `root` may have missed a file with this modification time. File systems have a resolution of up to
    /// two seconds.
    pub(crate) fn is_older_than(&self, root: &Path, modified: Timestamp) -> bool {
        let last = self.0.iter().find(|(of, _)| of == root).and_then(|(_, last)| last.as_ref());
        last.is_none_or(|last| modified.as_micros() >= last.begun.saturating_sub(2_000_000))
    }

    /// When the earliest of them began; `None` if a root was not synced.
    pub(crate) fn begun(&self) -> Option<Timestamp> {
        let begun = self.0.iter().map(|(_, last)| last.as_ref().map(|last| last.begun));
        begun.min().flatten().map(Timestamp::from_micros)
    }
}

fn parse(value: &str) -> BTreeMap<String, LastSync> {
    serde_json::from_str(value).unwrap_or_default()
}
