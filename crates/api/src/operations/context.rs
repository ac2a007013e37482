//! A turn or a message with its context.

use std::ops::Range;

use amplifier_session_core::{
    KnownPart, Scope,
    model::{DamagedRow, SessionId},
    storage::{Addressed, MessageContext},
};
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiAnswer, ApiError, InvalidRequest, PlaceFields, Reach,
    addresses::named_message,
    budget::{AnswerLimits, Items, Portion},
    ids::{ShortIds, short},
    views::{MessageView, SessionView},
};

/// Turns on each side by default.
const TURNS: u32 = 1;
/// Messages on each side by default.
const MESSAGES: u32 = 3;

/// A turn with the turns around it, or a message with the messages around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRequest {
    /// The users whose sessions are read.
    #[serde(default)]
    pub scope: Reach,
    /// The address of the session or of the message.
    pub session: String,
    /// The number of the turn, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The number of the message, from 0, unless the address names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<u32>,
    /// The number of turns or messages before it. Default: 1 turn or 3 messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u32>,
    /// The number of turns or messages after it. Default: 1 turn or 3 messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// Whether the response has short ids, for a face that shows them.
    #[serde(default)]
    pub short_ids: bool,
}

/// A turn or a message with its context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextResponse {
    /// The session.
    pub session: SessionView,
    /// The turn, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The number of the message, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// The messages, in order.
    pub messages: Vec<MessageView>,
    /// Messages that do not fit into a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
    /// Whether there are messages before the first.
    pub has_more_before: bool,
    /// Whether there are messages after the last.
    pub has_more_after: bool,
    /// Messages that can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
    /// The short ids of the session and its parent, if they were requested.
    #[serde(default, skip_serializing_if = "ShortIds::is_empty")]
    pub short_ids: ShortIds,
}

/// The place in a session that a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContextPlace {
    Turn(u32),
    Message(u32),
}

impl ContextRequest {
    /// The requested place. `named` is the message that the address names.
    fn place(&self, named: Option<u32>) -> Result<ContextPlace, InvalidRequest> {
        const FIELDS: PlaceFields = PlaceFields::TurnOrMessage;
        match (named, self.turn, self.message) {
            (Some(sequence), None, None) | (None, None, Some(sequence)) => {
                Ok(ContextPlace::Message(sequence))
            }
            (None, Some(turn), None) => Ok(ContextPlace::Turn(turn)),
            (None, None, None) => Err(InvalidRequest::NoPlaceNamed { fields: FIELDS }),
            _ => Err(InvalidRequest::PlaceNamedTwice { address: self.session.clone(), fields: FIELDS }),
        }
    }
}

impl Api<'_> {
    /// Reads a turn or a message with its context.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; `SessionNotFound` if there is no such session;
    /// `Validation` if there are several, or if it has no such turn or message; errors of the store.
    #[crate::compiled_here]
    pub async fn context(&self, request: &ContextRequest) -> Result<ApiAnswer<ContextResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let Addressed { session, line, .. } = self.find(&scope, &request.session, &mut notices).await?;
        let place = request.place(named_message(&request.session, line, PlaceFields::TurnOrMessage)?)?;
        let found = self.messages_around(&scope, &session.session_id, place, request).await?;
        let MessageContext { session, messages, has_more_before, has_more_after, damaged, .. } = found;
        let short_ids = self.short_ids_of(&scope, std::slice::from_ref(&session)).await?;
        let name = short(&short_ids, &session.session_id);
        let (turn, sequence) = match place {
            ContextPlace::Turn(turn) => (Some(turn), None),
            ContextPlace::Message(sequence) => (None, Some(sequence)),
        };
        let response = ContextResponse {
            session: self.session_view(&session).await?,
            turn,
            sequence,
            messages: messages.iter().map(|message| MessageView::new(message, name, None)).collect(),
            left_out: None,
            has_more_before,
            has_more_after,
            damaged,
            short_ids: if request.short_ids { short_ids } else { ShortIds::new() },
        };
        Ok(ApiAnswer { response, notices })
    }

    async fn messages_around(
        &self,
        scope: &Scope,
        session: &SessionId,
        place: ContextPlace,
        request: &ContextRequest,
    ) -> Result<MessageContext, ApiError> {
        let reading = self.storage.reading();
        let sides = |default: u32| (request.before.unwrap_or(default), request.after.unwrap_or(default));
        Ok(match place {
            ContextPlace::Turn(turn) => {
                let (before, after) = sides(TURNS);
                reading.get_turn_context(scope, session, turn, before, after).await?
            }
            ContextPlace::Message(sequence) => {
                let (before, after) = sides(MESSAGES);
                reading.get_message_context(scope, session, sequence, before, after).await?
            }
        })
    }
}

impl ContextResponse {
    /// The items that a budget counts: the messages.
    #[must_use]
    pub fn items(&self) -> Items {
        Items { count: self.messages.len(), can_be_cut: true }
    }

    /// A portion of the response within the limits: the requested messages first, then the nearest ones around them.
    #[must_use]
    pub fn portion(&self, portion: Portion, limits: AnswerLimits) -> Self {
        let range = self.order().first(portion.items);
        let shown = self.messages.part(range.clone());
        let max_chars = self.chars_of(portion, limits.max_chars);
        let cut = |(at, message): (usize, &MessageView)| message.clone().cut(max_chars(at));
        Self {
            session: self.session.clone(),
            turn: self.turn,
            sequence: self.sequence,
            messages: shown.iter().enumerate().map(cut).collect(),
            left_out: limits.left_out(self.messages.len(), portion),
            has_more_before: self.has_more_before || range.start > 0,
            has_more_after: self.has_more_after || range.end < self.messages.len(),
            damaged: self.damaged.clone(),
            short_ids: self.short_ids.clone(),
        }
    }

    /// The length in characters to which the message at each index of a portion is cut, if `most` is the limit of each.
    pub fn chars_of(&self, portion: Portion, most: Option<usize>) -> impl Fn(usize) -> Option<usize> + use<> {
        let order = self.order();
        let start = order.first(portion.items).start;
        // The message that was fitted last is cut to the rest of the budget.
        let last = order.last(portion.items);
        let rest = portion.chars_of(portion.items.saturating_sub(1), most);
        move |at| if last == Some(start + at) { rest } else { most }
    }

    fn order(&self) -> FittingOrder {
        let is_asked = |message: &MessageView| match self.turn {
            Some(turn) => message.turn == Some(turn),
            None => Some(message.sequence) == self.sequence,
        };
        let start = self.messages.iter().position(is_asked).unwrap_or(0);
        let end = self.messages.iter().rposition(is_asked).map_or(start, |last| last + 1);
        FittingOrder { count: self.messages.len(), asked: start..end }
    }
}

/// The order in which messages are fitted into a budget: the requested ones first, then the nearest ones around them.
struct FittingOrder {
    /// The number of messages.
    count: usize,
    /// The requested messages.
    asked: Range<usize>,
}

impl FittingOrder {
    /// The range of the first `items` messages in this order. They are always next to each other.
    fn first(&self, items: usize) -> Range<usize> {
        let mut range = self.asked.start..self.asked.start;
        for _ in 0..items.min(self.count) {
            range = self.grown(&range);
        }
        range
    }

    /// The last of the first `items` messages in this order.
    fn last(&self, items: usize) -> Option<usize> {
        let (before, with) = (self.first(items.checked_sub(1)?), self.first(items));
        if with.start < before.start { Some(with.start) } else { with.end.checked_sub(1) }
    }

    fn grown(&self, range: &Range<usize>) -> Range<usize> {
        let (before, after) = (self.asked.start - range.start, range.end.saturating_sub(self.asked.end));
        let asks_more = range.end < self.asked.end;
        let goes_back = range.start > 0 && (before <= after || range.end == self.count);
        if !asks_more && goes_back { range.start - 1..range.end } else { range.start..range.end + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_messages_come_first_then_the_nearest() {
        let order = FittingOrder { count: 7, asked: 2..4 };
        let ranges: Vec<Range<usize>> = (0..=8).map(|items| order.first(items)).collect();
        assert_eq!(ranges, [2..2, 2..3, 2..4, 1..4, 1..5, 0..5, 0..6, 0..7, 0..7]);
        let last: Vec<Option<usize>> = (0..=7).map(|items| order.last(items)).collect();
        assert_eq!(last, [None, Some(2), Some(3), Some(1), Some(4), Some(0), Some(5), Some(6)]);
        assert_eq!(FittingOrder { count: 3, asked: 2..3 }.first(3), 0..3);
    }

    #[test]
    fn one_field_names_the_place() {
        let place = |named, turn, message| {
            let (scope, session) = (Reach::Own, "a#3".to_owned());
            let (before, after, short_ids) = (None, None, false);
            ContextRequest { scope, session, turn, message, before, after, short_ids }.place(named).ok()
        };
        assert_eq!(place(Some(3), None, None), Some(ContextPlace::Message(3)));
        assert_eq!(place(None, None, Some(3)), Some(ContextPlace::Message(3)));
        assert_eq!(place(None, Some(2), None), Some(ContextPlace::Turn(2)));
        for (named, turn, message) in
            [(None, None, None), (Some(3), Some(2), None), (Some(3), None, Some(3)), (None, Some(2), Some(3))]
        {
            assert_eq!(place(named, turn, message), None);
        }
    }
}
