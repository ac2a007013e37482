//! Embeddings and summaries of turns.

use amplifier_session_core::{
    Result,
    backend::{NewTurn, SummaryQuery, TurnCandidate, TurnQuery, TurnVectorQuery, Turns},
    model::{SessionKey, TurnEmbedding, TurnSummary},
};
use async_trait::async_trait;

use super::SqlBackend;
use crate::{
    backend::{DerivedIndex, write},
    turns,
};

#[async_trait]
impl<D: DerivedIndex> Turns for SqlBackend<D> {
    async fn write_turns(&self, turns: Vec<NewTurn>) -> Result<usize> {
        let turns = NewTurn::checked(turns)?;
        self.run(move |database| write::turns(database, &turns)).await
    }

    async fn read_turns(&self, query: &TurnQuery) -> Result<Vec<TurnEmbedding>> {
        let query = query.clone();
        self.read(move |reader| turns::read(reader, &query)).await
    }

    async fn nearest_turns(&self, query: &TurnVectorQuery) -> Result<Vec<TurnCandidate>> {
        let query = query.clone();
        self.read_snapshot(move |reader| turns::nearest(reader, &query)).await
    }

    async fn write_summaries(&self, key: &SessionKey, summaries: Vec<TurnSummary>) -> Result<usize> {
        let key = key.clone();
        self.run(move |database| write::summaries(database, &key, &summaries)).await
    }

    async fn list_summaries(&self, query: &SummaryQuery) -> Result<Vec<TurnSummary>> {
        let query = query.clone();
        self.read(move |reader| turns::list_summaries(reader, &query)).await
    }
}
