//! Copies the embeddings and summaries of the turns of one session.

use super::Copy;
use crate::{
    Result,
    backend::NewTurn,
    model::{EmbeddingSpace, SessionKey, TurnEmbedding, TurnSummary},
    storage::{StoreContext, StoredVectors, turns::PROVIDERS},
};

impl Copy<'_> {
    /// Writes the summaries that the target lacks or that differ there and, if vectors are copied, also the embeddings.
    /// The session has the same lines in both stores.
    pub(super) async fn turns(&mut self, key: &SessionKey) -> Result<()> {
        self.report.summaries += summaries(self.from, self.to, key).await?;
        if self.generations.is_some()
            && let Some(space) = &self.report.space
        {
            self.report.turns += embeddings(self.from, self.to, key, space).await?;
        }
        Ok(())
    }
}

/// Copies summaries. If both stores have one, the target keeps its own if that is newer, or if it is the only one that
/// a user set.
async fn summaries(from: &StoreContext, to: &StoreContext, key: &SessionKey) -> Result<u64> {
    let held = to.summaries_of(key).await?;
    let rank = |of: &TurnSummary| (!of.is_stated, of.set_at);
    let is_wanted = |of: &TurnSummary| {
        held.get(&of.user_sequence).is_none_or(|held| held != of && rank(held) <= rank(of))
    };
    let wanted: Vec<_> = from.summaries_of(key).await?.into_values().filter(is_wanted).collect();
    if wanted.is_empty() {
        return Ok(0);
    }
    Ok(to.backend.write_summaries(key, wanted).await? as u64)
}

/// Copies the embeddings in a space, of all providers.
async fn embeddings(
    from: &StoreContext,
    to: &StoreContext,
    key: &SessionKey,
    space: &EmbeddingSpace,
) -> Result<u64> {
    let mut written = 0;
    for provider in PROVIDERS {
        let (ours, theirs) = (
            StoredVectors::new(from).turn_hashes(key, provider, space).await?,
            StoredVectors::new(to).turn_hashes(key, provider, space).await?,
        );
        if ours.iter().all(|(user, hash)| theirs.get(user) == Some(hash)) {
            continue;
        }
        let states = from.backend.message_states(key).await?;
        let mut start = 0;
        loop {
            let page = StoredVectors::new(from).turns_from(key, provider, &space.model, start).await?;
            let Some(last) = page.last() else { break };
            start = last.user_sequence.saturating_add(1);
            let is_wanted = |of: &TurnEmbedding| {
                of.dimensions == space.dimensions && theirs.get(&of.user_sequence) != Some(&of.content_hash)
            };
            let wanted = page.into_iter().filter(is_wanted);
            let wanted = wanted.filter_map(|of| NewTurn::of(key, of.with_new_id(key, to.now()), &states));
            written += to.backend.write_turns(wanted.collect()).await? as u64;
        }
    }
    Ok(written)
}
