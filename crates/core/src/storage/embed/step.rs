//! One step of embedding: the texts of some messages, in batches.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{StreamExt, stream};

use super::{
    EmbedReport,
    plan::{MessagePlan, TurnPlan},
};
use crate::{
    Error, ErrorKind, Result,
    backend::MessageVectors,
    content::{Chunk, ChunkSettings, ExtractedText, Masked, Redactor, chunk, embeddable},
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, is_no_vector},
    model::{ContentType, EmbeddedTurn, MessageRef, SessionKey, Timestamp, VectorRecord, VectorText},
    storage::turn_texts::provider_name,
    text::counted,
};

/// If a provider rejects this many texts of a batch one by one and accepts no text, the texts are not the problem.
const REFUSED_ALIKE: usize = 5;

/// The reason for a text whose vector can't be compared with others.
const UNUSABLE: &str = "the model returned a vector of zeros, or one that contains NaN or infinity";

/// If a text is cut off, this many characters after the cut are also searched for secrets, because the cut may split
/// one.
const MASKED_AFTER_CHARS: usize = 4_096;

/// How texts are cut into chunks.
#[derive(Debug, Clone)]
pub(in crate::storage) struct Cutting {
    /// The model for which the chunks are made.
    pub(in crate::storage) provider: Arc<dyn EmbeddingProvider>,
    /// Masks secrets in texts before they are cut.
    pub(in crate::storage) redactor: Option<Arc<dyn Redactor>>,
    /// The number of characters of a tool's output that are embedded.
    pub(in crate::storage) tool_chars: usize,
}

impl Cutting {
    /// `text` with its secrets masked, up to some distance after the embedded part, and the number of masked secrets.
    fn masked(&self, text: &ExtractedText) -> Result<(ExtractedText, usize)> {
        let content_type = text.content_type;
        let text = embeddable(text, self.tool_chars.saturating_add(MASKED_AFTER_CHARS));
        let masked = match &self.redactor {
            Some(redactor) => redactor.mask(text)?,
            None => Masked::nothing(text),
        };
        Ok((ExtractedText { content_type, text: masked.text.into_owned() }, masked.secrets))
    }
}

/// A chunk to embed, and where its vector belongs. Those of a turn have one vector together.
struct Piece {
    message: usize,
    text: VectorText,
    record: VectorRecord,
}

/// The texts of one step, in the order in which they are embedded.
pub(super) struct Step {
    messages: Vec<MessagePlan>,
    pieces: Vec<Piece>,
    texts: Vec<String>,
    secrets: u64,
}

/// The result of a step.
#[derive(Default)]
pub(super) struct StepOutcome {
    /// The vectors of finished messages, by session.
    pub(super) made: BTreeMap<SessionKey, Vec<MessageVectors>>,
    /// The counts, and the error that kept other messages from being finished.
    pub(super) report: EmbedReport,
}

/// The vectors of a message that is being assembled.
struct Assembled {
    vectors: MessageVectors,
    /// The vectors of the chunks of its turn, with their numbers of tokens. `None` if the provider rejected one.
    turn: Option<Vec<(Vec<f32>, u32)>>,
}

/// The result for a text: a vector, or the reason why the provider rejected it.
type EmbeddingOutcome = Result<Vec<f32>, String>;

/// The result of a batch: results for its first texts, and an error for the others.
struct BatchOutcome {
    embedded: Vec<EmbeddingOutcome>,
    failure: Option<Error>,
}

/// The amount to embed.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::storage) struct Amount {
    pub(in crate::storage) texts: u64,
    pub(in crate::storage) tokens: u64,
}

impl Step {
    /// Cuts the messages' texts on a separate thread, because counting tokens takes time and would block other tasks.
    ///
    /// # Errors
    ///
    /// Errors of the redactor.
    pub(super) async fn new(messages: Vec<MessagePlan>, cutting: &Cutting) -> Result<Self> {
        let cutting = cutting.clone();
        tokio::task::spawn_blocking(move || Self::cut(messages, &cutting)).await.map_err(|source| {
            Error::new(ErrorKind::Embedding, "splitting texts into chunks failed").with_source(source)
        })?
    }

    fn cut(messages: Vec<MessagePlan>, cutting: &Cutting) -> Result<Self> {
        let limits = cutting.provider.limits();
        let settings = ChunkSettings::for_limits(limits.chunk_threshold_tokens, limits.chunk_target_tokens);
        let (mut pieces, mut texts, mut secrets) = (Vec::new(), Vec::new(), 0);
        for (index, plan) in messages.iter().enumerate() {
            let mut add = |text: VectorText, content_type, embedded: &str| {
                for chunk in chunk(content_type, embedded, &settings) {
                    pieces.push(Piece { message: index, text, record: record_of(content_type, &chunk) });
                    texts.push(chunk.text.to_owned());
                }
            };
            let of_message = if plan.texts { plan.message.line().texts() } else { Vec::new() };
            for text in of_message {
                let (text, masked) = cutting.masked(&text)?;
                secrets += masked as u64;
                add(text.content_type.into(), text.content_type, embeddable(&text, cutting.tool_chars));
            }
            if let Some(turn) = &plan.turn {
                secrets += turn.content.secrets;
                add(VectorText::Turn, ContentType::AssistantResponse, &turn.content.text);
            }
        }
        Ok(Self { messages, pieces, texts, secrets })
    }

    /// The amount to embed.
    pub(super) fn amount(&self) -> Amount {
        Amount {
            texts: self.texts.len() as u64,
            tokens: self.pieces.iter().map(|piece| u64::from(piece.record.token_count)).sum(),
        }
    }

    /// Embeds all texts, with as many concurrent batches as the provider accepts.
    ///
    /// Vectors that were made before a failure are kept, so that a service is not paid twice for them.
    pub(super) async fn embed(self, provider: &dyn EmbeddingProvider, now: Timestamp) -> StepOutcome {
        let tokens: Vec<u32> = self.pieces.iter().map(|piece| piece.record.token_count).collect();
        let (embedded, failure) = embed_all(provider, &self.texts, &tokens).await;
        self.assemble(embedded, failure, provider, now)
    }

    /// The vectors of the messages for which all texts were tried, by session.
    fn assemble(
        self,
        embedded: Vec<Option<EmbeddingOutcome>>,
        mut failure: Option<Error>,
        provider: &dyn EmbeddingProvider,
        created_at: Timestamp,
    ) -> StepOutcome {
        let mut of_messages: Vec<Option<Assembled>> =
            self.messages.iter().map(|plan| Some(Assembled::of(plan, created_at))).collect();
        let embedded = embedded.into_iter().chain(std::iter::repeat_with(|| None));
        for (Piece { message, text, record }, embedded) in self.pieces.into_iter().zip(embedded) {
            let Some(of_message) = of_messages.get_mut(message) else { continue };
            match (embedded, of_message.as_mut()) {
                (Some(Ok(vector)), Some(assembled)) => {
                    let record = VectorRecord { vector, ..record };
                    match record.validate(provider.space()) {
                        Ok(()) => assembled.add(text, record),
                        Err(error) => {
                            failure.get_or_insert(error);
                            *of_message = None;
                        }
                    }
                }
                (Some(Err(reason)), Some(assembled)) => {
                    assembled.vectors.failure = Some(reason);
                    assembled.turn.take_if(|_| text == VectorText::Turn);
                }
                // The message stays pending, because a text of it was not tried.
                (None, _) => *of_message = None,
                (_, None) => {}
            }
        }
        let report = EmbedReport { secrets: self.secrets, failure, ..EmbedReport::default() };
        let mut outcome = StepOutcome { report, ..StepOutcome::default() };
        for (plan, assembled) in self.messages.into_iter().zip(of_messages) {
            let Some(assembled) = assembled else { continue };
            let MessageRef { session, .. } = plan.message.message_ref();
            outcome.count(&plan, &assembled);
            let vectors = assembled.finish(plan, &session, provider, created_at);
            outcome.made.entry(session).or_default().push(vectors);
        }
        outcome
    }
}

impl StepOutcome {
    fn count(&mut self, plan: &MessagePlan, made: &Assembled) {
        let failed = made.vectors.failure.is_some() && made.vectors.failure != plan.failure;
        if plan.texts {
            for text in made.vectors.records().iter().map(|record| record.text) {
                if let VectorText::Content(content_type) = text {
                    *self.report.vectors.entry(content_type).or_default() += 1;
                }
            }
            self.report.messages += u64::from(!failed);
        }
        self.report.refused += u64::from(failed);
        self.report.turns += u64::from(made.turn.as_ref().is_some_and(|chunks| !chunks.is_empty()));
    }
}

impl Assembled {
    fn of(plan: &MessagePlan, created_at: Timestamp) -> Self {
        let vectors = MessageVectors {
            sequence: plan.message.sequence,
            digest: plan.message.digest,
            created_at,
            turn: plan.lines,
            records: plan.kept.clone(),
            failure: plan.failure.clone(),
        };
        Self { vectors, turn: Some(Vec::new()) }
    }

    fn add(&mut self, text: VectorText, record: VectorRecord) {
        match text {
            VectorText::Turn => {
                if let Some(chunks) = &mut self.turn {
                    chunks.push((record.vector, record.token_count));
                }
            }
            VectorText::Content(_) => self.vectors.records.get_or_insert_default().push(record),
        }
    }

    /// Adds the vector of the turn, if all of its chunks have one.
    fn finish(
        mut self,
        plan: MessagePlan,
        session: &SessionKey,
        provider: &dyn EmbeddingProvider,
        created_at: Timestamp,
    ) -> MessageVectors {
        if let Some(TurnPlan { content, content_hash, assistant_sequence }) = plan.turn
            && let Some(chunks) = self.turn.filter(|chunks| !chunks.is_empty())
        {
            let (name, model) = (provider_name(provider), &provider.space().model);
            let turn = EmbeddedTurn {
                id: EmbeddedTurn::new_id(session, plan.message.sequence, name, model, created_at),
                assistant_sequence,
                provider: name.to_owned(),
                content_used: content.text,
                content_hash,
                used_turn_summary: content.used_turn_summary,
                created_at,
            };
            let record = VectorRecord::of_turn(turn, mean(&chunks));
            self.vectors.records.get_or_insert_default().push(record);
        }
        self.vectors
    }
}

/// The mean of the vectors of a turn's chunks, scaled to unit length. Chunks are weighted by their tokens.
fn mean(chunks: &[(Vec<f32>, u32)]) -> Vec<f32> {
    let mut sum = vec![0.0_f32; chunks.first().map_or(0, |(vector, _)| vector.len())];
    for (vector, weight) in chunks {
        sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x * *weight as f32);
    }
    let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        sum.iter_mut().for_each(|x| *x /= length);
    }
    sum
}

/// Embeds texts of these numbers of tokens, with as many concurrent batches as the provider accepts. Returns the
/// results of the first texts, and the error if the others were not tried.
async fn embed_all(
    provider: &dyn EmbeddingProvider,
    texts: &[String],
    tokens: &[u32],
) -> (Vec<Option<EmbeddingOutcome>>, Option<Error>) {
    let limits = provider.limits();
    let batches = batches(texts, tokens, limits);
    let calls: Vec<_> = batches.iter().map(|batch| embed_batch(provider, batch)).collect();
    let mut outcomes = stream::iter(calls).buffered(limits.concurrent_calls.max(1));
    let mut embedded: Vec<Option<EmbeddingOutcome>> = Vec::with_capacity(texts.len());
    let mut begun = batches.iter();
    while let Some((batch, outcome)) = next_of(&mut begun, &mut outcomes).await {
        let end = embedded.len() + batch.len();
        embedded.extend(outcome.embedded.into_iter().map(Some));
        embedded.resize_with(end, || None);
        if outcome.failure.is_some() {
            return (embedded, outcome.failure);
        }
    }
    (embedded, None)
}

/// The texts in batches that fit into one call by number and tokens.
fn batches<'a>(texts: &'a [String], tokens: &[u32], limits: EmbeddingLimits) -> Vec<&'a [String]> {
    let mut batches = Vec::new();
    let mut start = 0;
    while start < texts.len() {
        let mut sum = 0;
        let fits = tokens.iter().skip(start).take(limits.batch_texts).take_while(|tokens| {
            sum += **tokens as usize;
            sum <= limits.batch_tokens
        });
        let end = (start + fits.count().max(1)).min(texts.len());
        batches.extend(texts.get(start..end));
        start = end;
    }
    batches
}

/// The record of a chunk, without its vector.
fn record_of(content_type: ContentType, chunk: &Chunk<'_>) -> VectorRecord {
    VectorRecord {
        text: content_type.into(),
        chunk_index: chunk.index,
        total_chunks: chunk.total,
        span_start: chunk.span_start,
        span_end: chunk.span_end,
        token_count: chunk.token_count,
        vector: Vec::new(),
        turn: None,
    }
}

/// The result for one text.
fn made(provider: &dyn EmbeddingProvider, vector: Vec<f32>) -> EmbeddingOutcome {
    if !is_no_vector(&vector) {
        return Ok(vector);
    }
    let error = with_address(provider, Error::new(ErrorKind::Embedding, UNUSABLE));
    Err(error.message().to_owned())
}

/// `error` with the address of the service, if a service is called.
pub(in crate::storage) fn with_address(provider: &dyn EmbeddingProvider, error: Error) -> Error {
    match provider.address() {
        Some(address) => error.at(address),
        None => error,
    }
}

/// The next batch with its result.
async fn next_of<'a>(
    batches: &mut std::slice::Iter<'_, &'a [String]>,
    outcomes: &mut (impl StreamExt<Item = BatchOutcome> + Unpin),
) -> Option<(&'a [String], BatchOutcome)> {
    let outcome = outcomes.next().await?;
    Some((batches.next()?, outcome))
}

/// Embeds the texts of a batch. If the provider rejects one of them, bisection finds it, and only that text fails.
async fn embed_batch(provider: &dyn EmbeddingProvider, texts: &[String]) -> BatchOutcome {
    let mut embedded: Vec<EmbeddingOutcome> = Vec::with_capacity(texts.len());
    // A stack of the parts still to embed, the first on top.
    let mut parts = vec![texts];
    while let Some(part) = parts.pop() {
        let failure = match provider.embed(part, EmbeddingPurpose::Document).await {
            Ok(vectors) if vectors.len() == part.len() => {
                let nothing = vectors.iter().filter(|vector| is_no_vector(vector)).count();
                if nothing < REFUSED_ALIKE || nothing < vectors.len() {
                    embedded.extend(vectors.into_iter().map(|vector| made(provider, vector)));
                    continue;
                }
                // If a service makes no usable vector at all, the texts are not the problem.
                with_address(provider, Error::new(ErrorKind::Embedding, UNUSABLE))
            }
            Ok(vectors) => {
                let (vectors, texts) = (vectors.len() as u64, part.len() as u64);
                let (vectors, texts) = (counted(vectors, "vector"), counted(texts, "text"));
                let message = format!("the provider returned {vectors} for {texts}");
                with_address(provider, Error::new(ErrorKind::Embedding, message))
            }
            Err(error) if error.kind() == ErrorKind::Validation => {
                if part.len() > 1 {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                    continue;
                }
                embedded.push(Err(error.message().to_owned()));
                if embedded.len() < REFUSED_ALIKE || embedded.iter().any(Result::is_ok) {
                    continue;
                }
                embedded.clear();
                error
            }
            Err(error) => error,
        };
        return BatchOutcome { embedded, failure: Some(failure) };
    }
    BatchOutcome { embedded, failure: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_a_long_turn_is_the_mean_of_its_chunks() {
        let vector = mean(&[(vec![1.0, 0.0], 3), (vec![0.0, 1.0], 4)]);
        assert!((vector[0] - 0.6).abs() < 1e-6 && (vector[1] - 0.8).abs() < 1e-6, "{vector:?}");
        assert_eq!(mean(&[(vec![0.0, 0.0], 1)]), [0.0, 0.0]);
    }
}
