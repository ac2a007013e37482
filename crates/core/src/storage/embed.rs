//! Making the vectors that are owed.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use tokio::task::JoinSet;

use super::SessionStorage;
use crate::{
    Error, ErrorKind, Result,
    backend::{MessageVectors, meta},
    content::{ChunkSettings, ExtractedText, chunk, embeddable, extract},
    embedding::{EmbeddingProvider, EmbeddingPurpose},
    model::{ContentType, EmbeddingSpace, Message, SessionId, SessionKey, Timestamp, UserId, VectorRecord},
};

/// How many messages are read, embedded and written at a time.
const MESSAGES_A_STEP: usize = 512;

/// What was embedded.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct EmbedReport {
    /// Messages whose vectors were stored.
    pub messages: u64,
    /// Vectors that were stored, by content type.
    pub vectors: BTreeMap<ContentType, u64>,
    /// Why it ended early, if it did: the messages that are left still owe their vectors.
    #[serde(skip)]
    pub failure: Option<Error>,
}

impl EmbedReport {
    /// Adds what another report counts.
    pub fn add(&mut self, other: Self) {
        self.messages += other.messages;
        for (content_type, count) in other.vectors {
            *self.vectors.entry(content_type).or_default() += count;
        }
        self.failure = self.failure.take().or(other.failure);
    }

    /// All vectors.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.vectors.values().sum()
    }
}

impl SessionStorage {
    /// Makes the vectors that messages of `user` (and of `session`, where given) owe. Does nothing without an
    /// embedding provider.
    ///
    /// A provider that fails is told in the report, not as an error.
    ///
    /// # Errors
    ///
    /// Those of the backend.
    pub async fn embed_owed(&self, user: &UserId, session: Option<&SessionId>) -> Result<EmbedReport> {
        let mut report = EmbedReport::default();
        let Some(provider) = self.embedding.clone() else { return Ok(report) };
        let mut after = None;
        // The vectors of one step are made while those of the step before are stored and the next messages are read.
        let mut making = Making::default();
        loop {
            let owing =
                self.backend.messages_owing_vectors(user, session, after.as_ref(), MESSAGES_A_STEP).await?;
            if after.is_none()
                && !owing.is_empty()
                && let Err(error) = self.claim_space(provider.space()).await?
            {
                report.failure = Some(error);
                return Ok(report);
            }
            after = owing.last().map(Message::place).or(after);
            let made = match making.finish().await? {
                Some(Err(error)) => {
                    report.failure = Some(error);
                    return Ok(report);
                }
                made => made.and_then(Result::ok),
            };
            if !owing.is_empty() {
                making.start(owing, Arc::clone(&provider), self.settings.tool_output_chars, self.now());
            }
            match made {
                Some(made) => self.store_vectors(made, &mut report).await?,
                None if making.is_idle() => return Ok(report),
                None => {}
            }
        }
    }

    /// The outer error is the backend's, the inner one tells that the store holds vectors of another space.
    pub(super) async fn claim_space(&self, space: &EmbeddingSpace) -> Result<Result<()>> {
        let held = self.backend.put_meta_if_absent(meta::EMBEDDING_SPACE, &meta::space_value(space)).await?;
        Ok(match meta::parse_space(&held) {
            Some(held) if held == *space => Ok(()),
            Some(held) => Err(other_space(&held, space)),
            None => Err(Error::new(ErrorKind::StorageIo, "the store's embedding space can't be read")),
        })
    }

    /// Stores the vectors of one step.
    async fn store_vectors(&self, made: VectorsOfStep, report: &mut EmbedReport) -> Result<()> {
        for (key, vectors) in made {
            for record in vectors.iter().flat_map(|message| &message.records) {
                *report.vectors.entry(record.content_type).or_default() += 1;
            }
            report.messages += vectors.len() as u64;
            self.backend.write_vectors(&key, vectors).await?;
        }
        Ok(())
    }
}

/// The vectors of the messages of one step, by session.
type VectorsOfStep = BTreeMap<SessionKey, Vec<MessageVectors>>;

/// The step whose vectors are being made, if there is one. Breaks off when it is dropped.
#[derive(Default)]
struct Making(JoinSet<Result<VectorsOfStep>>);

impl Making {
    fn start(
        &mut self,
        messages: Vec<Message>,
        provider: Arc<dyn EmbeddingProvider>,
        tool_chars: usize,
        now: Timestamp,
    ) {
        self.0.spawn(async move {
            let work = TextsOfStep::new(messages, &provider, tool_chars).await?;
            let vectors = work.embed(provider.as_ref()).await?;
            let made = work.assemble(vectors, now);
            for record in made.values().flatten().flat_map(|message| &message.records) {
                record.validate(provider.space())?;
            }
            Ok(made)
        });
    }

    /// Waits for the step; none when there is none. The inner error is the provider's.
    async fn finish(&mut self) -> Result<Option<Result<VectorsOfStep>>> {
        self.0.join_next().await.transpose().map_err(|source| {
            Error::new(ErrorKind::Embedding, "making vectors broke off").with_source(source)
        })
    }

    fn is_idle(&self) -> bool {
        self.0.is_empty()
    }
}

pub(super) fn other_space(held: &EmbeddingSpace, asked: &EmbeddingSpace) -> Error {
    let message = format!("the store holds vectors of {held}; those of {asked} can't be compared with them");
    Error::new(ErrorKind::Embedding, message)
}

/// A chunk to embed, and where its vector belongs.
struct Piece {
    message: usize,
    record: VectorRecord,
}

/// The texts of one step, in the order in which they are embedded.
struct TextsOfStep {
    messages: Vec<Message>,
    pieces: Vec<Piece>,
    texts: Vec<String>,
}

impl TextsOfStep {
    /// Cuts the messages' texts; off the executor, since counting tokens takes its time.
    async fn new(
        messages: Vec<Message>,
        provider: &Arc<dyn EmbeddingProvider>,
        tool_chars: usize,
    ) -> Result<Self> {
        let limits = provider.limits();
        let settings = ChunkSettings::for_limits(limits.chunk_threshold_tokens, limits.chunk_target_tokens);
        tokio::task::spawn_blocking(move || Self::cut(messages, &settings, tool_chars))
            .await
            .map_err(|source| Error::new(ErrorKind::Embedding, "cutting texts failed").with_source(source))
    }

    fn cut(messages: Vec<Message>, settings: &ChunkSettings, tool_chars: usize) -> Self {
        let (mut pieces, mut texts) = (Vec::new(), Vec::new());
        for (index, message) in messages.iter().enumerate() {
            for text in texts_of(message) {
                let content_type = text.content_type;
                for chunk in chunk(content_type, embeddable(&text, tool_chars), settings) {
                    let record = VectorRecord {
                        content_type,
                        chunk_index: chunk.index,
                        total_chunks: chunk.total,
                        span_start: chunk.span_start,
                        span_end: chunk.span_end,
                        token_count: chunk.token_count,
                        vector: Vec::new(),
                    };
                    pieces.push(Piece { message: index, record });
                    texts.push(chunk.text.to_owned());
                }
            }
        }
        Self { messages, pieces, texts }
    }

    /// The vectors of all texts, in batches that the provider takes.
    async fn embed(&self, provider: &dyn EmbeddingProvider) -> Result<Vec<Vec<f32>>> {
        let mut vectors = Vec::with_capacity(self.texts.len());
        let limits = provider.limits();
        let mut start = 0;
        while start < self.texts.len() {
            let end = self.batch_end(start, limits.batch_texts, limits.batch_tokens);
            let batch = self.texts.get(start..end).unwrap_or_default();
            let made = provider.embed(batch, EmbeddingPurpose::Document).await?;
            if made.len() != batch.len() {
                let message = format!("the provider made {} vectors of {} texts", made.len(), batch.len());
                return Err(Error::new(ErrorKind::Embedding, message));
            }
            vectors.extend(made);
            start = end;
        }
        Ok(vectors)
    }

    fn batch_end(&self, start: usize, most_texts: usize, most_tokens: usize) -> usize {
        let mut tokens = 0;
        let fits = self.pieces.iter().skip(start).take(most_texts).take_while(|piece| {
            tokens += piece.record.token_count as usize;
            tokens <= most_tokens
        });
        start + fits.count().max(1)
    }

    /// The records of each message, by session.
    fn assemble(self, vectors: Vec<Vec<f32>>, created_at: Timestamp) -> VectorsOfStep {
        let mut records: Vec<Vec<VectorRecord>> = self.messages.iter().map(|_| Vec::new()).collect();
        for (piece, vector) in self.pieces.into_iter().zip(vectors) {
            if let Some(of_message) = records.get_mut(piece.message) {
                of_message.push(VectorRecord { vector, ..piece.record });
            }
        }
        let mut by_session = VectorsOfStep::new();
        for (message, records) in self.messages.iter().zip(records) {
            let vectors =
                MessageVectors { sequence: message.sequence, digest: message.digest, created_at, records };
            by_session.entry(message.place().session).or_default().push(vectors);
        }
        by_session
    }
}

pub(super) fn texts_of(message: &Message) -> Vec<ExtractedText> {
    match message.raw.parse_object() {
        Ok(line) => extract(&line, message.role),
        Err(_) => Vec::new(),
    }
}
