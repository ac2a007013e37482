//! Reads an archive.

use serde::{Deserialize, Serialize};

use super::{
    super::deleted::DeletedSessions, ArchiveReader, Checksum, FORMAT, Record, SessionRecord, invalid,
    session::SessionReading,
};
use crate::{
    Error, ErrorKind, Result,
    model::{SessionId, SessionKey, UserId},
    storage::store::{ArchiveTransfer, Rederivation, StoreContext, StoredSecrets},
    text::counted,
};

/// Options of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// Whether to replace sessions that already exist. Default: no; they are rejected.
    pub replace: bool,
    /// Only imports sessions of this user; others are rejected. Default: all users.
    pub owner: Option<UserId>,
    /// Whether to leave out vectors of a space that is neither the store's nor that of the storage's embedding provider,
    /// also if the store has no vectors yet. Default: no; the space becomes that of such a store.
    pub only_known_space: bool,
}

impl ImportOptions {
    setters! {
        /// Sets whether to replace sessions that already exist.
        with_replace(replace: bool);
        /// Only imports sessions of this user.
        with_owner(owner: Option<UserId>);
        /// Sets whether to leave out vectors of an unknown space.
        with_only_known_space(only_known_space: bool);
    }
}

/// The report of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The number of their superseded lines.
    pub superseded: u64,
    /// The number of their vectors.
    pub vectors: u64,
    /// The number of vectors that were left out because of their space.
    pub vectors_left_out: u64,
    /// The number of embeddings of their turns.
    pub turns: u64,
    /// The number of summaries of their turns.
    pub summaries: u64,
    /// The imported sessions that had been deleted from the store.
    pub were_deleted: Vec<SessionKey>,
    /// Sessions that were rejected.
    pub refused: Vec<RefusedSession>,
    /// The first 1,000 broken parts of the archive, in order. Their sessions were not imported.
    pub broken: Vec<BrokenPart>,
}

/// A session that was rejected, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RefusedSession {
    /// Its owner.
    pub user_id: UserId,
    /// Its id.
    pub session_id: SessionId,
    /// The reason.
    pub reason: String,
}

/// A part of an archive that differs from what was exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BrokenPart {
    /// Its position, for example `line 7`.
    pub place: String,
    /// The owner of the session that is lost with it, if known.
    pub user_id: Option<UserId>,
    /// The id of that session, if known.
    pub session_id: Option<SessionId>,
    /// The problem.
    pub reason: String,
}

/// A report lists at most this many broken parts.
const LISTED: usize = 1_000;

fn without_checksums() -> Error {
    let message = "the archive has no checksums: an earlier version wrote it, and its lines can't be checked";
    invalid(message).with_hint("sync the session files, or export them again with this version")
}

/// The position in the structure of an archive.
#[derive(Debug)]
enum State {
    /// Before a session, or the end.
    Between,
    /// In a session.
    Reading(Box<SessionReading>),
    /// After something broken: before the next session, or the end.
    Skipping,
    /// At the end.
    Complete,
}

/// An import that is running.
struct Import<'a> {
    storage: &'a StoreContext,
    archive: &'a mut dyn ArchiveReader,
    options: &'a ImportOptions,
    report: ImportReport,
    state: State,
    deleted: DeletedSessions,
    /// Checksum of the checksums of the sessions so far.
    checksum: Checksum,
}

impl ArchiveTransfer<'_> {
    /// Imports the sessions that [`Self::export_sessions`] wrote. A session is stored when its end is read
    /// and its rows are complete and have the right checksum. Otherwise, nothing of it is stored: a broken record loses
    /// its session, and the import continues with the next one. Afterwards, vectors are pending if the archive does not
    /// have them or if they are of another space than the store's.
    ///
    /// A session of more than 16 MB is checked first and then written in parts, if `archive` can return to its
    /// beginning; otherwise, it must fit into memory. If the process is killed meanwhile, the next import of the
    /// session replaces the rows written so far.
    ///
    /// A session that was deleted from the store is imported too, and reported: the archive was named on purpose.
    ///
    /// # Errors
    ///
    /// `Validation` (`archive`, with its position) if it is not an archive that this version can read; errors of
    /// `archive` and of the backend, with the number of imported sessions in their context as `imported`.
    pub async fn import_sessions(
        self,
        archive: &mut dyn ArchiveReader,
        options: &ImportOptions,
    ) -> Result<ImportReport> {
        Rederivation::new(self.store).rederive().await?;
        StoredSecrets::new(self.store).apply_secrets_setting().await?;
        let mut import = Import {
            storage: self.store,
            archive,
            options,
            report: ImportReport::default(),
            state: State::Between,
            deleted: DeletedSessions::default(),
            checksum: Checksum::default(),
        };
        match import.run().await {
            Ok(()) => Ok(import.report),
            Err(error) if import.report.sessions == 0 => Err(error),
            Err(error) => Err(error.with("imported", counted(import.report.sessions, "session"))),
        }
    }
}

impl Import<'_> {
    async fn run(&mut self) -> Result<()> {
        self.begin().await?;
        while !matches!(self.state, State::Complete) {
            let record = self.archive.next();
            self.record(record).await?;
        }
        match self.archive.next() {
            Ok(None) => Ok(()),
            Err(error) if error.kind() != ErrorKind::Validation => Err(error),
            _ => {
                self.broken(&invalid("the archive continues after its end; the rest is not imported"));
                Ok(())
            }
        }
    }

    /// Reads the first record. If it is broken, the second one shows whether this is an archive.
    async fn begin(&mut self) -> Result<()> {
        let wrong = match self.archive.next() {
            Ok(Some(Record::Archive { format: FORMAT, checksums: true, .. })) => return Ok(()),
            Ok(Some(Record::Archive { format: FORMAT, .. })) => return Err(self.placed(without_checksums())),
            Ok(Some(Record::Archive { format, .. })) => {
                let message = format!(
                    "the archive has format {format}, which this program does not support (it supports {FORMAT})"
                );
                return Err(self.placed(invalid(message)));
            }
            Ok(Some(_)) => return Err(self.placed(invalid("the file is not an archive"))),
            Ok(None) => return Err(self.placed(invalid("the archive is empty"))),
            Err(error) if error.kind() == ErrorKind::Validation => error,
            Err(error) => return Err(error),
        };
        self.broken(&wrong);
        match self.archive.next() {
            Ok(Some(record @ Record::Session(_))) => self.record(Ok(Some(record))).await,
            _ => Err(wrong),
        }
    }

    /// Processes the next record. A broken one loses its session.
    async fn record(&mut self, record: Result<Option<Record>>) -> Result<()> {
        let taken = match record {
            Ok(Some(record)) => self.take(record).await,
            Ok(None) => {
                self.end_early();
                return Ok(());
            }
            Err(error) => Err(error),
        };
        let Err(error) = taken else { return Ok(()) };
        if error.kind() != ErrorKind::Validation {
            return Err(error);
        }
        let is_end = error.context("checksum").is_some();
        if !(is_end && matches!(self.state, State::Skipping)) {
            self.broken(&error);
        }
        self.state = match self.state {
            State::Complete => State::Complete,
            _ if is_end => State::Between,
            _ => State::Skipping,
        };
        Ok(())
    }

    async fn take(&mut self, record: Record) -> Result<()> {
        let is_end = matches!(record, Record::End { .. });
        match record {
            Record::Session(record) => {
                // The end of the session before it may be missing. The others are still imported.
                self.leave_unfinished();
                return self.session(*record).await;
            }
            Record::Complete { sessions, checksum } => {
                self.leave_unfinished();
                self.state = State::Complete;
                return self.check_last(sessions, checksum.as_deref());
            }
            Record::Archive { .. } => return Err(invalid("the archive has a second header")),
            record => match &mut self.state {
                State::Reading(reading) => {
                    let goes_on = match record {
                        Record::Message(record) => {
                            reading.message(*record)?;
                            ArchiveTransfer::new(self.storage).flush_if_large(reading, self.archive).await?
                        }
                        Record::Event(record) => {
                            reading.event(*record)?;
                            ArchiveTransfer::new(self.storage).flush_if_large(reading, self.archive).await?
                        }
                        Record::Superseded(record) => {
                            reading.superseded(*record)?;
                            ArchiveTransfer::new(self.storage).flush_if_large(reading, self.archive).await?
                        }
                        Record::End { messages, events, checksum, .. } => {
                            self.end((messages, events), checksum).await?;
                            false
                        }
                        _ => false,
                    };
                    if !goes_on {
                        self.state = State::Between;
                    }
                }
                State::Between => return Err(invalid("the record does not belong to any session")),
                State::Skipping if is_end => self.state = State::Between,
                State::Skipping | State::Complete => {}
            },
        }
        Ok(())
    }

    async fn session(&mut self, record: SessionRecord) -> Result<()> {
        // Its rows follow, even if the record is wrong.
        self.state = State::Skipping;
        let key = record.session.key();
        let stored = self.storage.backend.get_session(&key).await?;
        let was_deleted = stored.is_none() && self.deleted.contains(&*self.storage.backend, &key).await?;
        let can_return = self.archive.mark();
        let masker = StoredSecrets::new(self.storage).line_masker().await?;
        let backend = self.storage.backend.clone();
        let mut reading = SessionReading::new(backend, record, stored, self.options, can_return, masker)?;
        reading.was_deleted = was_deleted;
        self.state = State::Reading(Box::new(reading));
        Ok(())
    }

    async fn end(&mut self, stated: (u32, u32), checksum: Option<String>) -> Result<()> {
        let State::Reading(reading) = &mut self.state else { return Ok(()) };
        reading.check_end(stated)?;
        if reading.refused.is_none() {
            reading.refused = ArchiveTransfer::new(self.storage).taken_event(reading).await?;
        }
        if let Some(reason) = reading.refused.take() {
            let SessionKey { user_id, session_id } = reading.session.key();
            self.report.refused.push(RefusedSession { user_id, session_id, reason });
        } else {
            ArchiveTransfer::new(self.storage).write_whole(reading, &mut self.report).await?;
        }
        if let Some(digits) = checksum {
            self.checksum.add(digits.as_bytes());
        }
        Ok(())
    }

    /// The last record states the number of sessions and their checksum. If something is broken, both may differ.
    fn check_last(&self, sessions: u64, checksum: Option<&str>) -> Result<()> {
        let seen = self.seen();
        if !self.report.broken.is_empty() {
            return Ok(());
        }
        if sessions != seen {
            let sessions = counted(sessions, "session");
            return Err(invalid(format!("the archive should have {sessions}, but has {seen}")));
        }
        if checksum.is_some_and(|digits| digits != self.checksum.digits()) {
            return Err(invalid(
                "the checksum of the archive does not match: sessions are missing or out of order",
            ));
        }
        Ok(())
    }

    fn leave_unfinished(&mut self) {
        if matches!(self.state, State::Reading(_)) {
            self.broken(&invalid("the end of the session is missing"));
            self.state = State::Between;
        }
    }

    fn end_early(&mut self) {
        let error = match self.state {
            State::Reading(_) => {
                invalid("the archive ends in the middle of a session; that session is not imported")
            }
            _ => invalid(format!(
                "the archive is cut short after {}: its last line is missing",
                counted(self.seen(), "session")
            )),
        };
        self.broken(&error);
        self.state = State::Complete;
    }

    fn seen(&self) -> u64 {
        self.report.sessions + self.report.refused.len() as u64
    }

    /// Reports a broken part. The session being read is lost.
    fn broken(&mut self, error: &Error) {
        if self.report.broken.len() >= LISTED {
            return;
        }
        let session = match &self.state {
            State::Reading(reading) => Some(reading.session.key()),
            _ => None,
        };
        let (user_id, session_id) =
            session.map(|SessionKey { user_id, session_id }| (user_id, session_id)).unzip();
        let (what, number) = self.archive.place();
        self.report.broken.push(BrokenPart {
            place: format!("{what} {number}"),
            user_id,
            session_id,
            reason: error.message().to_owned(),
        });
    }

    /// Adds the position in the archive to an error.
    fn placed(&self, error: Error) -> Error {
        let (what, number) = self.archive.place();
        error.with(what, number)
    }
}
