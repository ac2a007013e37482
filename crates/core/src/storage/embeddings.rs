//! Stores vectors that a caller made, and lists the texts that have vectors.

use std::collections::{BTreeMap, HashMap};

use super::{
    embed::other_space,
    store::{Ingestion, StoredVectors},
};
use crate::{
    Error, ErrorField, KnownPart, Result, Scope,
    backend::{MessageVectors, SequenceRange},
    content::{ExtractedText, MessageLine, tokens},
    model::{
        ContentType, ContentTypes, EmbeddingSpace, Message, MessageRef, RawJson, SessionId, SessionKey,
        SessionSource, VectorRecord, VectorText,
    },
};

/// Vectors of one message that were made elsewhere. They are scaled to unit length and must not be zero.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MessageEmbeddings {
    /// The message.
    pub sequence: u32,
    /// Vectors for whole texts, by content type.
    pub vectors: BTreeMap<ContentType, Vec<f32>>,
    /// Vectors for parts of texts. A text has either one vector for all of it, or vectors for parts.
    pub chunks: Vec<EmbeddedChunk>,
}

/// A part of a text, with a vector that was made elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedChunk {
    /// The content type of the text.
    pub content_type: ContentType,
    /// The part: the first character and one past the last. Parts may overlap.
    pub span: (u32, u32),
    /// Its vector.
    pub vector: Vec<f32>,
}

/// Vectors of a session's messages that were made elsewhere, with the model that made them.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenEmbeddings {
    /// The model's name and the length of its vectors.
    pub space: EmbeddingSpace,
    /// The vectors, for one message each.
    pub of_messages: Vec<MessageEmbeddings>,
}

impl MessageEmbeddings {
    /// An empty set of vectors for the message `sequence`.
    #[must_use]
    pub fn new(sequence: u32) -> Self {
        Self { sequence, vectors: BTreeMap::new(), chunks: Vec::new() }
    }

    /// Adds a vector for a whole text.
    #[must_use]
    pub fn with_vector(mut self, content_type: ContentType, vector: Vec<f32>) -> Self {
        self.vectors.insert(content_type, vector);
        self
    }

    /// Adds a vector for a part of a text: the characters `span.0..span.1`.
    #[must_use]
    pub fn with_chunk(mut self, content_type: ContentType, span: (u32, u32), vector: Vec<f32>) -> Self {
        self.chunks.push(EmbeddedChunk { content_type, span, vector });
        self
    }
}

impl Ingestion<'_> {
    /// Stores vectors that the caller made, replacing all vectors of these messages. A text without a given vector has
    /// no vector afterwards. Returns the number of stored vectors.
    ///
    /// All vectors are validated before any is stored. A store without vectors adopts `space`.
    ///
    /// # Errors
    ///
    /// `SessionNotFound`; `Validation` with the field and sequence if a message does not exist or does not have the
    /// text, a part lies beyond the end of its text or is empty, or a vector has other dimensions than `space`, is zero
    /// or not finite; `Embedding` if the store has vectors of another space; errors of the backend.
    pub async fn store_embeddings(
        self,
        key: &SessionKey,
        space: &EmbeddingSpace,
        embeddings: Vec<MessageEmbeddings>,
    ) -> Result<usize> {
        if self.store.backend.get_session(key).await?.is_none() {
            return Err(Error::session_not_found(&key.session_id));
        }
        let message_refs: Vec<MessageRef> =
            embeddings.iter().map(|of_message| MessageRef::new(key.clone(), of_message.sequence)).collect();
        let messages = self.store.backend.messages_at(&message_refs).await?;
        let messages: HashMap<u32, Message> = messages.into_iter().map(|m| (m.sequence, m)).collect();
        let mut vectors = Vec::with_capacity(embeddings.len());
        for of_message in embeddings {
            let sequence = of_message.sequence;
            let named = |error: Error| error.with("session", &key.session_id).with("sequence", sequence);
            let message = messages.get(&sequence);
            let message = message.ok_or_else(|| {
                named(Error::validation(ErrorField::Sequence, "the session has no such message"))
            })?;
            let records = records(message.line().texts(), of_message, space).map_err(named)?;
            vectors.push(MessageVectors::new(sequence, message.digest, self.store.now(), records));
        }
        if vectors.is_empty() {
            return Ok(0);
        }
        let generation = StoredVectors::new(self.store).claim_space(space).await??;
        self.store.backend.write_vectors(key, generation, vectors).await
    }

    /// Validates vectors for lines that are not stored yet, the first of which has the sequence `start`, against the
    /// lines and the space of the store.
    pub(super) async fn check_given(
        self,
        source: SessionSource,
        given: &GivenEmbeddings,
        lines: &[RawJson],
        start: u32,
    ) -> Result<()> {
        let held = self.store.generations().await?;
        let is_other = held.current.as_ref().is_some_and(|current| current.space != given.space);
        if is_other && (held.next.is_some() || StoredVectors::new(self.store).has_vectors(&held).await?) {
            return Err(other_space(&held, &given.space));
        }
        for of_message in &given.of_messages {
            let sequence = of_message.sequence;
            let line = sequence.checked_sub(start).and_then(|index| lines.get(index as usize));
            let line = line.ok_or_else(|| {
                Error::validation(ErrorField::Sequence, "the call adds no line with this sequence")
            });
            let checked = line.and_then(|line| {
                let line = MessageLine::parse(line, source)?;
                records(line.texts(), of_message.clone(), &given.space)
            });
            checked.map_err(|error| error.with("sequence", sequence))?;
        }
        Ok(())
    }
}

impl StoredVectors<'_> {
    /// Returns which texts of a session's messages have vectors, in order of sequence. Leaves out messages without
    /// vectors.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; errors of the backend.
    pub async fn vector_content_types(
        self,
        scope: &Scope,
        session_id: &SessionId,
    ) -> Result<Vec<(u32, ContentTypes)>> {
        const PAGE: usize = 10_000;
        let key = self.store.existing_session(scope, session_id).await?.key();
        let mut all = Vec::new();
        let generation = self.store.generations().await?.current_number();
        let mut start = 0;
        loop {
            let page = self
                .store
                .backend
                .vector_texts(generation, &key, SequenceRange { start, limit: PAGE })
                .await?;
            let Some((last, _)) = page.last() else { return Ok(all) };
            start = last.saturating_add(1);
            all.extend(page.into_iter().map(|(sequence, texts)| (sequence, content_types(texts))));
        }
    }
}

/// The content types of texts; a turn has none.
fn content_types(texts: Vec<VectorText>) -> ContentTypes {
    let types = texts.into_iter().filter_map(|text| match text {
        VectorText::Content(content_type) => Some(content_type),
        VectorText::Turn => None,
    });
    types.collect()
}

/// A vector with the span of its part, or without one for the whole text.
type GivenPart = (Option<(u32, u32)>, Vec<f32>);

/// The records for the vectors of a message with `texts`.
fn records(
    texts: Vec<ExtractedText>,
    given: MessageEmbeddings,
    space: &EmbeddingSpace,
) -> Result<Vec<VectorRecord>> {
    let texts: HashMap<ContentType, String> =
        texts.into_iter().map(|text| (text.content_type, text.text)).collect();
    let mut parts: BTreeMap<ContentType, Vec<GivenPart>> = BTreeMap::new();
    for (content_type, vector) in given.vectors {
        parts.entry(content_type).or_default().push((None, vector));
    }
    for EmbeddedChunk { content_type, span, vector } in given.chunks {
        parts.entry(content_type).or_default().push((Some(span), vector));
    }
    let mut records = Vec::new();
    for (content_type, mut parts) in parts {
        let text = texts.get(&content_type).ok_or_else(|| {
            Error::validation(
                ErrorField::ContentType,
                format!("the message has no text of type {content_type}"),
            )
        })?;
        if parts.len() > 1 && parts.iter().any(|(span, _)| span.is_none()) {
            let rule = format!("{content_type} has a vector for the whole text and others for parts of it");
            return Err(Error::validation(ErrorField::Span, rule));
        }
        // Chunks are numbered in order of the text, in whatever order they are given.
        parts.sort_by_key(|(span, _)| *span);
        let total_chunks = parts.len() as u32;
        for (chunk_index, (span, vector)) in (0..).zip(parts) {
            let (span_start, span_end, part) = part_of(text, span)?;
            let record = VectorRecord {
                text: content_type.into(),
                chunk_index,
                total_chunks,
                span_start,
                span_end,
                token_count: tokens::count(part).max(1) as u32,
                vector,
                turn: None,
            };
            record.validate(space)?;
            records.push(VectorRecord { vector: of_unit_length(record.vector)?, ..record });
        }
    }
    Ok(records)
}

/// The characters `span` of `text`, or all of them, with their range.
fn part_of(text: &str, span: Option<(u32, u32)>) -> Result<(u32, u32, &str)> {
    let length = text.chars().count() as u32;
    let Some((start, end)) = span else { return Ok((0, length, text)) };
    if start >= end || end > length {
        let rule = format!("{start}..{end} is not a valid range in a text of {length} characters");
        return Err(Error::validation(ErrorField::Span, rule));
    }
    let byte = |at: u32| text.char_indices().nth(at as usize).map_or(text.len(), |(byte, _)| byte);
    Ok((start, end, text.part(byte(start)..byte(end))))
}

/// The vector scaled to unit length.
pub(super) fn of_unit_length(mut vector: Vec<f32>) -> Result<Vec<f32>> {
    // In double precision, because the squares of large numbers exceed the range of single precision.
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if length == 0.0 || !length.is_finite() {
        return Err(Error::validation(ErrorField::Vector, "must be finite and not zero"));
    }
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::{ErrorField, part_of};

    #[test]
    fn parts_are_characters_of_the_text() {
        assert_eq!(part_of("aé😀b", Some((1, 3))).unwrap(), (1, 3, "é😀"));
        assert_eq!(part_of("aé😀b", None).unwrap(), (0, 4, "aé😀b"));
        for span in [(0, 5), (2, 2), (3, 1), (4, 5)] {
            assert_eq!(part_of("aé😀b", Some(span)).unwrap_err().field(), Some(ErrorField::Span));
        }
    }
}
