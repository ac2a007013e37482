//! Messages of a session.

use std::collections::BTreeMap;

use amplifier_session_core::{
    KnownPart, Scope,
    backend::SkippedLine,
    model::{ContentTypes, DamagedRow, LineKind, Message, SessionId},
    storage::{Addressed, Readable},
};
use serde::{Deserialize, Serialize};

use super::session::SessionResponse;
use crate::{
    Api, ApiAnswer, ApiError, PlaceFields,
    addresses::named_message,
    budget::{AnswerLimits, Items, Portion},
    ids::{ShortIds, short},
    lines::{LineRange, LinesRequest},
    views::{MessageView, SessionView},
};

/// A page of the messages of a session, or one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesRequest {
    /// Which messages.
    #[serde(flatten)]
    pub lines: LinesRequest,
    /// Whether messages say which of their texts have vectors.
    #[serde(default)]
    pub vectors: bool,
    /// Whether the response has short ids, for a face that shows them.
    #[serde(default)]
    pub short_ids: bool,
}

/// Messages of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessagesResponse {
    /// The session.
    pub session: SessionView,
    /// Lines of its files that could not be read.
    pub skipped: Vec<SkippedLine>,
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
    /// The range of the messages, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<LineRange>,
    /// The short ids of the session and its parent, if they were requested.
    #[serde(default, skip_serializing_if = "ShortIds::is_empty")]
    pub short_ids: ShortIds,
}

impl Api<'_> {
    /// Reads messages of a session. There may be fewer than the limit before the end if they are long and the storage
    /// [counts them](amplifier_session_core::SessionStorage::with_read_meter).
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much, with
    /// [`NamesEvent`](crate::InvalidRequest::NamesEvent) if the address names an event; `SessionNotFound` if there is
    /// no such session, and `Validation` if there are several; errors of the store.
    #[crate::compiled_here]
    pub async fn messages(&self, request: &MessagesRequest) -> Result<ApiAnswer<MessagesResponse>, ApiError> {
        let address = &request.lines.session;
        let scope = self.caller.scope(request.lines.scope)?;
        let mut notices = Vec::new();
        let Addressed { session, line, .. } = self.find(&scope, address, &mut notices).await?;
        let lines = request.lines.lines(named_message(address, line, PlaceFields::First)?)?;
        let (id, count) = (&session.session_id, session.message_count);
        let reading = self.storage.reading();
        let Readable { rows, damaged, .. } =
            reading.readable_transcript_lines(&scope, id, lines.after(), lines.limit).await?;
        let page = lines.page(rows.len() + damaged.len(), count);
        notices.extend(page.no_line(LineKind::Message, count));
        let vectors = if request.vectors { Some(self.vectors_of_messages(&scope, id).await?) } else { None };
        let SessionResponse { session: shown, skipped, short_ids, .. } =
            self.details(&scope, &session).await?;
        let view = |message: &Message| {
            let view = MessageView::new(message, short(&short_ids, id), None);
            match &vectors {
                Some(vectors) => view.with_vectors(vectors.get(&message.sequence)),
                None => view,
            }
        };
        let response = MessagesResponse {
            session: shown,
            skipped,
            messages: rows.iter().map(view).collect(),
            left_out: None,
            has_more_before: page.has_more_before,
            has_more_after: page.has_more_after,
            damaged,
            range: request.lines.range.then_some(page.range),
            short_ids: if request.short_ids { short_ids } else { ShortIds::new() },
        };
        Ok(ApiAnswer { response, notices })
    }

    /// The types of the texts that have vectors, by the number of the message.
    pub(crate) async fn vectors_of_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<BTreeMap<u32, ContentTypes>, ApiError> {
        let types = self.storage.vectors().vector_content_types(scope, session).await?;
        Ok(types.into_iter().collect())
    }
}

impl MessagesResponse {
    /// The items that a budget counts: the messages.
    #[must_use]
    pub fn items(&self) -> Items {
        Items { count: self.messages.len(), can_be_cut: true }
    }

    /// A portion of the response within the limits.
    #[must_use]
    pub fn portion(&self, portion: Portion, limits: AnswerLimits) -> Self {
        let shown = self.messages.part(..portion.items);
        let cut = |(rank, message): (usize, &MessageView)| {
            message.clone().cut(portion.chars_of(rank, limits.max_chars))
        };
        let leaves_out = shown.len() < self.messages.len();
        // If messages are left out, the range ends with the last one shown.
        let range = self.range.map(|range| match shown.last() {
            Some(last) if leaves_out => LineRange { next: last.sequence.saturating_add(1), ..range },
            None if leaves_out => LineRange { next: range.from, ..range },
            _ => range,
        });
        Self {
            session: self.session.clone(),
            skipped: self.skipped.clone(),
            messages: shown.iter().enumerate().map(cut).collect(),
            left_out: limits.left_out(self.messages.len(), portion),
            has_more_before: self.has_more_before,
            has_more_after: self.has_more_after || leaves_out,
            damaged: self.damaged.clone(),
            range,
            short_ids: self.short_ids.clone(),
        }
    }
}
