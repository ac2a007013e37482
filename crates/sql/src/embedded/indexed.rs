//! A database with its search index.

use std::{
    ops::Deref,
    sync::{Arc, atomic::AtomicBool},
};

use amplifier_session_core::{
    Result,
    backend::{
        Candidates, DatedMessage, IndexCheck, IndexProblem, NotErased, StoreInfo, SyncGuard, TermPattern,
        TextCandidate, TextQuery, VectorCandidate, VectorQuery,
    },
    model::SessionKey,
};
use amplifier_session_index::WhenBusy;

use super::{EmbeddedDatabase, Nearest, leftover::Leftover};
use crate::backend::{Database, DerivedIndex, Removed, SqlBackend, on_thread};

/// A backend on an embedded database.
pub type Embedded<D> = SqlBackend<Indexed<D>>;

impl<D: EmbeddedDatabase> Embedded<D> {
    /// A backend on `database` and its index.
    #[must_use]
    pub fn embedded(database: D) -> Self {
        Self::new(Indexed { database, looked_for_remains: AtomicBool::new(false) })
    }
}

/// An embedded database that searches with the index beside it.
#[derive(Debug)]
pub struct Indexed<D> {
    database: D,
    /// Whether a write of this process has checked for deleted data that must still be erased.
    pub(super) looked_for_remains: AtomicBool,
}

impl<D> Deref for Indexed<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.database
    }
}

impl<D: EmbeddedDatabase> Database for Indexed<D> {
    type Connections = D::Connections;
    type Writer<'a> = D::Writer<'a>;

    const LOOKS_FOR_CHANGES: std::time::Duration = D::LOOKS_FOR_CHANGES;

    fn connections(&self) -> &D::Connections {
        self.database.connections()
    }

    fn info(&self) -> StoreInfo {
        self.database.info()
    }

    fn check_writable(&self) -> Result<()> {
        self.database.check_writable()
    }

    fn transaction<T>(
        &self,
        operation: &'static str,
        write: impl FnMut(&mut D::Writer<'_>) -> Result<T>,
    ) -> Result<T> {
        self.database.transaction(operation, write)
    }

    fn tidy(&self) -> Result<()> {
        self.database.tidy()
    }

    fn removing(writer: &D::Writer<'_>, revision: i64, what: Removed) -> Result<()> {
        Leftover::of(what).iter().try_for_each(|leftover| leftover.record(writer, revision))
    }
}

impl<D: EmbeddedDatabase> DerivedIndex for Indexed<D> {
    async fn text_candidates(self: &Arc<Self>, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        self.index().text_candidates(query).await
    }

    async fn newest_messages(self: &Arc<Self>, query: &TextQuery) -> Result<Candidates<DatedMessage>> {
        self.index().newest_messages(query).await
    }

    async fn vector_candidates(self: &Arc<Self>, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let asked = query.clone();
        let reason = match on_thread(self, move |indexed| indexed.database.nearest(&asked)).await? {
            Nearest::Found(items) => return Ok(Candidates::new(items)),
            Nearest::NotAsked => None,
            Nearest::Unavailable(reason) => Some(reason),
        };
        let mut found = self.index().vector_candidates(query).await?;
        let notices: Vec<String> = found.notice.into_iter().chain(reason).collect();
        found.notice = (!notices.is_empty()).then(|| notices.join("; "));
        Ok(found)
    }

    async fn terms(self: &Arc<Self>, patterns: &[TermPattern], limit: usize) -> Result<Vec<Vec<String>>> {
        self.index().terms(patterns, limit).await
    }

    /// Also removes data of deleted, changed and rewound rows from the files of the database.
    async fn update_index(self: &Arc<Self>) -> Result<()> {
        self.check_writable()?;
        let updated = self.index().fold(WhenBusy::Wait).await;
        let tidied = on_thread(self, |indexed| indexed.database.tidy()).await;
        self.erase_remains().await;
        tidied.and(updated)
    }

    async fn update_index_if_due(self: &Arc<Self>) -> Result<()> {
        if D::IS_SHARED && self.index().lacks_little().await? {
            return Ok(());
        }
        self.update_index().await
    }

    async fn reindex_texts(self: &Arc<Self>, _: &SessionKey, _: &[u32]) -> Result<()> {
        // The index records which rules it follows.
        Ok(())
    }

    async fn check_index(self: &Arc<Self>) -> Result<IndexCheck> {
        let mut check = self.index().check().await?;
        for reason in on_thread(self, |indexed| indexed.database.check_tables()).await? {
            check.add(IndexProblem { message: None, reason });
            check.tables_differ = true;
        }
        Ok(check)
    }

    async fn rebuild_index(self: &Arc<Self>) -> Result<()> {
        self.check_writable()?;
        on_thread(self, |indexed| indexed.database.rebuild_tables()).await?;
        self.index().discard().await?;
        self.index().fold(WhenBusy::Wait).await
    }

    async fn wrote(self: &Arc<Self>, bytes: usize) -> Result<()> {
        self.index().wrote(bytes).await?;
        self.erase_remains().await;
        Ok(())
    }

    async fn erase(self: &Arc<Self>) -> Vec<NotErased> {
        self.erase_leftovers().await
    }

    async fn make_room(self: &Arc<Self>) {
        match self.index().discard().await {
            Ok(()) => tracing::info!("the disk is full: the search index was removed to make room"),
            Err(error) => tracing::info!(%error, "the disk is full, and the search index can't be removed"),
        }
    }

    fn prioritize(&self) {
        self.index().index().prioritize();
    }

    async fn yield_to_searches(&self) {
        // If giving way fails, the work continues without pausing.
        let _ = self.index().yield_to_searches().await;
    }

    fn begin_sync(&self) -> Option<SyncGuard> {
        self.index().index().begin_sync().map(SyncGuard::new)
    }
}
