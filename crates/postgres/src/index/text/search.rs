//! Searches: postings are read, counted and scored here, by the formula of `core`; the rows decide what is in scope.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, BinaryHeap, HashMap},
};

use amplifier_session_core::{
    Result, Scope,
    backend::{Candidates, TextCandidate, TextQuery, has_required},
    model::{MessageRef, SessionId, SessionKey, UserId},
    text::bm25::{CollectionStatistics, DocumentTerms, Scorer},
};
use amplifier_session_sql::{Columns, Conditions, Query, Reader as _, is_one_of, number};
use tokio_postgres::types::Type;

use super::{
    block::{Posting, TextId, decode_postings, stored_term},
    removed::RemovedKeys,
};
use crate::{
    columns::Fields,
    connection::{POSTGRES, Read},
};

const OPERATION: &str = "text_candidates";

/// The first look-up of rows is for so many times the candidates that are asked for.
const SPARE: usize = 2;

/// The largest number of rows that one statement looks up.
const LOOKED_UP: usize = 8_192;

/// The best texts for a query. `reader` reads one snapshot.
pub(crate) fn candidates(reader: &Read<'_>, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
    let removed = RemovedKeys::read(reader, OPERATION)?;
    let mut statistics = query.no_statistics();
    count_texts(reader, &removed, &mut statistics)?;
    let postings = postings(reader, query, &removed, &mut statistics)?;
    let scored = scored(query, &statistics, postings);
    let items = in_scope(reader, query, scored)?;
    Ok(Candidates::new(items).with_statistics(statistics))
}

/// Counts the texts of the store and their tokens.
fn count_texts(
    reader: &Read<'_>,
    removed: &RemovedKeys,
    statistics: &mut CollectionStatistics,
) -> Result<()> {
    let sql =
        "SELECT coalesce(sum(text_count), 0)::bigint, coalesce(sum(token_count), 0)::bigint FROM text_blocks";
    for row in reader.query(OPERATION, sql, &[])? {
        statistics.documents = number(&Fields(&row), 0)?;
        statistics.tokens = number(&Fields(&row), 1)?;
    }
    for block in removed.blocks(reader, OPERATION)? {
        for (_, length) in block.texts.iter().filter(|(text, _)| removed.have(*text)) {
            statistics.documents = statistics.documents.saturating_sub(1);
            statistics.tokens = statistics.tokens.saturating_sub((*length).into());
        }
    }
    Ok(())
}

/// The postings of the terms of a query, with the position of the term. Counts in how many texts of the store each term is.
fn postings(
    reader: &Read<'_>,
    query: &TextQuery,
    removed: &RemovedKeys,
    statistics: &mut CollectionStatistics,
) -> Result<Vec<(usize, Posting)>> {
    let stored: Vec<String> = query.terms.iter().map(|term| stored_term(term).into_owned()).collect();
    let positions: HashMap<&str, usize> =
        stored.iter().enumerate().map(|(at, term)| (term.as_str(), at)).collect();
    // What others have is only counted, and for that it is read only if some of it was removed.
    let only = match &query.scope {
        Scope::User(user) if removed.keys.is_empty() => Some(user.as_str()),
        _ => None,
    };
    let sql = "SELECT p.term, p.text_count, p.user_id,
            CASE WHEN $2::text IS NULL OR p.user_id = $2 THEN p.data END IS NOT NULL,
            CASE WHEN $2::text IS NULL OR p.user_id = $2 THEN p.data END
        FROM text_blocks b JOIN postings p ON p.user_id = b.user_id AND p.block = b.block
        WHERE p.term = ANY($1)";
    let mut found = Vec::new();
    for row in reader.query(OPERATION, sql, &[(&stored, Type::TEXT_ARRAY), (&only, Type::TEXT)])? {
        let row = Fields(&row);
        let Some(term) = positions.get(row.text_ref(0)?).copied() else { continue };
        let mut texts: u64 = number(&row, 1)?;
        if row.flag(3)? {
            let postings = decode_postings(row.bytes_ref(4)?)?;
            let is_asked_for = match &query.scope {
                Scope::User(user) => row.text_ref(2)? == user.as_str(),
                _ => true,
            };
            let kept = postings.into_iter().filter(|posting| !removed.have(posting.text));
            let before = found.len();
            if is_asked_for {
                found.extend(kept.map(|posting| (term, posting)));
                texts = (found.len() - before) as u64;
            } else {
                texts = kept.count() as u64;
            }
        }
        if let Some(known) = statistics.document_frequency.get_mut(term) {
            *known += texts;
        }
    }
    Ok(found)
}

/// A text that matches a query. The greatest is the best.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scored {
    text: TextId,
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
    mut postings: Vec<(usize, Posting)>,
) -> BinaryHeap<Scored> {
    // Stable, because that sort merges what is in order already: the postings of each term and block.
    postings.sort_by_key(|(_, posting)| posting.text);
    let scorer = Scorer::new(statistics, query.terms.len());
    let mut terms = DocumentTerms { length: 0, frequencies: vec![0; query.terms.len()] };
    let mut scored = Vec::new();
    for of_text in postings.chunk_by(|(_, a), (_, b)| a.text == b.text) {
        let Some((_, first)) = of_text.first() else { continue };
        let is_asked_for = |content_type| query.content_types.contains(content_type);
        if !first.text.content_type().is_some_and(is_asked_for) {
            continue;
        }
        terms.length = first.length;
        terms.frequencies.fill(0);
        for (term, posting) in of_text {
            if let Some(frequency) = terms.frequencies.get_mut(*term) {
                *frequency = posting.frequency;
            }
        }
        if has_required(&query.required, &terms) {
            scored.push(Scored { text: first.text, score: scorer.score(&terms) });
        }
    }
    scored.into()
}

/// The best of the texts whose messages the query admits, as the rows are now.
fn in_scope(
    reader: &Read<'_>,
    query: &TextQuery,
    mut scored: BinaryHeap<Scored>,
) -> Result<Vec<TextCandidate>> {
    let mut found = Vec::new();
    let mut looked_up = query.limit.saturating_mul(SPARE);
    while found.len() < query.limit && !scored.is_empty() {
        let best = std::iter::from_fn(|| scored.pop());
        let next: Vec<Scored> = best.take(looked_up.clamp(1, LOOKED_UP)).collect();
        let messages = admitted(reader, query, next.iter().map(|scored| scored.text.key()).collect())?;
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
fn admitted(reader: &Read<'_>, query: &TextQuery, keys: BTreeSet<i64>) -> Result<HashMap<i64, MessageRef>> {
    let conditions = Conditions::of_messages(POSTGRES, &query.scope, &query.filter)?;
    let sql = format!(
        "SELECT t.key, t.user_id, t.session_id, t.sequence FROM transcripts t
         JOIN sessions s ON s.user_id = t.user_id AND s.session_id = t.session_id
         WHERE {} AND {}",
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
