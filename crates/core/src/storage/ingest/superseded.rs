//! Keeps the lines that a file has lost: no file removes what was stored.
//!
//! The remaining lines of a file after its first difference from the stored rows determine why: the session was rewound,
//! or lines have changed or disappeared.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::SessionIngest;
use crate::{
    Result,
    backend::{
        EventTime, KeptLine, RowChange, SequenceRange, StorageBackendExt, StoredSyncState, SupersededQuery,
    },
    blocking,
    content::MessageLine,
    events::parse_event_line,
    model::{
        Digest, Event, LineKind, Message, MessageState, RawJson, SessionSource, SupersededReason, Timestamp,
    },
    scope::Scope,
    search::SessionFilter,
    storage::{
        line_masker::LineDigester,
        session_writer::superseded_bytes,
        superseded::{OldLine, PiecePacker, unpack_all},
    },
};

/// The number of events read at a time.
const PAGE: usize = 1_000;
/// The size of event lines read at a time.
const PAGE_BYTES: u64 = 8 << 20;

/// The lines of a file from its first difference from the stored rows on.
#[derive(Debug, Default)]
pub struct Remaining {
    /// Their digests. Empty at the end of the file.
    pub lines: Vec<Digest>,
    /// The digests of lines that are not stored because another file has the same content. One that was stored before
    /// is not lost.
    pub elsewhere: Vec<Digest>,
    /// Whether an earlier ingest of the session was interrupted after it had begun to replace rows of this kind. Then
    /// some of the lines may be stored twice, in their old place and in the new one.
    pub interrupted: bool,
    /// The decision of that ingest, if the file is still the same.
    pub decided: Option<SupersededReason>,
}

/// The rows of one kind to supersede.
#[derive(Debug)]
pub(super) struct Superseding {
    kind: LineKind,
    reason: SupersededReason,
    /// The sequence of the first row that may be removed.
    first: u32,
    /// The digests of the rows from there on.
    old: Vec<Digest>,
    /// How often each line is still to be superseded.
    lost: HashMap<Digest, usize>,
}

/// The state of superseded lines during an ingest.
#[derive(Debug, Default)]
pub(super) struct SupersededRows {
    messages: Option<Superseding>,
    events: Option<Superseding>,
    /// The sync state to store before rows are replaced.
    state: Option<String>,
    /// Whether that state was stored, if writes are not atomic.
    is_announced: bool,
    /// The lines that were superseded before, if needed: kind, sequence and digest.
    known: Option<HashSet<(LineKind, u32, Digest)>>,
    /// Lines that never were rows here and are not stored yet, and their size.
    kept: Vec<(KeptAs, OldLine)>,
    kept_bytes: usize,
}

/// Why a line is kept that never was a row here. Consecutive lines with the same reasons are stored together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::storage) struct KeptAs {
    pub(in crate::storage) kind: LineKind,
    pub(in crate::storage) reason: SupersededReason,
    /// The time when it was superseded in the store that it comes from. Default: now.
    pub(in crate::storage) superseded_at: Option<Timestamp>,
    /// The piece in which that store has it.
    pub(in crate::storage) piece: Option<String>,
}

impl KeptAs {
    pub(in crate::storage) const fn now(kind: LineKind, reason: SupersededReason) -> Self {
        Self { kind, reason, superseded_at: None, piece: None }
    }
}

impl SessionIngest {
    /// Computes the digests for [`Remaining`].
    #[must_use]
    pub fn line_digester(&self) -> LineDigester {
        LineDigester(self.masker.clone())
    }

    /// Whether `line`, the next one, is valid and differs from the stored row with its sequence.
    #[must_use]
    pub fn differs(&self, kind: LineKind, line: &[u8]) -> bool {
        self.position(kind).differs(|| self.masker.digest(line)) && Self::is_valid(kind, line)
    }

    /// Whether `line` is a valid message or event of Amplifier, whose files are the only ones that are synced.
    #[must_use]
    pub fn is_valid(kind: LineKind, line: &[u8]) -> bool {
        let line = RawJson::new(line);
        match kind {
            LineKind::Message => MessageLine::parse(&line, SessionSource::default()).is_ok(),
            LineKind::Event => parse_event_line(&line).is_ok(),
        }
    }

    /// Supersedes stored rows from the next line on that the file no longer contains, and returns why. Without this call,
    /// they are removed. Call this for messages first.
    pub fn supersede(&mut self, kind: LineKind, remaining: &Remaining) -> Option<SupersededReason> {
        let position = self.position(kind);
        let (first, old) = (position.next(), position.following().to_vec());
        let lost = lost(&old, position.preceding(), remaining);
        if lost.is_empty() {
            return None;
        }
        let reason = remaining.decided.unwrap_or_else(|| match kind {
            LineKind::Message => self.reason_of_messages(first, &old, remaining),
            LineKind::Event => self.reason_of_events(first, &old, remaining),
        });
        let superseding = Some(Superseding { kind, reason, first, old, lost });
        match kind {
            LineKind::Message => self.superseded.messages = superseding,
            LineKind::Event => self.superseded.events = superseding,
        }
        Some(reason)
    }

    /// It is a rewind if the next stored message begins a turn, none of the following ones is among the remaining lines,
    /// and the transcript does not have as many lines as before.
    fn reason_of_messages(&self, first: u32, old: &[Digest], remaining: &Remaining) -> SupersededReason {
        let lines: HashSet<&Digest> = remaining.lines.iter().collect();
        let recurs = old.iter().any(|digest| lines.contains(digest));
        let has_as_many = remaining.lines.len() == old.len();
        if first > 0 && begins_turn(first as usize, &self.messages.states) && !recurs && !has_as_many {
            SupersededReason::Rewound
        } else if first == 0 && !remaining.lines.is_empty() {
            SupersededReason::HeadLost
        } else if recurs || has_as_many {
            SupersededReason::Edited
        } else {
            SupersededReason::CutOff
        }
    }

    /// Events are rewound if the transcript is and the log was only cut off.
    fn reason_of_events(&self, first: u32, old: &[Digest], remaining: &Remaining) -> SupersededReason {
        let of_messages = self.superseded.messages.as_ref().map(|messages| messages.reason);
        if of_messages == Some(SupersededReason::Rewound) && remaining.lines.is_empty() {
            SupersededReason::Rewound
        } else if remaining.lines.len() < old.len() {
            SupersededReason::Compacted
        } else if first == 0 {
            SupersededReason::HeadLost
        } else {
            SupersededReason::Edited
        }
    }

    /// Keeps a line that can't be read as a row. `number` is its line number in the file, from 1, and `row` the number of
    /// rows before it. `seen` is its time. It is stored with the next rows, unless it is stored already.
    ///
    /// # Errors
    ///
    /// Errors of the backend, and of the redactor.
    pub async fn keep_unreadable(
        &mut self,
        kind: LineKind,
        number: u32,
        row: u32,
        line: RawJson,
        seen: Timestamp,
    ) -> Result<KeptLine> {
        let kept_as = KeptAs::now(kind, SupersededReason::Unreadable);
        let (digest, _) = self.keep_line(kept_as, OldLine::unreadable(number, line, seen)).await?;
        Ok(KeptLine { row, digest })
    }

    /// Keeps a line that never was a row here. It is stored with the next rows, unless it is stored already. Returns
    /// the digest of its stored form, and whether it is new.
    pub(in crate::storage) async fn keep_line(
        &mut self,
        kept_as: KeptAs,
        mut line: OldLine,
    ) -> Result<(Digest, bool)> {
        let (masker, reason) = (self.masker.clone(), kept_as.reason);
        (line.raw, _) = blocking(move || masker.mask_superseded(line.raw, reason)).await??;
        line.head.bytes = line.raw.as_bytes().len();
        let (sequence, digest) = line.identity();
        let is_new = self.known_superseded().await?.insert((kept_as.kind, sequence, digest));
        if is_new {
            self.superseded.kept_bytes += line.head.bytes;
            self.superseded.kept.push((kept_as, line));
            self.flush_when_full().await?;
        }
        Ok((digest, is_new))
    }

    /// The size of the kept lines that are not stored yet.
    pub(super) fn kept_bytes(&self) -> usize {
        self.superseded.kept_bytes
    }

    fn pack_kept(&mut self) -> Result<()> {
        self.superseded.kept_bytes = 0;
        let lines = std::mem::take(&mut self.superseded.kept);
        for lines in lines.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((KeptAs { kind, reason, superseded_at, .. }, _)) = lines.first() else { continue };
            let (key, at) = (self.target.key.clone(), superseded_at.unwrap_or_else(|| self.store.now()));
            let mut packer = PiecePacker::new(key, *kind, at, *reason);
            for (_, line) in lines {
                self.writer.superseded(packer.add(line)?);
            }
            self.writer.superseded(packer.finish()?);
        }
        Ok(())
    }

    /// Sets the sync state to store with superseded lines before any row of this ingest is stored. It records that rows
    /// are being replaced, and that the files must be read again.
    pub fn set_replacing_state(&mut self, sync_state: String) {
        self.superseded.state = Some(sync_state);
    }

    /// Adds lines to the next write: those that can't be read, and those of the rows that it removes. If they are large,
    /// a part is stored at once.
    pub(super) async fn add_superseded(&mut self) -> Result<()> {
        self.pack_kept()?;
        if let Some(mut superseding) = self.superseded.messages.take() {
            let gone = superseding.removed(&self.writer.change.messages, |message| message.sequence);
            self.pack_messages(&superseding, &gone).await?;
            self.superseded.messages = Some(superseding);
        }
        if let Some(mut superseding) = self.superseded.events.take() {
            let gone = superseding.removed(&self.writer.change.events, |stored| stored.event.sequence);
            self.pack_events(&superseding, &gone).await?;
            self.superseded.events = Some(superseding);
        }
        self.announce().await
    }

    /// The times in the events that this ingest supersedes because their log was shortened, as far as they are still
    /// stored.
    pub(super) async fn superseding_times(&self) -> Result<Vec<EventTime>> {
        let mut times = Vec::new();
        let superseding = self.superseded.events.as_ref().filter(|found| found.reason.still_counts());
        let Some(Superseding { first, old, lost, .. }) = superseding else { return Ok(times) };
        let (mut left, mut range) = (lost.clone(), SequenceRange { start: *first, limit: PAGE });
        loop {
            let page = self.store.backend.event_times(&self.target.key, range).await?;
            let Some(last) = page.last() else { return Ok(times) };
            range.start = last.sequence.saturating_add(1);
            for event in page {
                let digest = event.sequence.checked_sub(*first).and_then(|at| old.get(at as usize));
                if let Some(count) = digest.and_then(|digest| left.get_mut(digest)).filter(|left| **left > 0)
                {
                    *count -= 1;
                    times.push(event);
                }
            }
        }
    }

    async fn pack_messages(&mut self, superseding: &Superseding, gone: &[u32]) -> Result<()> {
        let mut packer = self.packer(superseding);
        for (start, end) in runs(gone) {
            let mut next = start;
            while next < end {
                let range = SequenceRange { start: next, limit: (end - next) as usize };
                let page: Vec<Message> =
                    self.store.readable_page(&self.target.key, range, &mut Vec::new()).await?;
                let Some(last) = page.last() else { break };
                next = last.sequence + 1;
                let lines =
                    page.into_iter().filter(|message| message.sequence < end).map(OldLine::of_message);
                self.pack(superseding, &mut packer, lines.collect()).await?;
            }
        }
        self.writer.superseded(packer.finish()?);
        Ok(())
    }

    async fn pack_events(&mut self, superseding: &Superseding, gone: &[u32]) -> Result<()> {
        let mut packer = self.packer(superseding);
        for (start, end) in runs(gone) {
            let mut next = start;
            while next < end {
                let range = SequenceRange { start: next, limit: PAGE.min((end - next) as usize) };
                let mut page: Vec<Event> =
                    self.store.readable_page(&self.target.key, range, &mut Vec::new()).await?;
                page.truncate(fitting(&page));
                let Some(last) = page.last() else { break };
                next = last.sequence + 1;
                page.retain(|event| event.sequence < end);
                let mut lines =
                    self.store.readable_payloads(&self.target.key, &page, &mut Vec::new()).await?;
                let lines = page.into_iter().filter_map(|event| {
                    let line = lines.remove(&event.sequence)?;
                    Some(OldLine::of_event(event, line))
                });
                self.pack(superseding, &mut packer, lines.collect()).await?;
            }
        }
        self.writer.superseded(packer.finish()?);
        Ok(())
    }

    fn packer(&self, superseding: &Superseding) -> PiecePacker {
        PiecePacker::new(self.target.key.clone(), superseding.kind, self.store.now(), superseding.reason)
    }

    /// Packs lines that are not superseded yet. Stores pieces when there are many.
    async fn pack(
        &mut self,
        superseding: &Superseding,
        packer: &mut PiecePacker,
        lines: Vec<OldLine>,
    ) -> Result<()> {
        let kind = superseding.kind;
        for line in lines {
            let (sequence, digest) = line.identity();
            // A file that becomes shorter several times loses the same lines, and so may an interrupted ingest.
            if !self.known_superseded().await?.insert((kind, sequence, digest)) {
                continue;
            }
            self.writer.superseded(packer.add(&line)?);
            self.count_superseded(kind);
        }
        if superseded_bytes(&self.writer.change.superseded) >= self.writer.part_bytes {
            self.writer.flush_superseded(self.superseded.state.clone().map(StoredSyncState::of)).await?;
        }
        Ok(())
    }

    /// If writes are not atomic, stores pieces and the fact that rows are being replaced, before the first row is
    /// replaced. If the replacement is interrupted, the next ingest knows that some lines may be stored in two places.
    async fn announce(&mut self) -> Result<()> {
        let is_due = !self.superseded.is_announced && self.superseded.state.is_some();
        if is_due && !self.store.backend.info().atomic_writes {
            self.superseded.is_announced = true;
            self.writer.flush_superseded(self.superseded.state.clone().map(StoredSyncState::of)).await?;
        }
        Ok(())
    }

    fn count_superseded(&mut self, kind: LineKind) {
        match kind {
            LineKind::Message => self.report.messages_superseded += 1,
            LineKind::Event => self.report.events_superseded += 1,
        }
    }

    /// The lines of the session that are already superseded.
    async fn known_superseded(&mut self) -> Result<&mut HashSet<(LineKind, u32, Digest)>> {
        if self.superseded.known.is_none() {
            let key = self.target.key.clone();
            let query = SupersededQuery::new(Scope::User(key.user_id))
                .with_filter(SessionFilter::default().with_session(key.session_id));
            let mut known = HashSet::new();
            unpack_all(&self.store, query, |line| {
                known.insert((line.kind, line.sequence, Digest::of(line.raw.as_bytes())));
            })
            .await?;
            self.superseded.known = Some(known);
        }
        Ok(self.superseded.known.get_or_insert_default())
    }
}

impl Superseding {
    /// The rows to supersede among those that are truncated or replaced, in order.
    fn removed<T>(&mut self, change: &RowChange<T>, sequence: impl Fn(&T) -> u32) -> Vec<u32> {
        let end = self.first + self.old.len() as u32;
        let mut removed: BTreeSet<u32> = change.put.iter().map(sequence).collect();
        removed.extend(change.truncate.into_iter().flat_map(|start| start..end));
        removed.into_iter().filter(|sequence| self.takes(*sequence)).collect()
    }

    fn takes(&mut self, sequence: u32) -> bool {
        let digest = sequence.checked_sub(self.first).and_then(|at| self.old.get(at as usize));
        match digest.and_then(|digest| self.lost.get_mut(digest)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}

/// How often each line of the rows `old` is missing from the remaining lines. `before` are the rows before them.
fn lost(old: &[Digest], before: &[Digest], remaining: &Remaining) -> HashMap<Digest, usize> {
    let mut lost: HashMap<Digest, usize> = HashMap::new();
    for digest in old {
        *lost.entry(*digest).or_default() += 1;
    }
    if remaining.interrupted {
        // Some lines may be stored in two places.
        for line in remaining.lines.iter().chain(before) {
            lost.remove(line);
        }
    }
    for line in remaining.lines.iter().chain(&remaining.elsewhere) {
        if let Some(count) = lost.get_mut(line) {
            *count = count.saturating_sub(1);
        }
    }
    lost.retain(|_, count| *count > 0);
    lost
}

/// Whether a turn begins with this message.
fn begins_turn(at: usize, states: &[MessageState]) -> bool {
    let turn = |at: usize| states.get(at).and_then(|state| state.turn);
    at.checked_sub(1).is_none_or(|before| turn(at).is_some() && turn(at) != turn(before))
}

/// Consecutive sequences, each as its first and the one after its last.
fn runs(sequences: &[u32]) -> Vec<(u32, u32)> {
    let runs = sequences.chunk_by(|a, b| a + 1 == *b);
    runs.filter_map(|run| Some((*run.first()?, run.last()?.saturating_add(1)))).collect()
}

/// How many events of a page to read at a time, at least one.
fn fitting(page: &[Event]) -> usize {
    let mut bytes = 0_u64;
    let fit = page.iter().take_while(|event| {
        bytes = bytes.saturating_add(event.data_size_bytes);
        bytes <= PAGE_BYTES
    });
    fit.count().max(1)
}
