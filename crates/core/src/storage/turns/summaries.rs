//! Summaries of turns, set by users or stated in lines.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    embed::TurnSelection,
    texts::{may_state_summary, stated_summary},
};
use crate::{
    Error, Result, Scope,
    backend::SessionChange,
    content::is_real,
    model::{Message, SessionKey, Timestamp, TurnSummary, UserId},
    storage::{Addressed, AddressedLine, EmbedReport, SessionStorage},
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

/// The summaries that the lines of a change state.
pub(in crate::storage) fn stated_in(change: &SessionChange, now: impl Fn() -> Timestamp) -> Vec<TurnSummary> {
    let may_state = change.messages.put.iter().filter(|message| may_state_summary(message));
    let summary = |message: &Message| {
        let line = message.line();
        is_real(line.fields()).then_some(())?;
        Some(TurnSummary {
            session: message.message_ref().session,
            user_sequence: message.sequence,
            digest: message.digest,
            text: stated_summary(line.fields())?,
            is_stated: true,
            set_at: now(),
        })
    };
    may_state.filter_map(summary).collect()
}

impl SessionStorage {
    /// Stores summaries that lines state, for searches by words. Summaries that a user set for the same lines stay.
    pub(in crate::storage) async fn keep_stated(&self, stated: Vec<TurnSummary>) -> Result<()> {
        let mut sessions: BTreeMap<SessionKey, Vec<TurnSummary>> = BTreeMap::new();
        for summary in stated {
            sessions.entry(summary.session.clone()).or_default().push(summary);
        }
        for (key, mut stated) in sessions {
            let held = self.summaries_of(&key).await?;
            stated.retain(|of| held.get(&of.user_sequence).is_none_or(|held| held.digest != of.digest));
            self.backend.write_summaries(&key, stated).await?;
        }
        Ok(())
    }

    /// Checks a summary of a turn of `user`, and returns it for [`Self::set_summaries`]. The message may be any message
    /// of the turn. Secrets are masked as in lines.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` or `Validation` if there is no such message or turn, or if the text is empty or longer than
    /// 10,000 characters; errors of the backend.
    pub async fn resolve_summary(&self, user: &UserId, given: &GivenSummary) -> Result<TurnSummary> {
        let text = given.text.trim();
        if text.is_empty() || text.chars().nth(MOST_CHARS).is_some() {
            let rule = format!("must have 1 to {MOST_CHARS} characters");
            return Err(Error::validation("text", rule));
        }
        let text = self.line_masker().await?.mask_text(Some(text.to_owned()))?.unwrap_or_default();
        let scope = Scope::User(user.clone());
        let Addressed { session, line, .. } = self.find_address(&scope, &given.message).await?;
        let Some(AddressedLine::Message(sequence)) = line else {
            let message = format!("{:?} is not the id of a message", given.message);
            return Err(Error::validation("message_id", message));
        };
        let key = session.key();
        let number = self.turn_of_message(&scope, &key.session_id, sequence).await?;
        let turn = self.turn_texts(&key, &[number]).await?.pop();
        let turn = turn.ok_or_else(|| {
            Error::validation("message_id", format!("turn {number} has no user text"))
                .with("session", &key.session_id)
        })?;
        Ok(TurnSummary {
            session: key,
            user_sequence: turn.user.sequence,
            digest: turn.user.digest,
            text,
            is_stated: false,
            set_at: self.now(),
        })
    }

    /// Sets summaries of turns. They override `turn_summary` in the line, which does not change. A sync keeps them as
    /// long as the line of the user's message stays the same. With an embedding provider, embeds these turns again if
    /// their text has changed.
    ///
    /// # Errors
    ///
    /// Errors of the backend. If the provider fails, the report has the error.
    pub async fn set_summaries(&self, summaries: Vec<TurnSummary>) -> Result<SummaryReport> {
        let mut report = SummaryReport::default();
        let mut sessions: BTreeMap<SessionKey, BTreeMap<u32, TurnSummary>> = BTreeMap::new();
        for summary in summaries {
            sessions.entry(summary.session.clone()).or_default().insert(summary.user_sequence, summary);
        }
        let mut turns: BTreeMap<SessionKey, BTreeSet<u32>> = BTreeMap::new();
        for (key, summaries) in sessions {
            let stored = self.summaries_of(&key).await?;
            let is_new = |of: &TurnSummary| {
                let known = stored.get(&of.user_sequence).filter(|known| !known.is_stated);
                known.is_none_or(|known| known.text != of.text)
            };
            turns.insert(key.clone(), summaries.keys().copied().collect());
            let count = summaries.len() as u64;
            let new: Vec<TurnSummary> = summaries.into_values().filter(is_new).collect();
            report.unchanged += count - new.len() as u64;
            report.summaries += self.backend.write_summaries(&key, new).await? as u64;
        }
        let sessions = turns.iter().map(|(key, users)| (key, TurnSelection::Of(users)));
        self.embed_turns_in(sessions, &mut report.embedded, &mut |_| {}).await?;
        Ok(report)
    }
}
