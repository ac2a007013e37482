//! Search: fuses and diversifies the candidates of the backend, and reads the results.

use std::collections::{HashMap, HashSet};

use super::{
    Readable, SessionStorage,
    embed::{of_service, other_space},
};
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::{Candidates, PendingQuery, TextCandidate, TextQuery, VectorCandidate, VectorQuery},
    content::extract,
    embedding::{EmbeddingPurpose, ModelStrength},
    model::{ContentType, EmbeddingSpace, Message, MessageRef, VectorRecord},
    search::{
        Fused, FusionWeights, MissingVectors, SearchMode, SearchOptions, SearchResult, SearchResults,
        diversify, fuse, rank_texts, rank_vectors,
    },
    text::{Snippets, query_terms},
};

/// Candidates to request from the backend per result: enough for diversification.
pub(super) const CANDIDATES_A_RESULT: usize = 5;
/// The minimum number of candidates of each list, if two are fused.
const LEAST_FUSED: usize = 100;
/// Candidates per result from which maximal marginal relevance chooses.
const POOL_A_RESULT: usize = 3;

/// The vector of a query, and the generation of vectors to compare it with. Empty if there are no vectors to compare
/// with.
#[derive(Debug, Default)]
struct QueryVector {
    vector: Vec<f32>,
    generation: u32,
}

impl SessionStorage {
    /// Finds messages.
    ///
    /// Without an embedding provider, or with vectors of another model in the store, a hybrid search runs as full text
    /// and says so in the notices.
    ///
    /// # Errors
    ///
    /// `Validation` if an option is out of range; `Unsupported` or `Embedding` if semantic search can't run; errors
    /// of the backend.
    pub async fn search_transcripts(&self, scope: &Scope, options: &SearchOptions) -> Result<SearchResults> {
        options.validate()?;
        let terms = query_terms(&options.query);
        let (texts, (mode, vector, vectors)) =
            tokio::try_join!(self.text_list(scope, options, &terms), self.nearest_list(scope, options))?;
        let mut notices = self.notices(mode, vectors.notice, texts.notice);

        let weights = self.fusion_weights();
        let mut ranked = match mode {
            SearchMode::FullText => rank_texts(texts.items, &weights),
            SearchMode::Semantic => rank_vectors(vectors.items, &weights),
            SearchMode::Hybrid => fuse(texts.items, vectors.items, &weights),
        };
        if options.mmr_lambda < 1.0 && mode != SearchMode::FullText {
            ranked.truncate(options.limit * POOL_A_RESULT);
            self.complete_vectors(&mut ranked, &vector).await?;
        }
        let lambda = if mode == SearchMode::FullText { 1.0 } else { options.mmr_lambda };
        let picked = diversify(ranked, lambda, options.limit);
        let Readable { rows: results, damaged } = self.show(picked, options, &terms).await?;
        let missing_vectors = match mode {
            SearchMode::FullText => None,
            SearchMode::Semantic | SearchMode::Hybrid => match self.missing_vectors(scope).await {
                // Not what was searched for.
                Err(error) if error.kind() == ErrorKind::Damaged => {
                    notices.push(format!("messages without vectors could not be counted: {error}"));
                    None
                }
                counted => counted?,
            },
        };
        Ok(SearchResults { mode, notices, missing_vectors, results, damaged })
    }

    /// Notices for the user about how the results were found. Each cause gives one notice: a read-only store, or an
    /// index that was missing for both words and meaning.
    pub(super) fn notices(
        &self,
        ran: SearchMode,
        of_vectors: Option<String>,
        of_texts: Option<String>,
    ) -> Vec<String> {
        let read_only =
            self.backend.info().read_only.map(|reason| format!("the store is read-only: {reason}"));
        let is_one = read_only.is_some() || ran == SearchMode::Hybrid;
        let notices: Vec<String> = read_only.into_iter().chain(of_vectors).chain(of_texts).collect();
        if is_one && notices.len() > 1 { vec![notices.join("; ")] } else { notices }
    }

    /// The number of messages in `scope` that a search by meaning can't find yet; `None` if it can find all.
    ///
    /// If no vectors are pending, this is one query of the index of pending messages. Otherwise, messages are counted.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn missing_vectors(&self, scope: &Scope) -> Result<Option<MissingVectors>> {
        let generation = self.generations().await?.current_number();
        if let Scope::User(user) = scope {
            let query = PendingQuery { user: user.clone(), session: None, generation, after: None, limit: 1 };
            if self.backend.messages_pending_vectors(&query).await?.is_empty() {
                return Ok(None);
            }
        }
        let counts = self.backend.count_vectors(scope).await?;
        let of_generation = counts.generations.get(&generation);
        let messages = of_generation.map_or(counts.embeddable, |counts| counts.pending);
        Ok((messages > 0).then_some(MissingVectors { messages, of: counts.embeddable }))
    }

    /// The candidates by meaning, with the vector of the query and the mode that can run.
    async fn nearest_list(
        &self,
        scope: &Scope,
        options: &SearchOptions,
    ) -> Result<(SearchMode, QueryVector, Candidates<VectorCandidate>)> {
        let none = |notice| Candidates { items: Vec::new(), notice };
        if options.mode == SearchMode::FullText || options.query.trim().is_empty() {
            return Ok((options.mode, QueryVector::default(), none(None)));
        }
        match (self.query_vector(&options.query).await, options.mode) {
            (Ok(None), mode) => Ok((mode, QueryVector::default(), none(None))),
            (Ok(Some(vector)), mode) => {
                let list = self.vector_list(scope, options, &vector).await?;
                Ok((mode, vector, list))
            }
            (Err(error), SearchMode::Hybrid) if is_about_vectors(&error) => {
                let notice = format!("searched by words only: {error}");
                Ok((SearchMode::FullText, QueryVector::default(), none(Some(notice))))
            }
            (Err(error), _) => Err(error.with_operation("search")),
        }
    }

    /// The vector of the query; `None` if the store has no vectors to compare with.
    async fn query_vector(&self, query: &str) -> Result<Option<QueryVector>> {
        let Some(provider) = &self.embedding else {
            return Err(Error::new(ErrorKind::Unsupported, "there is no embedding provider"));
        };
        let generations = self.generations().await?;
        let Some(held) = &generations.current else { return Ok(None) };
        if held.space != *provider.space() {
            if generations.next.is_none() && !self.has_vectors(&generations).await? {
                return Ok(None);
            }
            return Err(other_space(&generations, provider.space()));
        }
        let query = match self.redactor_for(provider.as_ref()) {
            Some(redactor) => redactor.mask(query)?.text.into_owned(),
            None => query.to_owned(),
        };
        let mut made = provider.embed(&[query], EmbeddingPurpose::Query).await?;
        match made.pop() {
            Some(vector) if made.is_empty() && is_of(&held.space, &vector) => {
                Ok(Some(QueryVector { vector, generation: held.number }))
            }
            _ => {
                let error =
                    Error::new(ErrorKind::Embedding, "the provider returned no usable vector for the query");
                Err(of_service(provider.as_ref(), error))
            }
        }
    }

    async fn text_list(
        &self,
        scope: &Scope,
        options: &SearchOptions,
        terms: &[String],
    ) -> Result<Candidates<TextCandidate>> {
        if options.mode == SearchMode::Semantic || terms.is_empty() {
            return Ok(Candidates { items: Vec::new(), notice: None });
        }
        let query = TextQuery {
            scope: scope.clone(),
            filter: options.filter.clone(),
            content_types: options.content_types,
            terms: terms.to_vec(),
            limit: candidates_for(options),
        };
        self.backend.text_candidates(&query).await
    }

    async fn vector_list(
        &self,
        scope: &Scope,
        options: &SearchOptions,
        asked: &QueryVector,
    ) -> Result<Candidates<VectorCandidate>> {
        // A vector of zeros: the model knows no word of the query, so nothing is near it.
        if asked.vector.iter().all(|x| *x == 0.0) {
            return Ok(Candidates { items: Vec::new(), notice: None });
        }
        let query = VectorQuery {
            scope: scope.clone(),
            filter: options.filter.clone(),
            content_types: options.content_types,
            vector: asked.vector.clone(),
            generation: asked.generation,
            limit: candidates_for(options),
        };
        self.nearest_chunks(query, options.limit * POOL_A_RESULT, options.min_similarity).await
    }

    /// The chunks nearest to the vector of the query, from enough different messages if there are as many: chunks of a
    /// few long messages could fill the list.
    pub(super) async fn nearest_chunks(
        &self,
        mut query: VectorQuery,
        messages: usize,
        min_similarity: Option<f32>,
    ) -> Result<Candidates<VectorCandidate>> {
        loop {
            let mut found = self.backend.vector_candidates(&query).await?;
            let too_far = |last: &VectorCandidate| min_similarity > Some(last.similarity);
            let complete = found.items.len() < query.limit || found.items.last().is_some_and(too_far);
            found.items.retain(|chunk| min_similarity.is_none_or(|least| chunk.similarity >= least));
            let different: HashSet<&MessageRef> =
                found.items.iter().map(|chunk| &chunk.message_ref).collect();
            if complete || different.len() >= messages {
                return Ok(found);
            }
            query.limit *= 4;
        }
    }

    fn fusion_weights(&self) -> FusionWeights {
        let strength = self.embedding.as_ref().map_or(ModelStrength::Static, |provider| provider.strength());
        FusionWeights::of(strength)
    }

    /// Adds the vectors of candidates that are only in the text list, so that they can be compared.
    async fn complete_vectors(&self, ranked: &mut [Fused], query: &QueryVector) -> Result<()> {
        let lacking: Vec<(MessageRef, ContentType)> = ranked
            .iter()
            .filter(|fused| fused.vector.is_none())
            .map(|fused| (fused.message_ref.clone(), fused.content_type))
            .collect();
        if lacking.is_empty() || query.vector.is_empty() {
            return Ok(());
        }
        let mut nearest: HashMap<MessageRef, (f32, VectorRecord)> = HashMap::new();
        let stored = match self.backend.vectors_of(query.generation, &lacking).await {
            // Without their vectors, they are compared by words.
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(()),
            stored => stored?,
        };
        for (message_ref, record) in stored {
            let similarity = dot(&query.vector, &record.vector);
            if nearest.get(&message_ref).is_none_or(|(best, _)| similarity > *best) {
                nearest.insert(message_ref, (similarity, record));
            }
        }
        for fused in ranked.iter_mut().filter(|fused| fused.vector.is_none()) {
            if let Some((similarity, record)) = nearest.remove(&fused.message_ref) {
                fused.vector = Some(record.vector);
                fused.similarity = Some(similarity);
            }
        }
        Ok(())
    }

    /// Reads the messages and cuts their snippets. Messages that were removed in the meantime or can't be read are left
    /// out.
    pub(super) async fn show(
        &self,
        picked: Vec<(Fused, f32)>,
        options: &SearchOptions,
        terms: &[String],
    ) -> Result<Readable<SearchResult>> {
        let message_refs: Vec<MessageRef> =
            picked.iter().map(|(fused, _)| fused.message_ref.clone()).collect();
        let Readable { rows: messages, damaged } = self.readable_messages_at(message_refs).await?;
        let mut messages: HashMap<MessageRef, Message> =
            messages.into_iter().map(|m| (m.message_ref(), m)).collect();
        let mut snippets = Snippets::new(terms);
        let shown = picked.into_iter().filter_map(|(fused, score)| {
            Some(result(messages.remove(&fused.message_ref)?, fused, score, options, &mut snippets))
        });
        Ok(Readable { rows: shown.collect(), damaged })
    }
}

fn result(
    message: Message,
    fused: Fused,
    score: f32,
    options: &SearchOptions,
    snippets: &mut Snippets<'_>,
) -> SearchResult {
    let line = message.raw.parse_object().unwrap_or_default();
    let texts = extract(&line, message.role);
    let text = texts
        .into_iter()
        .find(|text| text.content_type == fused.content_type)
        .map(|t| t.text)
        .unwrap_or_default();
    let within = fused.span.map(|(start, end)| byte_range(&text, start, end));
    let snippet = snippets.cut(&text, within, options.snippet_chars);
    SearchResult {
        user_id: message.user_id,
        session_id: message.session_id,
        project: message.project_slug,
        sequence: message.sequence,
        turn: message.turn,
        role: message.role,
        ts: message.ts,
        ts_estimated: message.ts_source.is_estimated(),
        ts_source: message.ts_source,
        content_type: fused.content_type,
        span: fused.span.unwrap_or_else(|| (0, text.chars().count() as u32)),
        score,
        source: fused.source,
        text_score: fused.text_score,
        similarity: fused.similarity,
        snippet: snippet.text,
        highlights: snippet.highlights,
        message: options.with_message.then(|| serde_json::Value::Object(line)),
    }
}

/// The byte range of the characters `start..end`.
fn byte_range(text: &str, start: u32, end: u32) -> std::ops::Range<usize> {
    let mut boundaries = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let first = boundaries.nth(start as usize).unwrap_or(text.len());
    let last =
        (end as usize).checked_sub(start as usize + 1).and_then(|n| boundaries.nth(n)).unwrap_or(text.len());
    first..last.max(first)
}

/// The number of candidates to request for each list. If two lists are fused, a candidate that is low in one may be
/// high in the other.
fn candidates_for(options: &SearchOptions) -> usize {
    let wanted = options.limit * CANDIDATES_A_RESULT;
    if options.mode == SearchMode::Hybrid { wanted.max(LEAST_FUSED) } else { wanted }
}

fn is_about_vectors(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Embedding | ErrorKind::Authentication)
}

/// Whether `vector` can be compared with vectors of `space`.
fn is_of(space: &EmbeddingSpace, vector: &[f32]) -> bool {
    vector.len() == space.dimensions && vector.iter().all(|x| x.is_finite())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::byte_range;

    #[test]
    fn spans_are_characters() {
        let text = "aé😀b";
        assert_eq!(&text[byte_range(text, 1, 3)], "é😀");
        assert_eq!(&text[byte_range(text, 0, 4)], text);
        assert_eq!(&text[byte_range(text, 3, 99)], "b");
        assert_eq!(&text[byte_range(text, 9, 12)], "");
    }
}
