//! One step of embedding: the texts of some messages, in batches.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{StreamExt, stream};

use crate::{
    Error, ErrorKind, Result,
    backend::MessageVectors,
    content::{Chunk, ChunkSettings, ExtractedText, Masked, Redactor, chunk, embeddable},
    embedding::{EmbeddingLimits, EmbeddingProvider, EmbeddingPurpose, is_no_vector},
    model::{ContentType, Message, SessionKey, Timestamp, VectorRecord},
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

/// A chunk to embed, and where its vector belongs.
struct Piece {
    message: usize,
    record: VectorRecord,
}

/// The texts of one step, in the order in which they are embedded.
pub(super) struct Step {
    messages: Vec<Message>,
    pieces: Vec<Piece>,
    texts: Vec<String>,
    secrets: u64,
}

/// The result of a step.
#[derive(Default)]
pub(super) struct StepOutcome {
    /// The vectors of finished messages, by session.
    pub(super) made: BTreeMap<SessionKey, Vec<MessageVectors>>,
    /// The number of masked secrets.
    pub(super) secrets: u64,
    /// Why the other messages are not finished.
    pub(super) failure: Option<Error>,
}

/// The result for a text: a vector, or the reason why the provider rejected it.
pub(in crate::storage) type EmbeddingOutcome = Result<Vec<f32>, String>;

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
    pub(super) async fn new(messages: Vec<Message>, cutting: &Cutting) -> Result<Self> {
        let cutting = cutting.clone();
        tokio::task::spawn_blocking(move || Self::cut(messages, &cutting)).await.map_err(|source| {
            Error::new(ErrorKind::Embedding, "splitting texts into chunks failed").with_source(source)
        })?
    }

    fn cut(messages: Vec<Message>, cutting: &Cutting) -> Result<Self> {
        let limits = cutting.provider.limits();
        let settings = ChunkSettings::for_limits(limits.chunk_threshold_tokens, limits.chunk_target_tokens);
        let (mut pieces, mut texts, mut secrets) = (Vec::new(), Vec::new(), 0);
        for (index, message) in messages.iter().enumerate() {
            for text in message.line().texts() {
                let (text, masked) = cutting.masked(&text)?;
                secrets += masked as u64;
                let embedded = embeddable(&text, cutting.tool_chars);
                for chunk in chunk(text.content_type, embedded, &settings) {
                    pieces.push(Piece { message: index, record: record_of(text.content_type, &chunk) });
                    texts.push(chunk.text.to_owned());
                }
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

    /// The records of the messages for which all texts were tried, by session.
    fn assemble(
        self,
        embedded: Vec<Option<EmbeddingOutcome>>,
        mut failure: Option<Error>,
        provider: &dyn EmbeddingProvider,
        created_at: Timestamp,
    ) -> StepOutcome {
        let mut of_messages: Vec<Option<MessageVectors>> = self
            .messages
            .iter()
            .map(|message| {
                let (sequence, digest) = (message.sequence, message.digest);
                Some(MessageVectors { sequence, digest, created_at, records: Vec::new(), failure: None })
            })
            .collect();
        let embedded = embedded.into_iter().chain(std::iter::repeat_with(|| None));
        for (piece, embedded) in self.pieces.into_iter().zip(embedded) {
            let Some(of_message) = of_messages.get_mut(piece.message) else { continue };
            match (embedded, of_message.as_mut()) {
                (Some(Ok(vector)), Some(message)) => {
                    let record = VectorRecord { vector, ..piece.record };
                    match record.validate(provider.space()) {
                        Ok(()) => message.records.push(record),
                        Err(error) => {
                            failure.get_or_insert(error);
                            *of_message = None;
                        }
                    }
                }
                (Some(Err(reason)), Some(message)) => message.failure = Some(reason),
                (None, _) => *of_message = None,
                (_, None) => {}
            }
        }
        let mut outcome = StepOutcome { secrets: self.secrets, failure, ..StepOutcome::default() };
        for (message, vectors) in self.messages.iter().zip(of_messages) {
            if let Some(vectors) = vectors {
                outcome.made.entry(message.message_ref().session).or_default().push(vectors);
            }
        }
        outcome
    }
}

/// Embeds texts of these numbers of tokens, with as many concurrent batches as the provider accepts. Returns the
/// results of the first texts, and the error if the others were not tried.
pub(in crate::storage) async fn embed_all(
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
        content_type,
        chunk_index: chunk.index,
        total_chunks: chunk.total,
        span_start: chunk.span_start,
        span_end: chunk.span_end,
        token_count: chunk.token_count,
        vector: Vec::new(),
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
