//! Sessions: metadata, reading, listing, deleting, counting.

mod activity;
mod dates;
mod edit;
mod find;
mod projects;
mod repositories;
mod short_ids;
mod tree;

pub use activity::Activity;
pub use edit::{SessionEdit, Sharing};
pub(super) use find::PAGE;
pub use find::{Addressed, AddressedLine};
pub use projects::{FolderProject, NamedProjects};
pub(super) use tree::parent_of;
pub use tree::{Origin, SessionTree};

use serde::{Deserialize, Serialize};

use self::find::one_of;
use super::{
    ingest::{IngestReport, IngestTarget},
    store::{Ingestion, SessionCatalog, StoreContext},
};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{Deletion, SessionCursor, SessionDeletion, SessionQuery, StorageBackendExt},
    model::{MetadataFile, ProjectSlug, RawJson, Session, SessionId, SessionKey, UserId},
    search::SessionFilter,
};

/// Counts of sessions and their rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SessionStatistics {
    /// The number of sessions.
    pub sessions: u64,
    /// The number of their messages.
    pub messages: u64,
    /// The number of their turns.
    pub turns: u64,
    /// The number of their events.
    pub events: u64,
}

impl SessionStatistics {
    pub(super) fn add(&mut self, session: &Session) {
        self.sessions += 1;
        self.messages += u64::from(session.message_count);
        self.turns += u64::from(session.turn_count);
        self.events += u64::from(session.event_count);
    }
}

impl Ingestion<'_> {
    /// Creates a session.
    ///
    /// # Errors
    ///
    /// `SessionExists` if the owner has a session with this id; errors of the backend.
    pub async fn create_session(self, session: Session) -> Result<()> {
        let key = session.key();
        let exists = || {
            Error::new(ErrorKind::SessionExists, "the session already exists")
                .with("session", &key.session_id)
        };
        if self.store.backend.get_session(&key).await?.is_some() {
            return Err(exists());
        }
        match self.store.backend.write_one(crate::backend::SessionChange::new(session, None)).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Conflict => Err(exists()),
            Err(error) => Err(error),
        }
    }

    /// Stores the metadata of a session, which is created if it does not exist. `metadata` is the content of its
    /// `metadata.json`, stored byte for byte.
    ///
    /// # Errors
    ///
    /// `Validation` if `metadata` is not a JSON object; errors of the backend.
    pub async fn sync_session_metadata(
        self,
        target: &IngestTarget,
        metadata: RawJson,
    ) -> Result<IngestReport> {
        let files = vec![MetadataFile { name: "metadata.json".to_owned(), raw: metadata }];
        self.store
            .retry_conflicts(|| async {
                let mut ingest = self.ingest(target.clone()).await?;
                ingest.set_metadata(files.clone())?;
                ingest.commit().await
            })
            .await
    }
}

impl StoreContext {
    /// See [`SessionCatalog::get_session`].
    pub(super) async fn get_session(&self, scope: &Scope, session_id: &SessionId) -> Result<Option<Session>> {
        let own = match scope {
            Scope::User(user) => Some(user),
            Scope::Visible(viewer) => Some(&viewer.user_id).filter(|user| viewer.reads_of(user)),
            Scope::Everyone => None,
        };
        if let Some(user) = own {
            let key = SessionKey::new(user.clone(), session_id.clone());
            let found = self.backend.get_session(&key).await?.map(|stored| stored.session);
            if found.is_some() || matches!(scope, Scope::User(_)) {
                return Ok(self.masked_sessions(found.into_iter().collect())?.pop());
            }
        }
        let filter = SessionFilter::default().with_session(session_id.clone());
        let query = SessionQuery::new(scope.clone()).with_filter(filter).with_limit(PAGE);
        one_of(self.all_sessions(query).await?, session_id.as_str())
    }

    /// The session in `scope`, or `SessionNotFound`.
    pub(super) async fn existing_session(&self, scope: &Scope, session_id: &SessionId) -> Result<Session> {
        self.get_session(scope, session_id).await?.ok_or_else(|| Error::session_not_found(session_id))
    }

    /// See [`SessionCatalog::all_sessions`].
    pub(super) async fn all_sessions(&self, query: SessionQuery) -> Result<Vec<Session>> {
        let mut found = Vec::new();
        self.each_page(query, |page| found.extend(page)).await?;
        Ok(found)
    }

    /// Calls a function with the sessions that match `query`, page by page.
    pub(super) async fn each_page(
        &self,
        mut query: SessionQuery,
        mut each: impl FnMut(Vec<Session>),
    ) -> Result<()> {
        loop {
            let mut damaged = Vec::new();
            let page = self.readable_sessions(&mut query, &mut damaged).await;
            self.remember_damaged(damaged);
            let page = page?;
            let full = page.len() == query.limit;
            query.after = page.last().map(SessionCursor::from);
            each(page);
            if !full {
                return Ok(());
            }
        }
    }
}

impl SessionCatalog<'_> {
    /// A session, or `None` if `scope` has no session with this id. If a viewer can see several, their own is returned.
    ///
    /// # Errors
    ///
    /// `Validation` if several users in scope have a session with this id; errors of the backend.
    pub async fn get_session(self, scope: &Scope, session_id: &SessionId) -> Result<Option<Session>> {
        self.store.get_session(scope, session_id).await
    }

    /// All sessions that match `query`, whose limit is the number of sessions read at a time.
    ///
    /// # Errors
    ///
    /// As [`Self::search_sessions`].
    pub async fn all_sessions(self, query: SessionQuery) -> Result<Vec<Session>> {
        self.store.all_sessions(query).await
    }

    /// A page of matching sessions, newest first. Sessions that can't be read are left out of this and all other lists;
    /// [`Self::damaged_sessions`] returns them.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn search_sessions(self, query: &SessionQuery) -> Result<Vec<Session>> {
        let (mut query, mut damaged) = (query.clone(), Vec::new());
        let page = self.store.readable_sessions(&mut query, &mut damaged).await;
        self.store.remember_damaged(damaged);
        page
    }

    /// Counts the sessions in `scope`, and in a project if given.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn get_session_statistics(
        self,
        scope: &Scope,
        project: Option<&ProjectSlug>,
    ) -> Result<SessionStatistics> {
        let mut statistics = SessionStatistics::default();
        let query = SessionQuery::new(scope.clone())
            .with_filter(SessionFilter::default().with_project(project.cloned()))
            .with_limit(PAGE);
        let count = |page: Vec<Session>| {
            for session in page {
                statistics.add(&session);
            }
        };
        self.store.each_page(query, count).await?;
        Ok(statistics)
    }

    /// Deletes sessions with all their data: see
    /// [`Sessions::delete_sessions`](crate::backend::Sessions::delete_sessions).
    pub async fn delete_sessions(self, keys: &[SessionKey]) -> Deletion {
        let seen = self.store.seen.as_ref().map(|seen| seen.key());
        if !seen.is_some_and(|seen| keys.contains(&seen)) {
            let sessions: Vec<SessionDeletion> = keys.iter().map(SessionDeletion::from).collect();
            return self.store.backend.delete_sessions(&sessions).await;
        }
        let mut whole = Deletion::default();
        for key in keys {
            let deleted = self.store.retry_conflicts(|| self.delete_as_seen(key)).await;
            let Deletion { deleted, remains } =
                deleted.unwrap_or_else(|error| Deletion::complete(vec![Err(error)]));
            whole.deleted.extend(deleted);
            whole.remains = remains;
        }
        whole
    }

    /// Deletes a session, which may have to be as the caller has seen it. A conflict is an error.
    async fn delete_as_seen(self, key: &SessionKey) -> Result<Deletion> {
        let Some(stored) = self.store.backend.get_session(key).await? else {
            return Ok(Deletion::complete(vec![Ok(false)]));
        };
        let deletion = self.store.backend.delete_sessions(&[self.store.deletion_of(&stored)?]).await;
        match deletion.deleted.first() {
            Some(Err(error)) if error.kind() == ErrorKind::Conflict => Err(error.clone()),
            _ => Ok(deletion),
        }
    }

    /// Deletes a session of `user` with all its data. Deletes nothing and returns false if the user has no such
    /// session, or if it belongs to another project. If its words can't be erased from all files yet, this is only
    /// logged; [`Self::delete_sessions`] returns it.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn delete_session(
        self,
        user: &UserId,
        project: &ProjectSlug,
        session_id: &SessionId,
    ) -> Result<bool> {
        let key = SessionKey::new(user.clone(), session_id.clone());
        self.store
            .retry_conflicts(|| async {
                match self.store.backend.get_session(&key).await? {
                    Some(stored) if stored.session.project_slug == *project => {
                        self.store.backend.delete_version(self.store.deletion_of(&stored)?).await
                    }
                    _ => Ok(false),
                }
            })
            .await
    }
}
