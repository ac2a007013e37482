//! Embeddings of turns.

use amplifier_session_core::{
    Result,
    backend::{NearestTurns, NewTurn, TurnCandidate, TurnQuery, TurnVectorQuery, Turns},
    model::{MessageRef, TurnEmbedding},
};
use async_trait::async_trait;

use super::{MemoryBackend, PAGE_SIZE};

#[async_trait]
impl Turns for MemoryBackend {
    async fn write_turns(&self, turns: Vec<NewTurn>) -> Result<usize> {
        let turns = NewTurn::checked(turns)?;
        let mut rows = self.rows();
        let mut count = 0;
        for turn in turns {
            let Some(session) = rows.sessions.get_mut(&turn.session) else { continue };
            if turn.is_current(|sequence| Some(session.messages.get(&sequence)?.message.digest)) {
                let TurnEmbedding { user_sequence, provider, model, .. } = &turn.embedding;
                let place = (*user_sequence, provider.clone(), model.clone());
                session.turns.insert(place, turn.embedding);
                count += 1;
            }
        }
        Ok(count)
    }

    async fn read_turns(&self, query: &TurnQuery) -> Result<Vec<TurnEmbedding>> {
        let rows = self.rows();
        let turns = rows.sessions.get(&query.session).into_iter().flat_map(|session| session.turns.values());
        let asked = turns.filter(|turn| {
            turn.user_sequence >= query.range.start
                && (&turn.provider, &turn.model) == (&query.provider, &query.model)
        });
        let content = |turn: &TurnEmbedding| match query.with_content {
            true => turn.clone(),
            false => TurnEmbedding { content_used: String::new(), vector: Vec::new(), ..turn.clone() },
        };
        Ok(asked.take(query.range.limit.min(PAGE_SIZE)).map(content).collect())
    }

    async fn nearest_turns(&self, query: &TurnVectorQuery) -> Result<Vec<TurnCandidate>> {
        let rows = self.rows();
        let mut nearest = NearestTurns::new(query);
        for (key, session) in &rows.sessions {
            if !session.is_within(&query.scope, &query.filter.sessions) {
                continue;
            }
            for turn in session.turns.values() {
                let asked = session.messages.get(&turn.user_sequence).is_some_and(|row| {
                    turn.provider == query.provider
                        && turn.model == query.space.model
                        && turn.dimensions == query.space.dimensions
                        && query.filter.admits_message(row.message.role, row.message.ts)
                });
                if asked {
                    nearest.add(MessageRef::new(key.clone(), turn.user_sequence), &turn.vector);
                }
            }
        }
        Ok(nearest.finish())
    }
}
