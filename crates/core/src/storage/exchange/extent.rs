//! The extents of the sessions of a store.

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};

use crate::{
    Result, Scope,
    backend::StoredSession,
    content::{EXTRACTION, MASKING},
    model::{Digest, SessionId, SessionKey, UserId},
    storage::{
        archive::{RowChains, SentSuperseded},
        at_rest::SecretsAtRest,
        ingest::{ReceivedFrom, ReceivedRows},
        store::{SessionExchange, StoredSecrets},
    },
};

/// The number of sessions read at the same time.
const AT_ONCE: usize = 8;

/// The sessions to describe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExtentQuery {
    /// Their owner.
    pub user_id: UserId,
    /// The identity of the asking store.
    pub store: String,
    /// Only these sessions. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Vec<SessionId>>,
    /// Continue after this session, the last one of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<SessionId>,
    /// Maximum number of sessions. Default: 1,000.
    pub limit: usize,
}

impl ExtentQuery {
    /// The first 1,000 sessions of a user, for the store with this identity.
    #[must_use]
    pub fn new(user_id: UserId, store: impl Into<String>) -> Self {
        Self { user_id, store: store.into(), sessions: None, after: None, limit: 1_000 }
    }

    setters! {
        /// Only these sessions.
        with_sessions(sessions: Option<Vec<SessionId>>);
        /// Continues after a session.
        with_after(after: Option<SessionId>);
        /// Sets the maximum number of sessions.
        with_limit(limit: usize);
    }
}

/// A page of sessions, in order of id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtentPage {
    /// The identity of the store.
    pub store: String,
    /// The version of its rules that extract texts from lines.
    pub extraction: u32,
    /// The version of its rules that mask secrets, if it masks them in stored lines.
    pub masking: Option<u32>,
    /// The sessions.
    pub sessions: Vec<SessionExtent>,
    /// The session after which to continue; `None` at the end.
    pub next: Option<SessionId>,
    /// Of the named sessions of the page, those that were deleted from the store. Others that are missing belong to
    /// another user, or the store has never had them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<SessionId>,
}

/// The stored part of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionExtent {
    /// The id.
    pub session_id: SessionId,
    /// The version of the session.
    pub version: String,
    /// The number of messages.
    pub messages: u32,
    /// The number of events.
    pub events: u32,
    /// The part that the asking store has sent; `None` if it has sent nothing, or too long ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentExtent>,
    /// Whether it is as the asking store has sent it: nobody else has changed it since.
    #[serde(default)]
    pub is_as_sent: bool,
}

/// The part of a session that a store has sent to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentExtent {
    /// The version that the session had in the sending store; `None` if rows are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of everything about it that is not a row.
    pub about: Digest,
    /// The rows that were sent, with the digests that they have in the sending store.
    pub rows: RowChains,
    /// The superseded lines that were sent.
    pub superseded: SentSuperseded,
}

impl From<&ReceivedFrom> for SentExtent {
    fn from(from: &ReceivedFrom) -> Self {
        let ReceivedFrom { version, about, superseded, .. } = from.clone();
        Self { version, about, rows: from.chains(), superseded }
    }
}

impl SessionExtent {
    /// The extent of a stored session, for the store with this identity.
    pub(super) fn of(stored: &StoredSession, store: &str) -> Self {
        let received = ReceivedRows::of(stored);
        Self {
            session_id: stored.session.session_id.clone(),
            version: stored.version.0.clone(),
            messages: stored.session.message_count,
            events: stored.session.event_count,
            sent: received.sent_by(store).map(SentExtent::from),
            is_as_sent: received.is_as_sent(store, &stored.session),
        }
    }
}

impl SessionExchange<'_> {
    /// A page of the sessions of a user. Reads no rows.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn extents(self, query: &ExtentQuery) -> Result<ExtentPage> {
        let mut ids = match &query.sessions {
            Some(ids) => ids.clone(),
            None => self.session_ids(&query.user_id).await?,
        };
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| query.after.as_ref().is_none_or(|after| id > after));
        let has_more = ids.len() > query.limit;
        ids.truncate(query.limit);
        let next = ids.last().filter(|_| has_more).cloned();
        let sessions: Vec<SessionExtent> = stream::iter(ids.clone())
            .map(|id| self.extent(query, id))
            .buffered(AT_ONCE)
            .try_filter_map(|extent| async { Ok(extent) })
            .try_collect()
            .await?;
        let mut deleted = Vec::new();
        if query.sessions.is_some() && sessions.len() < ids.len() {
            deleted = self.store.backend.deleted_sessions(&query.user_id).await?;
            deleted.retain(|id| ids.binary_search(id).is_ok());
        }
        let masks = StoredSecrets::new(self.store).secrets_at_rest().await? == SecretsAtRest::Mask;
        Ok(ExtentPage {
            store: self.store_id().await?,
            extraction: EXTRACTION,
            masking: masks.then_some(MASKING),
            sessions,
            next,
            deleted,
        })
    }

    async fn extent(self, query: &ExtentQuery, id: SessionId) -> Result<Option<SessionExtent>> {
        let key = SessionKey::new(query.user_id.clone(), id);
        let stored = self.store.backend.get_session(&key).await?;
        Ok(stored.map(|stored| SessionExtent::of(&stored, &query.store)))
    }

    /// The ids of all sessions of a user, in order.
    pub(super) async fn session_ids(self, user: &UserId) -> Result<Vec<SessionId>> {
        let names = self.store.backend.session_names(&Scope::User(user.clone())).await?;
        let mut ids: Vec<SessionId> = names.into_iter().map(|name| name.session_id).collect();
        ids.sort_unstable();
        Ok(ids)
    }
}
