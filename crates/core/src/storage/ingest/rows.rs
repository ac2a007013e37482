//! The rows of a session that is being ingested: those that differ from the store, and the counts.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::{
    IngestTarget,
    derived::{ComparedMessage, event_id},
    position::RowPosition,
};
use crate::{
    Error, ErrorKind, Result,
    backend::{EventTime, is_background},
    content::{MessageLine, TitleFinder, TurnCounter, unreadable_turn},
    events::{self, EventFields},
    model::{
        ContentType, ContentTypes, Digest, Event, Message, MessageState, Payload, RawJson, Session,
        SessionId, SessionKey, StoredEvent, Timestamp, VectorState,
    },
    storage::{
        session_writer::{SessionWriter, TitleAndTurns},
        settings::EventDetail,
    },
    times::{EventClock, LineTime, stated_time},
};
use serde_json::{Map, Value};

/// The sizes of lines are remembered from here on.
const LONG_LINE: usize = 32 * 1024;

/// RowPosition messages, and the state of the stored ones.
#[derive(Debug)]
pub(super) struct MessageRows {
    pub(super) position: RowPosition,
    pub(super) states: Vec<MessageState>,
    /// When the stored lines without a time were first seen, in order; each is used for one line.
    first_seen: HashMap<Digest, VecDeque<Timestamp>>,
    /// The basis for the times of the processed lines.
    times: Vec<(u32, LineTime)>,
    turns: TurnCounter,
    /// Whether a turn begins before the first processed line, so that the session's first prompt is not among the
    /// lines.
    turn_before: bool,
    /// Whether lines were begun at the first one.
    began_at_first: bool,
    /// Whether lines were begun after all stored rows, without examining these.
    resumed: bool,
    /// The number of written messages with each content type.
    pub(super) content_types: BTreeMap<ContentType, u64>,
    /// Messages that are written even if they are stored.
    pub(super) written_again: BTreeSet<u32>,
    /// The sizes of long lines, by sequence.
    long_lines: BTreeMap<u32, usize>,
}

impl MessageRows {
    pub(super) fn new(stored_count: u32) -> Self {
        Self {
            position: RowPosition::new(stored_count),
            states: Vec::new(),
            first_seen: HashMap::new(),
            times: Vec::new(),
            turns: TurnCounter::new(None),
            turn_before: false,
            began_at_first: false,
            resumed: false,
            content_types: BTreeMap::new(),
            written_again: BTreeSet::new(),
            long_lines: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self, writer: &mut SessionWriter, start: u32, states: Vec<MessageState>) {
        (self.began_at_first, self.resumed) = (start == 0, false);
        let before = states.get(..start as usize).unwrap_or_default();
        let last_turn = before.iter().rev().find_map(|state| state.turn);
        self.turns = TurnCounter::new(last_turn);
        writer.derived.turns = before.iter().filter_map(|state| state.turn).collect();
        self.turn_before = last_turn.is_some();
        let after = states.get(start as usize..).unwrap_or_default();
        writer.session_mut().message_count =
            self.position.begin(start, after.iter().map(|state| state.digest).collect());
        for state in after {
            if let Some(seen) = state.first_seen() {
                self.first_seen.entry(state.digest).or_default().push_back(seen);
            }
        }
        self.states = states;
    }

    /// Begins after all `count` stored rows, which have these turns and the title of the session.
    pub(super) fn resume(
        &mut self,
        writer: &mut SessionWriter,
        count: u32,
        turns: impl Iterator<Item = u32>,
        last_turn: Option<u32>,
    ) {
        self.begin(writer, count, Vec::new());
        self.turns = TurnCounter::new(last_turn);
        writer.derived.turns = turns.collect();
        self.turn_before = true;
        self.resumed = true;
    }

    /// The turns of all rows, the last of them, and whether later rows do not change the title of the session; `None`
    /// if not all rows were read.
    pub(super) fn all_turns<'a>(
        &self,
        rows: &'a TitleAndTurns,
    ) -> Option<(&'a BTreeSet<u32>, Option<u32>, bool)> {
        let is_complete = self.position.is_whole() && (self.resumed || self.began_at_first);
        is_complete.then(|| (&rows.turns, self.turns.last(), self.resumed || rows.title.is_final()))
    }

    /// The basis for the times of the processed lines from `first` on.
    pub(super) fn times_from(&self, first: u32) -> impl Iterator<Item = &(u32, LineTime)> {
        self.times.iter().filter(move |(sequence, _)| *sequence >= first)
    }

    /// Keeps only the first `count` rows; `title` is the title as far as these rows determine it.
    pub(super) fn cut(
        &mut self,
        writer: &mut SessionWriter,
        count: u32,
        states: Vec<MessageState>,
        title: TitleFinder,
    ) {
        self.begin(writer, count, states);
        self.turn_before = false;
        writer.derived.title = title;
        self.position.cut(count);
        writer.truncate_messages(count);
    }

    /// Keeps all stored rows after the last line read.
    pub(super) fn keep_stored(&mut self, rows: &mut TitleAndTurns) {
        let stays = self.states.get(self.position.next() as usize..).unwrap_or_default();
        if !self.position.keep_stored() {
            return;
        }
        if let Some(last) = stays.iter().rev().find_map(|state| state.turn) {
            self.turns = TurnCounter::new(Some(last));
            // If there was no prompt yet, it may be in the rows that are kept.
            self.turn_before |= !rows.title.is_final();
        }
        rows.turns.extend(stays.iter().filter_map(|state| state.turn));
    }

    /// Processes the next line, and writes it if it is not stored. Returns a warning if a part of it can't be read.
    pub(super) fn line(
        &mut self,
        writer: &mut SessionWriter,
        target: &IngestTarget,
        raw: RawJson,
        line: &MessageLine,
        (seen, synced_at): (Timestamp, Timestamp),
    ) -> Option<String> {
        let role = line.role();
        let digest = Digest::of(raw.as_bytes());
        if self.position.finds(digest) {
            return None;
        }
        let derived = ComparedMessage::of_line(digest, line.fields(), role, &mut self.turns);
        let sequence = self.position.next();
        if raw.as_bytes().len() > LONG_LINE {
            self.long_lines.insert(sequence, raw.as_bytes().len());
        }
        // A line without a time keeps the one that it got when it was first seen, also at another place.
        let first_seen = self.first_seen.get_mut(&digest).and_then(VecDeque::pop_front);
        let stored = self.states.get(sequence as usize);
        let time = LineTime::of(line, first_seen.unwrap_or(seen));
        let is_equal = |stored: &&MessageState| derived == ComparedMessage::from(*stored);
        if let Some(stored) = stored.filter(is_equal).filter(|_| !self.written_again.contains(&sequence)) {
            self.times.push((sequence, time.with_stored((stored.ts, stored.ts_source))));
            writer.derived.observe(line.fields(), derived.turn);
            self.position.leave();
            return warning(line.fields());
        }
        let (ts, ts_source) = time.stored;
        self.times.push((sequence, time));
        let texts = line.texts();
        let content_types: ContentTypes = texts.iter().map(|text| text.content_type).collect();
        content_types
            .iter()
            .for_each(|content_type| *self.content_types.entry(content_type).or_default() += 1);
        let message = Message {
            user_id: target.key.user_id.clone(),
            host_id: target.host_id.clone(),
            project_slug: target.project_slug.clone(),
            session_id: target.key.session_id.clone(),
            sequence: self.position.put(),
            role,
            turn: derived.turn,
            ts,
            ts_source,
            synced_at,
            vectors: VectorState::Nothing,
            digest,
            raw,
        };
        writer.line(message, line.fields(), &texts);
        warning(line.fields())
    }

    /// The size of a line that was processed: if it is not long, the largest size that it may have.
    pub(super) fn line_bytes(&self, sequence: u32) -> usize {
        self.long_lines.get(&sequence).copied().unwrap_or(LONG_LINE)
    }

    /// Takes the basis for the times of the processed lines, in order of sequence.
    pub(super) fn take_times(&mut self) -> Vec<(u32, LineTime)> {
        std::mem::take(&mut self.times)
    }

    /// Sets the fields of a session that come from the lines of its messages.
    pub(super) fn describe(&self, rows: &TitleAndTurns, session: &mut Session) {
        if !self.position.begun() {
            return;
        }
        let following = self.states.get(self.position.next() as usize..).unwrap_or_default();
        let stays = if self.position.is_whole() { &[] } else { following };
        let beyond: BTreeSet<u32> = stays.iter().filter_map(|state| state.turn).collect();
        let more = beyond.difference(&rows.turns).count();
        session.turn_count = (rows.turns.len() + more) as u32;
        let keeps_prompt = self.turn_before && session.first_prompt.is_some();
        let found = rows.title.found();
        if !keeps_prompt && (found.is_some() || self.position.is_whole()) {
            session.first_prompt = found.map(str::to_owned);
        }
    }
}

/// The position among the stored events, and what is known of their lines.
#[derive(Debug)]
pub(super) struct EventRows {
    pub(super) position: RowPosition,
    /// Whether unchanged lines are written again.
    rewriting: bool,
    /// The times in the events that were read.
    pub(super) clock: EventClock,
    /// The number of lines that were read only for their times.
    noted: u32,
    /// The time of the last event that states one, for following events that do not.
    last: Option<Timestamp>,
    reprocess: Option<Reprocess>,
    /// The parent of the session, if a line names it.
    pub(super) parent: Option<SessionId>,
}

/// How unchanged lines are processed if all data is derived again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reprocess {
    /// They are read.
    Read,
    /// They are read, and events of tool calls and prompts are written.
    Write,
}

impl EventRows {
    pub(super) fn new(stored_count: u32) -> Self {
        Self {
            position: RowPosition::new(stored_count),
            rewriting: false,
            clock: EventClock::default(),
            noted: 0,
            last: None,
            reprocess: None,
            parent: None,
        }
    }

    /// Records the parent that a line of this session names.
    fn note_parent(&mut self, fields: &EventFields, key: &SessionKey) {
        let is_own = fields.session_id.as_deref().is_none_or(|id| id == key.session_id.as_str());
        if self.parent.is_none() && is_own {
            let parent = fields.parent_session_id.as_deref().and_then(|id| SessionId::new(id).ok());
            self.parent = parent.filter(|parent| *parent != key.session_id);
        }
    }

    pub(super) fn begin(&mut self, writer: &mut SessionWriter, start: u32, digests: Vec<Digest>) {
        writer.session_mut().event_count = self.position.begin(start, digests);
        self.rewriting = false;
    }

    pub(super) fn derive_again(&mut self, write: bool) {
        self.reprocess = Some(if write { Reprocess::Write } else { Reprocess::Read });
    }

    pub(super) fn rewrite(&mut self) {
        self.rewriting = true;
    }

    /// Records the time in a line. `Self::line` is not called for the same log.
    pub(super) fn note(&mut self, line: &RawJson) {
        if let Ok(fields) = events::parse_event_line(line) {
            // A line without a time is not needed.
            let ts = fields.ts.unwrap_or_else(|| Timestamp::from_micros(0));
            self.clock.note(&event_time(&fields, self.noted, ts));
            self.noted += 1;
        }
    }

    /// Whether lines were read only for their times.
    pub(super) fn has_notes(&self) -> bool {
        self.noted > 0
    }

    pub(super) fn line(
        &mut self,
        writer: &mut SessionWriter,
        target: &IngestTarget,
        raw: &RawJson,
        (seen, synced_at): (Timestamp, Timestamp),
        detail: EventDetail,
    ) -> Result<Option<String>> {
        if raw.as_bytes().len() > events::MAX_LINE_BYTES {
            return Err(Error::new(ErrorKind::EventTooLarge, events::too_large("line")));
        }
        let digest = Digest::of(raw.as_bytes());
        if self.position.finds(digest) {
            return Ok(None);
        }
        let sequence = self.position.next();
        let is_stored = self.position.is_stored(digest);
        if is_stored && !self.rewriting && self.reprocess.is_none() {
            self.position.leave();
            return Ok(None);
        }
        // Before it is known whether the event is written: the times of all events that are read are used.
        let fields = events::parse_event_line(raw)?.in_log_of(&target.key.session_id);
        let warning = fields.warning.clone();
        self.note_parent(&fields, &target.key);
        self.last = fields.ts.or(self.last);
        self.clock.note(&event_time(&fields, sequence, seen));
        let has_ids = fields.tool_call_id().is_some() || fields.prompt_digest().is_some();
        let is_to_be_written = self.reprocess == Some(Reprocess::Write) && has_ids;
        if is_stored && !self.rewriting && !is_to_be_written {
            self.position.leave();
            return Ok(warning);
        }
        let payload = match detail {
            EventDetail::Full => events::store(raw, fields.data_size_bytes)?,
            EventDetail::Summary | EventDetail::None => Payload::None,
        };
        let event = Event {
            event_id: event_id(fields.event_id, &target.key.session_id, sequence),
            user_id: target.key.user_id.clone(),
            host_id: target.host_id.clone(),
            project_slug: target.project_slug.clone(),
            session_id: target.key.session_id.clone(),
            sequence,
            event_type: fields.event_type,
            ts: fields.ts.or(self.last).unwrap_or(seen),
            ts_estimated: fields.ts.is_none(),
            turn: fields.turn,
            level: fields.level,
            tool_name: fields.tool_name,
            error_type: fields.error_type,
            model: fields.model,
            provider: fields.provider,
            summary: fields.summary,
            is_chunked: false,
            chunk_count: None,
            data_size_bytes: fields.data_size_bytes,
            synced_at: Some(synced_at),
            digest,
        };
        self.position.put();
        writer.event(StoredEvent::new(event, payload));
        Ok(warning)
    }
}

/// The times in an event line.
fn event_time(fields: &EventFields, sequence: u32, seen: Timestamp) -> EventTime {
    EventTime {
        sequence,
        event_type: fields.event_type.clone(),
        ts: fields.ts.unwrap_or(seen),
        ts_estimated: fields.ts.is_none(),
        tool_call_id: fields.tool_call_id().map(str::to_owned),
        model: fields.model.clone(),
        prompt_digest: fields.prompt_digest(),
        is_background: is_background(&fields.summary),
    }
}

/// A warning if the time or turn of a line can't be read.
fn warning(line: &Map<String, Value>) -> Option<String> {
    let ts = stated_time(line).err().map(|field| format!("the time in {field:?} can't be read"));
    let doubts: Vec<String> = ts.into_iter().chain(unreadable_turn(line)).collect();
    (!doubts.is_empty()).then(|| doubts.join("; "))
}
