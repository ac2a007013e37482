//! Compares the candidates of a search with conditions on the texts of messages.

use std::collections::HashMap;

use super::text_plan::TextPlan;
use crate::{
    Result, Scope,
    backend::{Candidates, TextCandidate, TextQuery, VectorCandidate, VectorQuery},
    model::{Message, MessageRef},
    search::{Checks, SearchOptions},
    storage::{
        damage::Readable,
        store::{StoreContext, TranscriptSearch},
    },
};

/// At most this many text candidates are compared.
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
pub(super) struct Checked<'a> {
    store: &'a StoreContext,
    checks: Checks,
    known: HashMap<MessageRef, bool>,
}

impl<'a> Checked<'a> {
    pub(super) fn new(store: &'a StoreContext, options: &SearchOptions) -> Self {
        let checks = Checks::new(&options.conditions, options.content_types);
        Self { store, checks, known: HashMap::new() }
    }

    /// Drops the candidates whose messages do not meet the conditions, or can't be read.
    pub(super) async fn keep<T>(&mut self, items: &mut Vec<T>, of: impl Fn(&T) -> &MessageRef) -> Result<()> {
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
        let query = plan.query(scope, options, limit);
        match checking {
            ConditionCheck::First => self.checked_texts(query, options).await,
            ConditionCheck::WhenRead => self.store.backend.text_candidates(&query).await,
        }
    }
}

fn messages_in(items: &[VectorCandidate]) -> usize {
    items.iter().map(|item| &item.message_ref).collect::<std::collections::HashSet<_>>().len()
}
