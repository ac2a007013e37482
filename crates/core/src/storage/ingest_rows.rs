//! The rows of a session that is being taken in: what differs from the store, and what the counts are then.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{EventDetail, IngestTarget, kept::KeptRows, pending::Pending};
use crate::{
    Error, ErrorKind, Result,
    content::{TurnCounter, extract, first_prompt},
    events,
    model::{
        ContentType, ContentTypes, Digest, Event, Message, MessageState, Payload, RawJson, Role, Session,
        StoredEvent, TimeSource, Timestamp, VectorState,
    },
};

/// Messages that wait to be written, and what is known of those that are stored.
#[derive(Debug)]
pub(super) struct MessageRows {
    pub(super) pending: Pending<Message>,
    states: Vec<MessageState>,
    /// When the stored lines that name no time were first seen, in order; each is for one line.
    first_seen: HashMap<Digest, VecDeque<Timestamp>>,
    turns: TurnCounter,
    last_turn: Option<u32>,
    first_prompt: Option<String>,
    /// Whether a turn begins before the first line that was taken, so that the session's first prompt is not among
    /// the lines.
    turn_before: bool,
    /// How many of the pending messages hold texts of each type.
    content_types: BTreeMap<ContentType, u64>,
    /// The stored rows behind a damaged place.
    kept: Option<KeptRows>,
}

impl MessageRows {
    pub(super) fn new(stored_count: u32) -> Self {
        Self {
            pending: Pending::new(stored_count),
            states: Vec::new(),
            first_seen: HashMap::new(),
            turns: TurnCounter::new(None),
            last_turn: None,
            first_prompt: None,
            turn_before: false,
            content_types: BTreeMap::new(),
            kept: None,
        }
    }

    pub(super) fn begin(&mut self, start: u32, states: Vec<MessageState>) {
        let before = states.get(..start as usize).unwrap_or_default();
        let last_turn = before.iter().rev().find_map(|state| state.turn);
        self.turns = TurnCounter::new(last_turn);
        self.last_turn = before.iter().filter_map(|state| state.turn).max();
        self.turn_before = last_turn.is_some();
        self.pending.begin(start, states.len() as u32);
        for state in states.get(start as usize..).unwrap_or_default() {
            if let Some(seen) = state.first_seen() {
                self.first_seen.entry(state.digest).or_default().push_back(seen);
            }
        }
        self.states = states;
        self.kept = None;
    }

    /// Keeps what is stored from the next line on.
    pub(super) fn keep_stored(&mut self) {
        let next = self.pending.next();
        let stays = self.states.get(next as usize..).unwrap_or_default();
        if self.kept.is_some() || stays.is_empty() {
            return;
        }
        self.kept = Some(KeptRows::new(next, stays.iter().map(|state| state.digest)));
        if let Some(last) = stays.iter().rev().find_map(|state| state.turn) {
            self.turns = TurnCounter::new(Some(last));
            // Where no prompt came yet it may be among the rows that stay.
            self.turn_before |= self.first_prompt.is_none();
        }
        self.last_turn = self.last_turn.max(stays.iter().filter_map(|state| state.turn).max());
        self.pending.pass_over_stored();
    }

    /// How many stored messages did not come.
    pub(super) fn missing(&self) -> u32 {
        let not_reached = || (self.states.len() as u32).saturating_sub(self.pending.next());
        self.kept.as_ref().map_or_else(not_reached, KeptRows::missing)
    }

    /// Whether a line is the first one, and not the first stored one.
    pub(super) fn begins_otherwise(&self, line: Digest) -> bool {
        let differs = self.states.first().is_some_and(|stored| stored.digest != line);
        self.kept.is_none() && differs && self.pending.next() == 0
    }

    /// Whether a line would take the place of another stored message than the last.
    pub(super) fn cuts_off(&self, line: Digest) -> bool {
        let next = self.pending.next() as usize;
        let differs = self.states.get(next).is_some_and(|stored| stored.digest != line);
        self.kept.is_none() && differs && next + 1 < self.states.len()
    }

    pub(super) fn line(
        &mut self,
        target: &IngestTarget,
        raw: RawJson,
        seen: Timestamp,
        synced_at: Timestamp,
    ) -> Result<()> {
        let object = raw.parse_object()?;
        let role = object.get("role").and_then(|role| role.as_str()).unwrap_or_default().parse::<Role>()?;
        let digest = Digest::of(raw.as_bytes());
        if self.kept.as_mut().is_some_and(|kept| kept.finds(digest)) {
            return Ok(());
        }
        let turn = self.turns.turn_of(&object, role);
        self.last_turn = self.last_turn.max(turn);
        if role == Role::User && turn.is_some() && self.first_prompt.is_none() {
            self.first_prompt = first_prompt(&object);
        }
        let sequence = self.pending.next();
        let first_seen = self.first_seen.get_mut(&digest).and_then(VecDeque::pop_front);
        let stored = self.states.get(sequence as usize);
        if stored.is_some_and(|stored| stored.digest == digest && stored.turn == turn) {
            self.pending.leave();
            return Ok(());
        }
        let given = object
            .get("metadata")
            .and_then(|metadata| metadata.get("timestamp"))
            .and_then(Timestamp::from_json)
            .or_else(|| ["timestamp", "ts"].iter().find_map(|name| Timestamp::from_json(object.get(*name)?)));
        let content_types: ContentTypes =
            extract(&object, role).iter().map(|text| text.content_type).collect();
        content_types
            .iter()
            .for_each(|content_type| *self.content_types.entry(content_type).or_default() += 1);
        let embeddable =
            ContentType::EMBEDDED.into_iter().any(|content_type| content_types.contains(content_type));
        let bytes = raw.as_bytes().len();
        let message = Message {
            user_id: target.key.user_id.clone(),
            host_id: target.host_id.clone(),
            project_slug: target.project_slug.clone(),
            session_id: target.key.session_id.clone(),
            sequence,
            role,
            turn,
            ts: given.or(first_seen).unwrap_or(seen),
            ts_source: TimeSource::of_estimated(given.is_none()),
            synced_at,
            vectors: if embeddable { VectorState::Owed } else { VectorState::Nothing },
            digest,
            raw,
        };
        self.pending.put(message, bytes);
        Ok(())
    }

    /// How many of the messages that were taken since the last call hold texts of each type.
    pub(super) fn take_content_types(&mut self) -> BTreeMap<ContentType, u64> {
        std::mem::take(&mut self.content_types)
    }

    /// Sets what a session shows of its messages.
    pub(super) fn describe(&self, session: &mut Session) {
        if !self.pending.begun() {
            return;
        }
        let behind = self.states.get(self.pending.next() as usize..).unwrap_or_default();
        let stays = if self.pending.is_whole() { &[] } else { behind };
        let beyond = stays.iter().filter_map(|state| state.turn).max();
        session.turn_count = self.last_turn.max(beyond).unwrap_or(0);
        let keeps_prompt = self.turn_before && session.first_prompt.is_some();
        if !keeps_prompt && (self.first_prompt.is_some() || self.pending.is_whole()) {
            session.first_prompt.clone_from(&self.first_prompt);
        }
    }
}

/// Events that wait to be written, and what is known of those that are stored.
#[derive(Debug)]
pub(super) struct EventRows {
    pub(super) pending: Pending<StoredEvent>,
    /// Digests of the stored events from `start` on.
    digests: Vec<Digest>,
    start: u32,
    /// Whether lines are written again that are stored as they are.
    rewriting: bool,
    /// The stored rows behind a damaged place.
    kept: Option<KeptRows>,
}

impl EventRows {
    pub(super) fn new(stored_count: u32) -> Self {
        let pending = Pending::new(stored_count);
        Self { pending, digests: Vec::new(), start: 0, rewriting: false, kept: None }
    }

    pub(super) fn begin(&mut self, start: u32, digests: Vec<Digest>) {
        self.pending.begin(start, start + digests.len() as u32);
        (self.start, self.digests) = (start, digests);
        (self.rewriting, self.kept) = (false, None);
    }

    pub(super) fn rewrite(&mut self) {
        self.rewriting = true;
    }

    /// Keeps what is stored from the next line on.
    pub(super) fn keep_stored(&mut self) {
        let next = self.pending.next();
        if self.kept.is_some() || next >= self.pending.stored() {
            return;
        }
        let stays = self.digests.iter().skip((next - self.start) as usize).copied();
        self.kept = Some(KeptRows::new(next, stays));
        self.pending.pass_over_stored();
    }

    /// How many stored events did not come.
    pub(super) fn missing(&self) -> u32 {
        let not_reached = || self.pending.stored().saturating_sub(self.pending.next());
        self.kept.as_ref().map_or_else(not_reached, KeptRows::missing)
    }

    /// Whether a line is the first one, and not the first stored one.
    pub(super) fn begins_otherwise(&self, line: Digest) -> bool {
        let differs = self.digests.first().is_some_and(|stored| *stored != line);
        self.kept.is_none() && differs && self.pending.next() == 0
    }

    /// Whether a line would take the place of another stored event than the last.
    pub(super) fn cuts_off(&self, line: Digest) -> bool {
        let next = self.pending.next();
        let differs = self.digests.get((next - self.start) as usize).is_some_and(|stored| *stored != line);
        self.kept.is_none() && differs && next + 1 < self.pending.stored()
    }

    pub(super) fn line(
        &mut self,
        target: &IngestTarget,
        raw: RawJson,
        seen: Timestamp,
        detail: EventDetail,
    ) -> Result<()> {
        if raw.as_bytes().len() > events::MAX_LINE_BYTES {
            return Err(Error::new(ErrorKind::EventTooLarge, "the line is larger than 64 MB"));
        }
        let digest = Digest::of(raw.as_bytes());
        if self.kept.as_mut().is_some_and(|kept| kept.finds(digest)) {
            return Ok(());
        }
        let sequence = self.pending.next();
        if !self.rewriting && self.digests.get((sequence - self.start) as usize) == Some(&digest) {
            self.pending.leave();
            return Ok(());
        }
        let fields = events::parse_event_line(&raw)?;
        let payload = match detail {
            EventDetail::Full => events::store(&raw, fields.data_size_bytes)?,
            EventDetail::Summary | EventDetail::None => Payload::None,
        };
        let chunk_count = match &payload {
            Payload::Chunks(chunks) => Some(chunks.len() as u32),
            _ => None,
        };
        let derived_id = format!("{}_evt_{sequence}", target.key.session_id);
        let event = Event {
            event_id: fields.event_id.filter(|id| is_acceptable_id(id)).unwrap_or(derived_id),
            user_id: target.key.user_id.clone(),
            host_id: target.host_id.clone(),
            project_slug: target.project_slug.clone(),
            session_id: target.key.session_id.clone(),
            sequence,
            event_type: fields.event_type,
            ts: fields.ts.unwrap_or(seen),
            ts_estimated: fields.ts.is_none(),
            turn: fields.turn,
            level: fields.level,
            tool_name: fields.tool_name,
            error_type: fields.error_type,
            model: fields.model,
            provider: fields.provider,
            summary: fields.summary,
            is_chunked: chunk_count.is_some(),
            chunk_count,
            data_size_bytes: fields.data_size_bytes,
            digest,
        };
        let bytes = stored_size(&payload);
        self.pending.put(StoredEvent { event, payload }, bytes);
        Ok(())
    }
}

/// What an event costs while it waits: the payload, and something for its fields.
fn stored_size(payload: &Payload) -> usize {
    const FIELDS: usize = 512;
    FIELDS
        + match payload {
            Payload::None => 0,
            Payload::Plain(bytes) | Payload::Zstd(bytes) => bytes.len(),
            Payload::Chunks(chunks) => chunks.iter().map(Vec::len).sum(),
        }
}

/// An id that a line gives must not look like a derived one, or it could take another event's.
fn is_acceptable_id(id: &str) -> bool {
    let looks_derived =
        id.rsplit_once("_evt_").is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    !id.is_empty() && id.len() <= 255 && !looks_derived && !id.chars().any(char::is_control)
}
