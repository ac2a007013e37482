//! Candidates of a search.

use std::collections::HashMap;

use amplifier_session_core::{
    Result, Scope,
    backend::{Candidates, TextCandidate, TextQuery, VectorCandidate, VectorQuery},
    model::{ContentType, Place},
    text::bm25::{CollectionStatistics, DocumentTerms, score},
};
use serde::Deserialize;

use crate::{
    client::Within,
    documents::{TextDocument, VectorDocument},
    error, ids, queries, schema, sessions,
    store::Store,
};

/// The most sessions in a query for vectors: a key takes up to 511 bytes of a query's 512 KB.
const SESSIONS: usize = 500;

/// The most vectors that one query answers with. The SDK keeps them all in memory, up to its own limit of 1,000.
const VECTORS: usize = 1_000;

/// A text, and what matched of it.
struct Matching {
    within: bool,
    terms: DocumentTerms,
}

/// Texts that match, scored with the statistics of all texts in the store.
pub(crate) async fn texts(store: &Store, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
    let most = store.config.most_texts;
    let asked = |user| queries::texts_with(&query.terms, store.full_text, most, user);
    let (within, documents, totals) = tokio::join!(
        sessions::within(store, &query.scope, &query.filter.sessions),
        store.messages.all::<TextDocument>(Within::All, asked(None)),
        totals(store)
    );
    let (within, mut documents, totals) = (within?, documents?, totals?);
    let mut is_cut = documents.len() >= most;
    if is_cut && let Scope::User(user) = &query.scope {
        // Those of others may have taken the place of one's own.
        let own: Vec<TextDocument> = store.messages.all(Within::All, asked(Some(user))).await?;
        is_cut = own.len() >= most;
        documents.retain(|document| document.user_id != *user);
        documents.extend(own);
    }
    let notice = is_cut.then(|| {
        format!("more than {most} texts hold these words: some of them were left out; name more of them")
    });
    let mut matching: HashMap<(Place, ContentType), Matching> = HashMap::new();
    for document in documents {
        let is_within = within.contains_key(&document.user_id_session_id)
            && query.filter.admits_message(document.role, document.ts)
            && query.content_types.contains(document.content_type);
        let terms = document.matched(&query.terms);
        let entry = matching.entry((document.place(), document.content_type));
        add(&mut entry.or_insert_with(|| nothing(is_within, &terms)).terms, &terms);
    }
    let statistics = statistics(totals, &query.terms, matching.values());
    let scored = matching.into_iter().filter(|(_, text)| text.within && text.terms.matches());
    let mut items: Vec<TextCandidate> = scored
        .map(|((place, content_type), text)| TextCandidate {
            score: score(&statistics, &text.terms),
            place,
            content_type,
        })
        .collect();
    items.sort_by(|a, b| {
        let place = || (&a.place, a.content_type).cmp(&(&b.place, b.content_type));
        b.score.total_cmp(&a.score).then_with(place)
    });
    items.truncate(query.limit);
    Ok(Candidates { items, notice })
}

fn nothing(within: bool, like: &DocumentTerms) -> Matching {
    let terms = DocumentTerms { length: like.length, frequencies: vec![0; like.frequencies.len()] };
    Matching { within, terms }
}

/// Adds what another part of the same text holds.
fn add(terms: &mut DocumentTerms, part: &DocumentTerms) {
    for (frequency, more) in terms.frequencies.iter_mut().zip(&part.frequencies) {
        *frequency = frequency.saturating_add(*more);
    }
}

/// How many texts there are in a store, and how many tokens in them.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct Totals {
    texts: u64,
    text_tokens: u64,
}

/// The totals of the store, which scores depend on little: what other processes add may be missing for a minute.
async fn totals(store: &Store) -> Result<Totals> {
    if let Some(totals) = store.totals.get() {
        return Ok(totals);
    }
    let asked = store.totals.ask();
    let of_sessions: Vec<Totals> = store.sessions.all(Within::All, queries::text_totals()).await?;
    let totals = of_sessions.into_iter().fold(Totals::default(), |sum, of| Totals {
        texts: sum.texts + of.texts,
        text_tokens: sum.text_tokens + of.text_tokens,
    });
    store.totals.put(asked, totals);
    Ok(totals)
}

fn statistics<'a>(
    totals: Totals,
    terms: &[String],
    matching: impl Iterator<Item = &'a Matching>,
) -> CollectionStatistics {
    let mut statistics = CollectionStatistics::new(terms.len());
    for text in matching {
        statistics.add_document(&text.terms);
    }
    // Of a session that is being written there may be more texts than it says.
    statistics.documents = totals.texts.max(statistics.documents);
    statistics.tokens = totals.text_tokens.max(statistics.tokens);
    statistics
}

/// Chunks in scope by their similarity.
pub(crate) async fn vectors(store: &Store, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
    let (within, is_indexed) =
        tokio::join!(sessions::within(store, &query.scope, &query.filter.sessions), is_indexed(store, query));
    let (within, is_indexed) = (within?, is_indexed?);
    let mut partitions: Vec<String> = within.into_keys().collect();
    partitions.sort_unstable();
    let mut items = Vec::new();
    for partitions in partitions.chunks(SESSIONS) {
        items.extend(match is_indexed {
            true => nearest(store, query, partitions).await?,
            false => compared_here(store, query, partitions).await?,
        });
        keep_nearest(&mut items, query.limit);
    }
    let notice = if !is_indexed {
        Some("vectors were read and compared one by one: the container has no index for them".to_owned())
    } else if query.limit > VECTORS && items.len() >= VECTORS {
        Some(format!("Cosmos DB was asked for the nearest {VECTORS} vectors only: there may be more results"))
    } else {
        None
    };
    Ok(Candidates { items, notice })
}

fn keep_nearest(candidates: &mut Vec<VectorCandidate>, most: usize) {
    candidates.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then_with(|| a.place.cmp(&b.place)));
    candidates.truncate(most);
}

/// Whether the container's index is for vectors of the generation.
async fn is_indexed(store: &Store, query: &VectorQuery) -> Result<bool> {
    let held = schema::generations(store).await?;
    let space = held.space(query.generation);
    // A generation that is gone has no vectors: any way finds none.
    let dimensions = space.map_or(0, |space| space.dimensions);
    Ok(store.vector_dimensions == Some(dimensions))
}

#[derive(Debug, Deserialize)]
struct Nearest {
    user_id_session_id: String,
    sequence: u32,
    content_type: ContentType,
    span_start: u32,
    span_end: u32,
    vector: Vec<f32>,
    similarity: f32,
}

async fn nearest(store: &Store, query: &VectorQuery, partitions: &[String]) -> Result<Vec<VectorCandidate>> {
    let content_types: Vec<&str> = query.content_types.iter().map(ContentType::as_str).collect();
    let most = query.limit.min(VECTORS);
    let scope = (partitions, content_types.as_slice());
    let sql = queries::nearest_vectors(query.generation, &query.filter, scope, &query.vector, most);
    let found: Vec<Nearest> = store.messages.all(Within::All, sql).await?;
    let candidates = found.into_iter().map(|near| {
        Ok(VectorCandidate {
            place: Place::new(ids::session_of(&near.user_id_session_id)?, near.sequence),
            content_type: near.content_type,
            span_start: near.span_start,
            span_end: near.span_end,
            similarity: near.similarity,
            vector: near.vector,
        })
    });
    candidates.collect()
}

async fn compared_here(
    store: &Store,
    query: &VectorQuery,
    partitions: &[String],
) -> Result<Vec<VectorCandidate>> {
    let sql = queries::vectors_to_compare(query.generation, &query.filter, partitions);
    let mut pages = store.messages.query::<VectorDocument>(Within::All, sql).await?;
    let mut candidates = Vec::new();
    while let Some(page) = pages.next().await? {
        for document in page.into_iter().filter(|of| query.content_types.contains(of.content_type)) {
            candidates.push(VectorCandidate {
                place: document.place(),
                content_type: document.content_type,
                span_start: document.span_start,
                span_end: document.span_end,
                similarity: similarity(&query.vector, &document.vector)?,
                vector: document.vector,
            });
        }
        keep_nearest(&mut candidates, query.limit);
    }
    Ok(candidates)
}

/// Both are of unit length, so this is the cosine.
fn similarity(a: &[f32], b: &[f32]) -> Result<f32> {
    if a.len() != b.len() {
        return Err(error::other_dimensions(a.len(), b.len()));
    }
    Ok(a.iter().zip(b).map(|(x, y)| x * y).sum())
}
