//! Copies the summaries of the turns of one session.

use super::Copy;
use crate::{
    Result,
    backend::MessagesToEmbed,
    model::{SessionKey, TurnSummary},
};

impl Copy<'_> {
    /// Writes the summaries that the target lacks or that differ there; the vectors of these turns are pending then.
    /// The session has the same lines in both stores. If both stores have a summary, the target keeps its own if that
    /// is newer, or if it is the only one that a user set. Returns the number of written ones.
    pub(super) async fn summaries(&self, key: &SessionKey) -> Result<u64> {
        let held = self.to.summaries_of(key).await?;
        let rank = |of: &TurnSummary| (!of.is_stated, of.set_at);
        let is_wanted = |of: &TurnSummary| {
            held.get(&of.user_sequence).is_none_or(|held| held != of && rank(held) <= rank(of))
        };
        let wanted: Vec<_> = self.from.summaries_of(key).await?.into_values().filter(is_wanted).collect();
        if wanted.is_empty() {
            return Ok(0);
        }
        let users = wanted.iter().map(|of| of.user_sequence).collect();
        let written = self.to.backend.write_summaries(key, wanted).await? as u64;
        self.to.backend.mark_pending(key, MessagesToEmbed::TurnsAt(users)).await?;
        Ok(written)
    }
}
