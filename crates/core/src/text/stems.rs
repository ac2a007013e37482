//! English stems, remembered.

use frostem::{Algorithm, Stemmer};

/// Longer words stay as they are: they are identifiers or noise.
const MAX_STEMMED_BYTES: usize = 30;

/// Words up to this length fit in a number and are remembered.
const KEY_BYTES: usize = 16;

/// A power of two: words share places by their hash, the last one stays.
const PLACES: usize = 4096;

/// The stemmer with a memory: of all words of a text most are among a few thousand, and stemming one takes
/// twenty times as long as looking it up.
#[derive(Clone)]
pub(super) struct Stems {
    stemmer: Stemmer,
    /// Empty until the first word.
    places: Vec<Place>,
}

/// One remembered word: its stem is its first `kept` bytes and `tail`.
#[derive(Clone, Copy, Default)]
struct Place {
    word: u128,
    kept: u8,
    tail: Tail,
}

type Tail = [u8; 4];

impl Stems {
    pub(super) fn new() -> Self {
        Self { stemmer: Stemmer::new(Algorithm::English), places: Vec::new() }
    }

    /// Replaces a word of lower-case ASCII letters by its stem.
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
            self.places.resize(PLACES, Place::default());
        }
        let Some(place) = self.places.get_mut(index_of(key)) else { return };
        if place.word != key {
            let Some(new) = remembered(key, word, &self.stemmer.stem(word)) else { return };
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

/// `None` if the stem is further from the word than a place can hold.
fn remembered(key: u128, word: &str, stem: &str) -> Option<Place> {
    let kept = word.bytes().zip(stem.bytes()).take_while(|(a, b)| a == b).count();
    let rest = stem.as_bytes().get(kept..)?;
    let mut tail = Tail::default();
    tail.get_mut(..rest.len())?.copy_from_slice(rest);
    Some(Place { word: key, kept: u8::try_from(kept).ok()?, tail })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_stem_is_the_stemmers() {
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
    fn long_words_stay() {
        let mut word = "a".repeat(31);
        Stems::new().stem(&mut word);
        assert_eq!(word.len(), 31);
    }
}
