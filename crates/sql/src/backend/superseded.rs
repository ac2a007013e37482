//! Superseded lines.

use amplifier_session_core::{
    Result,
    backend::{Deletion, Superseded, SupersededQuery},
    model::{SupersededPiece, SupersededRef},
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    backend::{DerivedIndex, write},
    superseded,
};

#[async_trait]
impl<D: DerivedIndex> Superseded for SqlBackend<D> {
    async fn list_superseded(&self, query: &SupersededQuery) -> Result<Vec<SupersededPiece>> {
        let query = query.clone();
        self.read(move |reader| superseded::list(reader, &query)).await
    }

    async fn prune_superseded(&self, pieces: &[SupersededRef]) -> Deletion {
        let (named, count) = (pieces.to_vec(), pieces.len());
        match self.run(move |database| write::prune_superseded(database, &named)).await {
            Ok(removed) => {
                let deleted = removed.into_iter().map(Ok).collect();
                Deletion { deleted, remains: self.0.erase().await }
            }
            Err(error) => Deletion::complete(vec![Err(error); count]),
        }
    }
}
