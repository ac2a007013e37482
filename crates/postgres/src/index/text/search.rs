//! Searches: postings are read, counted and scored here, by the formula of `core`; the rows decide what is in scope.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, BinaryHeap, HashMap},
};

use amplifier_session_core::{
    Result, Scope,
    backend::{Candidates, TextCandidate, TextQuery, has_required},
    model::{MessageRef, SessionId, SessionKey, UserId},
    text::{
        TermPlaces,
        bm25::{CollectionStatistics, DocumentTerms, Scorer},
    },
};
use amplifier_session_sql::{Columns, Query, Reader as _, is_one_of, number};
use tokio_postgres::types::Type;

use super::{
    block::{Posting, PostingsReader, TextKey},
    newest::users_of_tools,
    removed::RemovedKeys,
    statistics::{StoredTerms, statistics},
};
use crate::{
    connection::{Parameter, PgReader},
    index::in_scope_of,
};

const OPERATION: &str = "text_candidates";

/// The first look-up of rows is for this many more candidates than requested.
const SPARE: usize = 32;

/// The largest number of rows that one statement looks up.
pub(super) const LOOKED_UP: usize = 8_192;

/// The best texts for a query. `reader` reads one snapshot.
pub(crate) fn candidates(reader: &PgReader<'_>, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
    let removed = RemovedKeys::read(reader, OPERATION)?;
    let statistics = statistics(reader, query, &removed)?;
    let scored = scored(query, &statistics, lists(reader, query)?, &removed)?;
    let items = in_scope(reader, query, scored)?;
    Ok(Candidates::new(items).with_statistics(statistics))
}

/// The texts of a block that contain a term.
#[derive(Debug)]
pub(super) struct TermList {
    block: i64,
    /// The position of the term in the query.
    term: usize,
    /// The postings, of which some may be removed.
    data: Vec<u8>,
    /// Whether the term is in a phrase.
    is_in_phrase: bool,
    /// The places of the postings; empty if they are not needed, or unknown.
    places: Vec<u8>,
}

/// The lists of the terms of a query in all blocks of which the scope may have texts.
pub(super) fn lists(reader: &PgReader<'_>, query: &TextQuery) -> Result<Vec<TermList>> {
    let stored = StoredTerms::of(query);
    let user = match &query.scope {
        Scope::User(user) => Some(user.as_str()),
        _ => None,
    };
    let in_phrases = query.terms_of_phrases();
    let placed: Vec<&String> = in_phrases.iter().filter_map(|term| stored.terms.get(*term)).collect();
    let sql = "SELECT p.block, p.term, p.data, CASE WHEN p.term = ANY($3) THEN p.places ELSE '' END
        FROM text_blocks b JOIN postings p ON p.user_id = b.user_id AND p.block = b.block
        WHERE p.term = ANY($1) AND ($2::text IS NULL OR b.user_id = $2)";
    let list = |row: &dyn Columns| {
        let Some(term) = stored.position(row.text_ref(1)?) else { return Ok(None) };
        Ok(Some(TermList {
            block: row.integer(0)?,
            term,
            data: row.bytes(2)?,
            is_in_phrase: in_phrases.contains(&term),
            places: row.bytes(3)?,
        }))
    };
    let values: [Parameter<'_>; 3] =
        [(&stored.terms, Type::TEXT_ARRAY), (&user, Type::TEXT), (&placed, Type::TEXT_ARRAY)];
    let found = reader.query_decoded(OPERATION, sql, &values, list)?;
    Ok(found.into_iter().flatten().collect())
}

/// A text that matches a query. The greatest is the best.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scored {
    text: TextKey,
    score: f32,
}

impl Eq for Scored {}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.text.cmp(&self.text))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The texts that match a query.
fn scored(
    query: &TextQuery,
    statistics: &CollectionStatistics,
    lists: Vec<TermList>,
    removed: &RemovedKeys,
) -> Result<BinaryHeap<Scored>> {
    let scorer = Scorer::new(statistics, query.terms.len());
    let mut scored = Vec::new();
    each_match(query, lists, removed, &mut |text, terms| {
        scored.push(Scored { text, score: scorer.score(terms) })
    })?;
    Ok(scored.into())
}

/// Calls `each` with every text that matches a query, and what it has of the terms.
pub(super) fn each_match(
    query: &TextQuery,
    mut lists: Vec<TermList>,
    removed: &RemovedKeys,
    each: &mut dyn FnMut(TextKey, &DocumentTerms),
) -> Result<()> {
    lists.sort_by_key(|list| list.block);
    // A text is in one block.
    for of_block in lists.chunk_by(|a, b| a.block == b.block) {
        let mut merged = Merged::of(of_block, query.terms.len())?;
        while let Some(text) = merged.next()? {
            let is_asked_for = |content_type| query.content_types.contains(content_type);
            if text.content_type().is_some_and(is_asked_for)
                && has_required(&query.required, &merged.terms)
                && !removed.have(text)
                && (query.phrases.is_empty() || merged.has_phrases(query))
            {
                each(text, &merged.terms);
            }
        }
    }
    Ok(())
}

/// The texts of a block that contain a term, in order.
struct Merged<'a> {
    /// Each term, with the rest of its postings after the first one.
    lists: Vec<(&'a TermList, Posting, PostingsReader<'a>)>,
    /// What the current text has of the terms.
    terms: DocumentTerms,
    /// Where the current text has the terms of phrases.
    places: TermPlaces,
    /// Whether the places of such a term are unknown.
    is_unplaced: bool,
}

impl<'a> Merged<'a> {
    fn of(lists: &'a [TermList], terms: usize) -> Result<Self> {
        let mut merged = Self {
            lists: Vec::new(),
            terms: DocumentTerms { length: 0, frequencies: vec![0; terms] },
            places: TermPlaces::new(terms),
            is_unplaced: false,
        };
        for list in lists {
            let mut postings = PostingsReader::of(&list.data, &list.places);
            if let Some(first) = postings.next().transpose()? {
                merged.lists.push((list, first, postings));
            }
        }
        Ok(merged)
    }

    /// Whether the current text, which has the required terms, has the phrases. Unknown if an earlier version indexed it.
    fn has_phrases(&self, query: &TextQuery) -> bool {
        self.is_unplaced || query.has_phrases(&self.places)
    }

    /// Advances to the next text. A query has few terms, so it is found by comparing all of them.
    fn next(&mut self) -> Result<Option<TextKey>> {
        let Some(text) = self.lists.iter().map(|(_, first, _)| first.text).min() else { return Ok(None) };
        self.terms.frequencies.fill(0);
        self.is_unplaced = false;
        let mut at = 0;
        while let Some((list, first, rest)) = self.lists.get_mut(at) {
            if first.text != text {
                at += 1;
                continue;
            }
            self.terms.length = first.length;
            if let Some(frequency) = self.terms.frequencies.get_mut(list.term) {
                *frequency = first.frequency;
            }
            if list.is_in_phrase {
                self.is_unplaced |= first.places.is_empty();
                if let Some(places) = self.places.of_mut(list.term) {
                    std::mem::swap(places, &mut first.places);
                }
            }
            match rest.next().transpose()? {
                Some(next) => {
                    *first = next;
                    at += 1;
                }
                None => drop(self.lists.swap_remove(at)),
            }
        }
        Ok(Some(text))
    }
}

/// The best of the texts whose messages the query admits, as the rows are now.
fn in_scope(
    reader: &PgReader<'_>,
    query: &TextQuery,
    mut scored: BinaryHeap<Scored>,
) -> Result<Vec<TextCandidate>> {
    let mut found = Vec::new();
    let mut looked_up = query.limit.saturating_add(SPARE);
    while found.len() < query.limit && !scored.is_empty() {
        let best = std::iter::from_fn(|| scored.pop());
        let next: Vec<Scored> = best.take(looked_up.clamp(1, LOOKED_UP)).collect();
        let mut messages = admitted(reader, query, next.iter().map(|scored| scored.text.key()).collect())?;
        if !query.tools.is_empty() {
            let users = users_of_tools(reader, query, messages.keys().copied().collect())?;
            messages.retain(|key, _| users.contains(key));
        }
        found.extend(next.iter().filter_map(|Scored { text, score }| {
            let message_ref = messages.get(&text.key())?.clone();
            Some(TextCandidate { message_ref, content_type: text.content_type()?, score: *score })
        }));
        // If few are admitted, more are looked up at once.
        looked_up = looked_up.saturating_mul(4);
    }
    TextCandidate::keep_best(&mut found, query.limit);
    Ok(found)
}

/// The messages with these keys that the query admits.
fn admitted(
    reader: &PgReader<'_>,
    query: &TextQuery,
    keys: BTreeSet<i64>,
) -> Result<HashMap<i64, MessageRef>> {
    let (tables, conditions) = in_scope_of("transcripts", "t", &query.scope, &query.filter)?;
    let sql = format!(
        "SELECT t.key, t.user_id, t.session_id, t.sequence {tables} WHERE {} AND {}",
        is_one_of("t.key", keys),
        conditions.sql()
    );
    let decode = |row: &dyn Columns| {
        let session = SessionKey::new(UserId::new(row.text(1)?)?, SessionId::new(row.text(2)?)?);
        Ok((row.integer(0)?, MessageRef::new(session, number(row, 3)?)))
    };
    let found = reader.rows(&Query::with_conditions(OPERATION, sql, conditions, decode).once())?;
    Ok(found.into_iter().collect())
}
