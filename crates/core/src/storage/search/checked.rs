//! Compares the candidates of a search with conditions on the texts of messages.

use std::collections::HashMap;

use super::text_plan::TextPlan;
use crate::{
    Result, Scope,
    backend::{
        Candidates, SequenceRange, SessionQuery, TextCandidate, TextQuery, VectorCandidate, VectorQuery,
    },
    model::{ContentType, Message, MessageRef, SessionKey},
    search::{Checks, SearchOptions},
    storage::{
        damage::Readable,
        store::{StoreContext, TranscriptSearch},
    },
};

/// At most this many text candidates are compared, or messages if there are no words to search for.
const MOST_CHECKED: usize = 10_000;

/// At most this many vector candidates are compared.
const MOST_VECTORS: usize = 2_000;

/// Number of messages read at a time.
const PAGE: usize = 500;

/// Factor by which the number of candidates grows if too few of them meet the conditions.
const GROWTH: usize = 4;

/// When candidates are compared with the conditions of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionCheck {
    /// Before they are ranked.
    First,
    /// When they are read to be judged or shown: for conditions that most of them meet.
    WhenRead,
}

/// Reads messages and compares them with conditions, each once.
struct Checked<'a> {
    store: &'a StoreContext,
    checks: Checks,
    known: HashMap<MessageRef, bool>,
}

impl<'a> Checked<'a> {
    fn new(store: &'a StoreContext, options: &SearchOptions) -> Self {
        let checks = Checks::new(&options.conditions, options.content_types);
        Self { store, checks, known: HashMap::new() }
    }

    /// Drops the candidates whose messages do not meet the conditions, or can't be read.
    async fn keep<T>(&mut self, items: &mut Vec<T>, of: impl Fn(&T) -> &MessageRef) -> Result<()> {
        let mut unknown: Vec<MessageRef> =
            items.iter().map(&of).filter(|place| !self.known.contains_key(place)).cloned().collect();
        unknown.sort();
        unknown.dedup();
        for page in unknown.chunks(PAGE) {
            let Readable { rows, .. } = self.store.readable_messages_at(page.to_vec()).await?;
            for message in rows {
                let meets = self.admit(&message);
                self.known.insert(message.message_ref(), meets);
            }
        }
        items.retain(|item| self.known.get(of(item)) == Some(&true));
        Ok(())
    }

    fn admit(&mut self, message: &Message) -> bool {
        self.checks.admit(&message.line())
    }
}

impl TranscriptSearch<'_> {
    /// The best texts that meet the conditions.
    pub(super) async fn checked_texts(
        self,
        mut query: TextQuery,
        options: &SearchOptions,
    ) -> Result<Candidates<TextCandidate>> {
        let wanted = query.limit;
        // Of texts that the index finds for a phrase, few are compared in vain.
        let most = if options.conditions.are_phrases() { usize::MAX } else { MOST_CHECKED };
        let mut checked = Checked::new(self.store, options);
        loop {
            let mut found = self.store.backend.text_candidates(&query).await?;
            if options.conditions.is_empty() {
                return Ok(found);
            }
            let is_all = found.items.len() < query.limit;
            checked.keep(&mut found.items, |candidate| &candidate.message_ref).await?;
            if is_all || found.items.len() >= wanted {
                found.items.truncate(wanted);
                return Ok(found);
            }
            if query.limit >= most {
                found.examined = Some(MOST_CHECKED as u64);
                let note =
                    format!("only the best {MOST_CHECKED} candidates were compared with the conditions");
                found.notice = Some(found.notice.map_or(note.clone(), |notice| format!("{notice}; {note}")));
                return Ok(found);
            }
            query.limit = query.limit.saturating_mul(GROWTH).min(most);
        }
    }

    /// The nearest chunks of messages that meet the conditions. They cover at least `limit` messages, if there are as
    /// many.
    pub(super) async fn checked_chunks(
        self,
        query: VectorQuery,
        messages: usize,
        options: &SearchOptions,
    ) -> Result<Candidates<VectorCandidate>> {
        let mut checked = Checked::new(self.store, options);
        let mut asked = messages;
        loop {
            let query = VectorQuery { limit: query.limit.max(asked), ..query.clone() };
            let mut found = self.nearest_chunks(query, asked, options.min_similarity).await?;
            if options.conditions.is_empty() {
                return Ok(found);
            }
            let is_all = messages_in(&found.items) < asked;
            checked.keep(&mut found.items, |candidate| &candidate.message_ref).await?;
            if is_all || messages_in(&found.items) >= messages || asked >= MOST_VECTORS {
                return Ok(found);
            }
            asked = (asked * GROWTH).min(MOST_VECTORS);
        }
    }

    /// The newest messages that meet the conditions, for a search without words: newest sessions first.
    pub(super) async fn newest_texts(
        self,
        scope: &Scope,
        options: &SearchOptions,
        wanted: usize,
    ) -> Result<Candidates<TextCandidate>> {
        let mut checked = Checked::new(self.store, options);
        let mut found = Candidates::new(Vec::new());
        let mut examined = 0;
        let filter = &options.filter;
        let query = SessionQuery::new(scope.clone())
            .with_filter(filter.sessions.clone())
            .active_in(filter.since, filter.until);
        for session in self.store.all_sessions(query).await? {
            let key = session.key();
            let mut end = None;
            while end != Some(0) {
                // From the end to the beginning, because the newest messages are wanted.
                let known = end.unwrap_or(session.message_count);
                let start = known.saturating_sub(PAGE as u32);
                let page = self.messages_between(&key, start, end).await?;
                end = Some(start);
                for message in page.into_iter().rev() {
                    examined += 1;
                    if filter.admits_message(message.role, message.ts) && checked.admit(&message) {
                        let rank = found.items.len() as f32;
                        found.items.push(TextCandidate {
                            message_ref: message.message_ref(),
                            content_type: shown_type(&message, options),
                            score: 1.0 / (1.0 + rank),
                        });
                    }
                    if found.items.len() >= wanted {
                        return Ok(found);
                    }
                }
                if examined >= MOST_CHECKED {
                    found.examined = Some(examined as u64);
                    found.notice = Some(format!("only the newest {examined} messages were examined"));
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// The messages from `start` to before `end`, or to the last one.
    async fn messages_between(self, key: &SessionKey, start: u32, end: Option<u32>) -> Result<Vec<Message>> {
        let (mut messages, mut start) = (Vec::new(), start);
        loop {
            let limit = end.map_or(PAGE, |end| end.saturating_sub(start) as usize);
            let range = SequenceRange { start, limit };
            let page: Vec<Message> = match limit {
                0 => Vec::new(),
                _ => self.store.readable_page(key, range, &mut Vec::new()).await?,
            };
            let Some(last) = page.last() else { return Ok(messages) };
            start = last.sequence + 1;
            messages.extend(page.into_iter().filter(|message| end.is_none_or(|end| message.sequence < end)));
        }
    }

    /// The texts of a search, by its plan.
    pub(super) async fn planned_texts(
        self,
        scope: &Scope,
        options: &SearchOptions,
        plan: &TextPlan,
        limit: usize,
        checking: ConditionCheck,
    ) -> Result<Candidates<TextCandidate>> {
        if plan.is_scan {
            return self.newest_texts(scope, options, limit).await;
        }
        if plan.terms.is_empty() || plan.required.iter().any(Vec::is_empty) {
            return Ok(Candidates::new(Vec::new()));
        }
        let query = TextQuery {
            scope: scope.clone(),
            filter: options.filter.clone(),
            content_types: options.content_types,
            terms: plan.terms.clone(),
            weights: plan.weights.clone(),
            required: plan.required.clone(),
            phrases: plan.phrases.clone(),
            limit,
        };
        match checking {
            ConditionCheck::First => self.checked_texts(query, options).await,
            ConditionCheck::WhenRead => self.store.backend.text_candidates(&query).await,
        }
    }
}

/// The type of the text to show.
fn shown_type(message: &Message, options: &SearchOptions) -> ContentType {
    let texts = message.line().texts();
    let mut types =
        texts.iter().map(|text| text.content_type).filter(|of| options.content_types.contains(*of));
    let is_about_tools = !options.conditions.tools.is_empty() || !options.conditions.files.is_empty();
    let first = types.clone().find(|of| !is_about_tools || of.is_of_tools()).or_else(|| types.next());
    first.unwrap_or(ContentType::UserQuery)
}

fn messages_in(items: &[VectorCandidate]) -> usize {
    items.iter().map(|item| &item.message_ref).collect::<std::collections::HashSet<_>>().len()
}
