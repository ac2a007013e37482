//! Reports which sessions changed: a feed that a reader follows with a cursor.

use std::time::Duration;

use amplifier_session_core::{
    Scope,
    backend::{ChangeCursor, ChangePage, ChangedFrom, SessionChanged},
    model::{SessionId, UserId},
};
use serde::{Deserialize, Serialize};

use crate::{Api, ApiAnswer, ApiError, InvalidRequest, Reach, views::SessionView};

/// The maximum number of changes in a response, whatever the request says.
const MOST: usize = 1_000;

/// The sessions that changed after a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangesRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// The cursor of an earlier response. Without one, the response has no changes, and the cursor of now: take it first,
    /// list the sessions, and then ask for the changes since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Maximum number of changes, at most 1,000.
    pub limit: usize,
}

impl Default for ChangesRequest {
    fn default() -> Self {
        Self { scope: Reach::default(), after: None, limit: 100 }
    }
}

impl ChangesRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self) -> Result<(), ApiError> {
        if self.limit == 0 {
            return Err(InvalidRequest::NothingToList.into());
        }
        self.cursor().map(drop)
    }

    fn cursor(&self) -> Result<Option<ChangeCursor>, ApiError> {
        let Some(text) = &self.after else { return Ok(None) };
        // The face decides how long a text it shows.
        let unknown = || InvalidRequest::NotACursor { text: text.chars().take(100).collect() };
        Ok(Some(ChangeCursor::parse(text).ok_or_else(unknown)?))
    }
}

/// Changed sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangesResponse {
    /// The changes. A session may be reported again although nothing more happened; its last entry is right.
    pub changes: Vec<ChangeView>,
    /// The cursor for the next request. If there are no changes, that request has none yet, either.
    pub cursor: String,
    /// Whether the changes since the given cursor are unknown, because it is of another store, of an older state of this
    /// one, or of a caller who could see other sessions: list all sessions again.
    pub reset: bool,
}

/// A changed session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeView {
    /// The owner.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
    /// Whether it is gone: it was deleted, belongs to another user, or the caller may not see it any more. Nothing else is
    /// said then.
    pub removed: bool,
    /// Its version, which changes with every write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The session as it is now, with its numbers of messages and events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionView>,
    /// The messages that may have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<ChangedRows>,
    /// The events that may have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<ChangedRows>,
}

/// Rows of a changed session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedRows {
    /// The number of the first one that may differ from before. All rows before it are the same; if it is `count`, all are.
    pub from: u32,
    /// The number of rows that there are now.
    pub count: u32,
}

impl From<SessionChanged> for ChangeView {
    fn from(changed: SessionChanged) -> Self {
        let key = changed.key();
        let mut view = Self {
            user_id: key.user_id,
            session_id: key.session_id,
            removed: true,
            version: None,
            session: None,
            messages: None,
            events: None,
        };
        if let SessionChanged::Written { session, version, from: ChangedFrom { messages, events } } = changed
        {
            view.removed = false;
            view.version = Some(version.0);
            view.messages = Some(ChangedRows { from: messages, count: session.message_count });
            view.events = Some(ChangedRows { from: events, count: session.event_count });
            view.session = Some(SessionView::from(&*session));
        }
        view
    }
}

impl From<ChangePage> for ChangesResponse {
    fn from(page: ChangePage) -> Self {
        Self {
            changes: page.changes.into_iter().map(ChangeView::from).collect(),
            cursor: page.cursor.to_string(),
            reset: page.reset,
        }
    }
}

impl Api<'_> {
    /// The sessions that changed after a cursor.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn changes(&self, request: &ChangesRequest) -> Result<ApiAnswer<ChangesResponse>, ApiError> {
        self.wait_for_changes(request, Duration::ZERO).await
    }

    /// As [`Self::changes`], but waits up to `patience` until there are changes. Then the response has none. A caller whose
    /// rights may end must not wait for long, because they are checked at the beginning.
    ///
    /// # Errors
    ///
    /// As [`Self::changes`].
    #[crate::compiled_here]
    pub async fn wait_for_changes(
        &self,
        request: &ChangesRequest,
        patience: Duration,
    ) -> Result<ApiAnswer<ChangesResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        request.check()?;
        let page = match request.cursor()? {
            Some(after) => self.page_of_changes(&scope, &after, request.limit, patience).await?,
            None => ChangePage::beginning(self.storage.changes().begin(&scope).await?),
        };
        Ok(ChangesResponse::from(page).into())
    }

    async fn page_of_changes(
        &self,
        scope: &Scope,
        after: &ChangeCursor,
        limit: usize,
        patience: Duration,
    ) -> Result<ChangePage, ApiError> {
        Ok(self.storage.changes().wait(scope, after, limit.min(MOST), patience).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use amplifier_session_core::{SessionStorage, storage::Sharing};
    use amplifier_session_testkit::{
        MemoryBackend, lines,
        store::{target_of, whole},
    };
    use serde_json::json;

    use super::*;
    use crate::{ApiCaller, CallerPlace};

    async fn write(storage: &SessionStorage, user: &str, session: &str) {
        let target = target_of(user, "shop", session);
        let lines = whole(vec![lines::user("why are payments retried")]);
        storage.ingestion().sync_transcript_lines(&target, lines).await.unwrap();
    }

    async fn share(storage: &SessionStorage, user: &str, session: &str, sharing: Sharing) {
        let key = target_of(user, "shop", session).key;
        storage.sessions().share_session(&key, &sharing).await.unwrap();
    }

    /// The answer that ana gets, through JSON.
    async fn asked(
        storage: &SessionStorage,
        reach: Reach,
        request: &ChangesRequest,
    ) -> Result<ChangesResponse, ApiError> {
        let caller = ApiCaller::new(target_of("ana", "shop", "x").key.user_id).with_reach(reach);
        let now = "2026-01-05T08:00:00+00:00[UTC]".parse().unwrap();
        let api = Api { storage, caller: &caller, now: &now, place: CallerPlace::Elsewhere };
        let request = serde_json::from_value(serde_json::to_value(request).unwrap()).unwrap();
        let response = api.changes(&request).await?.response;
        let json = serde_json::to_value(&response).unwrap();
        assert_eq!(serde_json::from_value::<ChangesResponse>(json).unwrap(), response);
        Ok(response)
    }

    fn after(scope: Reach, cursor: &str) -> ChangesRequest {
        ChangesRequest { scope, after: Some(cursor.to_owned()), ..ChangesRequest::default() }
    }

    #[tokio::test]
    async fn a_reader_follows_what_it_may_see() {
        let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
        let all = Reach::Visible;
        let first = ChangesRequest { scope: all, ..ChangesRequest::default() };
        let begun = asked(&storage, all, &first).await.unwrap();
        assert!(begun.changes.is_empty() && !begun.reset);
        write(&storage, "ana", "own").await;
        write(&storage, "eve", "secret").await;
        write(&storage, "eve", "shared").await;
        share(&storage, "eve", "shared", Sharing::public()).await;
        let page = asked(&storage, all, &after(all, &begun.cursor)).await.unwrap();
        let ids: Vec<&str> = page.changes.iter().map(|change| change.session_id.as_str()).collect();
        assert_eq!(ids, ["own", "shared"]);
        let session = page.changes[0].session.as_ref().unwrap();
        assert_eq!((session.title.as_str(), session.session.message_count), ("why are payments retried", 1));
        assert_eq!(page.changes[0].messages, Some(ChangedRows { from: 0, count: 1 }));

        share(&storage, "eve", "shared", Sharing::private()).await;
        let page = asked(&storage, all, &after(all, &page.cursor)).await.unwrap();
        let removed = json!([{"user_id": "eve", "session_id": "shared", "removed": true}]);
        assert_eq!(serde_json::to_value(&page.changes).unwrap(), removed);
        assert!(asked(&storage, all, &after(all, &page.cursor)).await.unwrap().changes.is_empty());
    }

    #[tokio::test]
    async fn a_cursor_of_another_scope_is_reset() {
        let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
        let begun = asked(&storage, Reach::All, &ChangesRequest::default()).await.unwrap();
        write(&storage, "ana", "own").await;
        let page = asked(&storage, Reach::All, &after(Reach::All, &begun.cursor)).await.unwrap();
        assert!(page.reset && page.changes.is_empty());
    }

    #[tokio::test]
    async fn invalid_requests_are_refused() {
        let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
        for text in ["", "x", "../../etc/passwd", &"A".repeat(1 << 20)] {
            let refused = asked(&storage, Reach::Own, &after(Reach::Own, text)).await.unwrap_err();
            let ApiError::Invalid(InvalidRequest::NotACursor { text }) = refused else {
                panic!("{refused}");
            };
            assert!(text.len() <= 100);
        }
        let nothing = ChangesRequest { limit: 0, ..ChangesRequest::default() };
        let refused = asked(&storage, Reach::Own, &nothing).await.unwrap_err();
        assert!(matches!(refused, ApiError::Invalid(InvalidRequest::NothingToList)), "{refused}");
        let beyond = ChangesRequest { scope: Reach::All, ..ChangesRequest::default() };
        let refused = asked(&storage, Reach::Visible, &beyond).await.unwrap_err();
        assert!(matches!(refused, ApiError::BeyondReach { .. }), "{refused}");
    }
}
