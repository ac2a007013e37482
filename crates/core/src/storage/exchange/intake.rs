//! Takes a stream of sessions from another store.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    extent::SessionExtent,
    posted::EventPosting,
    received_end::ReceivedEnd,
    receiving::{Begun, Receiving},
    wire::{RowDecoder, RowSink},
};
use crate::{
    Error, ErrorKind, Result,
    backend::MessagesToEmbed,
    model::{SessionId, SessionKey, TurnSummary, UserId},
    storage::{
        archive::{FORMAT, Record, SessionRecord, invalid},
        deleted::DeletedSessions,
        ingest::SessionIngest,
        store::{Ingestion, SessionExchange, StoreContext},
    },
};

/// The size of the rows of one write, and of those of complete sessions that are written together.
pub(super) const PART_BYTES: usize = 4 << 20;
/// The most sessions that are written together.
const SESSIONS: usize = 64;

/// The sessions to take, and the way to do so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiveOptions {
    /// Only sessions of this user. Others fail. Default: all users.
    pub owner: Option<UserId>,
    /// Whether to store sessions that were deleted from this store. Default: no.
    pub include_deleted: bool,
    /// Whether rows that the sending store has removed become superseded lines, if the rows here are those that it
    /// sent. Default: no; they stay.
    pub follow: bool,
    /// Whether nothing is stored, and the results only say what would be. Default: no.
    pub dry_run: bool,
}

impl ReceiveOptions {
    setters! {
        /// Only takes sessions of this user.
        with_owner(owner: Option<UserId>);
        /// Sets whether to store sessions that were deleted from this store.
        with_include_deleted(include_deleted: bool);
        /// Sets whether rows that the sending store has removed become superseded lines.
        with_follow(follow: bool);
        /// Sets whether nothing is stored.
        with_dry_run(dry_run: bool);
    }
}

/// A session that was taken, and the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceivedSession {
    /// The owner.
    pub user_id: UserId,
    /// The id.
    pub session_id: SessionId,
    /// Whether the sending store has more rows of the session, which it left for the next time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_part: bool,
    /// The result.
    #[serde(flatten)]
    pub result: ReceiveResult,
}

/// The result of taking a session. It is given after the rows are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReceiveResult {
    /// Something was stored.
    Stored {
        /// Whether the session is new.
        created: bool,
        /// The number of new and changed messages.
        messages: u64,
        /// The number of new and changed events.
        events: u64,
        /// The number of lines that were superseded, or kept as superseded lines.
        superseded: u64,
        /// The number of secrets that were masked in lines.
        secrets_masked: u64,
    },
    /// The session was stored already.
    Unchanged,
    /// The rows that the sender goes on after are not stored. It must send the whole session.
    Conflict {
        /// The stored part.
        extent: SessionExtent,
    },
    /// The session was deleted from this store, and is not stored again.
    Deleted,
    /// The session was not stored, or not completely. The next transfer completes it.
    Failed {
        /// The kind of error, as [`ErrorKind::as_str`].
        kind: String,
        /// The reason.
        reason: String,
        /// Whether another attempt may succeed.
        is_retryable: bool,
    },
}

impl ReceiveResult {
    /// The number of messages and events that were written.
    #[must_use]
    pub fn rows(&self) -> u64 {
        match self {
            Self::Stored { messages, events, .. } => messages + events,
            _ => 0,
        }
    }
}

impl ReceivedSession {
    pub(super) fn new(key: &SessionKey, result: ReceiveResult) -> Self {
        let SessionKey { user_id, session_id } = key.clone();
        Self { user_id, session_id, is_part: false, result }
    }

    fn ended(ended: &ReceivedEnd, result: ReceiveResult) -> Self {
        Self { is_part: ended.is_part, ..Self::new(&ended.key, result) }
    }

    fn failed(key: &SessionKey, error: &Error) -> Self {
        let is_retryable = error.is_retryable() || error.kind() == ErrorKind::Conflict;
        let (kind, reason) = (error.kind().as_str().to_owned(), error.to_string());
        Self::new(key, ReceiveResult::Failed { kind, reason, is_retryable })
    }
}

/// The position in the stream.
enum StreamPosition {
    /// Before the first record.
    Start,
    /// Before a session, or the end.
    Between,
    /// In a session.
    Session(Box<Receiving>),
    /// In a session that is not stored.
    Skipping,
    /// After the last record.
    End,
}

/// Takes a stream of sessions, piece by piece. Memory does not grow with it: rows are written when they have 4 MB.
pub struct RowIntake {
    store: StoreContext,
    options: ReceiveOptions,
    decoder: RowDecoder,
    stage: StreamPosition,
    deleted: DeletedSessions,
    /// Complete sessions that are not written yet.
    ready: Vec<(SessionIngest, ReceivedEnd)>,
    results: Vec<ReceivedSession>,
}

impl std::fmt::Debug for RowIntake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowIntake").field("options", &self.options).finish_non_exhaustive()
    }
}

impl SessionExchange<'_> {
    /// Takes a stream of sessions from another store.
    #[must_use]
    pub fn receive(self, options: ReceiveOptions) -> RowIntake {
        RowIntake {
            store: self.store.clone(),
            options,
            decoder: RowDecoder::default(),
            stage: StreamPosition::Start,
            deleted: DeletedSessions::default(),
            ready: Vec::new(),
            results: Vec::new(),
        }
    }
}

#[async_trait]
impl RowSink for RowIntake {
    /// Takes the next bytes.
    ///
    /// A broken record fails its session, and the following ones are taken.
    ///
    /// # Errors
    ///
    /// `Validation` (`archive`) if it is not a stream of sessions that this version can read; errors of the backend.
    async fn put(&mut self, bytes: Vec<u8>) -> Result<()> {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let record = self.decoder.next(&mut rest);
            self.record(record).await?;
        }
        Ok(())
    }
}

impl RowIntake {
    /// The size of the line that is not complete yet, in bytes. It is in memory until it is.
    #[must_use]
    pub fn pending_line(&self) -> usize {
        self.decoder.pending()
    }

    /// Ends the stream. Returns what became of each session, in any order. A session whose end is missing has failed; the
    /// rows that were written of it stay, and the next transfer goes on after them.
    ///
    /// # Errors
    ///
    /// As [`RowSink::put`].
    pub async fn finish(mut self) -> Result<Vec<ReceivedSession>> {
        let last = self.decoder.last();
        self.record(last).await?;
        if let StreamPosition::Start = self.stage {
            return Err(invalid("the stream is empty"));
        }
        self.interrupt(&invalid("the stream ends in the middle of the session")).await?;
        self.write().await?;
        Ok(self.results)
    }

    async fn record(&mut self, record: Result<Option<Record>>) -> Result<()> {
        let taken = match record {
            Ok(Some(record)) => self.take(record).await,
            Ok(None) => return Ok(()),
            Err(error) => Err(error),
        };
        let Err(error) = taken else { return Ok(()) };
        match self.stage {
            StreamPosition::Start | StreamPosition::Between | StreamPosition::End => Err(error),
            // The rest of a session that has failed already.
            StreamPosition::Skipping if error.kind() == ErrorKind::Validation => {
                if error.context("checksum").is_some() {
                    self.stage = StreamPosition::Between;
                }
                Ok(())
            }
            StreamPosition::Skipping => Err(error),
            StreamPosition::Session(_) if concerns_session(&error) => {
                let is_end = error.context("checksum").is_some();
                self.interrupt(&error).await?;
                self.stage = if is_end { StreamPosition::Between } else { StreamPosition::Skipping };
                Ok(())
            }
            StreamPosition::Session(_) => Err(error),
        }
    }

    async fn take(&mut self, record: Record) -> Result<()> {
        match (record, &mut self.stage) {
            (Record::Archive { format: FORMAT, .. }, StreamPosition::Start) => {
                self.stage = StreamPosition::Between
            }
            (Record::Archive { format, writer, .. }, StreamPosition::Start) => {
                let message = format!(
                    "{writer} sends sessions in format {format}, and this program ({}) reads format {FORMAT}",
                    env!("CARGO_PKG_VERSION")
                );
                return Err(invalid(message).with_hint("update both to the same version"));
            }
            (_, StreamPosition::Start) => return Err(invalid("the stream does not begin with its header")),
            (Record::Session(record), StreamPosition::Session(_)) => {
                self.interrupt(&invalid("the end of the session is missing")).await?;
                self.session(*record).await?;
            }
            (Record::Session(record), _) => self.session(*record).await?,
            (Record::Complete { .. }, _) => {
                self.interrupt(&invalid("the end of the session is missing")).await?;
                self.stage = StreamPosition::End;
            }
            (Record::Again, StreamPosition::Session(_)) => {
                let message = "the session changed while it was sent";
                self.interrupt(&Error::new(ErrorKind::Conflict, message).retryable()).await?;
                self.stage = StreamPosition::Between;
            }
            (Record::End { .. } | Record::Again, StreamPosition::Skipping) => {
                self.stage = StreamPosition::Between
            }
            (_, StreamPosition::Skipping) => {}
            (Record::End { messages, events, is_part, .. }, StreamPosition::Session(receiving)) => {
                let ended = receiving.end((messages, events), is_part).await?;
                let StreamPosition::Session(receiving) =
                    std::mem::replace(&mut self.stage, StreamPosition::Between)
                else {
                    return Ok(());
                };
                return self.complete(*receiving, ended).await;
            }
            (Record::Message(record), StreamPosition::Session(receiving)) => {
                receiving.message(*record).await?
            }
            (Record::Event(record), StreamPosition::Session(receiving)) => receiving.event(*record).await?,
            (Record::Superseded(record), StreamPosition::Session(receiving)) => {
                receiving.superseded(*record).await?
            }
            (_, StreamPosition::Between) => return Err(invalid("the record does not belong to any session")),
            (_, StreamPosition::End) => return Err(invalid("the stream continues after its end")),
            (Record::Archive { .. }, _) => return Err(invalid("the stream has a second header")),
        }
        Ok(())
    }

    async fn session(&mut self, record: SessionRecord) -> Result<()> {
        // Its rows follow, whether it is stored or not.
        self.stage = StreamPosition::Skipping;
        let key = record.session.key();
        if self.ready.iter().any(|(_, ended)| ended.key == key) {
            self.write().await?;
        }
        let begun = Receiving::begin(&self.store, &self.options, record, &mut self.deleted).await;
        match begun {
            Ok(Begun::Rows(receiving)) => self.stage = StreamPosition::Session(receiving),
            Ok(Begun::Refused(result)) => self.results.push(ReceivedSession::new(&key, result)),
            Err(error) if concerns_session(&error) => {
                self.results.push(ReceivedSession::failed(&key, &error));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn complete(&mut self, receiving: Receiving, ended: ReceivedEnd) -> Result<()> {
        if self.options.dry_run {
            self.results.push(ReceivedSession::ended(&ended, ended.expected()));
            return Ok(());
        }
        self.ready.push((receiving.into_ingest(), ended));
        let bytes: usize = self.ready.iter().map(|(ingest, _)| ingest.pending_bytes()).sum();
        if bytes >= PART_BYTES || self.ready.len() >= SESSIONS { self.write().await } else { Ok(()) }
    }

    /// Fails the session that is being read, if there is one. Rows that were written of it stay.
    async fn interrupt(&mut self, error: &Error) -> Result<()> {
        if let StreamPosition::Session(receiving) =
            std::mem::replace(&mut self.stage, StreamPosition::Between)
        {
            self.results.push(ReceivedSession::failed(receiving.key(), error));
        }
        Ok(())
    }

    /// Writes the sessions that are complete.
    async fn write(&mut self) -> Result<()> {
        let (ingests, ended): (Vec<_>, Vec<_>) = std::mem::take(&mut self.ready).into_iter().unzip();
        let written = Ingestion::new(&self.store).commit_all(ingests).await;
        for (mut ended, written) in ended.into_iter().zip(written) {
            let summaries = std::mem::take(&mut ended.summaries);
            if written.is_ok() {
                set_newer(&self.store, &ended.key, summaries).await?;
                let (project, lines) = &ended.posted;
                for line in lines {
                    if let Some(posting) = EventPosting::of(&self.store, (&ended.key, project), line.clone())?
                    {
                        posting.post().await?;
                    }
                }
            }
            self.results.push(match written {
                Ok(report) => ReceivedSession::ended(&ended, ended.result(&report)),
                Err(error) if concerns_session(&error) => ReceivedSession::failed(&ended.key, &error),
                Err(error) => return Err(error),
            });
        }
        Ok(())
    }
}

/// Sets the summaries of turns that are newer than those here.
async fn set_newer(store: &StoreContext, key: &SessionKey, mut summaries: Vec<TurnSummary>) -> Result<()> {
    if summaries.is_empty() {
        return Ok(());
    }
    let stored = store.summaries_of(key).await?;
    summaries.retain(|summary| {
        let known = stored.get(&summary.user_sequence).filter(|known| !known.is_stated);
        known.is_none_or(|known| known.set_at < summary.set_at && known.text != summary.text)
    });
    if summaries.is_empty() {
        return Ok(());
    }
    let users = summaries.iter().map(|summary| summary.user_sequence).collect();
    store.backend.write_summaries(key, summaries).await?;
    store.backend.mark_pending(key, MessagesToEmbed::TurnsAt(users)).await.map(drop)
}

/// Whether an error concerns only one session. Others end the stream.
fn concerns_session(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Validation | ErrorKind::EventTooLarge | ErrorKind::Conflict | ErrorKind::Damaged
    )
}
