//! Reads an archive.

use serde::Serialize;

use super::{ArchiveReader, EventRecord, FORMAT, MessageRecord, Record, SessionRecord, digest, invalid};
use crate::{
    Error, ErrorKind, Result, SessionStorage,
    backend::{RowChange, SessionChange, StorageBackendExt},
    content::extract,
    events,
    model::{
        ContentType, Digest, Event, Message, MetadataFile, Payload, Session, SessionId, SessionKey,
        StoredEvent, UserId, VectorState,
    },
};

/// Number of event ids looked up at a time.
const IDS: usize = 500;

/// Options of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Whether to replace sessions that already exist. Default: no, they are refused.
    pub replace: bool,
    /// Only sessions of this user; those of others are refused. Default: all users.
    pub owner: Option<UserId>,
}

impl ImportOptions {
    setters! {
        /// Sets whether to replace sessions that already exist.
        with_replace(replace: bool);
        /// Only imports sessions of this user.
        with_owner(owner: Option<UserId>);
    }
}

/// The report of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The number of imported sessions.
    pub sessions: u64,
    /// The number of sessions that were replaced.
    pub replaced: u64,
    /// The number of their messages.
    pub messages: u64,
    /// The number of their events.
    pub events: u64,
    /// Sessions that were refused.
    pub refused: Vec<RefusedSession>,
}

/// A session that was refused, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RefusedSession {
    /// Its owner.
    pub user_id: UserId,
    /// Its id.
    pub session_id: SessionId,
    /// The reason.
    pub reason: String,
}

/// A session that is being read.
#[derive(Debug)]
struct Reading {
    change: SessionChange,
    /// Why it will be refused, if that is known already. Then its rows are not collected.
    refused: Option<String>,
}

impl SessionStorage {
    /// Imports the sessions that [`SessionStorage::export_sessions`] wrote. Each is stored in one write when its end is
    /// read, and not at all if its end is missing: memory grows with the largest session, not with the archive. Vectors
    /// of the messages are pending afterwards.
    ///
    /// # Errors
    ///
    /// `Validation` (`archive`, with its place) when a record is out of place; those of `archive` and of the backend.
    /// Sessions that were read before that are stored.
    pub async fn import_sessions(
        &self,
        archive: &mut dyn ArchiveReader,
        options: &ImportOptions,
    ) -> Result<ImportReport> {
        self.renew().await?;
        let first = archive.next()?.ok_or_else(|| invalid("the archive is empty"))?;
        check_first(&first).map_err(|error| placed(error, archive))?;
        let (mut report, mut reading) = (ImportReport::default(), None);
        loop {
            let Some(record) = archive.next()? else {
                return Err(placed(ends_early(reading, &report), archive));
            };
            if let (Record::Complete { sessions }, None) = (&record, &reading) {
                check_last(*sessions, &report).map_err(|error| placed(error, archive))?;
                break;
            }
            let taken = self.take(record, &mut reading, options, &mut report).await;
            taken.map_err(|error| placed(error, archive))?;
        }
        match archive.next()? {
            None => Ok(report),
            Some(_) => Err(placed(invalid("the archive continues after its end"), archive)),
        }
    }

    async fn take(
        &self,
        record: Record,
        reading: &mut Option<Reading>,
        options: &ImportOptions,
        report: &mut ImportReport,
    ) -> Result<()> {
        match (record, reading.as_mut()) {
            (Record::Archive { .. }, _) => return Err(invalid("the archive begins a second time")),
            (Record::Session(record), None) => *reading = Some(self.begin(*record, options).await?),
            (Record::Message(record), Some(reading)) => reading.message(*record)?,
            (Record::Event(record), Some(reading)) => reading.event(*record)?,
            (Record::Again, Some(_)) => *reading = None,
            (Record::End { messages, events }, Some(_)) => {
                if let Some(reading) = reading.take() {
                    self.end(reading, (messages, events), report).await?;
                }
            }
            (Record::Session(_) | Record::Complete { .. }, Some(_)) => {
                return Err(invalid("the previous session has no end"));
            }
            (_, None) => return Err(invalid("the record belongs to no session")),
        }
        Ok(())
    }

    async fn begin(&self, record: SessionRecord, options: &ImportOptions) -> Result<Reading> {
        let SessionRecord { session, metadata_files, skipped, sync_state } = record;
        let stored = self.backend.get_session(&session.key()).await?;
        let refused = match (&stored, &options.owner) {
            (_, Some(owner)) if *owner != session.user_id => Some("it belongs to another user".to_owned()),
            (Some(_), _) if !options.replace => Some("there is a session of this id already".to_owned()),
            _ => None,
        };
        let files = metadata_files.into_iter();
        let files = files.map(|file| Ok(MetadataFile { name: file.name, raw: file.raw.whole()? }));
        let had_state = stored.as_ref().is_some_and(|stored| stored.sync_state.is_some());
        let mut change = SessionChange::new(session, stored.map(|stored| stored.version));
        change.metadata_files = Some(files.collect::<Result<_>>()?);
        change.skipped = Some(skipped);
        // An empty state is better than that of the replaced session.
        change.sync_state = sync_state.or_else(|| had_state.then(String::new));
        (change.messages.truncate, change.events.truncate) = (Some(0), Some(0));
        Ok(Reading { change, refused })
    }

    async fn end(&self, reading: Reading, stated: (u32, u32), report: &mut ImportReport) -> Result<()> {
        let Reading { change, refused } = reading;
        let rows = (change.messages.put.len(), change.events.put.len());
        let counted = (change.session.message_count, change.session.event_count);
        let is_whole = |of: (u32, u32)| rows == (of.0 as usize, of.1 as usize);
        if refused.is_none() && !(is_whole(stated) && is_whole(counted)) {
            let error = invalid("rows of the session are missing");
            return Err(error.with("session", &change.session.session_id));
        }
        let refused = match refused {
            None => self.taken_event(&change).await?,
            some => some,
        };
        let key = change.session.key();
        if let Some(reason) = refused {
            let SessionKey { user_id, session_id } = key;
            report.refused.push(RefusedSession { user_id, session_id, reason });
            return Ok(());
        }
        report.replaced += u64::from(change.expected.is_some());
        self.backend.write_one(change).await?;
        report.sessions += 1;
        report.messages += rows.0 as u64;
        report.events += rows.1 as u64;
        Ok(())
    }

    /// Whether another session of the user has an event with the same id.
    async fn taken_event(&self, change: &SessionChange) -> Result<Option<String>> {
        let user = &change.session.user_id;
        for events in change.events.put.chunks(IDS) {
            let ids: Vec<String> = events.iter().map(|stored| stored.event.event_id.clone()).collect();
            let found = self.backend.find_events(user, &ids).await?;
            let other =
                found.into_iter().find(|(_, event)| event.session.session_id != change.session.session_id);
            if let Some((id, event)) = other {
                let session = event.session.session_id;
                return Ok(Some(format!("its event {id:?} already belongs to session {session}")));
            }
        }
        Ok(None)
    }
}

impl Reading {
    fn message(&mut self, record: MessageRecord) -> Result<()> {
        if self.refused.is_some() {
            return Ok(());
        }
        let raw = record.raw.whole()?;
        let texts = extract(&raw.parse_object()?, record.role);
        let embeddable = texts.iter().any(|text| ContentType::EMBEDDED.contains(&text.content_type));
        let Session { user_id, host_id, project_slug, session_id, .. } = self.change.session.clone();
        next(&self.change.messages, record.sequence)?;
        self.change.messages.put.push(Message {
            user_id,
            host_id,
            project_slug,
            session_id,
            sequence: record.sequence,
            role: record.role,
            turn: record.turn,
            ts: record.ts,
            ts_source: record.ts_source,
            synced_at: record.synced_at,
            vectors: if embeddable { VectorState::Pending } else { VectorState::Nothing },
            digest: Digest::of(raw.as_bytes()),
            raw,
        });
        Ok(())
    }

    fn event(&mut self, record: EventRecord) -> Result<()> {
        if self.refused.is_some() {
            return Ok(());
        }
        let (payload, digest) = match record.raw.kept()? {
            Some(raw) => (events::store(&raw, record.data_size_bytes)?, Digest::of(raw.as_bytes())),
            None => (Payload::None, digest(&record.digest)?),
        };
        let chunk_count = match &payload {
            Payload::Chunks(chunks) => Some(chunks.len() as u32),
            _ => None,
        };
        let Session { user_id, host_id, project_slug, session_id, .. } = self.change.session.clone();
        next(&self.change.events, record.sequence)?;
        let event = Event {
            event_id: record.event_id,
            user_id,
            host_id,
            project_slug,
            session_id,
            sequence: record.sequence,
            event_type: record.event_type,
            ts: record.ts,
            ts_estimated: record.ts_estimated,
            turn: record.turn,
            level: record.level,
            tool_name: record.tool_name,
            error_type: record.error_type,
            model: record.model,
            provider: record.provider,
            summary: record.summary,
            is_chunked: chunk_count.is_some(),
            chunk_count,
            data_size_bytes: record.data_size_bytes,
            synced_at: record.synced_at,
            digest,
        };
        self.change.events.put.push(StoredEvent { event, payload });
        Ok(())
    }
}

/// Rows must come in order, without gaps.
fn next<T>(rows: &RowChange<T>, sequence: u32) -> Result<()> {
    if rows.put.len() == sequence as usize {
        return Ok(());
    }
    Err(invalid(format!("row {sequence} does not follow the {} before it", rows.put.len())))
}

/// The first record must be that of an archive.
fn check_first(record: &Record) -> Result<()> {
    match record {
        Record::Archive { format: FORMAT, .. } => Ok(()),
        Record::Archive { format, .. } => Err(invalid(format!(
            "the archive has format {format}, which this program does not know (it knows {FORMAT})"
        ))),
        _ => Err(invalid("the file is not an archive")),
    }
}

/// The error for an incomplete archive.
fn ends_early(reading: Option<Reading>, report: &ImportReport) -> Error {
    match reading {
        Some(Reading { change, .. }) => {
            let error = invalid("the archive ends in the middle of a session, which is not taken");
            error.with("session", &change.session.session_id)
        }
        None => {
            invalid(format!("the archive ends before its last line; it had {} sessions so far", seen(report)))
        }
    }
}

/// The number of sessions in the last record must be right.
fn check_last(sessions: u64, report: &ImportReport) -> Result<()> {
    if sessions == seen(report) {
        return Ok(());
    }
    Err(invalid(format!("the archive should have {sessions} sessions, but has {}", seen(report))))
}

fn seen(report: &ImportReport) -> u64 {
    report.sessions + report.refused.len() as u64
}

/// Adds the position in the archive to an error.
fn placed(error: Error, archive: &dyn ArchiveReader) -> Error {
    let (what, number) = archive.place();
    if error.kind() == ErrorKind::Validation { error.with(what, number) } else { error }
}
