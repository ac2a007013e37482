//! Vectors that a caller made, in; which texts have vectors, out.

use std::collections::{BTreeMap, HashMap};

use super::{SessionStorage, embed::texts_of};
use crate::{
    Error, Result, Scope,
    backend::{MessageVectors, SequenceRange},
    content::{ExtractedText, tokens},
    model::{
        ContentType, ContentTypes, EmbeddingSpace, Message, Place, SessionId, SessionKey, Timestamp,
        VectorRecord,
    },
};

/// Vectors of one message that were made elsewhere: one for each text, over the whole of it.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageEmbeddings {
    /// The message.
    pub sequence: u32,
    /// A vector for each content type; of any length but zero: it is brought to unit length.
    pub vectors: BTreeMap<ContentType, Vec<f32>>,
}

impl SessionStorage {
    /// Stores vectors that the caller made, in place of those that the messages have. A text for which none is given
    /// has none then. Returns how many were stored.
    ///
    /// All are checked before any is stored. A store without vectors takes over `space`.
    ///
    /// # Errors
    ///
    /// `SessionNotFound`; `Validation` naming field and sequence when a message does not exist or does not hold the
    /// text, or a vector has other dimensions than `space`, is zero or not finite; `Embedding` when the store holds
    /// vectors of another space; those of the backend.
    pub async fn store_embeddings(
        &self,
        key: &SessionKey,
        space: &EmbeddingSpace,
        embeddings: Vec<MessageEmbeddings>,
    ) -> Result<usize> {
        if self.backend.get_session(key).await?.is_none() {
            return Err(Error::session_not_found(&key.session_id));
        }
        let places: Vec<Place> =
            embeddings.iter().map(|of_message| Place::new(key.clone(), of_message.sequence)).collect();
        let messages = self.backend.messages_at(&places).await?;
        let messages: HashMap<u32, Message> = messages.into_iter().map(|m| (m.sequence, m)).collect();
        let mut vectors = Vec::with_capacity(embeddings.len());
        for of_message in embeddings {
            let sequence = of_message.sequence;
            let named = |error: Error| error.with("session", &key.session_id).with("sequence", sequence);
            let message = messages.get(&sequence);
            let message =
                message.ok_or_else(|| named(Error::validation("sequence", "there is no such message")))?;
            vectors.push(checked(message, of_message.vectors, space, self.now()).map_err(named)?);
        }
        let generation = self.claim_space(space).await??;
        self.backend.write_vectors(key, generation, vectors).await
    }

    /// Which texts of a session's messages have vectors, by sequence in order. Messages without vectors are left out.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` when the session is not in `scope`; those of the backend.
    pub async fn vector_content_types(
        &self,
        scope: &Scope,
        session_id: &SessionId,
    ) -> Result<Vec<(u32, ContentTypes)>> {
        const PAGE: usize = 10_000;
        let key = self.existing_session(scope, session_id).await?.key();
        let mut all = Vec::new();
        let generation = self.generations().await?.current_number();
        let mut start = 0;
        loop {
            let page =
                self.backend.vector_types(generation, &key, SequenceRange { start, limit: PAGE }).await?;
            let Some((last, _)) = page.last() else { return Ok(all) };
            start = last.saturating_add(1);
            all.extend(page);
        }
    }
}

fn checked(
    message: &Message,
    vectors: BTreeMap<ContentType, Vec<f32>>,
    space: &EmbeddingSpace,
    created_at: Timestamp,
) -> Result<MessageVectors> {
    let texts: HashMap<ContentType, ExtractedText> =
        texts_of(message).into_iter().map(|text| (text.content_type, text)).collect();
    let mut records = Vec::with_capacity(vectors.len());
    for (content_type, vector) in vectors {
        let text = texts.get(&content_type);
        let text = text.ok_or_else(|| {
            Error::validation("content_type", format!("the message holds no text of type {content_type}"))
        })?;
        let record = VectorRecord {
            content_type,
            chunk_index: 0,
            total_chunks: 1,
            span_start: 0,
            span_end: text.text.chars().count() as u32,
            token_count: tokens::count(&text.text).max(1) as u32,
            vector,
        };
        record.validate(space)?;
        records.push(VectorRecord { vector: of_unit_length(record.vector)?, ..record });
    }
    let (sequence, digest) = (message.sequence, message.digest);
    Ok(MessageVectors { sequence, digest, created_at, records, failure: None })
}

/// The vector of the same direction whose length is 1.
pub(super) fn of_unit_length(mut vector: Vec<f32>) -> Result<Vec<f32>> {
    // In double precision: the squares of large numbers leave the range of single precision.
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if length == 0.0 || !length.is_finite() {
        return Err(Error::validation("vector", "must be finite and not zero"));
    }
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::of_unit_length;

    #[test]
    fn vectors_of_any_length_are_brought_to_one() {
        assert_eq!(of_unit_length(vec![3.0, -4.0]).unwrap(), [0.6, -0.8]);
        let large = of_unit_length(vec![3e30, 4e30]).unwrap();
        assert!((large[0] - 0.6).abs() < 1e-6 && (large[1] - 0.8).abs() < 1e-6, "{large:?}");
        assert!(of_unit_length(vec![0.0, 0.0]).is_err());
        assert!(of_unit_length(vec![f32::INFINITY, 0.0]).is_err());
        assert!(of_unit_length(vec![]).is_err());
    }
}
