//! Splits a long text into chunks that fit an embedding model.
//!
//! There are three steps, each linear in the length of the text. [`atoms`] are the pieces that the tokenizer uses, so
//! that their token counts add up. [`lines`] finds lines, paragraphs, headings and code blocks, which determine the
//! quality of each place to cut. [`pack`] fills chunks up to the target, and ends each at the best place in its second
//! half.

mod atoms;
mod lines;
mod pack;
#[cfg(test)]
mod tests;

use super::tokens;
use crate::{KnownPart, model::ContentType};

/// The minimum target: a chunk has at least one character, and a character has at most four tokens.
const MIN_TARGET_TOKENS: usize = 16;

/// When and how to split texts. All lengths are in `cl100k_base` tokens.
///
/// ```
/// use amplifier_session_core::content::ChunkSettings;
///
/// assert_eq!(ChunkSettings::for_limits(8192, 1024), ChunkSettings::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkSettings {
    /// Texts up to this length are one chunk.
    pub threshold_tokens: usize,
    /// The maximum length of a chunk of a longer text; at least 16.
    pub target_tokens: usize,
    /// The maximum overlap of a chunk with the previous one; at most a quarter of the target.
    pub overlap_tokens: usize,
    /// A chunk that would be shorter than this is merged with its neighbour or balanced with it; at most a quarter of
    /// the target.
    pub min_tokens: usize,
}

impl ChunkSettings {
    /// The settings for a model with other limits. The overlap is an eighth of the target, and the minimum a sixteenth.
    #[must_use]
    pub const fn for_limits(threshold_tokens: usize, target_tokens: usize) -> Self {
        Self {
            threshold_tokens,
            target_tokens,
            overlap_tokens: target_tokens / 8,
            min_tokens: target_tokens / 16,
        }
    }
}

impl Default for ChunkSettings {
    /// The settings for models that take 8,192 tokens.
    fn default() -> Self {
        Self::for_limits(8192, 1024)
    }
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The index among the chunks of the text, from 0.
    pub index: u32,
    /// The number of chunks of the text.
    pub total: u32,
    /// The first character, counted in the whole text.
    pub span_start: u32,
    /// One past the last character.
    pub span_end: u32,
    /// The length in `cl100k_base` tokens.
    pub token_count: u32,
    /// The characters `span_start..span_end`.
    pub text: &'a str,
}

/// Splits `text` into chunks.
///
/// - A text up to the threshold is one unchanged chunk. A blank text has no chunks.
/// - A longer text is cut at the best places for its content type. Assistant texts are Markdown: they are cut before
///   headings, between paragraphs and around code blocks, between list items, lines, sentences, words or characters.
///   Tool output is cut between lines first, and user queries between paragraphs and sentences.
/// - No chunk of a longer text exceeds the target. Chunks do not begin or end with white space. Code blocks that fit
///   into the target are never cut.
/// - Together, the chunks contain all text that is not blank. Each begins after the beginning of the previous one.
///
/// The time is linear in the length of the text.
#[must_use]
pub fn chunk<'a>(content_type: ContentType, text: &'a str, settings: &ChunkSettings) -> Vec<Chunk<'a>> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let pieces = match tokens::count_up_to(text, settings.threshold_tokens) {
        Some(tokens) => vec![pack::Packed { bytes: 0..text.len(), tokens }],
        None => cut(content_type, text, settings),
    };
    with_spans(text, &pieces)
}

fn cut(content_type: ContentType, text: &str, settings: &ChunkSettings) -> Vec<pack::Packed> {
    let target = settings.target_tokens.max(MIN_TARGET_TOKENS);
    let atoms = atoms::split(text, &lines::scan(content_type, text, target));
    let limits = pack::Limits {
        target,
        overlap: settings.overlap_tokens.min(target / 4),
        min: settings.min_tokens.min(target / 4),
    };
    pack::Packer::new(text, &atoms, limits).pack()
}

/// Adds the spans in characters. The pieces are ordered by their beginning.
fn with_spans<'a>(text: &'a str, pieces: &[pack::Packed]) -> Vec<Chunk<'a>> {
    let total = as_u32(pieces.len());
    let (mut byte, mut character) = (0, 0);
    let mut chunks = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        let skipped = text.part(byte..piece.bytes.start);
        let chunk_text = text.part(piece.bytes.clone());
        character += skipped.chars().count();
        byte = piece.bytes.start;
        chunks.push(Chunk {
            index: as_u32(index),
            total,
            span_start: as_u32(character),
            span_end: as_u32(character + chunk_text.chars().count()),
            token_count: as_u32(piece.tokens),
            text: chunk_text,
        });
    }
    chunks
}

/// Lines over 64 MB are rejected earlier.
fn as_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
