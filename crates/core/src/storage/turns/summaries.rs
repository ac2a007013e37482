//! Setting summaries of turns.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    Error, ErrorField, Result, Scope,
    backend::MessagesToEmbed,
    model::{SessionKey, Timestamp, TurnSummary, UserId},
    storage::{
        embed::EmbedReport,
        sessions::{Addressed, AddressedLine},
        store::{SessionCatalog, StoredSecrets, StoredTurns, StoredVectors},
    },
};

/// The maximum length of a summary in characters.
const MOST_CHARS: usize = 10_000;

/// A summary to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenSummary {
    /// The id or address of a message of the turn.
    pub message: String,
    /// The summary.
    pub text: String,
}

/// The report of setting summaries.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SummaryReport {
    /// The number of summaries that were stored.
    pub summaries: u64,
    /// How many of them were equal to the stored ones, so that nothing changed.
    pub unchanged: u64,
    /// The report of the embeddings that were made again.
    pub embedded: EmbedReport,
}

impl StoredTurns<'_> {
    /// Checks a summary of a turn of `user`, and returns it for [`Self::set_summaries`]. The message may be any message
    /// of the turn. Secrets are masked as in lines.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` or `Validation` if there is no such message or turn, or if the text is empty or longer than
    /// 10,000 characters; errors of the backend.
    pub async fn resolve_summary(self, user: &UserId, given: &GivenSummary) -> Result<TurnSummary> {
        let text = given.text.trim();
        if text.is_empty() || text.chars().nth(MOST_CHARS).is_some() {
            let rule = format!("must have 1 to {MOST_CHARS} characters");
            return Err(Error::validation(ErrorField::Text, rule));
        }
        let text = StoredSecrets::new(self.store)
            .line_masker()
            .await?
            .mask_text(Some(text.to_owned()))?
            .unwrap_or_default();
        let scope = Scope::User(user.clone());
        let Addressed { session, line, .. } =
            SessionCatalog::new(self.store).find_address(&scope, &given.message).await?;
        let Some(AddressedLine::Message(sequence)) = line else {
            let message = format!("{:?} is not the id of a message", given.message);
            return Err(Error::validation(ErrorField::MessageId, message));
        };
        let key = session.key();
        let number = self.turn_of_message(&scope, &key.session_id, sequence).await?;
        let turn = self.texts_of_turns([(key.clone(), vec![number])]).await?.pop();
        let turn = turn.ok_or_else(|| {
            Error::validation(ErrorField::MessageId, format!("turn {number} has no user text"))
                .with("session", &key.session_id)
        })?;
        Ok(TurnSummary {
            session: key,
            user_sequence: turn.user.sequence,
            digest: turn.user.digest,
            text,
            is_stated: false,
            set_at: self.store.now(),
        })
    }

    /// Sets summaries of turns. They override `turn_summary` in the line, which does not change. A sync keeps them as
    /// long as the line of the user's message stays the same. With an embedding provider, embeds these turns again if
    /// their text has changed.
    ///
    /// # Errors
    ///
    /// Errors of the backend. If the provider fails, the report has the error.
    pub async fn set_summaries(self, summaries: Vec<TurnSummary>) -> Result<SummaryReport> {
        let mut report = SummaryReport::default();
        let mut sessions: BTreeMap<SessionKey, BTreeMap<u32, TurnSummary>> = BTreeMap::new();
        for summary in summaries {
            sessions.entry(summary.session.clone()).or_default().insert(summary.user_sequence, summary);
        }
        for (key, summaries) in sessions {
            let stored = self.store.summaries_of(&key).await?;
            let is_new = |of: &TurnSummary| {
                let known = stored.get(&of.user_sequence).filter(|known| !known.is_stated);
                known.is_none_or(|known| known.text != of.text)
            };
            let users = summaries.keys().copied().collect();
            let count = summaries.len() as u64;
            let mut new: Vec<TurnSummary> = summaries.into_values().filter(is_new).collect();
            for summary in &mut new {
                // The previous summary may come from a machine whose clock is ahead. The one a person sets now still wins.
                if let Some(known) = stored.get(&summary.user_sequence) {
                    let after = Timestamp::from_micros(known.set_at.as_micros().saturating_add(1));
                    summary.set_at = summary.set_at.max(after);
                }
            }
            report.unchanged += count - new.len() as u64;
            report.summaries += self.store.backend.write_summaries(&key, new).await? as u64;
            self.store.backend.mark_pending(&key, MessagesToEmbed::TurnsAt(users)).await?;
            let (user, session) = (&key.user_id, Some(&key.session_id));
            if report.embedded.failure.is_none() {
                StoredVectors::new(self.store)
                    .embed_current(user, session, true, &mut report.embedded, &mut |_| {})
                    .await?;
            }
        }
        Ok(report)
    }
}
