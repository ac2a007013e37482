//! Lists sessions, newest first, or as trees.

use amplifier_session_core::{
    Scope,
    backend::SessionQuery,
    model::{DamagedRow, Session},
    storage::{Origin, SessionTree},
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

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
    /// Which sessions. The period is that of their last change.
    #[serde(flatten)]
    pub filter: RequestFilter,
    /// Whether to list sub-agents and forks under the session that they came from.
    pub tree: bool,
    /// Maximum number of sessions.
    pub limit: usize,
    /// Whether the response has short ids, for a face that shows them.
    pub short_ids: bool,
}

impl Default for SessionsRequest {
    fn default() -> Self {
        Self {
            scope: Reach::default(),
            text: None,
            id_prefix: None,
            filter: RequestFilter::default(),
            tree: false,
            limit: 50,
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
        self.filter.check(now)
    }
}

/// Sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionsResponse {
    /// The sessions, newest first, or the roots of trees.
    pub sessions: Vec<ListedSession>,
    /// Whether there are more.
    pub has_more: bool,
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
pub struct ListedSession {
    /// The session.
    #[serde(flatten)]
    pub session: SessionView,
    /// In a tree: its relation to its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// In a tree: its sub-agents and forks, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<ListedSession>>,
}

impl SessionsResponse {
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

    fn of_list(session: &Session, estimated: &Estimated) -> Self {
        Self { session: SessionView::with_estimates(session, estimated), origin: None, children: None }
    }

    /// A session with its sub-agents and forks.
    #[must_use]
    pub fn of_tree(tree: &SessionTree, estimated: &Estimated) -> Self {
        let children = tree.children.iter().map(|child| Self::of_tree(child, estimated)).collect();
        let session = SessionView::with_estimates(&tree.session, estimated);
        Self { session, origin: Some(tree.origin), children: Some(children) }
    }
}

impl Api<'_> {
    /// Lists sessions.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; errors of the store.
    pub async fn sessions(&self, request: &SessionsRequest) -> Result<ApiAnswer<SessionsResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        request.check(self.now)?;
        let period = request.filter.period(self.now, &mut notices)?;
        let filter = self.filtered(&scope, &request.filter, &mut notices).await?;
        let query = SessionQuery::new(scope.clone())
            .with_filter(filter.clone())
            .with_text(request.text.clone())
            .with_id_prefix(request.id_prefix.clone())
            .with_since(period.since)
            .with_until(period.until);
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
        let query = query.with_limit(request.limit.saturating_add(1));
        let mut sessions = self.storage.sessions().search_sessions(&query).await?;
        let has_more = sessions.len() > request.limit;
        sessions.truncate(request.limit);
        let estimated = Estimated::of(self.storage, &sessions).await?;
        let short_ids =
            if request.short_ids { self.short_ids_of(&scope, &sessions).await? } else { ShortIds::new() };
        let sessions = if request.tree {
            let forest = SessionTree::forest(sessions);
            forest.iter().map(|tree| ListedSession::of_tree(tree, &estimated)).collect()
        } else {
            sessions.iter().map(|session| ListedSession::of_list(session, &estimated)).collect()
        };
        let damaged = self.damaged_within(&scope);
        let incomplete = IncompleteReason::of_damage(&damaged);
        Ok(SessionsResponse { sessions, has_more, damaged, incomplete, short_ids })
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
