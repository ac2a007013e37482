//! Searches without words: the newest messages that meet conditions.

use std::collections::HashMap;

use super::{PlannedQuery, ReadMessages, candidates_for, explanation, text_plan::TextPlan};
use crate::{
    Result, Scope,
    backend::{Candidates, DatedMessage, TextCandidate, TextQuery},
    content::ExtractedText,
    model::{ContentType, ContentTypes, MessageRef, SessionKey},
    search::{Fused, SearchMode, SearchOptions, SearchResults},
    storage::store::TranscriptSearch,
    text::QueryWords,
};

/// At most this many messages are compared with an exact text that has no words to search for.
const MOST_EXAMINED: usize = 10_000;

/// Number of messages read at a time, if most of them are read in vain.
const PAGE: usize = 500;

/// Factor by which more messages are requested if too few of them meet the conditions.
const GROWTH: usize = 4;

/// The newest messages so far that meet the conditions of a search.
struct NewestTexts<'a> {
    options: &'a SearchOptions,
    /// The request for messages that may meet them.
    query: TextQuery,
    reading: ReadMessages,
    /// Those that the backend found, newest first.
    listed: Vec<MessageRef>,
    /// How many of these were read.
    examined: usize,
    /// Whether the backend found no others.
    are_all_listed: bool,
    /// Those that meet the conditions, newest first.
    found: Vec<TextCandidate>,
    /// How many of these are in each session.
    of_sessions: HashMap<SessionKey, usize>,
    /// The number of messages read, if the search ended before all were.
    stopped_at: Option<u64>,
    /// What the user should know about the search.
    notice: Option<String>,
}

impl TranscriptSearch<'_> {
    /// The results of a search without words: the newest messages that meet its conditions. Only those that may be results
    /// are read.
    pub(super) async fn search_newest(
        self,
        scope: &Scope,
        options: &SearchOptions,
        plan: TextPlan,
    ) -> Result<SearchResults> {
        let mut newest = NewestTexts::new(scope, options, candidates_for(options));
        self.find_newest(&mut newest, options.limit).await?;
        let words = QueryWords::default();
        // Each message counts: a session must not be left out because another one made the same call.
        let query = PlannedQuery { words: &words, terms: &[], floor: None, merges_repeats: false, options };
        let found = newest.found.iter().map(in_order).collect();
        let results = self.show(found, query, &mut newest.reading).await?.results;
        let mut notices = self.notices(SearchMode::FullText, None, newest.notice);
        notices.extend(plan.notices);
        Ok(SearchResults {
            mode: SearchMode::FullText,
            notices,
            missing_vectors: None,
            examined: newest.stopped_at,
            explanation: options.explain.then(|| explanation(&words, results.len(), 0)),
            results,
            nearest: None,
            damaged: std::mem::take(&mut newest.reading.damaged),
        })
    }

    /// The newest texts that meet the conditions of a search without words, at most `wanted`.
    pub(super) async fn newest_texts(
        self,
        scope: &Scope,
        options: &SearchOptions,
        wanted: usize,
    ) -> Result<Candidates<TextCandidate>> {
        let mut newest = NewestTexts::new(scope, options, wanted);
        self.find_newest(&mut newest, wanted).await?;
        newest.found.truncate(wanted);
        let found = Candidates::new(newest.found).with_notice(newest.notice);
        Ok(Candidates { examined: newest.stopped_at, ..found })
    }

    /// The messages that match a query, newest first.
    pub(super) async fn newest_first(self, query: &TextQuery) -> Result<Candidates<DatedMessage>> {
        let mut found = self.store.backend.newest_messages(query).await?;
        DatedMessage::sort(&mut found.items);
        Ok(found)
    }

    /// Reads messages until `wanted` of them meet the conditions, if there are as many.
    async fn find_newest(self, newest: &mut NewestTexts<'_>, wanted: usize) -> Result<()> {
        while newest.found.len() < wanted {
            let page = newest.next_page(wanted);
            if page.is_empty() && newest.are_all_listed {
                return Ok(());
            }
            if page.is_empty() {
                self.list_newest(newest).await?;
                continue;
            }
            if newest.examined >= MOST_EXAMINED && newest.options.conditions.exact.is_some() {
                newest.stopped_at = Some(newest.examined as u64);
                let note = format!("only the newest {} messages were examined", newest.examined);
                newest.notice =
                    Some(newest.notice.take().map_or(note.clone(), |one| format!("{one}; {note}")));
                return Ok(());
            }
            let read = page.iter().filter(|message_ref| !newest.has_enough_of(&message_ref.session)).cloned();
            let read: Vec<MessageRef> = read.collect();
            newest.reading.read(self.store, read).await?;
            newest.take(page);
        }
        Ok(())
    }

    /// Requests messages: as many as expected at first, then more each time.
    async fn list_newest(self, newest: &mut NewestTexts<'_>) -> Result<()> {
        let found = self.newest_first(&newest.query).await?;
        newest.are_all_listed = found.items.len() < newest.query.limit;
        newest.query.limit = newest.query.limit.saturating_mul(GROWTH);
        newest.listed = found.items.into_iter().map(|message| message.message_ref).collect();
        newest.notice = found.notice;
        Ok(())
    }
}

impl<'a> NewestTexts<'a> {
    fn new(scope: &Scope, options: &'a SearchOptions, limit: usize) -> Self {
        Self {
            options,
            query: newest_query(scope, options, limit.max(1)),
            reading: ReadMessages::checking(options),
            listed: Vec::new(),
            examined: 0,
            are_all_listed: false,
            found: Vec::new(),
            of_sessions: HashMap::new(),
            stopped_at: None,
            notice: None,
        }
    }

    /// The messages to read next: those that are missing, or many if most were read in vain.
    fn next_page(&self, wanted: usize) -> Vec<MessageRef> {
        let missing = wanted.saturating_sub(self.found.len());
        let most_in_vain = self.examined > 2 * self.found.len();
        let page = if most_in_vain { missing.max(PAGE) } else { missing };
        self.listed.iter().skip(self.examined).take(page).cloned().collect()
    }

    /// Whether no more messages of a session are wanted.
    fn has_enough_of(&self, session: &SessionKey) -> bool {
        let found = self.of_sessions.get(session).copied().unwrap_or(0);
        self.options.most_of_session.is_some_and(|most| found >= most)
    }

    /// Adds those of the messages that meet the conditions.
    fn take(&mut self, page: Vec<MessageRef>) {
        self.examined += page.len();
        for message_ref in page {
            if self.has_enough_of(&message_ref.session) {
                continue;
            }
            let read = self.reading.get(&message_ref);
            if let Some(content_type) = read.and_then(|read| shown_type(&read.texts, self.options)) {
                let score = 1.0 / (1.0 + self.found.len() as f32);
                *self.of_sessions.entry(message_ref.session.clone()).or_default() += 1;
                self.found.push(TextCandidate { message_ref, content_type, score });
            }
        }
    }
}

/// A text as it is ranked: by its time alone.
fn in_order(text: &TextCandidate) -> (Fused, f32) {
    (Fused::in_order(text.clone()), text.score)
}

/// The request for the messages that may meet the conditions of a search without words.
pub(super) fn newest_query(scope: &Scope, options: &SearchOptions, limit: usize) -> TextQuery {
    let files = &options.conditions.files;
    let mut query = TextPlan::of_files(files).query(scope, options, limit);
    if !files.is_empty() {
        // A file is in a call, whichever text of its message is shown.
        query.content_types = ContentTypes::from_iter([ContentType::ToolCall]);
    }
    query
}

/// The type of the text to show; `None` if the message has no text of the types that are searched.
fn shown_type(texts: &[ExtractedText], options: &SearchOptions) -> Option<ContentType> {
    let mut types =
        texts.iter().map(|text| text.content_type).filter(|of| options.content_types.contains(*of));
    let is_about_tools = !options.conditions.tools.is_empty() || !options.conditions.files.is_empty();
    let first = types.clone().find(|of| !is_about_tools || of.is_of_tools());
    first.or_else(|| types.next())
}
