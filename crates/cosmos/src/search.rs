//! Candidates for searches, by words and by vectors.

use std::{collections::HashMap, future::ready};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    backend::{
        Candidates, DatedMessage, IndexUpdate, Messages, Search, TermFinder, TermPattern, TextCandidate,
        TextQuery, VectorCandidate, VectorQuery,
    },
    model::{ContentType, MessageRef, SessionKey, VectorText},
    text::{
        Analyzer, TermPlaces,
        bm25::{DocumentTerms, score},
    },
};
use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use serde::Deserialize;
use tokio::time::Instant;

use crate::{
    batch::Operation,
    client::Answers,
    documents::{TextDocument, TextTotals, kind, texts_of},
    ids, meta,
    newest::{newest, users_of_tools},
    query::{CosmosQuery, Select, VALUES},
    scope,
    store::{CosmosBackend, Store},
};

/// The maximum number of vectors that one query returns. The SDK keeps them all in memory, up to its own limit of
/// 1,000.
const VECTORS: usize = 1_000;

/// The maximum number of messages whose texts are indexed again at a time.
const REINDEXED: usize = 100;

#[async_trait]
impl Search for CosmosBackend {
    async fn text_candidates(&self, query: &TextQuery) -> Result<Candidates<TextCandidate>> {
        let (sessions, texts, totals) = tokio::join!(
            scope::sessions(&self.0, &query.scope, &query.filter.sessions),
            texts(&self.0, query),
            totals(&self.0)
        );
        let (sessions, (texts, is_cut), totals) = (sessions?, texts?, totals?);
        let mut matches: HashMap<(MessageRef, ContentType), TextMatch> = HashMap::new();
        for text in texts {
            let in_scope = sessions.contains_key(&text.of.user_id_session_id)
                && query.filter.admits_message(text.of.role, text.of.ts)
                && query.content_types.contains(text.content_type);
            let found =
                matches.entry((text.of.message_ref(), text.content_type)).or_insert_with(|| TextMatch {
                    in_scope,
                    terms: DocumentTerms { length: text.length, frequencies: vec![0; query.terms.len()] },
                    places: TermPlaces::new(query.terms.len()),
                    is_placed: true,
                });
            text.count(&query.terms, &mut found.terms);
            if !query.phrases.is_empty() {
                found.is_placed &= text.find_places(&query.terms, &mut found.places);
            }
        }
        let mut statistics = query.no_statistics();
        matches.values().for_each(|found| statistics.add_document(&found.terms));
        // A session that is being written may have more texts than its document states.
        statistics.documents = totals.texts.max(statistics.documents);
        statistics.tokens = totals.text_tokens.max(statistics.tokens);
        let matches = matches.into_iter().filter(|(_, found)| {
            found.in_scope
                && query.is_matched_by(&found.terms)
                && (!found.is_placed || query.has_phrases(&found.places))
        });
        let mut items: Vec<TextCandidate> = matches
            .map(|((message_ref, content_type), found)| TextCandidate {
                message_ref,
                content_type,
                score: score(&statistics, &found.terms),
            })
            .collect();
        if query.tools.is_empty() {
            TextCandidate::keep_best(&mut items, query.limit);
        } else {
            TextCandidate::keep_best(&mut items, usize::MAX);
            let messages: Vec<MessageRef> = items.iter().map(|item| item.message_ref.clone()).collect();
            let users = users_of_tools(self, query, &messages).await?;
            items.retain(|item| users.contains(&item.message_ref));
            items.truncate(query.limit);
        }
        Ok(Candidates::new(items).with_statistics(statistics).with_notice(cut_notice(&self.0, is_cut)))
    }

    async fn newest_messages(&self, query: &TextQuery) -> Result<Candidates<DatedMessage>> {
        newest(self, query).await
    }

    /// Reads the texts that contain a term with this beginning, end or part, at most as many as a search reads: if a
    /// beginning is common, some terms may be missing. Terms with a typo are not supported.
    async fn terms(&self, patterns: &[TermPattern], limit: usize) -> Result<Vec<Vec<String>>> {
        let mut select = Select::of(kind::TEXT);
        let mut contains = Vec::new();
        for pattern in patterns {
            // There is a space before and after each term.
            let part = match pattern {
                TermPattern::Whole(term) => format!(" {term} "),
                TermPattern::Prefix(prefix) => format!(" {prefix}"),
                TermPattern::Suffix(suffix) => format!("{suffix} "),
                TermPattern::Infix(infix) => infix.clone(),
                TermPattern::OneTypo(_) | TermPattern::AnyOf(_) => {
                    return Err(Error::new(ErrorKind::Unsupported, "Cosmos DB can't find words with typos"));
                }
            };
            contains.push(format!("CONTAINS(c.terms, {})", select.parameter(part)));
        }
        let mut finder = TermFinder::new(patterns);
        if !contains.is_empty() {
            let select = select.and(format!("({})", contains.join(" OR ")));
            let texts: Vec<TextDocument> =
                self.0.messages.all(select.top(self.0.config.most_texts, "*")).await?;
            texts.iter().for_each(|text| text.each_term(|term| finder.add(term, 1)));
        }
        Ok(finder.finish(limit))
    }

    async fn vector_candidates(&self, query: &VectorQuery) -> Result<Candidates<VectorCandidate>> {
        let (sessions, generations) = tokio::join!(
            scope::sessions(&self.0, &query.scope, &query.filter.sessions),
            meta::generations(&self.0)
        );
        let (sessions, generations) = (sessions?, generations?);
        // A generation that does not exist has no vectors, so both ways find nothing.
        let dimensions = generations.space(query.generation).map_or(0, |space| space.dimensions);
        let is_indexed = self.0.vector_dimensions == Some(dimensions);
        let partitions: Vec<String> = sessions.into_keys().collect();
        let mut items = Vec::new();
        // A key takes up to 511 bytes of a query's 512 KB.
        for partitions in partitions.chunks(VALUES) {
            let rows = self.0.messages.query(vectors_in(partitions, query, is_indexed)).await?;
            items.extend(candidates(rows, query).await?);
            VectorCandidate::keep_nearest(&mut items, query.limit);
        }
        let notice = if !is_indexed {
            Some("the container has no index for these vectors, so they were compared one by one".to_owned())
        } else if query.limit > VECTORS && items.len() >= VECTORS {
            Some(format!("Cosmos DB returns at most {VECTORS} vectors, so there may be more results"))
        } else {
            None
        };
        Ok(Candidates::new(items).with_notice(notice))
    }

    /// Does nothing: the service updates its indexes with each write.
    async fn update_index(&self, _: IndexUpdate) -> Result<()> {
        Ok(())
    }

    async fn reindex_texts(&self, key: &SessionKey, sequences: &[u32]) -> Result<()> {
        let _lock = self.0.locks.lock(key).await;
        let partition = ids::partition(key);
        let mut analyzer = Analyzer::new();
        for sequences in sequences.chunks(REINDEXED) {
            let message_refs: Vec<MessageRef> =
                sequences.iter().map(|of| MessageRef::new(key.clone(), *of)).collect();
            let messages = self.messages_at(&message_refs).await?;
            let texts: Vec<_> =
                messages.iter().flat_map(|message| texts_of(message, &mut analyzer)).collect();
            let select = Select::rows(kind::TEXT, &partition).at(sequences);
            let stored: Vec<String> = self.0.messages.all(select.fields("VALUE c.id")).await?;
            let operations = Operation::replace(stored, &texts)?;
            self.0.messages.write_many(&partition, operations).await?;
        }
        Ok(())
    }
}

/// A note if there may be more texts than one search reads.
pub(crate) fn cut_notice(store: &Store, is_cut: bool) -> Option<String> {
    let limit = store.config.most_texts;
    is_cut.then(|| {
        format!("more than {limit} texts contain these words, so some were left out; try more specific words")
    })
}

/// How a text matches a query.
struct TextMatch {
    in_scope: bool,
    terms: DocumentTerms,
    /// Where the text has the terms.
    places: TermPlaces,
    /// Whether that is known.
    is_placed: bool,
}

/// The texts of all users that contain a word of the query, because texts out of scope count in the scores. Also
/// returns whether there may be more texts than one search scores.
pub(crate) async fn texts(store: &Store, query: &TextQuery) -> Result<(Vec<TextDocument>, bool)> {
    let limit = store.config.most_texts;
    let select = with_any_term(&query.terms, store.full_text);
    let mut texts: Vec<TextDocument> = store.messages.all(select.clone().top(limit, "*")).await?;
    if texts.len() < limit {
        return Ok((texts, false));
    }
    let Scope::User(user) = &query.scope else { return Ok((texts, true)) };
    // Other users' texts may have displaced the user's own.
    let own: Vec<TextDocument> =
        store.messages.all(select.with("c.user_id = @", user).top(limit, "*")).await?;
    let is_cut = own.len() >= limit;
    texts.retain(|text| text.of.user_id != *user);
    texts.extend(own);
    Ok((texts, is_cut))
}

fn with_any_term(terms: &[String], full_text: bool) -> Select {
    let mut select = Select::of(kind::TEXT);
    if full_text {
        let terms: Vec<String> = terms.iter().map(|term| select.parameter(term)).collect();
        select.and(format!("FullTextContainsAny(c.terms, {})", terms.join(", ")))
    } else {
        // There is a space before and after each term.
        let terms = terms.iter().map(|term| select.parameter(format!(" {term} ")));
        let contains: Vec<String> = terms.map(|term| format!("CONTAINS(c.terms, {term})")).collect();
        select.and(format!("({})", contains.join(" OR ")))
    }
}

/// The totals of all texts in the store. Texts that other processes wrote less than a minute ago may be missing.
async fn totals(store: &Store) -> Result<TextTotals> {
    match store.totals.get(Instant::now()) {
        Ok(totals) => Ok(totals),
        Err(writes) => {
            let query = Select::of(kind::SESSION).fields("c.texts, c.text_tokens");
            let sessions = store.sessions.query::<TextTotals>(query).await?;
            let totals = sessions.try_fold(TextTotals::default(), |sum, of| ready(Ok(sum + of))).await?;
            store.totals.put(Instant::now(), totals, writes);
            Ok(totals)
        }
    }
}

#[derive(Debug, Deserialize)]
struct StoredVector {
    user_id_session_id: String,
    sequence: u32,
    content_type: VectorText,
    span_start: u32,
    span_end: u32,
    vector: Vec<f32>,
    /// `None` if the service did not compare it.
    similarity: Option<f32>,
}

/// Vectors in these partitions: the nearest ones if the service can compare vectors, otherwise all. With cosine,
/// `VectorDistance` is a similarity: higher is nearer, and the order is nearest first without `ASC` or `DESC`.
fn vectors_in(partitions: &[String], query: &VectorQuery, is_indexed: bool) -> CosmosQuery<StoredVector> {
    let fields = "c.user_id_session_id, c.sequence, c.content_type, c.span_start, c.span_end, c.vector";
    let mut select = Select::of(if query.turns { kind::TURN } else { kind::VECTOR })
        .with("c.generation = @", query.generation)
        .with("ARRAY_CONTAINS(@, c.user_id_session_id)", partitions)
        .matching(&query.filter);
    if !query.turns {
        let content_types: Vec<_> = query.content_types.iter().collect();
        select = select.with("ARRAY_CONTAINS(@, c.content_type)", content_types);
    }
    if !is_indexed {
        return select.fields(fields);
    }
    let vector = select.parameter(&query.vector);
    let similarity = format!("VectorDistance(c.vector, {vector})");
    let fields = format!("{fields}, {similarity} AS similarity");
    select.ordered(&similarity).top(query.limit.min(VECTORS), &fields)
}

/// The nearest of the vectors. Compares those that the service did not compare.
async fn candidates(mut rows: Answers<StoredVector>, query: &VectorQuery) -> Result<Vec<VectorCandidate>> {
    let mut candidates = Vec::new();
    while let Some(row) = rows.try_next().await? {
        candidates.push(VectorCandidate {
            message_ref: MessageRef::new(ids::session_of(&row.user_id_session_id)?, row.sequence),
            content_type: row.content_type.content_type(),
            span_start: row.span_start,
            span_end: row.span_end,
            similarity: row.similarity.map_or_else(|| query.similarity(&row.vector), Ok)?,
            vector: row.vector,
        });
        // Not all of them are kept in memory.
        if candidates.len() >= 2 * query.limit.max(VECTORS) {
            VectorCandidate::keep_nearest(&mut candidates, query.limit);
        }
    }
    Ok(candidates)
}
