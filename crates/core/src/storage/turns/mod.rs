//! Turns: reading a turn, and setting its summary.

mod summaries;

use serde::Serialize;

pub use summaries::{GivenSummary, SummaryReport};

use super::{
    StoredTurns,
    context::no_message,
    turn_texts::{TurnCollector, TurnTexts},
};
use crate::{
    Error, Result, Scope,
    model::{
        Message, MessageRef, ProjectSlug, Session, SessionId, SessionKey, TimeSource, Timestamp, TurnSummary,
        UserId, VectorRecord, VectorText,
    },
    text::counted,
};

/// One side of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SummarySource {
    /// `turn_summary` in the metadata of the user's message.
    Metadata,
    /// A user set it.
    Imported,
}

/// A turn: the user's question, and the last answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
        let texts = self.turn_texts(&key, &[turn]).await?.pop();
        let found = texts.and_then(|texts| {
            let summary = summaries.get(&texts.user.sequence);
            Turn::new(texts, summary)
        });
        found.ok_or_else(|| {
            let turns = counted(session.turn_count, "turn");
            let message = format!("the session has no turn {turn} with user text; it has {turns}");
            Error::validation("turn", message).with("session", &key.session_id)
        })
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
            Error::validation("sequence", format!("message {sequence} is before the first turn"))
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

    /// The texts of turns of a session with these numbers, in order. Leaves out turns without a text of the user.
    pub(super) async fn turn_texts(self, key: &SessionKey, turns: &[u32]) -> Result<Vec<TurnTexts>> {
        let states = self.store.backend.message_states(key).await?;
        let mut found = Vec::new();
        for turn in turns {
            let is_of = |state: &crate::model::MessageState| state.turn == Some(*turn);
            let Some(first) = states.iter().position(is_of) else { continue };
            let last = states.iter().rposition(is_of).unwrap_or(first);
            let rows = self.store.readable_rows::<Message>(key, first as u32, last + 1 - first).await?.rows;
            let mut collector = TurnCollector::default();
            let of_turn = rows.into_iter().filter(|message| message.turn == Some(*turn));
            of_turn.for_each(|message| drop(collector.push(message)));
            found.extend(collector.finish());
        }
        Ok(found)
    }
}
