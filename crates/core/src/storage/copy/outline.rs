//! Compares sessions of two stores without reading their lines: by the digests that are stored with each line.

use super::digest::Digester;
use crate::{
    Result,
    backend::{SequenceRange, StorageBackendExt, StoredSession},
    storage::{session_rows::SessionRows, store::StoreContext},
};

/// Number of digests of events read at a time.
const DIGESTS: usize = 10_000;

/// The content of a session in a store, as one checksum per part. It does not include how far the files were read, when
/// rows were stored, or vectors: these differ even if both stores read the same files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outline([(&'static str, String); 5]);

impl Outline {
    pub(super) async fn of(storage: &StoreContext, stored: &StoredSession) -> Result<Self> {
        let (mut fields, mut files) = (Digester::default(), Digester::default());
        fields.session(&stored.session)?;
        files.files(&stored.metadata_files);
        let key = stored.session.key();
        let mut messages = Digester::default();
        for state in storage.backend.message_states(&key).await? {
            messages.bytes(&state.digest.0);
            // No turn has this number.
            messages.number(state.turn.map_or(-1, i64::from));
            messages.time(state.ts);
            messages.bytes(state.ts_source.as_str().as_bytes());
        }
        let mut events = Digester::default();
        let mut range = SequenceRange { start: 0, limit: DIGESTS };
        loop {
            let page = storage.backend.event_digests(&key, range).await?;
            if page.is_empty() {
                break;
            }
            range.start += page.len() as u32;
            page.iter().for_each(|digest| events.bytes(&digest.0));
        }
        let mut superseded = Digester::default();
        let mut pieces = SessionRows::new(storage, &key).superseded(false);
        while let Some(page) = pieces.next().await? {
            page.iter().for_each(|piece| superseded.superseded(piece));
        }
        let parts = [
            ("fields", fields),
            ("metadata files", files),
            ("messages", messages),
            ("events", events),
            ("superseded lines", superseded),
        ];
        Ok(Self(parts.map(|(name, digester)| (name, digester.digits()))))
    }

    /// The parts that differ, as a phrase such as `messages and events`; `None` if all are the same.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let pairs = self.0.iter().zip(&other.0);
        let names: Vec<&str> =
            pairs.filter(|(one, other)| one != other).map(|((name, _), _)| *name).collect();
        let (last, others) = names.split_last()?;
        Some(if others.is_empty() { (*last).to_owned() } else { format!("{} and {last}", others.join(", ")) })
    }
}
