//! Lists sessions, newest first or in another order, or as trees.

use amplifier_session_core::{
    Scope,
    backend::{SessionCursor, SessionQuery, Usage},
    model::{DamagedRow, Session, SessionId, SessionKey, Timestamp, UserId},
    storage::{Origin, SessionOrder, SessionTree, SortedSession},
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::{
    Api, ApiAnswer, ApiError, FoundKind, InvalidRequest, Notice, Reach,
    filter::RequestFilter,
    ids::ShortIds,
    incomplete::IncompleteReason,
    views::{Estimated, SessionView},
};

/// A list of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionsRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// Words in the title or the description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The beginning of the id, for a face that completes ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_prefix: Option<String>,
    /// Only sub-agents and forks of this session, by its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Which sessions. The period is that of their last change.
    #[serde(flatten)]
    pub filter: RequestFilter,
    /// The order of the sessions, of all that match and not only of the newest.
    pub sort: SessionOrder,
    /// Whether to list sub-agents and forks under the session that they came from.
    pub tree: bool,
    /// Maximum number of sessions.
    pub limit: usize,
    /// Continue after a page, given its cursor [`next`](SessionsResponse::next). Only in the usual order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The number of the first sessions that an earlier response had, and that this one does not have.
    #[serde(skip_serializing_if = "is_zero")]
    pub skip: usize,
    /// Whether the response has short ids, for a face that shows them.
    pub short_ids: bool,
}

impl Default for SessionsRequest {
    fn default() -> Self {
        Self {
            scope: Reach::default(),
            text: None,
            id_prefix: None,
            parent: None,
            filter: RequestFilter::default(),
            sort: SessionOrder::Updated,
            tree: false,
            limit: 50,
            after: None,
            skip: 0,
            short_ids: false,
        }
    }
}

impl SessionsRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        if self.limit == 0 {
            return Err(InvalidRequest::NothingToList.into());
        }
        self.cursor()?;
        self.filter.check(now)
    }

    fn cursor(&self) -> Result<Option<SessionCursor>, InvalidRequest> {
        let Some(text) = &self.after else { return Ok(None) };
        let read = read_cursor(text).filter(|_| self.sort == SessionOrder::Updated);
        read.map(Some).ok_or_else(|| InvalidRequest::NotACursor { text: text.clone() })
    }
}

/// Sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionsResponse {
    /// The sessions in the requested order, or the roots of trees.
    pub sessions: Vec<ListedSession>,
    /// Their order, if it is not that of their last change.
    #[serde(default, skip_serializing_if = "is_updated")]
    pub sort: SessionOrder,
    /// Whether there are more.
    pub has_more: bool,
    /// If there are more, in the usual order: the cursor for the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Sessions that can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
    /// Why something may be missing; empty if nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteReason>,
    /// The short ids of the sessions and their parents, if they were requested.
    #[serde(default, skip_serializing_if = "ShortIds::is_empty")]
    pub short_ids: ShortIds,
}

/// A session in a list or a tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedSession {
    /// The session.
    #[serde(flatten)]
    pub session: SessionView,
    /// The usage of its model calls, in a list that is sorted by cost. A call that several sessions report is one of the
    /// first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The time from its beginning to its last change, in a list that is sorted by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<u64>,
    /// In a tree: its relation to its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// In a tree: its sub-agents and forks, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<ListedSession>>,
}

impl SessionsResponse {
    /// The response with only the first sessions. Not for trees.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        let mut first = self.clone();
        if count < first.sessions.len() {
            first.sessions.truncate(count);
            first.has_more = true;
            let last = first.sessions.last().filter(|_| self.sort == SessionOrder::Updated);
            first.next = last.map(|last| write_cursor(&last.session.session));
        }
        first
    }

    /// The number of sessions, with those below others.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sessions.iter().map(ListedSession::count).sum()
    }
}

impl ListedSession {
    fn count(&self) -> usize {
        1 + self.children.iter().flatten().map(Self::count).sum::<usize>()
    }

    /// A session of a list in this order.
    pub(crate) fn of_list(sorted: &SortedSession, sort: SessionOrder, estimated: &Estimated) -> Self {
        let SortedSession { session, usage } = sorted;
        Self {
            session: SessionView::with_estimates(session, estimated),
            usage: *usage,
            duration_seconds: Some(session.duration_seconds()).filter(|_| sort == SessionOrder::Duration),
            origin: None,
            children: None,
        }
    }

    /// Trees of the sessions of a list.
    pub(crate) fn forest(listed: Vec<Self>) -> Vec<Self> {
        let estimated = Estimated::among(listed.iter().map(|listed| &listed.session));
        let sessions = listed.into_iter().map(|listed| listed.session.session).collect();
        SessionTree::forest(sessions).iter().map(|tree| Self::of_tree(tree, &estimated)).collect()
    }

    /// A session with its sub-agents and forks.
    #[must_use]
    pub fn of_tree(tree: &SessionTree, estimated: &Estimated) -> Self {
        let children = tree.children.iter().map(|child| Self::of_tree(child, estimated)).collect();
        let session = SessionView::with_estimates(&tree.session, estimated);
        Self {
            session,
            usage: None,
            duration_seconds: None,
            origin: Some(tree.origin),
            children: Some(children),
        }
    }
}

/// The cursor after a session, as text. The owner comes last, because it may contain any character.
fn write_cursor(session: &Session) -> String {
    format!("{}/{}/{}", session.updated, session.session_id, session.user_id)
}

fn read_cursor(text: &str) -> Option<SessionCursor> {
    let mut parts = text.splitn(3, '/');
    let updated = Timestamp::parse(parts.next()?).ok()?;
    let session_id = SessionId::new(parts.next()?).ok()?;
    let user_id = UserId::new(parts.next()?).ok()?;
    Some(SessionCursor { updated, key: SessionKey::new(user_id, session_id) })
}

fn is_updated(order: &SessionOrder) -> bool {
    *order == SessionOrder::Updated
}

impl Api<'_> {
    /// Lists sessions.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn sessions(&self, request: &SessionsRequest) -> Result<ApiAnswer<SessionsResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        request.check(self.now)?;
        let period = request.filter.period(self.now, &mut notices)?;
        let filter = self.filtered(&scope, &request.filter, &mut notices).await?;
        let parent = match &request.parent {
            Some(parent) => Some(self.find(&scope, parent, &mut notices).await?.session.session_id),
            None => None,
        };
        let mut query = SessionQuery::new(scope.clone())
            .with_filter(filter.clone())
            .with_text(request.text.clone())
            .with_id_prefix(request.id_prefix.clone())
            .with_since(period.since)
            .with_until(period.until);
        (query.parent, query.after) = (parent, request.cursor()?);
        let response = self.list(query, request).await?;
        if response.sessions.is_empty() {
            notices.push(Notice::NothingFound { what: FoundKind::Session, nearest: None });
            self.why_nothing(&scope, &request.filter, &filter, &mut notices).await?;
            notices.extend(self.only_others(&scope).await?);
        }
        Ok(ApiAnswer { response, notices })
    }

    async fn list(
        &self,
        query: SessionQuery,
        request: &SessionsRequest,
    ) -> Result<SessionsResponse, ApiError> {
        let scope = query.scope.clone();
        // One more than needed, to know whether there are more.
        let query = query.with_limit(request.skip.saturating_add(request.limit).saturating_add(1));
        let mut sorted = self.sorted_sessions(query, request.sort).await?;
        sorted.drain(..request.skip.min(sorted.len()));
        let has_more = sorted.len() > request.limit;
        sorted.truncate(request.limit);
        let last = sorted.last().filter(|_| has_more && request.sort == SessionOrder::Updated);
        let next = last.map(|last| write_cursor(&last.session));
        let sessions: Vec<Session> = sorted.iter().map(|one| one.session.clone()).collect();
        let estimated = Estimated::of(self.storage, &sessions).await?;
        let short_ids =
            if request.short_ids { self.short_ids_of(&scope, &sessions).await? } else { ShortIds::new() };
        let listed = sorted.iter().map(|one| ListedSession::of_list(one, request.sort, &estimated)).collect();
        let sessions = if request.tree { ListedSession::forest(listed) } else { listed };
        let damaged = self.damaged_within(&scope);
        let incomplete = IncompleteReason::of_damage(&damaged);
        Ok(SessionsResponse { sessions, sort: request.sort, has_more, next, damaged, incomplete, short_ids })
    }

    /// The first sessions that a query finds, in an order.
    async fn sorted_sessions(
        &self,
        query: SessionQuery,
        sort: SessionOrder,
    ) -> Result<Vec<SortedSession>, ApiError> {
        if sort != SessionOrder::Updated {
            return Ok(self.storage.statistics().sorted_sessions(query, sort).await?);
        }
        // The store has them in this order.
        let sessions = self.storage.sessions().search_sessions(&query).await?;
        Ok(sessions.into_iter().map(|session| SortedSession { session, usage: None }).collect())
    }

    /// The short ids of sessions and their parents.
    pub(crate) async fn short_ids_of(
        &self,
        scope: &Scope,
        sessions: &[Session],
    ) -> Result<ShortIds, ApiError> {
        let parents = sessions.iter().filter_map(|session| session.parent_id.as_ref());
        let ids = sessions.iter().map(|session| &session.session_id).chain(parents);
        Ok(self.storage.sessions().short_ids(scope, ids).await?)
    }
}
