//! Turns: reading a turn, and setting its summary.

mod summaries;

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use serde::{Deserialize, Serialize};

pub use summaries::{GivenSummary, SummaryReport};

use super::{
    context::no_message,
    store::StoredTurns,
    turn_texts::{TurnCollector, TurnTexts, answer_of, question_of},
};
use crate::{
    Error, ErrorField, Result, Scope,
    model::{
        Message, MessageRef, MessageState, ProjectSlug, Session, SessionId, SessionKey, TimeSource,
        Timestamp, TurnSummary, UserId, VectorRecord, VectorText,
    },
    text::counted,
};

/// The number of lines that are read at a time from the beginning of a turn, and at first from its end.
const FIRST_LINES: u32 = 2;
const LAST_LINES: u32 = 4;

/// One side of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TurnSide {
    /// The id of the message.
    pub message_id: String,
    /// Its sequence.
    pub sequence: u32,
    /// Its text.
    pub text: String,
}

/// The source of a turn's summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SummarySource {
    /// `turn_summary` in the metadata of the user's message.
    Metadata,
    /// A user set it.
    Imported,
}

/// A turn: the user's question, and the last answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Turn {
    /// The owner.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
    /// Its project.
    pub project: ProjectSlug,
    /// The number of the turn.
    pub turn: u32,
    /// When the user's message was written.
    pub ts: Timestamp,
    /// Whether this is an estimate.
    pub ts_estimated: bool,
    /// The source of the time.
    pub ts_source: TimeSource,
    /// The user's side.
    pub user: TurnSide,
    /// The last text of the assistant, if there is one.
    pub assistant: Option<TurnSide>,
    /// The summary, if there is one.
    pub summary: Option<String>,
    /// The source of the summary.
    pub summary_source: Option<SummarySource>,
}

/// The stored data of a turn's embedding, without its vector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct StoredTurnEmbedding {
    /// A UUID.
    pub id: String,
    /// The kind of provider: `local` or `service`.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The length of the vector.
    pub dim: usize,
    /// The text that was embedded.
    pub content_used: String,
    /// Its SHA-256.
    pub content_hash: String,
    /// Whether the text has the summary in place of the answer.
    pub used_turn_summary: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

impl StoredTurnEmbedding {
    fn of(record: VectorRecord, model: &str) -> Option<Self> {
        let (dim, turn) = (record.vector.len(), record.turn?);
        Some(Self {
            id: turn.id,
            provider: turn.provider,
            model: model.to_owned(),
            dim,
            content_used: turn.content_used,
            content_hash: turn.content_hash,
            used_turn_summary: turn.used_turn_summary,
            created_at: turn.created_at,
        })
    }
}

impl Turn {
    pub(super) fn new(texts: TurnTexts, stored: Option<&TurnSummary>) -> Option<Self> {
        let TurnTexts { user, user_text, assistant, stated_summary } = texts;
        let side =
            |message: &Message, text| TurnSide { message_id: message.id(), sequence: message.sequence, text };
        let imported = stored.filter(|of| !of.is_stated).map(|of| of.text.clone());
        let summary_source = match (&imported, &stated_summary) {
            (Some(_), _) => Some(SummarySource::Imported),
            (None, Some(_)) => Some(SummarySource::Metadata),
            (None, None) => None,
        };
        Some(Self {
            turn: user.turn?,
            ts: user.ts,
            ts_estimated: user.ts_estimated(),
            ts_source: user.ts_source,
            user: side(&user, user_text),
            assistant: assistant.map(|(message, text)| side(&message, text)),
            summary: imported.or(stated_summary),
            summary_source,
            user_id: user.user_id,
            session_id: user.session_id,
            project: user.project_slug,
        })
    }

    /// Its session.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        SessionKey::new(self.user_id.clone(), self.session_id.clone())
    }
}

impl StoredTurns<'_> {
    /// A turn of a session, by its number.
    ///
    /// # Errors
    ///
    /// `Validation` if the session has no such turn, or if the turn has no user text; errors of the backend.
    pub async fn get_turn(self, session: &Session, turn: u32) -> Result<Turn> {
        let key = session.key();
        let summaries = self.store.summaries_of(&key).await?;
        let texts = self.texts_of_turns([(key.clone(), vec![turn])]).await?.pop();
        let found = texts.and_then(|texts| {
            let summary = summaries.get(&texts.user.sequence);
            Turn::new(texts, summary)
        });
        let found = found.ok_or_else(|| {
            let turns = counted(session.turn_count, "turn");
            let message = format!("the session has no turn {turn} with user text; it has {turns}");
            Error::validation(ErrorField::Turn, message).with("session", &key.session_id)
        })?;
        let answer = found.assistant.as_ref().map_or(0, |side| side.text.len());
        self.store.count_read(found.user.text.len() + answer)?;
        self.store.masked_turn(found)
    }

    /// The number of the turn that the message with this sequence belongs to.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; `Validation` if it has no such message, or if the message is
    /// before the first turn; errors of the backend.
    pub async fn turn_of_message(self, scope: &Scope, session: &SessionId, sequence: u32) -> Result<u32> {
        let session = self.store.existing_session(scope, session).await?;
        let states = self.store.backend.message_states(&session.key()).await?;
        let Some(state) = states.get(sequence as usize) else {
            return Err(no_message(&session.session_id, sequence, states.len() as u32));
        };
        state.turn.ok_or_else(|| {
            Error::validation(ErrorField::Sequence, format!("message {sequence} is before the first turn"))
                .with("session", &session.session_id)
        })
    }

    /// The embedding of a turn in the current generation, if there is one.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn turn_embedding(self, turn: &Turn) -> Result<Option<StoredTurnEmbedding>> {
        let Some(current) = self.store.generations().await?.current else { return Ok(None) };
        let text = (MessageRef::new(turn.key(), turn.user.sequence), VectorText::Turn);
        let record = self.store.backend.vectors_of(current.number, &[text]).await?.pop();
        Ok(record.and_then(|(_, record)| StoredTurnEmbedding::of(record, &current.space.model)))
    }

    /// The texts of turns of sessions, by their numbers, in order. Leaves out turns without a text of the user.
    ///
    /// Most of a long turn is calls and output of tools: the lines between the user's message and the last answer are not
    /// read.
    pub(super) async fn texts_of_turns(
        self,
        turns: impl IntoIterator<Item = (SessionKey, Vec<u32>)>,
    ) -> Result<Vec<TurnTexts>> {
        let mut ranges = Vec::new();
        for (key, numbers) in turns {
            let states = self.store.backend.message_states(&key).await?;
            let of_turns = numbers.into_iter().filter_map(|turn| Some((turn, messages_of(turn, &states)?)));
            ranges.extend(of_turns.map(|(turn, range)| TurnRange { key: key.clone(), turn, range }));
        }
        // Most turns begin with a text of the user and end with the answer.
        let ends: BTreeSet<MessageRef> = ranges.iter().flat_map(TurnRange::ends).collect();
        let ends = self.store.readable_messages_at(ends.into_iter().collect()).await?.rows;
        let mut ends: HashMap<MessageRef, Message> =
            ends.into_iter().map(|message| (message.message_ref(), message)).collect();
        let mut found = Vec::new();
        for of in ranges {
            let [first, last] = of.ends().map(|end| ends.remove(&end));
            match first.and_then(question_of) {
                Some(mut texts) => {
                    let between = of.range.start + 1..(of.range.end - 1).max(of.range.start + 1);
                    texts.assistant = match last.and_then(answer_of) {
                        Some(answer) => Some(answer),
                        None => self.last_answer(&of, between).await?,
                    };
                    found.push(texts);
                }
                None => found.extend(self.read_turn(&of).await?),
            }
        }
        Ok(found)
    }

    /// The texts of a turn that does not begin with a text of the user.
    async fn read_turn(self, of: &TurnRange) -> Result<Option<TurnTexts>> {
        let (mut collector, mut start) = (TurnCollector::default(), of.range.start);
        while !collector.has_user() && start < of.range.end {
            let some = start..of.range.end.min(start + FIRST_LINES);
            start = some.end;
            self.lines_of(of, some).await?.into_iter().for_each(|message| drop(collector.push(message)));
        }
        let Some(mut texts) = collector.finish() else { return Ok(None) };
        texts.assistant = self.last_answer(of, start..of.range.end).await?.or(texts.assistant);
        Ok(Some(texts))
    }

    /// The last message of a range with a text of the assistant.
    async fn last_answer(self, of: &TurnRange, range: Range<u32>) -> Result<Option<(Message, String)>> {
        let (mut end, mut lines) = (range.end, LAST_LINES);
        while end > range.start {
            let some = range.start.max(end.saturating_sub(lines))..end;
            (end, lines) = (some.start, 2 * lines);
            if let Some(answer) = self.lines_of(of, some).await?.into_iter().rev().find_map(answer_of) {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    async fn lines_of(self, of: &TurnRange, range: Range<u32>) -> Result<Vec<Message>> {
        let rows = self.store.readable_rows::<Message>(&of.key, range.start, range.len()).await?.rows;
        let is_of = |message: &Message| message.turn == Some(of.turn) && range.contains(&message.sequence);
        Ok(rows.into_iter().filter(is_of).collect())
    }
}

/// A turn, and the sequences from its first message to its last.
struct TurnRange {
    key: SessionKey,
    turn: u32,
    range: Range<u32>,
}

impl TurnRange {
    /// Its first and its last message.
    fn ends(&self) -> [MessageRef; 2] {
        [self.range.start, self.range.end - 1].map(|of| MessageRef::new(self.key.clone(), of))
    }
}

/// The sequences of a turn's messages; `None` if the session has no such turn.
fn messages_of(turn: u32, states: &[MessageState]) -> Option<Range<u32>> {
    let is_of = |state: &MessageState| state.turn == Some(turn);
    let first = states.iter().position(is_of)?;
    let last = states.iter().rposition(is_of)?;
    Some(first as u32..last as u32 + 1)
}
