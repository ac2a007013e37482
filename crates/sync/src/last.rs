//! The options of the last sync of a folder, which a refresh uses too.

use std::collections::BTreeMap;

use amplifier_session_core::{
    Result, SessionStorage, backend::StorageBackendExt, model::Timestamp, storage::EventDetail,
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
    pub(crate) exclude: Vec<String>,
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

    /// Reads the entry of the last sync with the root and user of `options`.
    pub(crate) async fn read(storage: &SessionStorage, options: &SyncOptions) -> Result<Option<Self>> {
        let entries = storage.backend().meta().await?;
        let last = entries.get(KEY).and_then(|value| parse(value).remove(&absolute(&options.root)));
        Ok(last.filter(|last| last.user == options.user.as_str()))
    }

    /// Stores an entry for a sync that has ended.
    pub(crate) async fn write(
        storage: &SessionStorage,
        options: &SyncOptions,
        begun: Timestamp,
    ) -> Result<()> {
        let backend = storage.backend();
        let before = backend.meta().await?.remove(KEY);
        let mut syncs = before.as_deref().map(parse).unwrap_or_default();
        syncs.insert(absolute(&options.root), Self::new(storage, options, begun));
        let value = serde_json::to_string(&syncs).unwrap_or_default();
        match before {
            // If another sync ends at the same time, one of the two is stored.
            Some(before) => backend.replace_meta(KEY, &before, &value).await.map(drop),
            None => backend.put_meta_if_absent(KEY, &value).await.map(drop),
        }
    }

    /// Whether the sync may have missed a file with this modification time. File systems have a resolution of up to two
    /// seconds.
    pub(crate) fn is_older_than(&self, modified: Timestamp) -> bool {
        modified.as_micros() >= self.begun.saturating_sub(2_000_000)
    }

    /// When it began.
    pub(crate) fn begun(&self) -> Timestamp {
        Timestamp::from_micros(self.begun)
    }

    pub(crate) fn events(&self) -> EventDetail {
        match self.events.as_str() {
            "summary" => EventDetail::Summary,
            "none" => EventDetail::None,
            _ => EventDetail::Full,
        }
    }
}

fn parse(value: &str) -> BTreeMap<String, LastSync> {
    serde_json::from_str(value).unwrap_or_default()
}
