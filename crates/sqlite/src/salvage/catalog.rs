//! The rows that were found, by session.

use std::collections::{BTreeMap, HashMap, btree_map::Entry};

use amplifier_session_core::model::{ProjectSlug, SessionId, SessionKey, Timestamp, UserId};
use amplifier_session_sqlite_reader::RowPlace;

use super::tables::SalvagedTable;

/// The rows that were found.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub(super) meta: BTreeMap<String, String>,
    pub(super) deleted: Vec<SessionKey>,
    pub(super) sessions: BTreeMap<SessionKey, FoundRows>,
    /// Data about sessions in indexes, by the key of the session's row.
    pub(super) indexed: HashMap<i64, IndexedSession>,
    /// The columns of the tables, if their statements can be read.
    pub(super) columns: HashMap<SalvagedTable, Vec<String>>,
    /// The pages that can't be read.
    pub(super) unreadable: Vec<(u32, Option<SalvagedTable>)>,
}

/// The rows of a session.
#[derive(Debug, Default)]
pub(super) struct FoundRows {
    pub(super) record: Option<RowPlace>,
    pub(super) metadata: BTreeMap<i64, RowPlace>,
    pub(super) messages: BTreeMap<u32, RowPlace>,
    pub(super) events: BTreeMap<u32, RowPlace>,
    /// By event and index.
    pub(super) chunks: BTreeMap<(u32, u32), RowPlace>,
    /// By message and row id.
    pub(super) vectors: BTreeMap<(u32, i64), RowPlace>,
    /// By id.
    pub(super) superseded: BTreeMap<String, RowPlace>,
    /// By user message.
    pub(super) summaries: BTreeMap<u32, RowPlace>,
    /// By user message and row id.
    pub(super) turn_vectors: BTreeMap<(u32, i64), RowPlace>,
    pub(super) project: Option<ProjectSlug>,
    pub(super) created: Option<Timestamp>,
}

/// Data about a session in indexes.
#[derive(Debug, Default)]
pub(super) struct IndexedSession {
    pub(super) key: Option<SessionKey>,
    pub(super) project: Option<String>,
    pub(super) created: Option<Timestamp>,
}

impl Catalog {
    /// The rows of a session.
    pub(super) fn session(&mut self, user: &str, session: &str) -> Option<&mut FoundRows> {
        let key = SessionKey::new(UserId::new(user).ok()?, SessionId::new(session).ok()?);
        Some(self.sessions.entry(key).or_default())
    }

    /// Whether a page of this table can't be read.
    pub(super) fn has_lost(&self, table: SalvagedTable) -> bool {
        self.unreadable.iter().any(|(_, of)| of.is_none_or(|of| of == table))
    }

    /// Adds the sessions that only indexes contain, and index data about the others.
    pub(super) fn take_indexed(&mut self) {
        for IndexedSession { key, project, created } in std::mem::take(&mut self.indexed).into_values() {
            let Some(key) = key else { continue };
            let found = self.sessions.entry(key).or_default();
            found.project = project.and_then(|project| ProjectSlug::new(project).ok());
            found.created = created;
        }
    }
}

/// Adds a row. Of two rows with the same key, keeps the one on a linked page.
pub(super) fn put<K: Ord>(rows: &mut BTreeMap<K, RowPlace>, key: K, place: RowPlace) {
    match rows.entry(key) {
        Entry::Vacant(entry) => drop(entry.insert(place)),
        Entry::Occupied(mut entry) if place.is_linked && !entry.get().is_linked => drop(entry.insert(place)),
        Entry::Occupied(_) => {}
    }
}
