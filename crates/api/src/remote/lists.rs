//! Lists that may need several requests to a server.

use amplifier_session_core::{model::DamagedRow, storage::SessionOrder};
use async_trait::async_trait;

use super::AnyApi;
use crate::{
    ApiAnswer, ApiError,
    incomplete::IncompleteReason,
    lines::LineRange,
    operations::{
        events::{EventsEnd, EventsRequest, EventsResponse},
        files::{FilesRequest, FilesResponse},
        messages::{MessagesRequest, MessagesResponse},
        session_events::{SessionEventsRequest, SessionEventsResponse},
        sessions::{ListedSession, SessionsRequest, SessionsResponse},
        superseded_events::{SupersededEventsRequest, SupersededEventsResponse},
        superseded_messages::{SupersededMessagesRequest, SupersededMessagesResponse},
        superseded_sessions::{SupersededSessionsRequest, SupersededSessionsResponse},
    },
};

/// A request for a list. A server limits the number and size of the items in an answer, so it may return only the first ones.
#[async_trait]
pub trait PagedRequest: Clone + Send + Sync {
    /// A part of the list.
    type Response: Send;

    /// Asks once.
    ///
    /// # Errors
    ///
    /// Those of the operation; errors of the connection.
    async fn ask(&self, api: &AnyApi<'_>) -> Result<ApiAnswer<Self::Response>, ApiError>;

    /// The request for parts, from which [`Self::complete`] makes the list.
    fn in_parts(&self) -> Self {
        self.clone()
    }

    /// The request for what follows the parts so far; `None` if this is all that was requested.
    fn following(&self, parts: &Self::Response) -> Option<Self>;

    /// Adds the next part, and returns the number of its items.
    fn add(parts: &mut Self::Response, next: Self::Response) -> usize;

    /// Makes the list from all parts.
    fn complete(&self, _parts: &mut Self::Response) {}
}

impl AnyApi<'_> {
    /// The whole list that `request` asks for. A server may be asked several times.
    ///
    /// # Errors
    ///
    /// Those of the operation; errors of the connection.
    pub async fn list<R: PagedRequest>(&self, request: &R) -> Result<ApiAnswer<R::Response>, ApiError> {
        if matches!(self, Self::Here(_)) {
            return request.ask(self).await;
        }
        let in_parts = request.in_parts();
        let mut list = in_parts.ask(self).await?;
        while let Some(following) = in_parts.following(&list.response) {
            let next = following.ask(self).await?.response;
            if R::add(&mut list.response, next) == 0 {
                break;
            }
        }
        request.complete(&mut list.response);
        Ok(list)
    }
}

/// The items that are left of `limit`, if there are.
fn left(limit: usize, listed: usize) -> Option<usize> {
    limit.checked_sub(listed).filter(|left| *left > 0)
}

/// Adds rows, each once: a server may report those of the whole scope with each part.
fn add_damaged(damaged: &mut Vec<DamagedRow>, next: Vec<DamagedRow>) {
    for row in next {
        if !damaged.contains(&row) {
            damaged.push(row);
        }
    }
}

#[async_trait]
impl PagedRequest for SessionsRequest {
    type Response = SessionsResponse;

    async fn ask(&self, api: &AnyApi<'_>) -> Result<ApiAnswer<SessionsResponse>, ApiError> {
        api.sessions(self).await
    }

    fn in_parts(&self) -> Self {
        // The parent of a session may be in another part.
        Self { tree: false, ..self.clone() }
    }

    fn following(&self, parts: &SessionsResponse) -> Option<Self> {
        let count = parts.sessions.len();
        let limit = left(self.limit, count).filter(|_| parts.has_more)?;
        let rest = Self { limit, ..self.clone() };
        Some(match self.sort {
            SessionOrder::Updated => Self { after: Some(parts.next.clone()?), skip: 0, ..rest },
            _ => Self { skip: self.skip + count, ..rest },
        })
    }

    fn add(parts: &mut SessionsResponse, next: SessionsResponse) -> usize {
        let count = next.sessions.len();
        parts.sessions.extend(next.sessions);
        parts.short_ids.extend(next.short_ids);
        (parts.has_more, parts.next) = (next.has_more, next.next);
        add_damaged(&mut parts.damaged, next.damaged);
        parts.incomplete = IncompleteReason::of_damage(&parts.damaged);
        count
    }

    fn complete(&self, parts: &mut SessionsResponse) {
        if self.tree {
            parts.sessions = ListedSession::forest(std::mem::take(&mut parts.sessions));
        }
    }
}

#[async_trait]
impl PagedRequest for EventsRequest {
    type Response = EventsResponse;

    async fn ask(&self, api: &AnyApi<'_>) -> Result<ApiAnswer<EventsResponse>, ApiError> {
        api.events(self).await
    }

    fn following(&self, parts: &EventsResponse) -> Option<Self> {
        let limit = left(self.limit, parts.events.len())?;
        Some(Self { limit, after: Some(parts.end.next.clone()?), ..self.clone() })
    }

    fn add(parts: &mut EventsResponse, next: EventsResponse) -> usize {
        let count = next.events.len() + next.end.damaged.len();
        parts.events.extend(next.events);
        let damaged = [std::mem::take(&mut parts.end.damaged), next.end.damaged].concat();
        let incomplete = IncompleteReason::of_damage(&damaged);
        parts.end = EventsEnd { damaged, incomplete, ..next.end };
        count
    }
}

#[async_trait]
impl PagedRequest for MessagesRequest {
    type Response = MessagesResponse;

    async fn ask(&self, api: &AnyApi<'_>) -> Result<ApiAnswer<MessagesResponse>, ApiError> {
        api.messages(self).await
    }

    fn in_parts(&self) -> Self {
        let mut parts = self.clone();
        parts.lines.range = true;
        parts
    }

    fn following(&self, parts: &MessagesResponse) -> Option<Self> {
        let range = parts.range.filter(|_| parts.has_more_after)?;
        let lines = self.lines.after(range, &parts.session.session.session_id)?;
        Some(Self { lines, ..self.clone() })
    }

    fn add(parts: &mut MessagesResponse, next: MessagesResponse) -> usize {
        parts.messages.extend(next.messages);
        parts.damaged.extend(next.damaged);
        parts.has_more_after = next.has_more_after;
        add_range(&mut parts.range, next.range)
    }

    fn complete(&self, parts: &mut MessagesResponse) {
        parts.range = parts.range.filter(|_| self.lines.range);
    }
}

#[async_trait]
impl PagedRequest for SessionEventsRequest {
    type Response = SessionEventsResponse;

    async fn ask(&self, api: &AnyApi<'_>) -> Result<ApiAnswer<SessionEventsResponse>, ApiError> {
        api.session_events(self).await
    }

    fn in_parts(&self) -> Self {
        let mut parts = self.clone();
        parts.lines.range = true;
        parts
    }

    fn following(&self, parts: &SessionEventsResponse) -> Option<Self> {
        let range = parts.range.filter(|_| parts.has_more_after)?;
        let lines = self.lines.after(range, &parts.session.session.session_id)?;
        Some(Self { lines, ..self.clone() })
    }

    fn add(parts: &mut SessionEventsResponse, next: SessionEventsResponse) -> usize {
        parts.events.extend(next.events);
        parts.damaged.extend(next.damaged);
        parts.has_more_after = next.has_more_after;
        add_range(&mut parts.range, next.range)
    }

    fn complete(&self, parts: &mut SessionEventsResponse) {
        parts.range = parts.range.filter(|_| self.lines.range);
    }
}

/// Adds the range of the next part, and returns the number of its lines.
fn add_range(range: &mut Option<LineRange>, next: Option<LineRange>) -> usize {
    let (Some(range), Some(next)) = (range, next) else { return 0 };
    if next.count() > 0 {
        range.next = next.next;
    }
    next.count() as usize
}

#[async_trait]
impl PagedRequest for FilesRequest {
    type Response = FilesResponse;

    async fn ask(&self, api: &AnyApi<'_>) -> Result<ApiAnswer<FilesResponse>, ApiError> {
        api.files(self).await
    }

    fn following(&self, parts: &FilesResponse) -> Option<Self> {
        let count = parts.files.len();
        let limit = left(self.limit, count).filter(|_| parts.has_more)?;
        Some(Self { limit, skip: self.skip + count, ..self.clone() })
    }

    fn add(parts: &mut FilesResponse, next: FilesResponse) -> usize {
        let count = next.files.len();
        parts.files.extend(next.files);
        parts.has_more = next.has_more;
        count
    }
}

#[async_trait]
impl PagedRequest for SupersededSessionsRequest {
    type Response = SupersededSessionsResponse;

    async fn ask(&self, api: &AnyApi<'_>) -> Result<ApiAnswer<SupersededSessionsResponse>, ApiError> {
        api.superseded_sessions(self).await
    }

    fn following(&self, parts: &SupersededSessionsResponse) -> Option<Self> {
        let count = parts.sessions.len();
        let limit = left(self.limit, count).filter(|_| self.skip + count < parts.count)?;
        Some(Self { limit, skip: self.skip + count, ..self.clone() })
    }

    fn add(parts: &mut SupersededSessionsResponse, next: SupersededSessionsResponse) -> usize {
        let count = next.sessions.len();
        parts.sessions.extend(next.sessions);
        parts.short_ids.extend(next.short_ids);
        count
    }
}

#[async_trait]
impl PagedRequest for SupersededMessagesRequest {
    type Response = SupersededMessagesResponse;

    async fn ask(&self, api: &AnyApi<'_>) -> Result<ApiAnswer<SupersededMessagesResponse>, ApiError> {
        api.superseded_messages(self).await
    }

    fn following(&self, parts: &SupersededMessagesResponse) -> Option<Self> {
        let count = parts.messages.len();
        let limit = left(self.limit, count).filter(|_| parts.has_more_after)?;
        Some(Self { limit, skip: self.skip + count, ..self.clone() })
    }

    fn add(parts: &mut SupersededMessagesResponse, next: SupersededMessagesResponse) -> usize {
        let count = next.messages.len();
        parts.messages.extend(next.messages);
        parts.has_more_after = next.has_more_after;
        count
    }
}

#[async_trait]
impl PagedRequest for SupersededEventsRequest {
    type Response = SupersededEventsResponse;

    async fn ask(&self, api: &AnyApi<'_>) -> Result<ApiAnswer<SupersededEventsResponse>, ApiError> {
        api.superseded_events(self).await
    }

    fn following(&self, parts: &SupersededEventsResponse) -> Option<Self> {
        let count = parts.events.len();
        let limit = left(self.limit, count).filter(|_| parts.has_more)?;
        Some(Self { limit, skip: self.skip + count, ..self.clone() })
    }

    fn add(parts: &mut SupersededEventsResponse, next: SupersededEventsResponse) -> usize {
        let count = next.events.len();
        parts.events.extend(next.events);
        parts.has_more = next.has_more;
        count
    }
}
