//! Copies the readable rows of a damaged store to another store.
//!
//! [`StoreSalvage::take_from`](crate::storage::StoreSalvage::take_from) takes one session after the other from a
//! [`SalvageSource`] and writes it; [`SalvagedSession`] builds its rows.

mod session;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use self::session::{SalvagedSession, WrittenLines};
use super::{
    ingest::ReceivedRows,
    session_rows::checked,
    session_writer::Finished,
    store::{StoreContext, StoreSalvage, StoreUsers, StoredVectors},
    superseded::unpack,
};
use crate::{
    Error, ErrorKind, Result,
    backend::{
        RemainingSession, RemainingTurns, SalvageSource, SessionChange, SessionDeletion, StorageBackendExt,
        StoredSession, StoredSyncState, Version,
        meta::{self, Generation},
    },
    metadata::Metadata,
    model::{
        DamagedRow, HostId, ProjectSlug, RowKind, Session, SessionKey, SupersededPiece, SupersededRef,
        Timestamp, TurnSummary, UserId,
    },
};

/// The sync state of a session that is written only to be deleted. If its deletion fails, the next call completes it.
const DELETED: &str = "deleted";

/// The report of a salvage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SalvageReport {
    /// The number of sessions that were written.
    pub sessions: u64,
    /// The number of sessions among them whose fields were derived again from their rows, because their record is lost.
    pub derived: u64,
    /// The number of messages.
    pub messages: u64,
    /// The number of events.
    pub events: u64,
    /// The number of vectors. Others become pending.
    pub vectors: u64,
    /// The number of superseded lines.
    pub superseded: u64,
    /// The number of summaries of turns.
    pub summaries: u64,
    /// The number of vectors of turns.
    pub turns: u64,
    /// Rows that are missing. A session is listed if it is lost as a whole, or if its record, metadata files,
    /// superseded lines or summaries of turns are lost.
    pub missing: Vec<DamagedRow>,
    /// Lost data other than sessions, such as settings of the store.
    pub lost: Vec<String>,
    /// The parts of the old store that can't be read. They may have contained rows that were found elsewhere, or data
    /// that is derived again.
    pub unreadable: Vec<String>,
}

impl SalvageReport {
    /// Whether everything could be read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.lost.is_empty()
    }
}

impl StoreSalvage<'_> {
    /// Writes what is left of a damaged store to this one, which should be empty: sessions with their messages, events,
    /// vectors, superseded lines, and summaries and vectors of turns, the pinned user and the remembered deletions.
    /// Only a few rows are in memory.
    ///
    /// The fields of a session whose record is lost are derived from its metadata files and its messages. If rows of a
    /// session are lost, those after them are renumbered, and the next sync reads its files again.
    ///
    /// # Errors
    ///
    /// Errors of this store; errors of `source` other than damage.
    pub async fn take_from(self, source: &mut dyn SalvageSource) -> Result<SalvageReport> {
        let mut salvage = RunningSalvage {
            store: self.store,
            report: SalvageReport {
                lost: source.lost(),
                unreadable: source.unreadable(),
                ..SalvageReport::default()
            },
            generation: self.take_meta(source.meta()).await?,
            hosts: HashMap::new(),
        };
        for key in source.sessions() {
            salvage.session(source, &key).await?;
        }
        self.remember_deletions(source.deleted_sessions()).await?;
        Ok(salvage.report)
    }

    /// Copies entries of the meta table. Returns the generation of the vectors.
    async fn take_meta(self, entries: BTreeMap<String, String>) -> Result<Option<Generation>> {
        if let Some(user) = entries.get(meta::USER_ID).and_then(|user| UserId::new(user).ok()) {
            StoreUsers::new(self.store).pin_user(&user).await?;
        }
        // Derived data follows the rules of the old store, or unknown ones.
        for key in [meta::EXTRACTION, meta::SUMMARIES, meta::TITLES] {
            let rules = entries.get(key).map_or("1", String::as_str);
            self.store.backend.put_meta_if_absent(key, rules).await?;
        }
        let Some(held) = entries.get(meta::EMBEDDING_SPACE).and_then(|value| Generation::parse(value)) else {
            return Ok(None);
        };
        let number = StoredVectors::new(self.store).claim_space(&held.space).await?.ok();
        Ok(number.map(|number| Generation { space: held.space, number }))
    }

    /// Makes this store remember the deletions that another one remembers, by deleting empty sessions. Does not change
    /// sessions that exist. Returns the number of the others.
    pub(super) async fn remember_deletions(self, keys: Vec<SessionKey>) -> Result<u64> {
        let mut deleted = Vec::new();
        for key in keys {
            let stored = self.store.backend.get_session(&key).await?;
            if stored.is_none() {
                let session =
                    Session::new(key.clone(), unknown_host()?, ProjectSlug::unnamed(), self.store.now());
                let mut change = SessionChange::new(session, None);
                change.sync_state = Some(StoredSyncState::of(DELETED));
                self.store.backend.write_one(change).await?;
            }
            let state = stored.map(|stored| stored.sync_state.unwrap_or_default().files);
            if state.is_none_or(|files| files == DELETED) {
                deleted.push(SessionDeletion::new(key));
            }
        }
        if deleted.is_empty() {
            return Ok(0);
        }
        let deletion = self.store.backend.delete_sessions(&deleted).await;
        Ok(deletion.deleted.into_iter().collect::<Result<Vec<bool>>>()?.len() as u64)
    }
}

/// A salvage that is running.
struct RunningSalvage<'a> {
    store: &'a StoreContext,
    report: SalvageReport,
    /// The generation of the vectors in the new store.
    generation: Option<Generation>,
    /// For each user, the host of another session, for sessions whose own host is lost.
    hosts: HashMap<UserId, HostId>,
}

impl RunningSalvage<'_> {
    async fn session(&mut self, source: &mut dyn SalvageSource, key: &SessionKey) -> Result<()> {
        let before = self.report.missing.len();
        match self.write_session(source, key).await {
            // For example, another session has an event with the same id.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Validation) => {
                self.report.missing.truncate(before);
                self.report.missing.push(DamagedRow::of_session(key, &error));
                Ok(())
            }
            other => other,
        }
    }

    async fn write_session(&mut self, source: &mut dyn SalvageSource, key: &SessionKey) -> Result<()> {
        let remaining = source.session(key)?;
        let (messages, events) = (remaining.messages.clone(), remaining.events.clone());
        let superseded = remaining.superseded.clone();
        let before = self.report.missing.len();
        let Some(stored) = self.record(key, remaining)? else { return Ok(()) };
        let is_derived = stored.version == derived_version();
        let expected = |count: u32, left: &[u32]| {
            let last = left.last().map_or(0, |last| last.saturating_add(1));
            if is_derived { last } else { count.max(last) }
        };
        let message_count = expected(stored.session.message_count, &messages);
        let event_count = expected(stored.session.event_count, &events);
        let generation = self.generation.as_ref().map(|generation| generation.number);
        let mut writing = SalvagedSession::new(self.store.backend.clone(), &stored, generation);
        self.lost(key, RowKind::Message, message_count, &messages);
        for sequence in messages {
            match source.message(&stored.session, sequence) {
                Ok(message) => writing.message(message, self.generation.as_ref()),
                Err(error) => self.damaged(key, RowKind::Message, sequence, error)?,
            }
            writing.writer.flush_when_full().await?;
        }
        self.lost(key, RowKind::Event, event_count, &events);
        let posted = ReceivedRows::of(&stored).posted;
        let mut first_posted = None;
        for sequence in events {
            if posted.is_some_and(|first| sequence >= first) {
                first_posted.get_or_insert(writing.writer.session().event_count);
            }
            match source.event(&stored.session, sequence).and_then(checked) {
                Ok(event) => writing.event(event),
                Err(error) => self.damaged(key, RowKind::Event, sequence, error)?,
            }
            writing.writer.flush_when_full().await?;
        }
        for group in superseded.chunk_by(|a, b| SupersededPiece::group_of(a) == SupersededPiece::group_of(b))
        {
            match superseded_lines(source, key, group) {
                Ok(pieces) => writing.writer.superseded(pieces),
                Err(error) => self.damaged_superseded(key, group, error)?,
            }
            writing.writer.flush_when_full().await?;
        }
        writing.describe(is_derived);
        // After losses, a sync reads the files again.
        let is_whole = self.report.missing.len() == before;
        let only_posted = || ReceivedRows::only_posted(first_posted);
        let state = stored.sync_state.map(|state| if is_whole { state } else { only_posted() });
        let SalvagedSession { writer, lines, .. } = writing;
        let Finished { rows, .. } = writer.finish(state).await?;
        self.turns(source, key, &lines).await?;
        self.report.sessions += 1;
        self.report.derived += u64::from(is_derived);
        self.report.messages += rows.messages;
        self.report.events += rows.events;
        self.report.superseded += rows.superseded;
        self.report.vectors += rows.vectors;
        self.report.turns += rows.turns;
        Ok(())
    }

    /// Writes the summaries of turns whose messages were written. Reports lost ones.
    async fn turns(
        &mut self,
        source: &mut dyn SalvageSource,
        key: &SessionKey,
        lines: &WrittenLines,
    ) -> Result<()> {
        let RemainingTurns { summaries, lost_summaries } = source.turns(key)?;
        let (kept, lost): (Vec<_>, Vec<_>) = summaries.into_iter().partition(|summary| {
            lines.get(&summary.user_sequence).is_some_and(|(_, digest)| *digest == summary.digest)
        });
        for user in lost_summaries.into_iter().chain(lost.into_iter().map(|summary| summary.user_sequence)) {
            let reason = format!("the summary of the turn of message {user} is lost");
            let error = Error::new(ErrorKind::Damaged, reason);
            self.report.missing.push(DamagedRow::of_session(key, &error));
        }
        let moved = |mut summary: TurnSummary| {
            summary.user_sequence = lines.get(&summary.user_sequence)?.0;
            Some(summary)
        };
        let summaries: Vec<TurnSummary> = kept.into_iter().filter_map(moved).collect();
        if !summaries.is_empty() {
            self.report.summaries += self.store.backend.write_summaries(key, summaries).await? as u64;
        }
        Ok(())
    }

    /// The record of a session, or a substitute made from what is known. `None` if only its id is left.
    fn record(&mut self, key: &SessionKey, remaining: RemainingSession) -> Result<Option<StoredSession>> {
        let RemainingSession { stored, metadata_files, project, created, messages, events, .. } = remaining;
        if let Some(reason) = remaining.lost_metadata {
            let error = Error::new(ErrorKind::Damaged, reason);
            self.report.missing.push(DamagedRow::of_session(key, &error));
        }
        let error = match stored {
            Ok(stored) => {
                self.hosts.insert(key.user_id.clone(), stored.session.host_id.clone());
                return Ok(Some(stored));
            }
            Err(error) if error.kind() == ErrorKind::Damaged => error,
            Err(error) => return Err(error),
        };
        let lost = DamagedRow::of_session(key, &error);
        if !self.report.missing.contains(&lost) {
            self.report.missing.push(lost);
        }
        if messages.is_empty()
            && events.is_empty()
            && metadata_files.is_empty()
            && remaining.superseded.is_empty()
        {
            return Ok(None);
        }
        // Most users have one machine, so it is probably that of the user's other sessions.
        let host = self.hosts.get(&key.user_id).cloned().map_or_else(unknown_host, Ok)?;
        let project = project.unwrap_or_else(ProjectSlug::unnamed);
        let metadata = Metadata::read(&metadata_files).unwrap_or_default();
        let created = metadata.created().or(created).unwrap_or_else(|| Timestamp::from_micros(0));
        let mut session = Session::new(key.clone(), host, project, created);
        session.updated = metadata.updated().unwrap_or(created);
        metadata.apply(&mut session);
        Ok(Some(StoredSession {
            session,
            version: derived_version(),
            metadata_files,
            skipped: Vec::new(),
            sync_state: None,
        }))
    }

    /// Reports the rows below `count` that are not in `left`.
    fn lost(&mut self, key: &SessionKey, kind: RowKind, count: u32, left: &[u32]) {
        let error = Error::new(ErrorKind::Damaged, "the part of the store that held it can't be read");
        let mut left = left.iter().copied().peekable();
        for sequence in 0..count {
            if left.next_if_eq(&sequence).is_none() {
                self.report.missing.push(DamagedRow::new(kind, key, Some(sequence), &error));
            }
        }
    }

    /// Reports a row that can't be read. Fails with other errors.
    fn damaged(&mut self, key: &SessionKey, kind: RowKind, sequence: u32, error: Error) -> Result<()> {
        if !matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Validation) {
            return Err(error);
        }
        self.report.missing.push(DamagedRow::new(kind, key, Some(sequence), &error));
        Ok(())
    }

    /// Reports superseded lines that can't be read. Fails with other errors.
    fn damaged_superseded(&mut self, key: &SessionKey, group: &[String], error: Error) -> Result<()> {
        if !matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Validation) {
            return Err(error);
        }
        let pieces = group.first().map_or("", |id| SupersededPiece::group_of(id));
        let error = Error::new(ErrorKind::Damaged, format!("its superseded lines {pieces} can't be read"));
        self.report.missing.push(DamagedRow::of_session(key, &error));
        Ok(())
    }
}

/// The version of a session whose record is lost.
fn derived_version() -> Version {
    Version(String::new())
}

fn unknown_host() -> Result<HostId> {
    HostId::new("unknown")
}

/// The pieces of a group, if they are unchanged since they were stored.
fn superseded_lines(
    source: &mut dyn SalvageSource,
    session: &SessionKey,
    ids: &[String],
) -> Result<Vec<SupersededPiece>> {
    let piece = |id: &String| source.superseded(&SupersededRef { session: session.clone(), id: id.clone() });
    let pieces: Vec<_> = ids.iter().map(piece).collect::<Result<_>>()?;
    unpack(&pieces)?;
    Ok(pieces)
}
