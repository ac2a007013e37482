//! Writes the rows of one session after those that the receiver has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    row_digests,
    wire::{RowEncoder, RowSink},
};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{StoredSession, SupersededQuery},
    events::assemble,
    model::{Digest, LineKind, Session, SessionKey, SupersededPiece, TurnSummary, Visibility},
    search::SessionFilter,
    storage::{
        archive::{
            ArchivedSummary, FollowingLines, Record, RowChain, RowChains, SentSuperseded, SessionRecord,
            SupersededRecord, TransferHead, event_record, message_record,
        },
        session_rows::{SessionRows, changing},
        store::{SessionExchange, StoreContext, SupersededHistory},
        superseded::unpack,
    },
};

/// The rows of a session to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SendRows {
    /// The session.
    pub session: SessionKey,
    /// The rows that the receiver has. If they are not the first ones of the session, all rows of their kind are sent.
    pub before: RowChains,
    /// The superseded lines that the receiver has.
    pub superseded: SentSuperseded,
    /// Whether the receiver may have other rows in place of those that are sent. Then it gets their digests first.
    pub may_replace: bool,
    /// The size of the lines after which the rest is left for the next time, in bytes. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

impl SendRows {
    /// All rows of a session.
    #[must_use]
    pub fn new(session: SessionKey) -> Self {
        Self {
            session,
            before: RowChains::default(),
            superseded: SentSuperseded::default(),
            may_replace: false,
            max_bytes: None,
        }
    }

    setters! {
        /// Sets the rows that the receiver has.
        with_before(before: RowChains);
        /// Sets the superseded lines that the receiver has.
        with_superseded(superseded: SentSuperseded);
        /// Sets whether the receiver may have other rows in place of those that are sent.
        with_may_replace(may_replace: bool);
        /// Sets the size after which the rest is left for the next time.
        with_max_bytes(max_bytes: Option<u64>);
    }
}

/// The rows of a session that were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SentRows {
    /// The number of messages.
    pub messages: u64,
    /// The number of events.
    pub events: u64,
    /// The number of superseded lines.
    pub superseded: u64,
    /// Whether the session has more rows, which were left for the next time.
    pub is_part: bool,
}

/// The record of a session as it is sent: without what does not travel.
pub(super) fn travelling(stored: StoredSession) -> SessionRecord {
    let mut record = SessionRecord::from(stored);
    record.sync_state = None;
    let Session { visibility, org_id, team_ids, shared_at, .. } = &mut record.session;
    (*visibility, *org_id, *shared_at) = (Visibility::Private, None, None);
    team_ids.clear();
    record
}

/// The digest of everything about a session that is sent and is not a row.
pub(super) fn digest_of_record(record: &SessionRecord) -> Result<Digest> {
    let bytes = serde_json::to_vec(record).map_err(|source| {
        Error::new(ErrorKind::StorageIo, "a session can't be written as JSON").with_source(source)
    })?;
    Ok(Digest::of(&bytes))
}

/// The superseded lines of a session.
pub(super) async fn superseded_of(store: &StoreContext, key: &SessionKey) -> Result<Vec<SupersededPiece>> {
    let (mut pages, mut pieces) = (SessionRows::new(store, key).superseded(false), Vec::new());
    while let Some(page) = pages.next().await? {
        pieces.extend(page);
    }
    Ok(pieces)
}

/// The state of superseded lines after all of them are sent.
pub(super) fn all_superseded(pieces: &[SupersededPiece]) -> SentSuperseded {
    SentSuperseded {
        pieces: pieces.len() as u32,
        until: pieces.iter().map(|piece| piece.superseded_at).max(),
    }
}

impl SessionExchange<'_> {
    /// Writes the rows of a session to a stream: a record of the session, which says after which rows the following ones
    /// come, and the rows. A line that was appended to a session of any length is sent alone. Only a few rows are in
    /// memory.
    ///
    /// # Errors
    ///
    /// `SessionNotFound`; `Damaged` if a row can't be read, and `Conflict` (retryable) if rows are replaced meanwhile:
    /// then the receiver stores nothing, and the stream can go on with another session; errors of `sink` and of the
    /// backend.
    pub async fn send(
        self,
        rows: &SendRows,
        encoder: &mut RowEncoder,
        sink: &mut dyn RowSink,
    ) -> Result<SentRows> {
        let key = &rows.session;
        let Some(stored) = self.store.backend.get_session(key).await? else {
            return Err(Error::new(ErrorKind::SessionNotFound, "the session is not stored")
                .with("session", &key.session_id));
        };
        let (version, record) = (stored.version.clone(), self.head(rows, stored).await?);
        let mut sending = Sending {
            store: self.store,
            key,
            limit: rows.max_bytes.map(|most| encoder.bytes().saturating_add(most)),
            encoder,
            sink,
            chains: record.transfer.as_ref().map(|head| head.before).unwrap_or_default(),
            summaries: self.store.summaries_of(key).await?,
            sent: SentRows::default(),
        };
        let has = (record.session.message_count, record.session.event_count);
        sending.put(Record::Session(Box::new(record))).await?;
        match sending.rows(has, rows.superseded, &version).await {
            Err(error) if matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Conflict) => {
                sending.put(Record::Again).await?;
                Err(error)
            }
            Err(error) => Err(error),
            Ok(()) => {
                let RowChains { messages, events } = sending.chains;
                let (messages, events, is_part) = (messages.count, events.count, sending.sent.is_part);
                sending.put(Record::End { messages, events, checksum: None, is_part }).await?;
                Ok(sending.sent)
            }
        }
    }

    /// The record of a session, with the head of the transfer.
    async fn head(self, rows: &SendRows, stored: StoredSession) -> Result<SessionRecord> {
        let (key, version) = (stored.session.key(), stored.version.0.clone());
        let posted = Some(stored.events_of_logs()).filter(|first| *first < stored.session.event_count);
        let mut record = travelling(stored);
        let about = digest_of_record(&record)?;
        let (mut before, mut following) = (RowChains::default(), [Vec::new(), Vec::new()]);
        let kinds = [
            (LineKind::Message, record.session.message_count, &mut before.messages),
            (LineKind::Event, record.session.event_count, &mut before.events),
        ];
        for ((kind, has, before), following) in kinds.into_iter().zip(&mut following) {
            let wanted = rows.before.of_kind(kind);
            let wanted = if wanted.count > has { RowChain::default() } else { wanted };
            if wanted.count == 0 && !rows.may_replace {
                continue;
            }
            let count = if rows.may_replace { has } else { wanted.count };
            let digests = row_digests(self.store, &key, kind, count).await?;
            let known = digests.get(..wanted.count as usize).map(RowChain::of);
            *before = known.filter(|known| *known == wanted).unwrap_or_default();
            following.extend(digests.into_iter().skip(before.count as usize));
        }
        let superseded = all_superseded(&superseded_of(self.store, &key).await?);
        let [messages, events] = &following;
        record.transfer = Some(Box::new(TransferHead {
            store: self.store_id().await?,
            version,
            about,
            before,
            superseded,
            posted,
            following: rows.may_replace.then(|| FollowingLines::new(messages, events)),
        }));
        Ok(record)
    }
}

/// A session that is being sent.
struct Sending<'a> {
    store: &'a StoreContext,
    key: &'a SessionKey,
    encoder: &'a mut RowEncoder,
    sink: &'a mut dyn RowSink,
    /// The size of the stream after which the rest is left out.
    limit: Option<u64>,
    /// The rows that the receiver has, including those that were sent.
    chains: RowChains,
    /// Those that a person set are sent with their messages.
    summaries: BTreeMap<u32, TurnSummary>,
    sent: SentRows,
}

impl Sending<'_> {
    async fn put(&mut self, record: Record) -> Result<()> {
        self.encoder.put(record, self.sink).await
    }

    fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.encoder.bytes() >= limit)
    }

    /// Sends the rows of a session that has this many messages and events, and its superseded lines.
    async fn rows(
        &mut self,
        has: (u32, u32),
        known: SentSuperseded,
        version: &crate::backend::Version,
    ) -> Result<()> {
        self.messages(has.0).await?;
        if !self.sent.is_part {
            self.events(has.1).await?;
        }
        if !self.sent.is_part {
            self.superseded(known).await?;
        }
        let now = self.store.backend.get_session(self.key).await?;
        if now.is_none_or(|now| now.version != *version) {
            check_unchanged(self.store, self.key, self.chains).await?;
            // There is more to send, or the record of the session has changed.
            self.sent.is_part = true;
        }
        Ok(())
    }

    async fn messages(&mut self, has: u32) -> Result<()> {
        let mut pages = SessionRows::new(self.store, self.key).messages(self.chains.messages.count).strict();
        while self.chains.messages.count < has {
            let Some(page) = pages.next().await? else { return Err(changing(self.key)) };
            for message in page {
                if self.chains.messages.count == has {
                    return Ok(());
                }
                if self.is_full() {
                    self.sent.is_part = true;
                    return Ok(());
                }
                let (digest, sequence) = (message.digest, message.sequence);
                let mut record = message_record(message, sequence);
                record.digest = Some(digest);
                let summary = self.summaries.get(&sequence).filter(|summary| !summary.is_stated);
                record.turn_summary = summary.map(ArchivedSummary::from);
                self.put(Record::Message(Box::new(record))).await?;
                self.chains.messages = self.chains.messages.with(digest);
                self.sent.messages += 1;
            }
        }
        Ok(())
    }

    async fn events(&mut self, has: u32) -> Result<()> {
        let mut pages = SessionRows::new(self.store, self.key).stored_events(self.chains.events.count);
        while self.chains.events.count < has {
            let Some(page) = pages.next().await? else { return Err(changing(self.key)) };
            for stored in page {
                if self.chains.events.count == has {
                    return Ok(());
                }
                if self.is_full() {
                    self.sent.is_part = true;
                    return Ok(());
                }
                let (digest, sequence) = (stored.event.digest, stored.event.sequence);
                self.put(event_record(stored.event, sequence, assemble(stored.payload)?)).await?;
                self.chains.events = self.chains.events.with(digest);
                self.sent.events += 1;
            }
        }
        Ok(())
    }

    /// Sends the superseded lines that the receiver may lack.
    async fn superseded(&mut self, known: SentSuperseded) -> Result<()> {
        let pieces = superseded_of(self.store, self.key).await?;
        if all_superseded(&pieces) == known {
            return Ok(());
        }
        let is_known =
            |piece: &SupersededPiece| known.until.is_some_and(|until| piece.superseded_at <= until);
        let has_all_known = pieces.iter().filter(|piece| is_known(piece)).count() as u32 == known.pieces;
        let query = SupersededQuery::new(Scope::User(self.key.user_id.clone()))
            .with_filter(SessionFilter::default().with_session(self.key.session_id.clone()));
        let mut lines = SupersededHistory::new(self.store).superseded_lines(query);
        while let Some(group) = lines.next_group().await? {
            let Some(piece) = group.first().filter(|piece| !(has_all_known && is_known(piece))) else {
                continue;
            };
            for (head, raw) in unpack(&group)? {
                self.put(Record::Superseded(Box::new(SupersededRecord::new(piece, head, raw)))).await?;
                self.sent.superseded += 1;
            }
        }
        Ok(())
    }
}

/// Fails if a row that was sent is not stored any more.
async fn check_unchanged(store: &StoreContext, key: &SessionKey, sent: RowChains) -> Result<()> {
    for kind in LineKind::ALL {
        let sent = sent.of_kind(kind);
        if RowChain::of(&row_digests(store, key, kind, sent.count).await?) != sent {
            return Err(changing(key));
        }
    }
    Ok(())
}
