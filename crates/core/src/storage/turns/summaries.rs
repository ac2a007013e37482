//! Summaries of turns, set by users or stated in lines.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{embed::TurnSelection, texts::stated_summary};
use crate::{
    Error, Result, Scope,
    backend::{StorageBackend, StorageBackendExt, SummaryQuery},
    content::is_real,
    model::{Message, MessageRef, Role, SessionKey, TurnSummary, UserId},
    search::SessionFilter,
    storage::{
        Addressed, AddressedLine, EmbedReport, SessionCatalog, StoreContext, StoredSecrets, StoredTurns,
        StoredVectors,
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

/// The summary that the line of a message states.
pub(in crate::storage) fn stated_by(message: &Message, line: &Map<String, Value>) -> Option<TurnSummary> {
    let text = stated_summary(line)?;
    let begins_turn = message.role == Role::User && is_real(line);
    begins_turn.then(|| TurnSummary {
        session: message.message_ref().session,
        user_sequence: message.sequence,
        digest: message.digest,
        text,
        is_stated: true,
        set_at: message.synced_at,
    })
}

/// Stores summaries that lines of a session state, for searches by words. Summaries that a user set for the same lines
/// stay.
pub(in crate::storage) async fn keep_stated(
    backend: &dyn StorageBackend,
    key: &SessionKey,
    mut stated: Vec<TurnSummary>,
) -> Result<()> {
    if stated.is_empty() {
        return Ok(());
    }
    let held = summaries_from(backend, key, 0).await?;
    stated.retain(|of| held.get(&of.user_sequence).is_none_or(|held| held.digest != of.digest));
    backend.write_summaries(key, stated).await.map(drop)
}

/// The stored summaries of a session from the message `start` on, by user message.
pub(super) async fn summaries_from(
    backend: &dyn StorageBackend,
    key: &SessionKey,
    start: u32,
) -> Result<BTreeMap<u32, TurnSummary>> {
    let filter = SessionFilter::default().with_session(key.session_id.clone());
    let after = start.checked_sub(1).map(|before| MessageRef::new(key.clone(), before));
    let mut query = SummaryQuery::new(key.user_id.clone()).with_filter(filter).with_after(after);
    let mut summaries = BTreeMap::new();
    loop {
        let page = backend.list_summaries(&query).await?;
        let Some(last) = page.last() else { return Ok(summaries) };
        query.after = Some(last.message_ref());
        summaries.extend(page.into_iter().map(|of| (of.user_sequence, of)));
    }
}

impl StoreContext {
    /// The stored summaries of a session, by user message.
    pub(in crate::storage) async fn summaries_of(
        &self,
        key: &SessionKey,
    ) -> Result<BTreeMap<u32, TurnSummary>> {
        summaries_from(&*self.backend, key, 0).await
    }
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
            return Err(Error::validation("text", rule));
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
        let mut turns: BTreeMap<SessionKey, BTreeSet<u32>> = BTreeMap::new();
        for (key, summaries) in sessions {
            let stored = self.store.summaries_of(&key).await?;
            let is_new = |of: &TurnSummary| {
                let known = stored.get(&of.user_sequence).filter(|known| !known.is_stated);
                known.is_none_or(|known| known.text != of.text)
            };
            turns.insert(key.clone(), summaries.keys().copied().collect());
            let count = summaries.len() as u64;
            let new: Vec<TurnSummary> = summaries.into_values().filter(is_new).collect();
            report.unchanged += count - new.len() as u64;
            report.summaries += self.store.backend.write_summaries(&key, new).await? as u64;
        }
        let sessions = turns.iter().map(|(key, users)| (key, TurnSelection::Of(users)));
        StoredVectors::new(self.store).embed_turns_in(sessions, &mut report.embedded, &mut |_| {}).await?;
        Ok(report)
    }
}
