//! Vectors, from columns of `transcripts` or rows of `transcript_vectors`.

use std::collections::{BTreeMap, HashSet};

use amplifier_session_core::{
    KnownPart,
    backend::MessageVectors,
    content::{ExtractedText, TOOL_OUTPUT_LIMIT, embeddable, tokens},
    model::{ContentType, Message, Timestamp, VectorRecord},
};

use crate::{database::OldCell, spaces::Spaces, tables::OldRow};

/// The columns of `transcript_vectors` that are read.
pub(crate) const COLUMNS: [&str; 12] = [
    "parent_id",
    "content_type",
    "chunk_index",
    "total_chunks",
    "span_start",
    "span_end",
    "token_count",
    "source_text",
    "vector",
    "vector_json",
    "embedding_model",
    "created_at",
];

/// The columns of `transcripts` with the vectors of the first generation, in DuckDB and in SQLite.
pub(crate) const INLINE: [(ContentType, &str, &str); 4] = [
    (ContentType::UserQuery, "user_query_vector", "user_query_vector_json"),
    (ContentType::AssistantResponse, "assistant_response_vector", "assistant_response_vector_json"),
    (ContentType::AssistantThinking, "assistant_thinking_vector", "assistant_thinking_vector_json"),
    (ContentType::ToolOutput, "tool_output_vector", "tool_output_vector_json"),
];

/// The tolerance for the length of a vector, which should be 1. Within it, the vector is kept bit by bit.
const UNIT: f32 = 1e-3;

/// Reasons not to copy a vector.
pub(crate) const OF_ANOTHER_MESSAGE: &str = "of messages that are not there";
const UNREADABLE: &str = "that can't be read";
const UNKNOWN_TYPE: &str = "of an unknown content type";
const TWICE: &str = "that are there twice";

/// The number of vectors that are not copied, by reason.
pub(crate) type SkippedVectors = BTreeMap<String, u64>;

/// A vector as it was stored.
#[derive(Debug)]
pub(crate) struct OldVector {
    /// Its content type, if known.
    pub(crate) content_type: Option<ContentType>,
    /// Its model, if known.
    pub(crate) model: Option<String>,
    values: Option<Vec<f32>>,
    created_at: Option<Timestamp>,
    chunk: Option<OldChunk>,
}

/// The part of a text to which a vector belongs.
#[derive(Debug)]
struct OldChunk {
    index: Option<u32>,
    total: Option<u32>,
    start: Option<u32>,
    end: Option<u32>,
    tokens: Option<u32>,
    text: Option<String>,
}

impl OldVector {
    /// The vector of a row of `transcript_vectors`; `None` if the row has no vector yet.
    pub(crate) fn of_row(row: &OldRow<'_>) -> Option<Self> {
        let values = ["vector", "vector_json"].map(|name| row.get(name)).into_iter().find_map(values)?;
        Some(Self {
            content_type: row
                .text(&["content_type"])
                .and_then(|name| ContentType::EMBEDDED.into_iter().find(|known| known.as_str() == name)),
            model: model(row),
            values,
            created_at: row.time("created_at"),
            chunk: Some(OldChunk {
                index: row.number("chunk_index"),
                total: row.number("total_chunks"),
                start: row.number("span_start"),
                end: row.number("span_end"),
                tokens: row.number("token_count"),
                text: row.text(&["source_text"]),
            }),
        })
    }

    /// The vectors in the columns of a row of `transcripts`.
    pub(crate) fn inline(row: &OldRow<'_>) -> Vec<Self> {
        let vectors = INLINE.iter().filter_map(|(content_type, column, json)| {
            let values = [column, json].map(|name| row.get(name)).into_iter().find_map(values)?;
            let (content_type, model) = (Some(*content_type), model(row));
            Some(Self { content_type, model, values, created_at: row.time("synced_at"), chunk: None })
        });
        vectors.collect()
    }

    /// The number of its dimensions, if it can be read.
    pub(crate) fn dimensions(&self) -> Option<usize> {
        self.values.as_ref().map(Vec::len)
    }
}

fn model(row: &OldRow<'_>) -> Option<String> {
    row.text(&["embedding_model"]).filter(|name| !name.trim().is_empty())
}

/// The numbers of a vector, scaled to unit length; `Some(None)` if they cannot be read.
fn values(cell: &OldCell) -> Option<Option<Vec<f32>>> {
    let mut values = match cell {
        OldCell::Null => return None,
        OldCell::Vector(values) => values.clone(),
        OldCell::Text(text) if text.trim().is_empty() || text.trim() == "null" => return None,
        OldCell::Text(text) => match serde_json::from_str::<Vec<f32>>(text) {
            Ok(values) => values,
            Err(_) => return Some(None),
        },
        _ => return Some(None),
    };
    let length = values.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt() as f32;
    if !length.is_finite() || length == 0.0 {
        return Some(None);
    }
    if (length - 1.0).abs() > UNIT {
        values.iter_mut().for_each(|x| *x /= length);
    }
    Some(Some(values))
}

/// The vectors of a message, as they are stored; `None` if it has none.
pub(crate) fn of_message(
    message: &Message,
    texts: &[ExtractedText],
    vectors: Vec<OldVector>,
    spaces: &Spaces,
    left_out: &mut SkippedVectors,
) -> Option<MessageVectors> {
    let created_at = vectors.iter().filter_map(|vector| vector.created_at).max();
    let (mut records, mut seen) = (Vec::new(), HashSet::new());
    for vector in vectors {
        match record(vector, texts, spaces) {
            Ok(record) if !seen.insert((record.text, record.chunk_index)) => {
                *left_out.entry(TWICE.to_owned()).or_default() += 1;
            }
            Ok(record) => records.push(record),
            Err(reason) => *left_out.entry(reason).or_default() += 1,
        }
    }
    if records.is_empty() {
        return None;
    }
    // If a chunk says that it is the third of two, there are three.
    for content_type in ContentType::EMBEDDED {
        let of_type = || records.iter().filter(|record| record.text == content_type.into());
        let total =
            of_type().map(|record| record.total_chunks.max(record.chunk_index.saturating_add(1))).max();
        let of_type = records.iter_mut().filter(|record| record.text == content_type.into());
        of_type.for_each(|record| record.total_chunks = total.unwrap_or(1));
    }
    records.sort_by_key(|record| (record.text, record.chunk_index));
    let has = |text: &ExtractedText| records.iter().any(|record| record.text == text.content_type.into());
    let lacks = |text: &ExtractedText| !embeddable(text, TOOL_OUTPUT_LIMIT).is_empty() && !has(text);
    let failure = texts.iter().any(lacks).then(|| "a text had no vector in the old database".to_owned());
    let created_at = created_at.unwrap_or(message.synced_at);
    let made = MessageVectors::new(message.sequence, message.digest, created_at, records);
    Some(MessageVectors { failure, ..made })
}

fn record(vector: OldVector, texts: &[ExtractedText], spaces: &Spaces) -> Result<VectorRecord, String> {
    let dimensions = vector.dimensions().ok_or(UNREADABLE)?;
    let of = spaces.space(vector.model.as_deref(), dimensions);
    if Some(&of) != spaces.chosen.as_ref() {
        return Err(format!("of {of}"));
    }
    let (Some(content_type), Some(values)) = (vector.content_type, vector.values) else {
        return Err(UNKNOWN_TYPE.to_owned());
    };
    let text = texts.iter().find(|text| text.content_type == content_type);
    let embedded = text.map(|text| embeddable(text, TOOL_OUTPUT_LIMIT)).unwrap_or_default();
    let chunk = vector.chunk.as_ref();
    let index = chunk.and_then(|chunk| chunk.index).unwrap_or(0);
    let (span_start, span_end) = match chunk {
        Some(chunk) => span(chunk, text.map_or("", |text| &text.text)),
        None => (0, characters(embedded).max(1)),
    };
    let counted = || tokens::count(chunk.and_then(|chunk| chunk.text.as_deref()).unwrap_or(embedded)) as u32;
    let token_count = chunk.and_then(|chunk| chunk.tokens).filter(|tokens| *tokens > 0);
    Ok(VectorRecord {
        text: content_type.into(),
        chunk_index: index,
        total_chunks: chunk.and_then(|chunk| chunk.total).unwrap_or(1).max(index.saturating_add(1)),
        span_start,
        span_end,
        token_count: token_count.unwrap_or_else(|| counted().max(1)),
        vector: values,
        turn: None,
    })
}

/// The position of a chunk in the text of the message. Blocks may have been joined differently, so the text of the
/// chunk is searched for. If it is not found, the stored numbers count, up to the end of the text.
fn span(chunk: &OldChunk, text: &str) -> (u32, u32) {
    let length = characters(text);
    let (start, end) = (chunk.start.unwrap_or(0), chunk.end.unwrap_or(length));
    let source = chunk.text.as_deref().filter(|source| !source.is_empty());
    if let Some(source) = source {
        let given: Option<String> =
            end.checked_sub(start).map(|n| text.chars().skip(start as usize).take(n as usize).collect());
        if given.as_deref() == Some(source) {
            return (start, end);
        }
        if let Some(at) = text.find(source) {
            let start = characters(text.part(..at));
            return (start, start + characters(source));
        }
    }
    let end = if length > 0 { end.min(length) } else { end };
    if end > start { (start, end) } else { (0, length.max(1)) }
}

fn characters(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(start: u32, end: u32, text: &str) -> OldChunk {
        let text = Some(text.to_owned()).filter(|text| !text.is_empty());
        OldChunk { index: None, total: None, start: Some(start), end: Some(end), tokens: None, text }
    }

    #[test]
    fn chunks_are_found_in_the_text() {
        let text = "Né bis\n\nin idem.";
        assert_eq!(span(&chunk(0, 6, "Né bis"), text), (0, 6));
        // Joined by one line break there.
        assert_eq!(span(&chunk(7, 15, "in idem."), text), (8, 16));
        assert_eq!(span(&chunk(3, 400, "something else"), text), (3, 16));
        assert_eq!(span(&chunk(9, 3, ""), text), (0, 16));
        assert_eq!(span(&chunk(2, 9, "gone"), ""), (2, 9));
        assert_eq!(span(&chunk(0, 0, ""), ""), (0, 1));
    }

    #[test]
    fn vectors_stay_as_they_are_or_get_unit_length() {
        let unit = vec![0.6, 0.8];
        assert_eq!(values(&OldCell::Vector(unit.clone())), Some(Some(unit)));
        assert_eq!(values(&OldCell::Text("[3, 4.0]".to_owned())), Some(Some(vec![0.6, 0.8])));
        for text in ["[0,0]", "[1e999]", "[1,null]", "oops", "[]"] {
            assert_eq!(values(&OldCell::Text(text.to_owned())), Some(None), "{text}");
        }
        assert_eq!(values(&OldCell::Null), None);
        assert_eq!(values(&OldCell::Text("null".to_owned())), None);
    }
}
