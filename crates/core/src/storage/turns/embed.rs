//! Makes the missing embeddings of turns.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    summaries::summaries_from,
    texts::{TurnCollector, TurnContent, TurnTexts},
};
use crate::{
    Result,
    backend::{NewTurn, SequenceRange, TurnQuery, meta},
    content::{ChunkSettings, chunk},
    embedding::EmbeddingProvider,
    model::{ContentType, EmbeddingSpace, Message, SessionKey, TurnEmbedding, TurnSummary, UserId},
    storage::{
        EmbedReport, OnEmbedded, StoredVectors, VectorsOf,
        embed::{EmbeddingOutcome, embed_all, with_address},
    },
};

/// Number of messages read at a time.
const MESSAGES_A_PAGE: usize = 1_000;
/// Number of texts embedded at a time.
const TEXTS_A_STEP: usize = 512;

/// Number of embeddings read at a time with their vectors.
const EMBEDDINGS_A_PAGE: usize = 100;

/// The value of [`meta::UNFINISHED_TURNS`] while turns may lack embeddings.
const UNFINISHED: &str = "1";

fn unfinished_turns(user: &UserId) -> String {
    format!("{}{user}", meta::UNFINISHED_TURNS)
}

/// The kinds of provider, as they are stored: a model on this machine, or a service.
pub(in crate::storage) const PROVIDERS: [&str; 2] = ["local", "service"];

/// The kind of a provider.
pub(in crate::storage) fn provider_name(provider: &dyn EmbeddingProvider) -> &'static str {
    let [local, service] = PROVIDERS;
    if provider.is_local() { local } else { service }
}

/// Which turns of a session to embed.
#[derive(Debug, Clone, Copy)]
pub(super) enum TurnSelection<'a> {
    All,
    /// The turn of this message, and all that follow.
    From(u32),
    /// The turns of these user messages.
    Of(&'a BTreeSet<u32>),
    /// As `Of`, even if their embeddings have the hash of the current text.
    Again(&'a BTreeSet<u32>),
}

impl TurnSelection<'_> {
    /// Whether the turn of this user message is selected.
    fn has(self, user: u32) -> bool {
        match self {
            Self::All | Self::From(_) => true,
            Self::Of(users) | Self::Again(users) => users.contains(&user),
        }
    }
}

/// A turn to embed, without its vector, and the number of its chunks.
struct Piece {
    turn: NewTurn,
    chunks: usize,
}

/// The turns of one step.
#[derive(Default)]
struct TurnStep {
    pieces: Vec<Piece>,
    texts: Vec<String>,
    tokens: Vec<u32>,
    secrets: u64,
}

impl StoredVectors<'_> {
    /// Makes the embeddings of turns that are missing or whose text has changed, by its SHA-256. The report contains
    /// the number of turns and any failure of the provider.
    ///
    /// A turn gets one vector, made from the user's text and either the last text of the assistant or the summary of
    /// the turn. A turn that lacks one of the two sides gets no vector.
    ///
    /// # Errors
    ///
    /// `Unsupported` without an embedding provider; errors of the backend.
    pub async fn embed_turns(self, of: &VectorsOf, on_embedded: OnEmbedded<'_>) -> Result<EmbedReport> {
        StoredVectors::new(self.store).needed_provider()?;
        let mut report = EmbedReport::default();
        let keys = StoredVectors::new(self.store).session_keys(of).await?;
        self.embed_turns_in(keys.iter().map(|key| (key, TurnSelection::All)), &mut report, on_embedded)
            .await?;
        Ok(report)
    }

    /// As [`Self::embed_turns`], for the messages in `report.sessions`, which got vectors. Does nothing after
    /// a failure.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub(in crate::storage) async fn embed_turns_of_report(self, report: &mut EmbedReport) -> Result<()> {
        let sessions = std::mem::take(&mut report.sessions);
        let turns = sessions.iter().map(|(key, first)| (key, TurnSelection::From(*first)));
        self.embed_turns_in(turns, report, &mut |_| {}).await
    }

    /// As [`Self::embed_turns`], for all sessions of a user. Does nothing after a failure.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub(in crate::storage) async fn embed_all_turns(
        self,
        user: &UserId,
        report: &mut EmbedReport,
    ) -> Result<()> {
        let keys = StoredVectors::new(self.store).session_keys(&VectorsOf::user(user.clone())).await?;
        self.embed_turns_in(keys.iter().map(|key| (key, TurnSelection::All)), report, &mut |_| {}).await
    }

    /// Whether a program was stopped before it made the embeddings of the user's turns.
    pub(in crate::storage) async fn has_unfinished_turns(self, user: &UserId) -> Result<bool> {
        let held = self.store.backend.meta().await?;
        Ok(held.get(&unfinished_turns(user)).is_some_and(|value| value == UNFINISHED))
    }

    /// Stores whether turns of the user may lack embeddings.
    pub(in crate::storage) async fn set_unfinished_turns(
        self,
        user: &UserId,
        unfinished: bool,
    ) -> Result<()> {
        let key = unfinished_turns(user);
        let held = self.store.backend.meta().await?.remove(&key);
        let value = if unfinished { UNFINISHED } else { "" };
        if held.as_deref().unwrap_or_default() != value {
            self.store.backend.swap_meta(&key, held.as_deref(), value).await?;
        }
        Ok(())
    }

    /// Makes the embeddings of turns of a session again, given by their user messages. Does nothing without an
    /// embedding provider.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub(in crate::storage) async fn embed_turns_again(
        self,
        key: &SessionKey,
        users: &BTreeSet<u32>,
    ) -> Result<EmbedReport> {
        let mut report = EmbedReport::default();
        self.embed_turns_in(std::iter::once((key, TurnSelection::Again(users))), &mut report, &mut |_| {})
            .await?;
        Ok(report)
    }

    /// As [`Self::embed_turns`], for some turns of sessions.
    pub(super) async fn embed_turns_in(
        self,
        sessions: impl Iterator<Item = (&SessionKey, TurnSelection<'_>)>,
        report: &mut EmbedReport,
        on_embedded: OnEmbedded<'_>,
    ) -> Result<()> {
        let mut step = TurnStep::default();
        for (key, which) in sessions {
            if report.failure.is_some() {
                return Ok(());
            }
            self.collect(key, which, &mut step, report, on_embedded).await?;
        }
        self.embed_step(&mut step, report, on_embedded).await
    }

    /// Adds the turns of a session that have no embedding of their current text.
    async fn collect(
        self,
        key: &SessionKey,
        which: TurnSelection<'_>,
        step: &mut TurnStep,
        report: &mut EmbedReport,
        on_embedded: OnEmbedded<'_>,
    ) -> Result<()> {
        let Some(provider) = &self.store.embedding else { return Ok(()) };
        let redactor = self.store.redactor_for(provider.as_ref()).cloned();
        // Appending a line to a long session must not cost more than to a short one.
        let start = match which {
            TurnSelection::From(sequence) => self.start_of_turn(key, sequence).await?,
            TurnSelection::All | TurnSelection::Of(_) | TurnSelection::Again(_) => 0,
        };
        let provider_name = provider_name(provider.as_ref());
        let hashes = match which {
            TurnSelection::Again(_) => BTreeMap::new(),
            _ => self.turn_hashes_from(key, provider_name, provider.space(), start).await?,
        };
        let summaries = summaries_from(&*self.store.backend, key, start).await?;
        let mut range = SequenceRange { start, limit: MESSAGES_A_PAGE };
        let (mut collector, mut stated) = (TurnCollector::default(), Vec::new());
        loop {
            let page: Vec<Message> = self.store.readable_page(key, range, &mut Vec::new()).await?;
            let last = page.last().map(|message| message.sequence);
            let mut turns: Vec<TurnTexts> =
                page.into_iter().filter_map(|message| collector.push(message)).collect();
            if last.is_none() {
                turns.extend(std::mem::take(&mut collector).finish());
            }
            for turn in turns {
                let user = turn.user.sequence;
                if !which.has(user) {
                    continue;
                }
                let summary = summaries.get(&user);
                if let Some(text) = turn.stated_summary.clone().filter(|_| summary.is_none()) {
                    stated.push(self.stated_summary(key, &turn, text));
                }
                let content = turn.content(summary.map(|of| of.text.as_str()), redactor.as_ref())?;
                let Some(content) = content else { continue };
                let hash = TurnEmbedding::hash(&content.text);
                if hashes.get(&user) != Some(&hash) {
                    self.add_to_step(key, &turn, content, hash, step);
                }
            }
            if !stated.is_empty() {
                self.store.backend.write_summaries(key, std::mem::take(&mut stated)).await?;
            }
            if step.texts.len() >= TEXTS_A_STEP {
                self.embed_step(step, report, on_embedded).await?;
            }
            match last {
                Some(last) if report.failure.is_none() => range.start = last.saturating_add(1),
                _ => return Ok(()),
            }
        }
    }

    /// The sequence of the first message of the turn with this message, or 0 if there are few messages before it.
    async fn start_of_turn(self, key: &SessionKey, sequence: u32) -> Result<u32> {
        let mut before = 16_u32;
        if sequence <= before {
            return Ok(0);
        }
        loop {
            let start = sequence.saturating_sub(before);
            let count = (sequence - start) as usize + 1;
            let rows = self.store.readable_rows::<Message>(key, start, count).await?.rows;
            let Some(last) = rows.last() else { return Ok(sequence) };
            let of_turn = rows.iter().rev().take_while(|message| message.turn == last.turn);
            let first = of_turn.last().map_or(sequence, |message| message.sequence);
            if start == 0 || rows.first().is_some_and(|before| before.sequence < first) {
                return Ok(first);
            }
            before = before.saturating_mul(4);
        }
    }

    /// A summary that a line states, to be stored, because searches by words use only stored ones.
    fn stated_summary(self, key: &SessionKey, turn: &TurnTexts, text: String) -> TurnSummary {
        TurnSummary {
            session: key.clone(),
            user_sequence: turn.user.sequence,
            digest: turn.user.digest,
            text,
            is_stated: true,
            set_at: self.store.now(),
        }
    }

    fn add_to_step(
        self,
        key: &SessionKey,
        turn: &TurnTexts,
        content: TurnContent,
        hash: String,
        step: &mut TurnStep,
    ) {
        let Some(provider) = &self.store.embedding else { return };
        let limits = provider.limits();
        let settings = ChunkSettings::for_limits(limits.chunk_threshold_tokens, limits.chunk_target_tokens);
        let before = step.texts.len();
        for chunk in chunk(ContentType::AssistantResponse, &content.text, &settings) {
            step.texts.push(chunk.text.to_owned());
            step.tokens.push(chunk.token_count);
        }
        let (space, created_at) = (provider.space(), self.store.now());
        let name = provider_name(provider.as_ref());
        let embedding = TurnEmbedding {
            id: TurnEmbedding::new_id(key, turn.user.sequence, name, &space.model, created_at),
            user_sequence: turn.user.sequence,
            assistant_sequence: turn.assistant.as_ref().map(|(message, _)| message.sequence),
            provider: name.to_owned(),
            model: space.model.clone(),
            dimensions: space.dimensions,
            content_used: content.text,
            content_hash: hash,
            used_turn_summary: content.used_turn_summary,
            vector: Vec::new(),
            created_at,
        };
        step.secrets += content.secrets;
        step.pieces.push(Piece {
            turn: NewTurn {
                session: key.clone(),
                embedding,
                user_digest: turn.user.digest,
                assistant_digest: turn.assistant.as_ref().map(|(message, _)| message.digest),
            },
            chunks: step.texts.len() - before,
        });
    }

    /// Embeds the turns of a step and stores them.
    async fn embed_step(
        self,
        step: &mut TurnStep,
        report: &mut EmbedReport,
        on_embedded: OnEmbedded<'_>,
    ) -> Result<()> {
        let Some(provider) = &self.store.embedding else { return Ok(()) };
        let TurnStep { pieces, texts, tokens, secrets } = std::mem::take(step);
        if pieces.is_empty() {
            return Ok(());
        }
        self.store.backend.yield_to_searches().await;
        let (embedded, failure) = embed_all(provider.as_ref(), &texts, &tokens).await;
        report.secrets += secrets;
        report.failure = failure.map(|error| with_address(provider.as_ref(), error));
        let mut embedded = embedded.into_iter();
        let mut tokens = tokens.into_iter();
        let mut made = Vec::new();
        for Piece { mut turn, chunks } in pieces {
            let of_chunks: Vec<Option<EmbeddingOutcome>> = embedded.by_ref().take(chunks).collect();
            let weights: Vec<u32> = tokens.by_ref().take(chunks).collect();
            if of_chunks.len() < chunks {
                break;
            }
            match mean(of_chunks, &weights, turn.embedding.dimensions) {
                Some(Ok(vector)) => {
                    turn.embedding.vector = vector;
                    made.push(turn);
                }
                Some(Err(reason)) => {
                    let (session, sequence) = (&turn.session.session_id, turn.embedding.user_sequence);
                    tracing::warn!(%session, sequence, reason, "a turn could not be embedded");
                }
                None => {}
            }
        }
        report.turns += self.store.backend.write_turns(made).await? as u64;
        on_embedded(report);
        Ok(())
    }

    /// The hashes of the stored embeddings of a session in a space, by user message.
    pub(in crate::storage) async fn turn_hashes(
        self,
        key: &SessionKey,
        provider: &str,
        space: &EmbeddingSpace,
    ) -> Result<BTreeMap<u32, String>> {
        self.turn_hashes_from(key, provider, space, 0).await
    }

    async fn turn_hashes_from(
        self,
        key: &SessionKey,
        provider: &str,
        space: &EmbeddingSpace,
        start: u32,
    ) -> Result<BTreeMap<u32, String>> {
        let mut query = TurnQuery::new(key.clone(), provider, space.model.clone());
        query.range.start = start;
        let mut hashes = BTreeMap::new();
        loop {
            let page = self.store.backend.read_turns(&query).await?;
            let Some(last) = page.last() else { return Ok(hashes) };
            query.range.start = last.user_sequence.saturating_add(1);
            let comparable = page.into_iter().filter(|turn| turn.dimensions == space.dimensions);
            hashes.extend(comparable.map(|turn| (turn.user_sequence, turn.content_hash)));
        }
    }

    /// A page of the embeddings of a session with their texts and vectors, from a user message on.
    pub(in crate::storage) async fn turns_from(
        self,
        key: &SessionKey,
        provider: &str,
        model: &str,
        start: u32,
    ) -> Result<Vec<TurnEmbedding>> {
        let range = SequenceRange { start, limit: EMBEDDINGS_A_PAGE };
        let query = TurnQuery::new(key.clone(), provider, model).with_range(range);
        self.store.backend.read_turns(&query.with_content(true)).await
    }

    /// The embedding of the turn of a user message, with its text and vector.
    pub(in crate::storage) async fn turn_at(
        self,
        key: &SessionKey,
        provider: &str,
        model: &str,
        user: u32,
    ) -> Result<Option<TurnEmbedding>> {
        let query = TurnQuery::new(key.clone(), provider, model);
        let query = query.with_range(SequenceRange { start: user, limit: 1 }).with_content(true);
        let page = self.store.backend.read_turns(&query).await?;
        Ok(page.into_iter().find(|turn| turn.user_sequence == user))
    }
}

/// The mean of the vectors of a turn's chunks, scaled to unit length. Chunks are weighted by their tokens. `None` if
/// one of the vectors was not made.
fn mean(
    chunks: Vec<Option<EmbeddingOutcome>>,
    weights: &[u32],
    dimensions: usize,
) -> Option<EmbeddingOutcome> {
    let mut sum = vec![0.0_f32; dimensions];
    for (vector, weight) in chunks.into_iter().zip(weights) {
        let vector = match vector? {
            Ok(vector) if vector.len() == dimensions && vector.iter().all(|x| x.is_finite()) => vector,
            Ok(_) => return Some(Err("the model returned an unusable vector".to_owned())),
            Err(reason) => return Some(Err(reason)),
        };
        sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x * *weight as f32);
    }
    let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        sum.iter_mut().for_each(|x| *x /= length);
    }
    Some(Ok(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_a_long_turn_is_the_mean_of_its_chunks() {
        let chunks = || vec![Some(Ok(vec![1.0, 0.0])), Some(Ok(vec![0.0, 1.0]))];
        let vector = mean(chunks(), &[3, 4], 2).unwrap().unwrap();
        assert!((vector[0] - 0.6).abs() < 1e-6 && (vector[1] - 0.8).abs() < 1e-6, "{vector:?}");
        assert_eq!(mean(vec![Some(Ok(vec![0.0, 0.0]))], &[1], 2).unwrap().unwrap(), [0.0, 0.0]);
        assert!(mean(vec![Some(Ok(vec![1.0])), None], &[1, 1], 1).is_none());
        assert!(mean(vec![Some(Ok(vec![1.0]))], &[1], 2).unwrap().is_err());
        assert!(mean(vec![Some(Err("refused".into()))], &[1], 1).unwrap().is_err());
    }
}
