//! A session that is taken from another store.

use super::{
    beginning::{
        KindRows, checked_head, conflict, describe, ingest_target, received_at_first, start_of_rows,
    },
    fields::edited_fields,
    intake::{PART_BYTES, ReceiveOptions, ReceiveResult},
    posted::EventPosting,
    received_end::ReceivedEnd,
};
use crate::{
    Result,
    backend::StoredSession,
    model::{
        Digest, LineKind, RawJson, Session, SessionKey, SupersededReason, TimeSource, Timestamp, TurnSummary,
    },
    storage::{
        archive::{
            ArchivedSummary, EventRecord, MessageRecord, SessionRecord, SupersededRecord, TransferHead,
            digest, invalid,
        },
        deleted::DeletedSessions,
        ingest::{
            Extent, KeptAs, LineOutcome, ReceivedFrom, ReceivedKind, ReceivedRows, Remaining, SessionIngest,
            is_unknown,
        },
        session_rows::changing,
        store::{Ingestion, StoreContext},
        superseded::{LineHead, OldLine},
    },
};

/// A session of which rows follow.
pub(super) struct Receiving {
    store: StoreContext,
    now: Timestamp,
    key: SessionKey,
    /// The session in the sending store.
    session: Session,
    head: TransferHead,
    ingest: SessionIngest,
    messages: KindRows,
    events: KindRows,
    /// Whether the rows that are stored are those of the sending store, which may replace them.
    owns_rows: bool,
    /// The last transfer of the sending store.
    before: Option<ReceivedFrom>,
    /// The summaries of turns that came with their messages.
    summaries: Vec<TurnSummary>,
    /// The number of lines that are kept as superseded lines.
    kept: u64,
    /// The row of the first event that was posted to the sending store, if it is stored in its place.
    posted_from: Option<u32>,
    /// Events that were posted to the sending store, and that no log has here, although its next rows are others.
    posted: Vec<RawJson>,
    /// Whether such events came, known or not.
    has_posted_aside: bool,
    follow: bool,
    dry_run: bool,
}

/// The beginning of a session.
pub(super) enum Begun {
    /// Its rows are taken.
    Rows(Box<Receiving>),
    /// They are not.
    Refused(ReceiveResult),
}

/// The content of a line, and what the sending store knows about it.
struct SentLine {
    kind: LineKind,
    sequence: u32,
    turn: Option<u32>,
    ts: Timestamp,
    ts_source: Option<TimeSource>,
    event_type: Option<String>,
    raw: RawJson,
}

impl Receiving {
    pub(super) async fn begin(
        store: &StoreContext,
        options: &ReceiveOptions,
        mut record: SessionRecord,
        deleted: &mut DeletedSessions,
    ) -> Result<Begun> {
        let head = checked_head(&mut record)?;
        let key = record.session.key();
        if options.owner.as_ref().is_some_and(|owner| *owner != key.user_id) {
            return Err(invalid("it belongs to another user"));
        }
        let stored = store.backend.get_session(&key).await?;
        if stored.is_none() && !options.include_deleted && deleted.contains(&*store.backend, &key).await? {
            return Ok(Begun::Refused(ReceiveResult::Deleted));
        }
        let received = stored.as_ref().map(ReceivedRows::of).unwrap_or_default();
        let before = received.sent_by(&head.store).cloned();
        let mut kinds = Vec::with_capacity(2);
        for kind in [LineKind::Message, LineKind::Event] {
            match start_of_rows(store, &key, stored.as_ref(), before.as_ref(), &head, kind).await? {
                Some(rows) => kinds.push(rows),
                None => return Ok(Begun::Refused(conflict(&key, stored.as_ref(), &head.store))),
            }
        }
        let [messages, mut events] = <[KindRows; 2]>::try_from(kinds).unwrap_or_default();
        events.stored = stored.as_ref().map_or(0, StoredSession::events_of_logs);
        let owns_rows = stored.is_none() || received.rows_of.as_ref() == Some(&head.store);
        let describes = stored.as_ref().is_none_or(|stored| {
            let is_newest = record.session.updated >= stored.session.updated;
            owns_rows || is_newest || is_unknown(&stored.session.host_id)
        });
        let target = ingest_target(&record.session, stored.as_ref().filter(|_| !describes));
        let mut ingest = Ingestion::new(store).ingest(target).await?.in_parts_of(PART_BYTES);
        let version = |stored: &StoredSession| stored.version.clone();
        if ingest.stored().map(version) != stored.as_ref().map(version) {
            return Err(changing(&key));
        }
        ingest.continue_settled();
        let session = record.session.clone();
        if describes {
            describe(&mut ingest, record)?;
        }
        ingest.set_received(received_at_first(received, &head, stored.is_none()));
        Ok(Begun::Rows(Box::new(Self {
            store: store.clone(),
            now: store.now(),
            key,
            session,
            head,
            ingest,
            messages,
            events,
            owns_rows,
            before,
            summaries: Vec::new(),
            kept: 0,
            posted_from: None,
            posted: Vec::new(),
            has_posted_aside: false,
            follow: options.follow,
            dry_run: options.dry_run,
        })))
    }

    pub(super) fn key(&self) -> &SessionKey {
        &self.key
    }

    pub(super) fn into_ingest(self) -> SessionIngest {
        self.ingest
    }

    pub(super) async fn message(&mut self, record: MessageRecord) -> Result<()> {
        let raw = record.raw.whole()?;
        let stated = record.digest.ok_or_else(|| invalid("the message has no digest"))?;
        check(&raw, stated)?;
        self.next(LineKind::Message, record.sequence, stated)?;
        let summary =
            record.turn_summary.map(|summary| (summary, self.ingest.line_digester().digest(raw.as_bytes())));
        self.line(SentLine {
            kind: LineKind::Message,
            sequence: record.sequence,
            turn: record.turn,
            ts: record.ts,
            ts_source: Some(record.ts_source),
            event_type: None,
            raw,
        })
        .await?;
        summary.map_or(Ok(()), |(summary, digest)| self.summary(summary, digest))
    }

    /// Takes the summary of the turn that the last message begins. Those that lines state come from the lines.
    fn summary(&mut self, summary: ArchivedSummary, digest: Digest) -> Result<()> {
        let row = self.row_after(LineKind::Message).checked_sub(1).filter(|_| !self.messages.is_diverged);
        if let Some(user_sequence) = row.filter(|_| !summary.is_stated && !self.dry_run) {
            let text = self.ingest.masked_text(summary.text)?;
            let (session, set_at) = (self.key.clone(), summary.set_at);
            self.summaries.push(TurnSummary {
                session,
                user_sequence,
                digest,
                text,
                is_stated: false,
                set_at,
            });
        }
        Ok(())
    }

    pub(super) async fn event(&mut self, record: EventRecord) -> Result<()> {
        let (raw, stated) = (record.raw.kept()?, digest(&record.digest)?);
        raw.as_ref().map_or(Ok(()), |raw| check(raw, stated))?;
        self.next(LineKind::Event, record.sequence, stated)?;
        // Fields without their line are not believed.
        let Some(raw) = raw else { return Ok(()) };
        self.line(SentLine {
            kind: LineKind::Event,
            sequence: record.sequence,
            turn: record.turn,
            ts: record.ts,
            ts_source: None,
            event_type: Some(record.event_type),
            raw,
        })
        .await
    }

    pub(super) async fn superseded(&mut self, record: SupersededRecord) -> Result<()> {
        // Fields without their line are not believed.
        if self.dry_run || record.is_summary {
            return Ok(());
        }
        let kept_as = KeptAs {
            kind: record.kind,
            reason: record.reason,
            superseded_at: Some(record.superseded_at),
            piece: Some(record.piece),
        };
        let raw = record.raw.whole()?;
        let head = LineHead {
            sequence: record.sequence,
            bytes: raw.as_bytes().len(),
            turn: record.turn,
            ts: record.ts,
            ts_source: record.ts_source,
            event_type: record.event_type,
            is_summary: record.is_summary,
        };
        self.keep(kept_as, OldLine { head, raw }).await
    }

    /// Ends the session, which has this many rows in the sending store, or a part of it.
    pub(super) async fn end(&mut self, stated: (u32, u32), is_part: bool) -> Result<ReceivedEnd> {
        if stated != (self.messages.chain.count, self.events.chain.count) {
            return Err(invalid("rows of the session are missing"));
        }
        let created = self.ingest.stored().is_none();
        let mut ended = ReceivedEnd {
            key: self.key.clone(),
            is_part,
            summaries: std::mem::take(&mut self.summaries),
            posted: (self.session.project_slug.clone(), std::mem::take(&mut self.posted)),
            created,
            has_other_fields: false,
            kept: self.kept,
            new: (self.messages.new, self.events.new),
        };
        if self.dry_run {
            return Ok(ended);
        }
        for kind in [LineKind::Message, LineKind::Event] {
            self.end_rows(kind, is_part).await?;
        }
        let edited = self.before.as_ref().map(|before| before.edited.clone()).unwrap_or_default();
        ended.has_other_fields = self.ingest.set_sent_fields(&self.session, &edited)?;
        let received = self.received(is_part);
        self.ingest.set_posted_lines(self.posted_lines());
        self.ingest.set_received(received);
        Ok(ended)
    }

    /// The row of the first event that is still a posted one. `first` is that row at the beginning.
    fn first_posted(&self, first: u32) -> Option<u32> {
        if self.events.is_diverged {
            return Some(first);
        }
        let count = self.ingest.stored().map_or(0, |stored| stored.session.event_count);
        // The sending store may have the same lines.
        Some(first.max(self.row_after(LineKind::Event))).filter(|first| *first < count)
    }

    /// The row of the first event here that is a posted one of the sending store.
    fn posted_lines(&self) -> Option<u32> {
        // They came before, with those that the sending store goes on after.
        let before = self.head.posted.is_some_and(|first| first < self.head.before.events.count);
        let stays = self.ingest.received().posted.filter(|first| before && *first < self.events.row);
        [stays, self.posted_from].into_iter().flatten().min()
    }

    async fn end_rows(&mut self, kind: LineKind, is_part: bool) -> Result<()> {
        let is_known = kind != LineKind::Event || !self.has_posted_aside;
        let removes = self.follow && self.owns_rows && !is_part && is_known;
        let rows = self.rows_mut(kind);
        if !rows.is_begun && !rows.is_diverged && removes && rows.row < rows.stored {
            rows.is_begun = true;
            let row = rows.row;
            self.ingest.begin(kind, row).await?;
        }
        let missing = self.ingest.missing(kind);
        let rows = match kind {
            LineKind::Message => &mut self.messages,
            LineKind::Event => &mut self.events,
        };
        if !rows.is_begun {
            return Ok(());
        }
        if removes && !rows.is_replacing && !rows.is_diverged && missing > 0 {
            let remaining = Remaining { decided: Some(SupersededReason::Rewound), ..Remaining::default() };
            self.ingest.supersede(kind, &remaining);
            rows.is_replacing = true;
        }
        // Of a part, the rows that follow are not known: those that are stored stay until then.
        let is_whole = missing == 0 || (rows.is_replacing && !is_part);
        self.ingest.end(kind, if is_whole && !rows.is_diverged { Extent::Whole } else { Extent::Part });
        Ok(())
    }

    /// The state after which the next transfer of the sending store goes on.
    fn received(&self, is_part: bool) -> ReceivedRows {
        let mut received = self.ingest.received().clone();
        let stays = received.posted.and_then(|first| self.first_posted(first));
        received.posted = [stays, self.posted_lines()].into_iter().flatten().min();
        let writes_events = self.posted_from.map_or_else(
            || self.ingest.touches(LineKind::Event),
            |first| self.ingest.touches_events_before(first),
        );
        let has_written = writes_events || self.ingest.touches(LineKind::Message);
        let has_all = |kind| {
            let rows = self.rows(kind);
            !rows.is_diverged && self.row_after(kind) >= rows.stored
        };
        let is_alone = received.rows_of.is_none() && has_all(LineKind::Message) && has_all(LineKind::Event);
        if has_written || is_alone {
            received.rows_of = Some(self.head.store.clone());
        }
        let kind = |kind| {
            let rows = self.rows(kind);
            ReceivedKind { chain: rows.chain, row: self.row_after(kind), is_diverged: rows.is_diverged }
        };
        let superseded = self.before.as_ref().map(|before| before.superseded).unwrap_or_default();
        received.put(ReceivedFrom {
            store: self.head.store.clone(),
            version: (!is_part).then(|| self.head.version.clone()),
            about: self.head.about,
            messages: kind(LineKind::Message),
            events: kind(LineKind::Event),
            superseded: if is_part { superseded } else { self.head.superseded },
            edited: edited_fields(&self.session),
            left: self.ingest.digest_of_fields(),
        });
        received
    }

    fn rows(&self, kind: LineKind) -> &KindRows {
        match kind {
            LineKind::Message => &self.messages,
            LineKind::Event => &self.events,
        }
    }

    fn rows_mut(&mut self, kind: LineKind) -> &mut KindRows {
        match kind {
            LineKind::Message => &mut self.messages,
            LineKind::Event => &mut self.events,
        }
    }

    /// The number of rows here after the last line that was taken.
    fn row_after(&self, kind: LineKind) -> u32 {
        let rows = self.rows(kind);
        if rows.is_begun { self.ingest.next_row(kind) } else { rows.row }
    }

    /// Rows must come in order, without gaps.
    fn next(&mut self, kind: LineKind, sequence: u32, digest: Digest) -> Result<()> {
        let rows = self.rows_mut(kind);
        if rows.chain.count != sequence {
            let expected = rows.chain.count;
            return Err(invalid(format!("row {sequence} is out of order: expected row {expected}")));
        }
        rows.chain = rows.chain.with(digest);
        Ok(())
    }

    async fn line(&mut self, line: SentLine) -> Result<()> {
        let kind = line.kind;
        let (owns_rows, dry_run, before) = (self.owns_rows, self.dry_run, self.head.before.of_kind(kind));
        let rows = match kind {
            LineKind::Message => &mut self.messages,
            LineKind::Event => &mut self.events,
        };
        if dry_run {
            let row = rows.row + (rows.chain.count - before.count) - 1;
            rows.new += u64::from(row >= rows.stored || rows.is_diverged);
            return Ok(());
        }
        if !rows.is_diverged && !rows.is_begun {
            rows.is_begun = true;
            self.ingest.begin(kind, rows.row).await?;
        }
        let is_posted =
            kind == LineKind::Event && self.head.posted.is_some_and(|first| first <= line.sequence);
        let differs =
            !rows.is_diverged && !rows.is_replacing && self.ingest.differs(kind, line.raw.as_bytes());
        if is_posted && (differs || rows.is_diverged) {
            return self.posted(line).await;
        }
        if differs {
            if owns_rows {
                let lines = rows.lines_from_last(before);
                self.ingest.supersede(kind, &Remaining { lines, ..Remaining::default() });
                rows.is_replacing = true;
            } else {
                rows.is_diverged = true;
            }
        }
        if rows.is_diverged {
            return self.diverged(line).await;
        }
        if is_posted && self.posted_from.is_none() {
            let row = self.ingest.next_row(kind);
            self.posted_from = Some(row).filter(|row| *row >= rows.stored || rows.is_replacing);
        }
        let seen = if line.ts.is_plausible() { line.ts } else { self.now };
        if let LineOutcome::Skipped { line: raw, .. } = self.ingest.line(kind, line.raw, seen).await? {
            let old = OldLine::unreadable(line.sequence.saturating_add(1), raw, seen);
            self.keep(KeptAs::now(kind, SupersededReason::Unreadable), old).await?;
        }
        Ok(())
    }

    /// Takes an event that was posted to the sending store, in whose place there is another row here: a log may have it, or
    /// will.
    async fn posted(&mut self, line: SentLine) -> Result<()> {
        let raw = self.ingest.masked(line.raw.clone()).await?;
        let of = (&self.key, &self.session.project_slug);
        let Ok(Some(posting)) = EventPosting::of(&self.store, of, raw.clone()) else {
            return self.diverged(line).await;
        };
        if !posting.is_known(&raw).await? {
            let bytes: usize = self.posted.iter().map(|line| line.as_bytes().len()).sum();
            if bytes > PART_BYTES {
                return self.diverged(line).await;
            }
            self.posted.push(raw);
        }
        self.has_posted_aside = true;
        Ok(())
    }

    async fn diverged(&mut self, line: SentLine) -> Result<()> {
        let SentLine { kind, sequence, turn, ts, ts_source, event_type, raw } = line;
        let bytes = raw.as_bytes().len();
        let head = LineHead { sequence, bytes, turn, ts, ts_source, event_type, is_summary: false };
        self.keep(KeptAs::now(kind, SupersededReason::Diverged), OldLine { head, raw }).await
    }

    async fn keep(&mut self, kept_as: KeptAs, line: OldLine) -> Result<()> {
        let (_, is_new) = self.ingest.keep_line(kept_as, line).await?;
        self.kept += u64::from(is_new);
        Ok(())
    }
}

/// Whether a line is the one that was sent.
fn check(raw: &RawJson, stated: Digest) -> Result<()> {
    if Digest::of(raw.as_bytes()) == stated {
        return Ok(());
    }
    Err(invalid("the line is not the one that was sent: its digest does not match"))
}
