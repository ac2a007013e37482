//! A cache of English stems.

use frostem::{Algorithm, Stemmer};

/// Longer words are not stemmed: they are identifiers or noise.
const MAX_STEMMED_BYTES: usize = 30;

/// Words up to this length fit into a number and are cached.
const KEY_BYTES: usize = 16;

/// The number of cache entries, a power of two. Words with the same hash share an entry; the last one is kept.
const PLACES: usize = 4096;

/// The stemmer with a cache. Most words of a text are among a few thousand, and stemming a word takes twenty times as
/// long as looking it up.
#[derive(Clone)]
pub(super) struct Stems {
    stemmer: Stemmer,
    /// The cache entries; empty before the first word.
    places: Vec<StemEntry>,
}

/// A cached word: its stem is its first `kept` bytes and `tail`.
#[derive(Clone, Copy, Default)]
struct StemEntry {
    word: u128,
    kept: u8,
    tail: Tail,
}

type Tail = [u8; 4];

impl Stems {
    pub(super) fn new() -> Self {
        Self { stemmer: Stemmer::new(Algorithm::English), places: Vec::new() }
    }

    /// Replaces a word of lower-case ASCII letters with its stem.
    pub(super) fn stem(&mut self, word: &mut String) {
        if word.len() > KEY_BYTES {
            if word.len() <= MAX_STEMMED_BYTES {
                let stem = self.stemmer.stem(word).into_owned();
                *word = stem;
            }
            return;
        }
        let key = key_of(word.as_bytes());
        if self.places.is_empty() {
            self.places.resize(PLACES, StemEntry::default());
        }
        let Some(place) = self.places.get_mut(index_of(key)) else { return };
        if place.word != key {
            let Some(new) = cached(key, word, &self.stemmer.stem(word)) else { return };
            *place = new;
        }
        word.truncate(usize::from(place.kept));
        place.tail.iter().take_while(|byte| **byte != 0).for_each(|byte| word.push(char::from(*byte)));
    }
}

fn key_of(word: &[u8]) -> u128 {
    let mut bytes = [0; KEY_BYTES];
    bytes.iter_mut().zip(word).for_each(|(to, from)| *to = *from);
    u128::from_le_bytes(bytes)
}

fn index_of(key: u128) -> usize {
    let mixed = (key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ ((key >> 64) as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    (mixed >> 40) as usize % PLACES
}

/// `None` if the stem differs more from the word than an entry can represent.
fn cached(key: u128, word: &str, stem: &str) -> Option<StemEntry> {
    let kept = word.bytes().zip(stem.bytes()).take_while(|(a, b)| a == b).count();
    let rest = stem.as_bytes().get(kept..)?;
    let mut tail = Tail::default();
    tail.get_mut(..rest.len())?.copy_from_slice(rest);
    Some(StemEntry { word: key, kept: u8::try_from(kept).ok()?, tail })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_stems_are_those_of_the_stemmer() {
        let stemmer = Stemmer::new(Algorithm::English);
        let mut stems = Stems::new();
        let words = "running ponies happy happily relational vectorization databases the conflicted \
                     generalizations skis dying news only internationalization a b is as hopping hoping";
        for word in words.split_whitespace().chain(words.split_whitespace()) {
            let mut stem = word.to_owned();
            stems.stem(&mut stem);
            assert_eq!(stem, stemmer.stem(word), "{word}");
        }
    }

    #[test]
    fn long_words_are_not_stemmed() {
        let mut word = "a".repeat(31);
        Stems::new().stem(&mut word);
        assert_eq!(word.len(), 31);
    }
}
