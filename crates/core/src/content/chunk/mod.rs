//! Cutting a long text into chunks that an embedding model takes.
//!
//! Three steps, each linear in the length of the text: [`atoms`] are the pieces that the tokenizer sees, so
//! that their token counts add up; [`lines`] says where lines, paragraphs, headings and code blocks begin, so
//! that every place between two atoms is a better or worse place to cut; [`pack`] fills chunks up to the target
//! and ends each at the best place in its second half.

mod atoms;
mod lines;
mod pack;
#[cfg(test)]
mod tests;

use super::tokens;
use crate::model::ContentType;

/// The least target: no character has more than four tokens, and a chunk holds at least one.
const LEAST_TARGET_TOKENS: usize = 16;

/// When and how texts are cut. All lengths are in `cl100k_base` tokens.
///
/// ```
/// use amplifier_session_core::content::ChunkSettings;
///
/// assert_eq!(ChunkSettings::for_limits(8192, 1024), ChunkSettings::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkSettings {
    /// Texts of at most this length stay whole.
    pub threshold_tokens: usize,
    /// No chunk of a longer text is longer than this; less than 16 counts as 16.
    pub target_tokens: usize,
    /// How much of a chunk the next one repeats, at most; more than a quarter of the target counts as that.
    pub overlap_tokens: usize,
    /// What would be a chunk shorter than this is joined to its neighbour, or shares with it; more than a
    /// quarter of the target counts as that.
    pub min_tokens: usize,
}

impl ChunkSettings {
    /// For a model with other limits: the overlap is an eighth of the target, the minimum a sixteenth.
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
    /// For models that take 8,192 tokens.
    fn default() -> Self {
        Self::for_limits(8192, 1024)
    }
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// 0-based position among the chunks of the text.
    pub index: u32,
    /// How many chunks the text has.
    pub total: u32,
    /// First character in the whole text.
    pub span_start: u32,
    /// One past the last character.
    pub span_end: u32,
    /// Length in `cl100k_base` tokens.
    pub token_count: u32,
    /// The characters `span_start..span_end`.
    pub text: &'a str,
}

/// Cuts `text` into chunks.
///
/// - A text up to the threshold is one chunk, exactly as it is; a blank text has none.
/// - Longer texts are cut at the best places for their type. Assistant texts, as Markdown: before headings,
///   between paragraphs and around code blocks, between list items, lines, sentences, words, characters. Tool
///   output: between lines first. User queries: between paragraphs and sentences first.
/// - No chunk of them is longer than the target; each begins and ends with something that is not blank; code
///   blocks of Markdown that fit in the target are never cut.
/// - Together the chunks hold all that is not blank; where each begins is past where the one before began.
///
/// Takes time linear in the length of the text.
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
    let target = settings.target_tokens.max(LEAST_TARGET_TOKENS);
    let atoms = atoms::split(text, &lines::scan(content_type, text, target));
    let limits = pack::Limits {
        target,
        overlap: settings.overlap_tokens.min(target / 4),
        min: settings.min_tokens.min(target / 4),
    };
    pack::Packer::new(text, &atoms, limits).pack()
}

/// Counts characters where the pieces begin and end. The pieces are in order of where they begin.
fn with_spans<'a>(text: &'a str, pieces: &[pack::Packed]) -> Vec<Chunk<'a>> {
    let total = as_u32(pieces.len());
    let (mut byte, mut character) = (0, 0);
    let mut chunks = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        let skipped = text.get(byte..piece.bytes.start).unwrap_or_default();
        let chunk_text = text.get(piece.bytes.clone()).unwrap_or_default();
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

/// Lines of 64 MB and more are refused before they get here.
fn as_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
