//! Texts in columns of the type `text`, which does not allow NUL.
//!
//! NUL is written as U+0001 U+0001, and U+0001 as U+0001 U+0002. Texts without these characters, which are practically
//! all, do not change. The byte order, equality and prefixes of texts are preserved.

use std::borrow::Cow;

const ESCAPE: char = '\u{1}';

/// The text as it is stored.
pub(crate) fn stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(ESCAPE, "\u{1}\u{2}").replace('\0', "\u{1}\u{1}"))
}

/// The original text of a stored one.
pub(crate) fn read(stored: &str) -> Cow<'_, str> {
    if !stored.contains(ESCAPE) {
        return Cow::Borrowed(stored);
    }
    let mut text = String::with_capacity(stored.len());
    let mut rest = stored.chars();
    while let Some(next) = rest.next() {
        text.push(match next {
            ESCAPE if rest.next() == Some(ESCAPE) => '\0',
            other => other,
        });
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_in_the_same_order() {
        let mut texts =
            ["", "a", "\0", "\u{1}", "\0\u{1}", "\u{1}\0", "\u{1}\u{1}", "\u{2}", "a\0b", "a\u{1}b", "ab"];
        texts.sort_unstable();
        let escaped = texts.map(stored);
        assert!(escaped.is_sorted() && escaped.iter().all(|text| !text.contains('\0')));
        for (text, stored) in texts.iter().zip(&escaped) {
            assert_eq!(read(stored), *text);
        }
    }
}
