//! Writes an archive.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{
    super::session_rows::SessionRows, ArchiveWriter, ArchivedSummary, EventRecord, FORMAT, FileRecord,
    MessageRecord, Raw, Record, SessionRecord, hex, vectors::ExportedVectors,
};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{SessionCursor, SessionQuery, StoredSession},
    model::{DamagedRow, EmbeddingSpace, Event, Message, RawJson, RowKind, Session, SessionKey},
    search::SessionFilter,
    storage::{ingest::ReceivedRows, store::ArchiveTransfer},
};

/// Number of sessions listed at a time.
const SESSIONS: usize = 100;
/// How often to retry a session that changes while it is written.
const ATTEMPTS: usize = 3;

/// The report of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExportReport {
    /// The number of sessions.
    pub sessions: u64,
    /// The number of messages.
    pub messages: u64,
    /// The number of events.
    pub events: u64,
    /// The number of superseded lines.
    pub superseded: u64,
    /// The number of vectors.
    pub vectors: u64,
    /// The number of embeddings of turns.
    pub turns: u64,
    /// The number of summaries of turns.
    pub summaries: u64,
    /// Rows that are missing because they can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
}

impl ArchiveTransfer<'_> {
    /// Writes the sessions in `scope` that match `filter`, including sessions that are stored in the meantime. A
    /// session that changes is written in its state at that time. [`Self::import_sessions`] reads the
    /// archive. Apart from the contents of `out`, only a few rows and the ids of the sessions are in memory.
    ///
    /// Superseded lines of sessions that others share are left out.
    ///
    /// Rows that can't be read are skipped and reported. The rows after them are renumbered, so that the session can be
    /// imported.
    ///
    /// # Errors
    ///
    /// Errors of `out`; `Conflict` (retryable) if a session keeps changing meanwhile; `Unsupported` for sessions whose
    /// secrets this storage [masks](crate::SessionStorage::with_masked_reads); errors of the backend.
    pub async fn export_sessions(
        self,
        scope: &Scope,
        filter: SessionFilter,
        out: &mut dyn ArchiveWriter,
    ) -> Result<ExportReport> {
        let writer = format!("amplifier-session-storage {}", env!("CARGO_PKG_VERSION"));
        out.put(Record::Archive { format: FORMAT, writer, checksums: false })?;
        let mut report = ExportReport::default();
        let query = SessionQuery::new(scope.clone()).with_filter(filter).with_limit(SESSIONS);
        let mut written = HashSet::new();
        // A session that changes while the pages of the list are read may be in it twice or not at all. So the list is
        // read again until it has no further sessions.
        loop {
            let keys = self.keys(query.clone(), &mut report.damaged).await?;
            let before = written.len();
            for key in keys {
                if written.insert(key.clone()) {
                    self.export_session(scope, &key, out, &mut report).await?;
                }
            }
            if written.len() == before {
                break;
            }
        }
        out.put(Record::Complete { sessions: report.sessions, checksum: None })?;
        out.finish()?;
        Ok(report)
    }

    async fn keys(self, mut query: SessionQuery, damaged: &mut Vec<DamagedRow>) -> Result<Vec<SessionKey>> {
        let mut keys = Vec::new();
        loop {
            let mut left_out = Vec::new();
            let page = self.store.readable_sessions(&mut query, &mut left_out).await?;
            left_out.retain(|row| !damaged.contains(row));
            damaged.append(&mut left_out);
            keys.extend(page.iter().map(Session::key));
            if page.len() < SESSIONS {
                return Ok(keys);
            }
            query.after = page.last().map(SessionCursor::from);
        }
    }

    async fn export_session(
        self,
        scope: &Scope,
        key: &SessionKey,
        out: &mut dyn ArchiveWriter,
        report: &mut ExportReport,
    ) -> Result<()> {
        self.store.check_unmasked(&key.user_id)?;
        let mut expected = Missing::default();
        for _ in 0..ATTEMPTS {
            let mut damaged = Vec::new();
            let stored = match self.store.backend.get_session(key).await {
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    report.damaged.push(DamagedRow::of_session(key, &error));
                    return Ok(());
                }
                stored => stored?,
            };
            // It was deleted after it was listed.
            let Some(stored) = stored else { return Ok(()) };
            let version = stored.version.clone();
            let posted = ReceivedRows::of(&stored).posted;
            let mut vectors = match out.takes_vectors() {
                true => self.vectors_to_export(key).await?,
                false => None,
            };
            if let Some(vectors) = &mut vectors {
                // If rows are missing, the others get new numbers, including the answers of turns.
                vectors.with_turns = expected == Missing::default();
            }
            let space = vectors.as_ref().map(|vectors| vectors.space.clone());
            out.put(session_record(stored, expected, space))?;
            let counts = self.export_messages(key, out, vectors.as_mut(), &mut damaged).await?;
            let events = self.export_events(key, out, &mut damaged).await?;
            let superseded = match scope {
                // Only their owner may read what a session no longer has.
                Scope::Visible(viewer) if viewer.user_id != key.user_id => 0,
                _ => self.export_superseded(key, out).await?,
            };
            let after = self.store.backend.get_session(key).await?;
            let missing = Missing::of(&damaged, posted);
            if missing == expected && after.is_some_and(|after| after.version == version) {
                out.put(Record::End { messages: counts.messages, events, checksum: None, is_part: false })?;
                report.sessions += 1;
                report.messages += u64::from(counts.messages);
                report.events += u64::from(events);
                report.superseded += superseded;
                report.vectors += counts.vectors;
                report.turns += counts.turns;
                report.summaries += counts.summaries;
                report.damaged.append(&mut damaged);
                return Ok(());
            }
            // Its record then has other counts.
            expected = missing;
            out.put(Record::Again)?;
        }
        let message = "the session changes faster than it can be written";
        Err(Error::new(ErrorKind::Conflict, message).with("session", &key.session_id).retryable())
    }

    /// Writes the messages of a session, with the data that belongs to them.
    async fn export_messages(
        self,
        key: &SessionKey,
        out: &mut dyn ArchiveWriter,
        mut vectors: Option<&mut ExportedVectors>,
        damaged: &mut Vec<DamagedRow>,
    ) -> Result<Counts> {
        let summaries = self.store.summaries_of(key).await?;
        let mut messages = SessionRows::new(self.store, key).messages(0);
        let mut counts = Counts::default();
        while let Some(page) = messages.next().await? {
            let states: Vec<_> =
                page.iter().map(|message| (message.message_ref(), message.vectors)).collect();
            // Rows that can't be read are left out, but an archive has no gaps in its sequences.
            let numbered = (counts.messages..).zip(page);
            let mut records: Vec<MessageRecord> =
                numbered.map(|(sequence, message)| message_record(message, sequence)).collect();
            counts.messages += records.len() as u32;
            for ((message, _), record) in states.iter().zip(&mut records) {
                record.turn_summary = summaries.get(&message.sequence).map(ArchivedSummary::from);
                counts.summaries += u64::from(record.turn_summary.is_some());
            }
            if let Some(vectors) = vectors.as_deref_mut() {
                let (of_texts, of_turns) = self.add_vectors(vectors, &states, &mut records).await?;
                counts.vectors += of_texts;
                counts.turns += of_turns;
            }
            for record in records {
                out.put(Record::Message(Box::new(record)))?;
            }
        }
        damaged.append(&mut messages.damaged);
        Ok(counts)
    }

    async fn export_events(
        self,
        key: &SessionKey,
        out: &mut dyn ArchiveWriter,
        damaged: &mut Vec<DamagedRow>,
    ) -> Result<u32> {
        let mut events = SessionRows::new(self.store, key).events(0);
        let mut count = 0;
        while let Some(page) = events.next().await? {
            for event in page {
                // One at a time: a line may have 64 MB.
                let mut line =
                    self.store.readable_payloads(key, std::slice::from_ref(&event), damaged).await?;
                if let Some(raw) = line.remove(&event.sequence) {
                    out.put(event_record(event, count, raw))?;
                    count += 1;
                }
            }
        }
        damaged.append(&mut events.damaged);
        Ok(count)
    }
}

/// The counts of the written messages and their related rows.
#[derive(Debug, Default)]
struct Counts {
    messages: u32,
    vectors: u64,
    turns: u64,
    summaries: u64,
}

/// The number of rows of a session that can't be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Missing {
    messages: u32,
    events: u32,
    /// The events before the first one that was posted.
    before_posted: u32,
}

impl Missing {
    fn of(damaged: &[DamagedRow], posted: Option<u32>) -> Self {
        let rows = |kind| damaged.iter().filter(move |row| row.kind == kind);
        let is_before = |row: &&DamagedRow| row.sequence.zip(posted).is_some_and(|(row, first)| row < first);
        Self {
            messages: rows(RowKind::Message).count() as u32,
            events: rows(RowKind::Event).count() as u32,
            before_posted: rows(RowKind::Event).filter(is_before).count() as u32,
        }
    }
}

/// The session without missing rows. If rows are missing, a sync must read its files again.
fn session_record(stored: StoredSession, missing: Missing, space: Option<EmbeddingSpace>) -> Record {
    let posted = ReceivedRows::of(&stored).posted;
    let mut record = SessionRecord::from(stored);
    record.session.message_count = record.session.message_count.saturating_sub(missing.messages);
    record.session.event_count = record.session.event_count.saturating_sub(missing.events);
    if missing != Missing::default() {
        let posted = posted.map(|first| first.saturating_sub(missing.before_posted));
        record.sync_state = posted.map(|first| ReceivedRows::only_posted(Some(first)));
    }
    record.embedding_space = space;
    Record::Session(Box::new(record))
}

impl From<StoredSession> for SessionRecord {
    fn from(stored: StoredSession) -> Self {
        let StoredSession { session, metadata_files, skipped, sync_state, .. } = stored;
        let file =
            |file: crate::model::MetadataFile| FileRecord { name: file.name, raw: Raw::from(file.raw) };
        let metadata_files = metadata_files.into_iter().map(file).collect();
        Self { session, metadata_files, skipped, sync_state, embedding_space: None, transfer: None }
    }
}

pub(in crate::storage) fn message_record(message: Message, sequence: u32) -> MessageRecord {
    MessageRecord {
        sequence,
        role: message.role,
        turn: message.turn,
        ts: message.ts,
        ts_source: message.ts_source,
        synced_at: message.synced_at,
        digest: None,
        raw: Raw::from(message.raw),
        vectors: Vec::new(),
        vector_failure: None,
        turn_summary: None,
        turn_embeddings: Vec::new(),
    }
}

pub(in crate::storage) fn event_record(event: Event, sequence: u32, raw: Option<RawJson>) -> Record {
    Record::Event(Box::new(EventRecord {
        sequence,
        event_id: event.event_id,
        event_type: event.event_type,
        ts: event.ts,
        ts_estimated: event.ts_estimated,
        turn: event.turn,
        level: event.level,
        tool_name: event.tool_name,
        error_type: event.error_type,
        model: event.model,
        provider: event.provider,
        summary: event.summary,
        data_size_bytes: event.data_size_bytes,
        synced_at: event.synced_at,
        digest: hex(&event.digest.0),
        raw: raw.map(Raw::from).unwrap_or_default(),
    }))
}
