//! Embeddings of turns.

use amplifier_session_core::{
    Result,
    backend::{NewTurn, TurnCandidate, TurnQuery, TurnVectorQuery, Turns},
    model::TurnEmbedding,
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
}
