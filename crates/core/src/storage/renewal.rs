//! A store that was written by an earlier version of this library: what was derived from texts is derived again.

use super::SessionStorage;
use crate::{
    Result, Scope,
    backend::{OweAgain, SequenceRange, SessionQuery, meta},
    content::{EXTRACTION, renewed},
    model::{Session, SessionKey},
};

/// How many messages are read at a time.
const PAGE: usize = 1_000;

impl SessionStorage {
    /// Brings what the store derived from the texts of its messages up to the rules of this library. Where the text of a
    /// tool's output is another one now, its vectors are owed again; nothing is embedded here. Returns of how many
    /// messages. A storage and its clones look at the store once, at the latest before they first write to it.
    ///
    /// # Errors
    ///
    /// Those of the backend. What was broken off begins anew with the next call.
    pub async fn renew_texts(&self) -> Result<u64> {
        self.texts_renewed.get_or_try_init(|| self.renew_texts_of_store()).await.copied()
    }

    async fn renew_texts_of_store(&self) -> Result<u64> {
        let stored = self.backend.meta().await?.get(meta::EXTRACTION).cloned();
        let rules = stored.as_deref().map_or(Some(1), |rules| rules.parse::<u32>().ok());
        // A newer version of this library knows better what it has written.
        if rules.is_none_or(|rules| rules >= EXTRACTION) {
            return Ok(0);
        }
        let mut owed = 0;
        for key in self.all_sessions(SessionQuery::new(Scope::Everyone)).await?.iter().map(Session::key) {
            owed += self.renew_texts_of_session(&key).await?;
        }
        let value = EXTRACTION.to_string();
        match &stored {
            Some(stored) => drop(self.backend.replace_meta(meta::EXTRACTION, stored, &value).await?),
            None => drop(self.backend.put_meta_if_absent(meta::EXTRACTION, &value).await?),
        }
        if owed > 0 {
            tracing::info!(
                messages = owed,
                "the texts of tool output are others now; their vectors are owed again"
            );
        }
        Ok(owed)
    }

    async fn renew_texts_of_session(&self, key: &SessionKey) -> Result<u64> {
        let mut owed = 0;
        let mut range = SequenceRange { start: 0, limit: PAGE };
        loop {
            let page = self.backend.read_messages(key, range).await?;
            let Some(last) = page.last() else { return Ok(owed) };
            range.start = last.sequence.saturating_add(1);
            let (mut texts, mut embedded) = (Vec::new(), Vec::new());
            for message in &page {
                let Ok(line) = message.raw.parse_object() else { continue };
                let renewed = renewed(&line, message.role);
                texts.extend(renewed.texts.then_some(message.sequence));
                embedded.extend(renewed.embedded.then_some(message.sequence));
            }
            if !texts.is_empty() {
                self.backend.renew_texts(key, &texts).await?;
            }
            if !embedded.is_empty() {
                owed += self.backend.owe_vectors(key, OweAgain::At(embedded)).await?;
            }
        }
    }
}
