//! Verification: rows that belong to nothing, and the search index.

use amplifier_session_core::{
    Result,
    backend::{IndexCheck, Integrity, StrayRows},
    model::{SessionId, SessionKey, UserId},
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    backend::{DerivedIndex, write},
    read,
};

#[async_trait]
impl<D: DerivedIndex> Integrity for SqlBackend<D> {
    async fn stray_rows(&self, user: &UserId, session: Option<&SessionId>) -> Result<Vec<StrayRows>> {
        let user = user.clone();
        let Some(session) = session.cloned() else {
            return self.read(move |reader| read::integrity::sessions_without_record(reader, &user)).await;
        };
        let key = SessionKey::new(user, session);
        self.read_snapshot(move |reader| read::integrity::stray(reader, &key)).await
    }

    async fn remove_stray_rows(&self, key: &SessionKey) -> Result<u64> {
        let key = key.clone();
        self.run(move |database| write::remove_stray_rows(database, &key)).await
    }

    async fn check_index(&self) -> Result<IndexCheck> {
        self.0.check_index().await
    }
}
