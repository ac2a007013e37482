//! The pieces of a text that are never cut.
//!
//! `cl100k_base` splits a text into words, numbers of up to three digits, and runs of punctuation and white space, and
//! encodes each separately. So token counts of these pieces add up if a text is cut between them, which is also where
//! natural places to cut are. A long piece (a very long word, or a paragraph in Chinese) is cut at the end of one of
//! its tokens: in a byte-pair encoding, any run of tokens is the encoding of its bytes, so counts still add up.

use std::{ops::Range, sync::Arc};

use bpe::byte_pair_encoding::BytePairEncoding;

use super::lines::{CutQuality, Lines};
use crate::content::{encoding::cl100k, pieces::pieces, tokens};

/// A longer piece is cut into parts of this many tokens, or up to twice as many if tokens end within characters.
const PART_TOKENS: usize = 4;

/// A piece of a text that is never cut. It ends where the next one starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atom {
    /// The first byte.
    pub start: usize,
    /// The number of tokens before it.
    pub tokens_before: usize,
    /// The quality of a cut just before it.
    pub cut: CutQuality,
    /// Whether it is only white space.
    pub blank: bool,
}

/// Splits `text` into atoms. The last one is empty, at the end.
pub(super) fn split(text: &str, lines: &Lines) -> Vec<Atom> {
    let mut splitter = Splitter {
        text,
        encoding: cl100k(),
        starts: &lines.starts,
        whole: &lines.whole,
        atoms: Vec::with_capacity(text.len() / 4),
        at: 0,
        tokens: 0,
    };
    for piece in pieces(text) {
        splitter.push_piece(piece);
    }
    splitter.finish()
}

struct Splitter<'a> {
    text: &'a str,
    encoding: Arc<BytePairEncoding>,
    starts: &'a [(usize, CutQuality)],
    whole: &'a [Range<usize>],
    atoms: Vec<Atom>,
    at: usize,
    tokens: usize,
}

impl Splitter<'_> {
    fn push_piece(&mut self, piece: &str) {
        // `。` is in one piece with the following sentence, but the place to cut is between them.
        let stop = piece.chars().next().filter(|c| is_wide_stop(*c)).map_or(0, char::len_utf8);
        let (stop, rest) = piece.split_at_checked(stop).unwrap_or(("", piece));
        self.push_encoded(stop);
        self.push_encoded(rest);
    }

    fn push_encoded(&mut self, piece: &str) {
        let count = tokens::count_piece(piece);
        if count <= 2 * PART_TOKENS {
            self.push(piece.len(), count);
        } else if let Some(parts) = self.cut_by_tokens(piece) {
            parts.into_iter().for_each(|(bytes, tokens)| self.push(bytes, tokens));
        } else {
            self.push_by_characters(piece);
        }
    }

    /// The lengths of the parts in bytes and tokens; `None` if tokens rarely end at characters.
    fn cut_by_tokens(&self, piece: &str) -> Option<Vec<(usize, usize)>> {
        let tokens = self.encoding.encode_via_backtracking(piece.as_bytes());
        let mut parts = Vec::with_capacity(tokens.len() / PART_TOKENS + 1);
        let (mut start, mut end, mut count) = (0, 0, 0);
        for token in tokens {
            end += self.encoding.token_len(token);
            count += 1;
            if count >= PART_TOKENS && piece.is_char_boundary(end) {
                parts.push((end - start, count));
                (start, count) = (end, 0);
            } else if count >= 2 * PART_TOKENS {
                return None;
            }
        }
        if count > 0 {
            parts.push((end - start, count));
        }
        Some(parts)
    }

    /// Four characters have at most 16 bytes and therefore at most 16 tokens, which fit into every chunk.
    fn push_by_characters(&mut self, piece: &str) {
        let mut rest = piece;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(4).map_or(rest.len(), |(end, _)| end);
            let (part, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
            self.push(part.len(), tokens::count_piece(part));
            rest = tail;
        }
    }

    fn push(&mut self, bytes: usize, tokens: usize) {
        if bytes == 0 {
            return;
        }
        let (before, after) = self.text.split_at_checked(self.at).unwrap_or((self.text, ""));
        let blank = after.get(..bytes).is_some_and(|atom| atom.trim().is_empty());
        let cut = self.cut_here(before, after);
        self.atoms.push(Atom { start: self.at, tokens_before: self.tokens, cut, blank });
        self.at += bytes;
        self.tokens += tokens;
    }

    fn cut_here(&mut self, before: &str, after: &str) -> CutQuality {
        let mut line = None;
        while let Some(((start, cut), rest)) = self.starts.split_first()
            && *start <= self.at
        {
            line = Some(*cut);
            self.starts = rest;
        }
        while let Some((block, rest)) = self.whole.split_first()
            && block.end <= self.at
        {
            self.whole = rest;
        }
        match self.whole.first() {
            Some(block) if block.start < self.at => CutQuality::Never,
            _ => line.unwrap_or_else(|| cut_between(before, after)),
        }
    }

    fn finish(mut self) -> Vec<Atom> {
        self.atoms.push(Atom {
            start: self.at,
            tokens_before: self.tokens,
            cut: CutQuality::End,
            blank: false,
        });
        self.atoms
    }
}

/// The quality of a cut within a line.
fn cut_between(before: &str, after: &str) -> CutQuality {
    // Runs of white space and brackets can be long: scanning all of them at each atom would not be linear.
    const LOOK: usize = 8;
    let spaced = before.ends_with(char::is_whitespace) || after.starts_with(char::is_whitespace);
    let last = before.chars().rev().take(LOOK).find(|c| !c.is_whitespace() && !is_closing(*c));
    let stopped = last.is_some_and(|c| is_wide_stop(c) || (spaced && matches!(c, '.' | '!' | '?' | '…')));
    let next = after.chars().take(LOOK).find(|c| !c.is_whitespace());
    // "e.g. this" is one sentence.
    if stopped && !next.is_some_and(char::is_lowercase) {
        CutQuality::Sentence
    } else if spaced {
        CutQuality::Word
    } else {
        CutQuality::Character
    }
}

fn is_wide_stop(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '．' | '｡')
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '}' | '*' | '_' | '”' | '’' | '»' | '」' | '』' | '）')
}
