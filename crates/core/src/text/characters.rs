//! Character classes for the analysis, and case and accent folding.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// The class of a UTF-8 byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Byte {
    Letter,
    Digit,
    Separator,
    /// Part of a non-ASCII character.
    Wide,
}

impl Byte {
    pub(super) fn of(byte: u8) -> Self {
        CLASSES[usize::from(byte)]
    }

    /// Whether it belongs to an ASCII word. One comparison: a jump for each class would often be predicted wrong.
    pub(super) fn is_word(self) -> bool {
        matches!(self, Self::Letter | Self::Digit)
    }
}

/// A table for every byte of every text, which is several times faster than comparisons.
static CLASSES: [Byte; 256] = {
    let mut classes = [Byte::Separator; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Byte::Letter,
            b'0'..=b'9' => Byte::Digit,
            0x80.. => Byte::Wide,
            _ => Byte::Separator,
        };
        byte += 1;
    }
    classes
};

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Separator,
    /// Part of a word.
    Word,
    /// Belongs to the previous character: a combining mark, a variation selector, an invisible joiner, a skin tone.
    Mark,
    /// Of a script in which a word is found by its parts: Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese.
    Unspaced,
    /// A word of its own.
    Emoji,
}

impl Class {
    pub(super) fn of(c: char) -> Self {
        if c.is_ascii() {
            return if c.is_ascii_alphanumeric() { Self::Word } else { Self::Separator };
        }
        if is_mark(c) {
            Self::Mark
        } else if is_cjk(c) || is_south_east_asian(c) {
            Self::Unspaced
        } else if is_emoji(c) {
            Self::Emoji
        } else if c.is_alphanumeric() {
            Self::Word
        } else {
            Self::Separator
        }
    }
}

pub(super) fn is_mark(c: char) -> bool {
    // Soft hyphen and joiners; half-width Japanese voice marks, and the vowels and last consonants of Korean syllables,
    // which are letters in Unicode; skin tones.
    matches!(u32::from(c),
        0xAD | 0x200C | 0x200D | 0x2060
        | 0xFF9E | 0xFF9F
        | 0x1160..=0x11FF | 0xD7B0..=0xD7FB
        | 0x1F3FB..=0x1F3FF)
        || is_combining_mark(c)
}

/// The blocks that hold the emoji. Source: the property `Extended_Pictographic` of Unicode's `emoji-data.txt`. Letters
/// and digits in these blocks, such as 🅰, are not excluded: they are emoji too.
fn is_emoji(c: char) -> bool {
    matches!(u32::from(c),
        0x231A..=0x23FF           // watches, media controls
        | 0x2600..=0x27BF         // symbols and dingbats
        | 0x2B1B..=0x2B55         // squares, stars, circles
        | 0x1F000..=0x1FAFF)
}

/// Chinese characters, kana, and Korean syllables.
fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x115F           // first consonants of decomposed syllables
        | 0xA960..=0xA97C         // more of them
        | 0xAC00..=0xD7A3         // syllables
        | 0x3005..=0x3007         // 々 〆 〇
        | 0x3040..=0x30FF         // kana
        | 0x31F0..=0x31FF         // kana for Ainu
        | 0x3400..=0x4DBF         // extension A
        | 0x4E00..=0x9FFF         // the main block
        | 0xF900..=0xFAFF         // compatibility ideographs
        | 0xFF66..=0xFF9D         // half-width kana
        | 0x1B000..=0x1B16F       // more kana
        | 0x20000..=0x3FFFF) // extensions B and later
        && c.is_alphanumeric()
}

/// Letters of Thai, Lao, Khmer and Burmese, which have no spaces between words. Their digits form numbers.
pub(crate) fn is_south_east_asian(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0E7F           // Thai
        | 0x0E80..=0x0EFF         // Lao
        | 0x1000..=0x109F         // Burmese
        | 0xA9E0..=0xA9FF         // more of it
        | 0xAA60..=0xAA7F         // and for Khamti Shan
        | 0x1780..=0x17FF) // Khmer
        && c.is_alphabetic()
        && !is_mark(c)
}

/// Writes `word` to `folded` in lower case and without accents.
///
/// Compatibility forms become ordinary ones. Accents of European scripts and vowel points of Hebrew and Arabic are
/// removed. Letters without a decomposition become what people type instead. Marks that change the meaning of a word
/// (in kana and the scripts of India) stay.
pub(super) fn fold(word: &str, folded: &mut String) {
    folded.clear();
    if word.chars().all(is_plain_cjk) {
        folded.push_str(word);
        return;
    }
    if let Some(emoji) = word.chars().next().filter(|first| is_emoji(*first)) {
        folded.push(emoji);
        return;
    }
    let plain = word.nfkd().filter(|c| !is_accent(*c) && Class::of(*c) != Class::Separator);
    let lower = plain.flat_map(char::to_lowercase).filter(|c| !is_accent(*c));
    for c in lower.nfc() {
        match spelled_out(c) {
            Some(letters) => folded.push_str(letters),
            None => folded.push(c),
        }
    }
}

/// A Chinese character or a Korean syllable of the main blocks, which has only one form.
fn is_plain_cjk(c: char) -> bool {
    matches!(u32::from(c), 0x4E00..=0x9FFF | 0xAC00..=0xD7A3)
}

/// Marks that searches ignore.
fn is_accent(c: char) -> bool {
    matches!(u32::from(c),
        0x300..=0x36F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF | 0xFE20..=0xFE2F // combining
        | 0x483..=0x489                                         // Cyrillic
        | 0x591..=0x5C7                                         // Hebrew points
        | 0x610..=0x61A | 0x64B..=0x65F | 0x670 | 0x6D6..=0x6ED // Arabic points
        | 0xFE00..=0xFE0F | 0xE0100..=0xE01EF                   // variation selectors
        | 0xAD | 0x200C | 0x200D | 0x2060) // soft hyphen, joiners
}

fn spelled_out(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ŋ' => "n",
        'ŧ' => "t",
        'ς' => "σ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(word: &str) -> String {
        let mut folded = String::new();
        fold(word, &mut folded);
        folded
    }

    #[test]
    fn words_are_folded() {
        for (word, expected) in [
            ("Café", "cafe"),
            ("cafe\u{301}", "cafe"),
            ("Ångström", "angstrom"),
            ("Ещё", "еще"),
            ("Ἀθῆναι", "αθηναι"),
            // Points of Hebrew and Arabic.
            ("שָׁלוֹם", "שלום"),
            ("مُحَمَّد", "محمد"),
            // Letters without decomposition are spelled out.
            ("Straße", "strasse"),
            ("STRAẞE", "strasse"),
            ("Łódź", "lodz"),
            ("Ærøskøbing", "aeroskobing"),
            ("Œuvre", "oeuvre"),
            ("İstanbul", "istanbul"),
            // Compatibility forms become ordinary.
            ("ＡＢＣ１", "abc1"),
            ("ﬁle", "file"),
            ("ｶﾞ", "ガ"),
            ("co\u{AD}op", "coop"),
            // Marks that change the meaning stay.
            ("が", "が"),
            ("कि", "कि"),
            ("한국", "한국"),
        ] {
            assert_eq!(folded(word), expected, "{word}");
        }
        assert_eq!(folded("ΛΌΓΟΣ"), folded("λόγος"));
        assert_eq!(folded("सड़क"), folded("सड\u{93C}क"));
    }
}
