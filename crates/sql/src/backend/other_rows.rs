//! Rows of a session other than messages, events and vectors.

use amplifier_session_core::{
    Result,
    backend::{Deletion, OtherRow, OtherRowQuery, OtherRows},
    model::{SessionKey, SupersededRef, TurnSummary},
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    Reader,
    backend::{DerivedIndex, write},
    read, superseded, turns,
};

#[async_trait]
impl<D: DerivedIndex> OtherRows for SqlBackend<D> {
    async fn list_other_rows(&self, query: &OtherRowQuery) -> Result<Vec<OtherRow>> {
        let query = query.clone();
        self.read(move |reader| match &query {
            OtherRowQuery::Superseded(query) => {
                Ok(superseded::list(reader, query)?.into_iter().map(OtherRow::Superseded).collect())
            }
            OtherRowQuery::Summaries(query) => {
                Ok(turns::list_summaries(reader, query)?.into_iter().map(OtherRow::Summary).collect())
            }
            OtherRowQuery::Failures { session, generation } => {
                reader.rows(&read::integrity::failures(*generation, session))
            }
        })
        .await
    }

    async fn write_summaries(&self, key: &SessionKey, summaries: Vec<TurnSummary>) -> Result<usize> {
        let key = key.clone();
        self.run(move |database| write::summaries(database, &key, &summaries)).await
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
