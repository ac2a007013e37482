//! Writing an archive.

use std::collections::HashSet;

use serde::Serialize;

use super::{ArchiveWriter, EventRecord, FORMAT, FileRecord, MessageRecord, Raw, Record, SessionRecord, hex};
use crate::{
    Error, ErrorKind, Result, Scope, SessionStorage,
    backend::{SequenceRange, SessionCursor, SessionQuery, StoredSession},
    model::{Event, Message, RawJson, Session, SessionKey},
    search::SessionFilter,
};

/// How many sessions are listed at once.
const SESSIONS: usize = 100;
/// How many rows are read at once: few, because lines may be long.
const ROWS: usize = 200;
/// How often a session is begun anew that changes while it is written.
const ATTEMPTS: usize = 3;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExportReport {
    /// Sessions.
    pub sessions: u64,
    /// Their messages.
    pub messages: u64,
    /// Their events.
    pub events: u64,
}

impl SessionStorage {
    /// Writes the sessions of `scope` that `filter` admits, those too that come while it writes; one that changes stands there
    /// as it is when it is written. [`SessionStorage::import_sessions`] is the way back. Beside what `out` holds, no more is in
    /// memory than some rows and the names of the sessions.
    ///
    /// # Errors
    ///
    /// Those of `out`; `Conflict` (retryable) when a session changes again and again meanwhile; those of the
    /// backend.
    pub async fn export_sessions(
        &self,
        scope: &Scope,
        filter: SessionFilter,
        out: &mut dyn ArchiveWriter,
    ) -> Result<ExportReport> {
        let writer = format!("amplifier-session-storage {}", env!("CARGO_PKG_VERSION"));
        out.put(Record::Archive { format: FORMAT, writer })?;
        let mut report = ExportReport::default();
        let query = SessionQuery::new(scope.clone()).with_filter(filter).with_limit(SESSIONS);
        let mut written = HashSet::new();
        // A list shows a session twice, or not at all, that changes while its pages are read: so it is read until it has no
        // others any more.
        loop {
            let keys = self.keys(query.clone()).await?;
            let before = written.len();
            for key in keys {
                if written.insert(key.clone()) {
                    self.export_session(&key, out, &mut report).await?;
                }
            }
            if written.len() == before {
                break;
            }
        }
        out.put(Record::Complete { sessions: report.sessions })?;
        out.finish()?;
        Ok(report)
    }

    async fn keys(&self, mut query: SessionQuery) -> Result<Vec<SessionKey>> {
        let mut keys = Vec::new();
        loop {
            let page = self.backend.list_sessions(&query).await?;
            keys.extend(page.iter().map(Session::key));
            if page.len() < SESSIONS {
                return Ok(keys);
            }
            query.after = page.last().map(SessionCursor::from);
        }
    }

    async fn export_session(
        &self,
        key: &SessionKey,
        out: &mut dyn ArchiveWriter,
        report: &mut ExportReport,
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            // Deleted since it was listed.
            let Some(stored) = self.backend.get_session(key).await? else { return Ok(()) };
            let version = stored.version.clone();
            out.put(session_record(stored))?;
            let messages = self.export_messages(key, out).await?;
            let events = self.export_events(key, out).await?;
            let after = self.backend.get_session(key).await?;
            if after.is_some_and(|after| after.version == version) {
                out.put(Record::End { messages, events })?;
                report.sessions += 1;
                report.messages += u64::from(messages);
                report.events += u64::from(events);
                return Ok(());
            }
            out.put(Record::Again)?;
        }
        let message = "the session changes faster than it can be written";
        Err(Error::new(ErrorKind::Conflict, message).with("session", &key.session_id).retryable())
    }

    async fn export_messages(&self, key: &SessionKey, out: &mut dyn ArchiveWriter) -> Result<u32> {
        let mut range = SequenceRange { start: 0, limit: ROWS };
        let mut count = 0;
        loop {
            let page = self.backend.read_messages(key, range).await?;
            let Some(last) = page.last() else { return Ok(count) };
            range.start = last.sequence.saturating_add(1);
            for message in page {
                count += 1;
                out.put(message_record(message))?;
            }
        }
    }

    async fn export_events(&self, key: &SessionKey, out: &mut dyn ArchiveWriter) -> Result<u32> {
        let mut range = SequenceRange { start: 0, limit: ROWS };
        let mut count = 0;
        loop {
            let page = self.backend.read_events(key, range).await?;
            let Some(last) = page.last() else { return Ok(count) };
            range.start = last.sequence.saturating_add(1);
            for event in page {
                count += 1;
                // One at a time: a line may have 64 MB.
                let payloads = self.backend.event_payloads(key, &[event.sequence]).await?;
                let raw = match payloads.into_iter().next() {
                    Some((_, payload)) => crate::events::assemble(payload)?,
                    None => None,
                };
                out.put(event_record(event, raw))?;
            }
        }
    }
}

fn session_record(stored: StoredSession) -> Record {
    let StoredSession { session, metadata_files, skipped, sync_state, .. } = stored;
    let file = |file: crate::model::MetadataFile| FileRecord { name: file.name, raw: Raw::from(file.raw) };
    let metadata_files = metadata_files.into_iter().map(file).collect();
    Record::Session(Box::new(SessionRecord { session, metadata_files, skipped, sync_state }))
}

fn message_record(message: Message) -> Record {
    Record::Message(Box::new(MessageRecord {
        sequence: message.sequence,
        role: message.role,
        turn: message.turn,
        ts: message.ts,
        ts_estimated: message.ts_estimated,
        synced_at: message.synced_at,
        raw: Raw::from(message.raw),
    }))
}

fn event_record(event: Event, raw: Option<RawJson>) -> Record {
    Record::Event(Box::new(EventRecord {
        sequence: event.sequence,
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
        digest: hex(&event.digest.0),
        raw: raw.map(Raw::from).unwrap_or_default(),
    }))
}
