//! The transfers of a session from other stores.
//!
//! A store sends the rows that it has stored; the receiver masks them by its own rules. So the digests of the rows differ
//! in both stores, and the receiver remembers those of what was sent: only then can the sender go on after its last row.
//! This is stored with the settled rows of the session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SessionIngest;
use crate::{
    Result,
    backend::{StoredSession, StoredSyncState},
    model::{Digest, LineKind, Session, SessionField},
    storage::{
        archive::{RowChain, RowChains, SentSuperseded},
        exchange::with_sent_fields,
    },
};

/// The most stores that are remembered of a session: those that sent it last.
const MOST_STORES: usize = 8;
/// The name of the field beside those of the settled rows.
const FIELD: &str = "received";

/// The transfers of a session from other stores.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::storage) struct ReceivedRows {
    /// The store whose rows are those of the session: it sent the last one that was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::storage) rows_of: Option<String>,
    /// The store from which the session came, unless it has changed here since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::storage) copy_of: Option<String>,
    /// The row of the first event that was posted, and that no log has replaced yet. All events after it were posted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::storage) posted: Option<u32>,
    /// The last transfer of each store, the newest first.
    pub(in crate::storage) from: Vec<ReceivedFrom>,
}

/// The last transfer from one store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::storage) struct ReceivedFrom {
    /// The identity of the store.
    pub(in crate::storage) store: String,
    /// The version of the session there; `None` if there are more rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::storage) version: Option<String>,
    /// The digest of everything that is not a row.
    pub(in crate::storage) about: Digest,
    pub(in crate::storage) messages: ReceivedKind,
    pub(in crate::storage) events: ReceivedKind,
    pub(in crate::storage) superseded: SentSuperseded,
    /// The fields that a person set there, as digests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(in crate::storage) edited: BTreeMap<SessionField, Digest>,
    /// The digest of the fields that a person can set, as they are here afterwards.
    pub(in crate::storage) left: Digest,
}

/// The rows of one kind that one store has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::storage) struct ReceivedKind {
    /// Its rows.
    pub(in crate::storage) chain: RowChain,
    /// The number of rows here after the last of them.
    pub(in crate::storage) row: u32,
    /// Whether its rows differ from those here, so that they are kept as superseded lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::storage) is_diverged: bool,
}

impl ReceivedFrom {
    pub(in crate::storage) fn chains(&self) -> RowChains {
        RowChains { messages: self.messages.chain, events: self.events.chain }
    }

    pub(in crate::storage) fn of_kind(&self, kind: LineKind) -> ReceivedKind {
        match kind {
            LineKind::Message => self.messages,
            LineKind::Event => self.events,
        }
    }
}

impl ReceivedRows {
    /// The transfers of a stored session. A format that this version does not know counts as nothing.
    pub(in crate::storage) fn of(stored: &StoredSession) -> Self {
        let settled = stored.sync_state.as_ref().and_then(|state| state.settled.as_deref());
        Self::in_settled(settled).unwrap_or_default()
    }

    fn in_settled(settled: Option<&str>) -> Option<Self> {
        let mut fields: Map<String, Value> = serde_json::from_str(settled?).ok()?;
        serde_json::from_value(fields.remove(FIELD)?).ok()
    }

    /// The value to store in place of `settled` if nothing is known about the rows.
    pub(in crate::storage) fn without_rows(settled: Option<&str>) -> Option<String> {
        Self::in_settled(settled).and_then(|received| received.beside(None))
    }

    /// The state of a session of which only this is still known: the first of its events that were posted.
    pub(in crate::storage) fn only_posted(first: Option<u32>) -> StoredSyncState {
        let settled = Self { posted: first, ..Self::default() }.beside(None);
        StoredSyncState { settled, ..StoredSyncState::default() }
    }

    /// The value to store: this, beside the settled rows.
    fn beside(&self, settled: Option<&str>) -> Option<String> {
        let fields = settled.and_then(|settled| serde_json::from_str::<Map<String, Value>>(settled).ok());
        let mut fields = fields.unwrap_or_default();
        fields.remove(FIELD);
        if *self != Self::default() {
            fields.insert(FIELD.to_owned(), serde_json::to_value(self).ok()?);
        }
        (!fields.is_empty()).then(|| Value::Object(fields).to_string())
    }

    /// The last transfer from this store.
    pub(in crate::storage) fn sent_by(&self, store: &str) -> Option<&ReceivedFrom> {
        self.from.iter().find(|from| from.store == store)
    }

    /// Records a transfer.
    pub(in crate::storage) fn put(&mut self, from: ReceivedFrom) {
        self.from.retain(|other| other.store != from.store);
        self.from.insert(0, from);
        self.from.truncate(MOST_STORES);
    }

    /// Whether the session came from this store, and no other one and nobody here has added rows since.
    pub(in crate::storage) fn came_from(&self, store: &str) -> bool {
        [&self.rows_of, &self.copy_of].iter().all(|origin| origin.as_deref() == Some(store))
    }

    /// Whether the session is as this store has sent it: no other store and nobody here has changed it since.
    pub(in crate::storage) fn is_as_sent(&self, store: &str, session: &Session) -> bool {
        self.rows_of.as_deref() == Some(store)
            && self.sent_by(store).is_some_and(|from| {
                let rows = (from.messages.row, from.events.row);
                from.version.is_some()
                    && rows == (session.message_count, session.event_count)
                    && from.left == digest_of_fields(session)
            })
    }
}

/// The digest of the fields that a person can set.
pub(in crate::storage) fn digest_of_fields(session: &Session) -> Digest {
    let fields = SessionField::ALL.map(|field| String::from(digest_of_field(session, field)));
    Digest::of(fields.concat().as_bytes())
}

/// The digest of a field.
pub(in crate::storage) fn digest_of_field(session: &Session, field: SessionField) -> Digest {
    let value = match field {
        SessionField::Name => serde_json::to_vec(&session.name),
        SessionField::Description => serde_json::to_vec(&session.description),
        SessionField::Tags => serde_json::to_vec(&session.tags),
    };
    Digest::of(&value.unwrap_or_default())
}

impl SessionIngest {
    /// The transfers of the session from other stores.
    pub(in crate::storage) fn received(&self) -> &ReceivedRows {
        &self.received
    }

    /// Sets what other stores have sent, including the lines of this ingest.
    pub(in crate::storage) fn set_received(&mut self, received: ReceivedRows) {
        (self.received, self.keeps_received) = (received, true);
        // The files of the session, if it has any here, were not read.
        let state = self.stored().and_then(|stored| stored.sync_state.clone()).unwrap_or_default();
        self.sync_state = Some(StoredSyncState { settled: None, ..state });
    }

    /// The sync state to store, with what was received.
    pub(super) fn state_with_received(&self) -> Option<StoredSyncState> {
        let state = self.sync_state.clone()?;
        let settled = self.received.beside(state.settled.as_deref());
        Some(StoredSyncState { settled, ..state })
    }

    /// If the files of the session have replaced rows that other stores sent, those stores can't go on after them.
    pub(super) fn forget_replaced(&mut self) {
        if self.keeps_received {
            return;
        }
        let (messages, events) = (&self.messages.position, &self.events.position);
        for from in &mut self.received.from {
            if !messages.is_untouched_before(from.messages.row) {
                from.messages = ReceivedKind::default();
            }
            if !events.is_untouched_before(from.events.row) {
                from.events = ReceivedKind::default();
            }
        }
        if messages.touched() || events.touched() {
            (self.received.rows_of, self.received.copy_of) = (None, None);
        }
        self.forget_posted();
        // Lines that a program sends have no state of files, but what was received is in the same place.
        let stored = self.stored().filter(|stored| ReceivedRows::of(stored) != self.received);
        if let Some(stored) = stored.filter(|_| self.sync_state.is_none()) {
            self.sync_state = Some(stored.sync_state.clone().unwrap_or_default());
        }
    }
}

/// The methods that only a transfer from another store needs.
impl SessionIngest {
    /// Writes the rows when they have this size.
    #[must_use]
    pub(in crate::storage) fn in_parts_of(mut self, bytes: usize) -> Self {
        self.writer = self.writer.with_part_bytes(bytes);
        self
    }

    /// The number of rows after the last line.
    pub(in crate::storage) fn next_row(&self, kind: LineKind) -> u32 {
        self.position(kind).next()
    }

    /// Whether rows of this kind change.
    pub(in crate::storage) fn touches(&self, kind: LineKind) -> bool {
        self.position(kind).touched()
    }

    /// Whether events before this row change.
    pub(in crate::storage) fn touches_events_before(&self, row: u32) -> bool {
        !self.events.position.is_untouched_before(row)
    }

    /// Sets the fields that a person has set in `sent` since `before`. Returns whether one changes.
    ///
    /// # Errors
    ///
    /// `Validation` if a value is too long; errors of the redactor.
    pub(in crate::storage) fn set_sent_fields(
        &mut self,
        sent: &Session,
        before: &BTreeMap<SessionField, Digest>,
    ) -> Result<bool> {
        let files = self.writer.change.metadata_files.clone();
        let stored = || self.stored().map(|stored| stored.metadata_files.clone());
        let files = files.or_else(stored).unwrap_or_default();
        let described = self.session_after();
        let session = with_sent_fields(&described, &files, sent, before, &self.masker)?;
        let is_other = session != described;
        let Session { name, description, tags, edited, .. } = session;
        let of_writer = self.writer.session_mut();
        (of_writer.name, of_writer.description) = (name, description);
        (of_writer.tags, of_writer.edited) = (tags, edited);
        Ok(is_other)
    }

    /// The digest of the fields that a person can set, as they will be stored.
    pub(in crate::storage) fn digest_of_fields(&self) -> Digest {
        digest_of_fields(&self.session_after())
    }
}
