//! The context of a message or a turn.

use std::ops::Range;

use super::{damage::Readable, store::RowReading};
use crate::{
    Error, ErrorField, Result, Scope,
    model::{DamagedRow, Message, MessageState, Session, SessionId},
    text::counted,
};

/// A message or a turn with its neighbours.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MessageContext {
    /// The session.
    pub session: Session,
    /// The requested messages and those around them, in order.
    pub messages: Vec<Message>,
    /// Whether there are messages before the first.
    pub has_more_before: bool,
    /// Whether there are messages after the last.
    pub has_more_after: bool,
    /// Messages in this range that can't be read.
    pub damaged: Vec<DamagedRow>,
}

impl RowReading<'_> {
    /// The messages of a turn, with those of up to `before` turns before and `after` turns after it.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`, `Validation` if it has no such turn; errors of
    /// the backend.
    pub async fn get_turn_context(
        self,
        scope: &Scope,
        session_id: &SessionId,
        turn: u32,
        before: u32,
        after: u32,
    ) -> Result<MessageContext> {
        let session = self.store.existing_session(scope, session_id).await?;
        let states = self.store.backend.message_states(&session.key()).await?;
        if !states.iter().any(|state| state.turn == Some(turn)) {
            let message =
                format!("the session has no turn {turn}; it has {}", counted(session.turn_count, "turn"));
            return Err(Error::validation(ErrorField::Turn, message).with("session", session_id));
        }
        let wanted = turn.saturating_sub(before)..=turn.saturating_add(after);
        let range = enclosing(&states, |state| state.turn.is_some_and(|turn| wanted.contains(&turn)));
        self.messages_in(session, range, states.len()).await
    }

    /// A message, with up to `before` messages before and `after` messages after it.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`, `Validation` if it has no such message; errors of
    /// the backend.
    pub async fn get_message_context(
        self,
        scope: &Scope,
        session_id: &SessionId,
        sequence: u32,
        before: u32,
        after: u32,
    ) -> Result<MessageContext> {
        let session = self.store.existing_session(scope, session_id).await?;
        let count = session.message_count;
        if sequence >= count {
            return Err(no_message(session_id, sequence, count));
        }
        let start = sequence.saturating_sub(before);
        let end = sequence.saturating_add(after).saturating_add(1).min(count);
        self.messages_in(session, start as usize..end as usize, count as usize).await
    }

    /// The messages of `range`, of `count` in the session.
    async fn messages_in(
        self,
        session: Session,
        range: Range<usize>,
        count: usize,
    ) -> Result<MessageContext> {
        let (key, start) = (session.key(), range.start as u32);
        let found: Readable<Message> = self.store.answered_rows(&key, start, range.len(), usize::MAX).await?;
        let mut found = self.store.masked_messages(found).await?;
        // In place of damaged messages, others after the range were read.
        let is_within = |sequence: u32| (sequence as usize) < range.end;
        found.rows.retain(|message| is_within(message.sequence));
        found.damaged.retain(|row| row.sequence.is_none_or(is_within));
        let Readable { rows: messages, damaged } = found;
        let (has_more_before, has_more_after) = (range.start > 0, range.end < count);
        Ok(MessageContext { session, messages, has_more_before, has_more_after, damaged })
    }
}

/// The error for a message that a session with `count` messages does not have.
pub(super) fn no_message(session: &SessionId, sequence: u32, count: u32) -> Error {
    let has = match count {
        0 => "the session has no messages".to_owned(),
        1 => "the session has only message 0".to_owned(),
        _ => format!("the session has messages 0 to {}", count - 1),
    };
    Error::validation(ErrorField::Sequence, format!("no message {sequence}: {has}")).with("session", session)
}

/// The smallest range that contains everything for which `wanted` is true.
fn enclosing(states: &[MessageState], wanted: impl Fn(&MessageState) -> bool) -> Range<usize> {
    let first = states.iter().position(&wanted).unwrap_or(0);
    let last = states.iter().rposition(&wanted).map_or(first, |last| last + 1);
    first..last
}
