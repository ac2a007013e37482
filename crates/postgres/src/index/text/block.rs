//! The form of a block: lists of texts in increasing order, as the differences between neighbours.

use std::borrow::Cow;

use amplifier_session_core::{
    Result,
    model::{ContentType, Digest},
};
use amplifier_session_sql::damaged;

/// The name of a text: the key of its message, then its content type in the last three bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TextKey(u64);

impl TextKey {
    const TYPE_BITS: u32 = 3;

    /// The text with this content type of the message with this key, which is not negative.
    pub(super) fn new(key: i64, content_type: ContentType) -> Self {
        Self(key.unsigned_abs() << Self::TYPE_BITS | u64::from(content_type.code()))
    }

    /// The key of its message.
    pub(super) fn key(self) -> i64 {
        (self.0 >> Self::TYPE_BITS).cast_signed()
    }

    /// Its content type.
    pub(super) fn content_type(self) -> Option<ContentType> {
        let code = usize::try_from(self.0 & ((1 << Self::TYPE_BITS) - 1)).ok()?;
        ContentType::ALL.get(code).copied()
    }
}

/// A text that contains a term.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Posting {
    /// The text.
    pub(super) text: TextKey,
    /// How often it contains the term.
    pub(super) frequency: u32,
    /// Its [stored length](amplifier_session_core::text::bm25::stored_length).
    pub(super) length: u32,
    /// The places of the term in the text; empty if they are unknown, or were not read.
    pub(super) places: Vec<u32>,
}

/// The bytes of postings, which are in increasing order.
pub(super) fn encode_postings(postings: &[Posting]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::with_capacity(4 * postings.len()), 0);
    for posting in postings {
        put(&mut bytes, posting.text.0 - last);
        put(&mut bytes, posting.frequency.into());
        put(&mut bytes, posting.length.into());
        last = posting.text.0;
    }
    bytes
}

/// The bytes of the places of postings, in the same order: for each one, its first place plus 1 and the differences of
/// the others, or 0 if its places are unknown.
pub(super) fn encode_places(postings: &[Posting]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for posting in postings {
        let Some((first, rest)) = posting.places.split_first() else {
            bytes.push(0);
            continue;
        };
        put(&mut bytes, u64::from(*first) + 1);
        let mut last = *first;
        for place in rest {
            put(&mut bytes, place.saturating_sub(last).into());
            last = *place;
        }
    }
    bytes
}

/// The postings of [`encode_postings`], with the places of [`encode_places`] unless those are empty.
pub(super) fn decode_postings(bytes: &[u8], places: &[u8]) -> Result<Vec<Posting>> {
    let mut postings = Vec::with_capacity(bytes.len() / 3);
    for posting in PostingsReader::of(bytes, places) {
        postings.push(posting?);
    }
    Ok(postings)
}

/// The postings of [`encode_postings`], one after the other, with the places of [`encode_places`] unless those are empty.
#[derive(Debug)]
pub(super) struct PostingsReader<'a> {
    bytes: &'a [u8],
    places: Option<&'a [u8]>,
    last: u64,
}

impl<'a> PostingsReader<'a> {
    pub(super) fn of(bytes: &'a [u8], places: &'a [u8]) -> Self {
        Self { bytes, places: Some(places).filter(|places| !places.is_empty()), last: 0 }
    }

    fn take(&mut self) -> Result<Posting> {
        self.last = self.last.saturating_add(take(&mut self.bytes)?);
        let (frequency, length) = (take_small(&mut self.bytes)?, take_small(&mut self.bytes)?);
        let places = match &mut self.places {
            Some(bytes) => take_places(bytes, frequency)?,
            None => Vec::new(),
        };
        Ok(Posting { text: TextKey(self.last), frequency, length, places })
    }
}

/// The places of a posting with this frequency.
fn take_places(bytes: &mut &[u8], frequency: u32) -> Result<Vec<u32>> {
    let Some(mut place) = take_small(bytes)?.checked_sub(1) else { return Ok(Vec::new()) };
    // A damaged frequency may be any number.
    let mut places = Vec::with_capacity(bytes.len().min(frequency as usize));
    places.push(place);
    for _ in 1..frequency {
        place = place.saturating_add(take_small(bytes)?);
        places.push(place);
    }
    Ok(places)
}

impl Iterator for PostingsReader<'_> {
    type Item = Result<Posting>;

    fn next(&mut self) -> Option<Result<Posting>> {
        if self.bytes.is_empty() { None } else { Some(self.take()) }
    }
}

/// The bytes of texts with their stored lengths, which are in increasing order.
pub(super) fn encode_texts(texts: &[(TextKey, u32)]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::with_capacity(3 * texts.len()), 0);
    for (text, length) in texts {
        put(&mut bytes, text.0 - last);
        put(&mut bytes, (*length).into());
        last = text.0;
    }
    bytes
}

/// The texts of [`encode_texts`].
pub(super) fn decode_texts(mut bytes: &[u8]) -> Result<Vec<(TextKey, u32)>> {
    let (mut texts, mut last) = (Vec::with_capacity(bytes.len() / 2), 0_u64);
    while !bytes.is_empty() {
        last = last.saturating_add(take(&mut bytes)?);
        texts.push((TextKey(last), take_small(&mut bytes)?));
    }
    Ok(texts)
}

/// Seven bits in each byte, the lowest first; the eighth says that more follow.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Result<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or_else(|| damaged("block of texts"))?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(damaged("block of texts"))
}

fn take_small(bytes: &mut &[u8]) -> Result<u32> {
    u32::try_from(take(bytes)?).map_err(|_| damaged("block of texts"))
}

/// Terms with more bytes are shortened: an entry of an index of PostgreSQL has at most 2,700 bytes.
const LONGEST: usize = 500;

/// What shortened terms contain, and no other term does.
const SHORTENED: char = '#';

/// The term as it is stored: a long one is its beginning with the digest of all of it.
pub(super) fn stored_term(term: &str) -> Cow<'_, str> {
    if term.len() <= LONGEST {
        return Cow::Borrowed(term);
    }
    let beginning: String = term.chars().take(LONGEST / char::MAX.len_utf8()).collect();
    let digest: String = Digest::of(term.as_bytes()).0.iter().map(|byte| format!("{byte:02x}")).collect();
    Cow::Owned(format!("{beginning}{SHORTENED}{digest}"))
}

/// Whether a stored term is not the whole term.
pub(super) fn is_shortened(stored: &str) -> bool {
    stored.contains(SHORTENED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back() {
        let ids = [1, 2, 300, 1 << 40].map(|key| TextKey::new(key, ContentType::ToolOutput));
        let mut postings: Vec<Posting> = ids
            .iter()
            .map(|text| Posting { text: *text, frequency: 3, length: 70_000, places: vec![0, 9, 70_000] })
            .collect();
        postings[1].places.clear();
        let (data, places) = (encode_postings(&postings), encode_places(&postings));
        assert_eq!(decode_postings(&data, &places).unwrap(), postings);
        postings.iter_mut().for_each(|posting| posting.places.clear());
        assert_eq!(decode_postings(&data, &[]).unwrap(), postings);
        assert!(decode_postings(&data, &places[..3]).is_err());
        let texts: Vec<(TextKey, u32)> = ids.iter().map(|text| (*text, 8)).collect();
        assert_eq!(decode_texts(&encode_texts(&texts)).unwrap(), texts);
        assert_eq!((ids[2].key(), ids[2].content_type()), (300, Some(ContentType::ToolOutput)));
        assert!(decode_postings(&[0x80], &[]).is_err() && decode_texts(&[1]).is_err());
    }

    #[test]
    fn long_terms_are_shortened() {
        let long = "ä".repeat(1_000);
        assert_eq!(stored_term("short"), "short");
        assert!(stored_term(&long).len() < 600 && is_shortened(&stored_term(&long)));
        assert_ne!(stored_term(&long), stored_term(&format!("{long}x")));
    }
}
