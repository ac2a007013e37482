//! The pieces into which `cl100k_base` splits a text before it encodes them.
//!
//! The encoding's regular expression matches, in order of preference: a contraction (`'s`), a word with one character
//! before it, up to three digits, punctuation with a space before it and line ends after it, white space up to a line
//! end, white space except its last character, white space. For ASCII, the code here decides it, several times as fast.
//! If another character matters, the expression itself is used.

use super::encoding::first_piece;

/// The pieces of `text`.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // A piece does not depend on the text before it.
        let end = ascii_piece(rest.as_bytes()).or_else(|| first_piece(rest))?;
        let (piece, remaining) = rest.split_at_checked(end).filter(|(piece, _)| !piece.is_empty())?;
        rest = remaining;
        Some(piece)
    })
}

/// The classes of characters that the expression distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceClass {
    Letter,
    Digit,
    LineEnd,
    /// White space other than line ends.
    Blank,
    /// Everything else in ASCII.
    Mark,
    /// Not ASCII.
    Unknown,
    /// The end of the text.
    End,
}

fn class(text: &[u8], at: usize) -> PieceClass {
    match text.get(at) {
        None => PieceClass::End,
        Some(b'a'..=b'z' | b'A'..=b'Z') => PieceClass::Letter,
        Some(b'0'..=b'9') => PieceClass::Digit,
        Some(b'\r' | b'\n') => PieceClass::LineEnd,
        Some(b'\t' | b'\x0b' | b'\x0c' | b' ') => PieceClass::Blank,
        Some(0x80..) => PieceClass::Unknown,
        Some(_) => PieceClass::Mark,
    }
}

/// The end of the run of characters for which `belongs` is true. `None` if a character that is not ASCII ends it,
/// because that may belong to the run.
fn run(text: &[u8], start: usize, belongs: impl Fn(PieceClass) -> bool) -> Option<usize> {
    let end = (start..).find(|at| !belongs(class(text, *at)))?;
    (class(text, end) != PieceClass::Unknown).then_some(end)
}

/// The length of the first piece, if it depends only on ASCII characters.
fn ascii_piece(text: &[u8]) -> Option<usize> {
    let (first, second) = (class(text, 0), class(text, 1));
    if text.first() == Some(&b'\'')
        && second == PieceClass::Letter
        && let Some(end) = contraction(text)
    {
        return Some(end);
    }
    match (first, second) {
        // The second character may be a letter or punctuation, which would join the first; `ſ` makes a contraction.
        (PieceClass::Blank | PieceClass::Mark, PieceClass::Unknown) => None,
        (PieceClass::Letter, _) | (PieceClass::Blank | PieceClass::Mark, PieceClass::Letter) => {
            run(text, 1, |class| class == PieceClass::Letter)
        }
        (PieceClass::Digit, _) => {
            let end = (1..3).find(|at| class(text, *at) != PieceClass::Digit).unwrap_or(3);
            (end == 3 || class(text, end) != PieceClass::Unknown).then_some(end)
        }
        (PieceClass::Mark, _) => punctuation(text, 0),
        (PieceClass::Blank, PieceClass::Mark) if text.first() == Some(&b' ') => punctuation(text, 1),
        (PieceClass::Blank | PieceClass::LineEnd, _) => white_space(text),
        (PieceClass::Unknown | PieceClass::End, _) => None,
    }
}

/// The length of a contraction at the beginning: `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll`, `'d`.
fn contraction(text: &[u8]) -> Option<usize> {
    let letter = |at: usize| text.get(at).map(u8::to_ascii_lowercase);
    match (letter(1)?, letter(2)) {
        (b's' | b't' | b'm' | b'd', _) => Some(2),
        (b'r' | b'v', Some(b'e')) | (b'l', Some(b'l')) => Some(3),
        _ => None,
    }
}

/// The end of punctuation from `start` on and of the line ends after it.
fn punctuation(text: &[u8], start: usize) -> Option<usize> {
    let end = run(text, start, |class| class == PieceClass::Mark)?;
    (end..).find(|at| class(text, *at) != PieceClass::LineEnd)
}

/// The end of white space: after the last line end in it, or all of it at the end of the text, or else all but one
/// character.
fn white_space(text: &[u8]) -> Option<usize> {
    let end = run(text, 0, |class| matches!(class, PieceClass::Blank | PieceClass::LineEnd))?;
    let line_end = text.get(..end)?.iter().rposition(|byte| matches!(byte, b'\r' | b'\n'));
    Some(match line_end {
        Some(last) => last + 1,
        None if end == text.len() => end,
        None => (end - 1).max(1),
    })
}

#[cfg(test)]
mod tests {
    use bpe_openai::cl100k_base;
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str) {
        let expected: Vec<&str> = cl100k_base().split(text).collect();
        assert_eq!(pieces(text).collect::<Vec<_>>(), expected, "{text:?}");
    }

    #[test]
    fn ascii_pieces_are_found_without_the_expression() {
        for text in ["word", " word", "(x", "'s", "1234", " ({[", "  \n\t ", "   x", " ", "\0"] {
            assert!(ascii_piece(text.as_bytes()).is_some(), "{text:?}");
            check(text);
        }
        assert_eq!(ascii_piece("caf\u{e9}".as_bytes()), None);
    }

    #[test]
    fn all_short_texts_are_split_like_the_expression() {
        let characters =
            ['a', 'S', '7', ' ', '\t', '\n', '\r', '\'', '(', '\u{17f}', '\u{e9}', '\u{a0}', '中', '٣'];
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            texts = texts.iter().flat_map(|text| characters.map(|c| format!("{text}{c}"))).collect();
            texts.iter().for_each(|text| check(text));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_split_like_the_expression(text in "([a-zA-Z' ]|[ -~\t\r\n]|\\PC|[ 'srevl\r\n]|[é中\u{a0}\u{17f}'])*") {
            check(&text);
        }
    }
}
