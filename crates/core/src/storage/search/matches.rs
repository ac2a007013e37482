//! All messages that match, to count them.

use std::collections::HashMap;

use super::{checked::Checked, newest::newest_query};
use crate::{
    Result, Scope,
    backend::{DatedMessage, TextQuery},
    model::{Digest, SessionKey, Timestamp},
    search::{SearchMode, SearchOptions},
    storage::store::TranscriptSearch,
    text::QueryWords,
};

/// The messages that match a search by words, or by conditions alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllMatches {
    /// All of them, newest first.
    pub messages: Vec<DatedMessage>,
    /// The words of the query, if no text has all of them. The messages then have any.
    pub not_together: Option<Vec<String>>,
    /// Notes for the user.
    pub notices: Vec<String>,
}

impl AllMatches {
    /// Without copies of a message in other sessions, such as forks: the same line with the same time.
    #[must_use]
    pub fn without_copies(mut self) -> Self {
        let mut sessions: HashMap<(Digest, Timestamp), SessionKey> = HashMap::new();
        self.messages.retain(|message| {
            let session = &message.message_ref.session;
            let first = sessions.entry((message.digest, message.ts)).or_insert_with(|| session.clone());
            first == session
        });
        self
    }
}

impl TranscriptSearch<'_> {
    /// All messages with a text that has all words of the query and meets its conditions, however many there are. If there
    /// are none, those with any word. A query with identifiers, hashes or prefixes, which may be spelled in several ways,
    /// always finds those with any. `None` for a search by meaning, which has no end.
    ///
    /// Messages are read only if the index can't decide about a condition: a file, a phrase, an exact text or an excluded
    /// word.
    ///
    /// # Errors
    ///
    /// As [`Self::search_transcripts`].
    pub async fn all_matches(self, scope: &Scope, options: &SearchOptions) -> Result<Option<AllMatches>> {
        options.validate()?;
        if options.mode == SearchMode::Semantic && !options.is_about_words() {
            return Ok(None);
        }
        let words = QueryWords::of(&options.query);
        let plan = self.text_plan(options, &words).await?;
        let mut all = AllMatches { notices: plan.notices.clone(), ..AllMatches::default() };
        if plan.is_scan {
            self.add_matches(&newest_query(scope, options, usize::MAX), options, &mut all).await?;
            return Ok(Some(all));
        }
        let any = plan.query(scope, options, usize::MAX);
        if any.terms.is_empty() || any.required.iter().any(Vec::is_empty) {
            return Ok(Some(all));
        }
        let are_plain =
            options.conditions.exact.is_none() && words.identifiers().is_empty() && !plan.is_expanded;
        let typed = if are_plain { words.terms().len() } else { 0 };
        if typed > 1 {
            let mut together = any.clone();
            together.required.extend((0..typed).map(|term| vec![term]));
            self.add_matches(&together, options, &mut all).await?;
            if !all.messages.is_empty() {
                return Ok(Some(all));
            }
            all.not_together = Some(words.typed().to_vec());
        }
        self.add_matches(&any, options, &mut all).await?;
        Ok(Some(all))
    }

    /// Adds the messages of a query that meet the conditions.
    async fn add_matches(
        self,
        query: &TextQuery,
        options: &SearchOptions,
        all: &mut AllMatches,
    ) -> Result<()> {
        let mut found = self.newest_first(query).await?;
        if options.conditions.must_be_read() {
            Checked::new(self.store, options).keep(&mut found.items, |message| &message.message_ref).await?;
        }
        all.messages = found.items;
        let is_new = |notice: &String| !all.notices.contains(notice);
        let notice = found.notice.filter(is_new);
        all.notices.extend(notice);
        Ok(())
    }
}
