//! A compact set of tool calls.

use serde::{Deserialize, Serialize};

use super::line::{CallId, LineTime, Part};

/// The smallest set, in bits.
const FEWEST_BITS: usize = 1024;
/// The largest set, in bits.
const MOST_BITS: usize = 1 << 18;
/// Bits for each call when the set is made, and when it is full.
const BITS_EACH: [usize; 2] = [16, 10];
/// The number of bits that a call sets.
const HASHES: usize = 4;

/// Tool calls, by their ids. A Bloom filter: it may contain calls that were not added, but never lacks one that was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Seen {
    bytes: Vec<u8>,
    count: u32,
}

/// The tool calls on whose events the time of a message depends.
pub(super) fn calls_of(line: &LineTime) -> &[CallId] {
    match &line.part {
        Part::Answer(ids) | Part::Results(ids) => ids,
        Part::Prompt(_) | Part::Continuation | Part::Other => &[],
    }
}

impl Seen {
    /// An empty set with room for more than `count` calls; `None` if that is too large.
    pub(super) fn with_room(count: usize) -> Option<Self> {
        let bits = count.checked_mul(BITS_EACH[0])?.max(FEWEST_BITS).next_power_of_two();
        (bits <= MOST_BITS).then(|| Self { bytes: vec![0; bits / 8], count: 0 })
    }

    /// Adds a call. Returns `false` if there is no room left.
    pub(super) fn add(&mut self, call: CallId) -> bool {
        if !self.contains(call) {
            for (byte, mask) in self.places(call) {
                if let Some(byte) = self.bytes.get_mut(byte) {
                    *byte |= mask;
                }
            }
            self.count += 1;
        }
        self.count as usize * BITS_EACH[1] <= self.bytes.len() * 8
    }

    /// Whether a call may have been added.
    pub(super) fn contains(&self, call: CallId) -> bool {
        self.places(call)
            .into_iter()
            .all(|(byte, mask)| self.bytes.get(byte).is_some_and(|byte| byte & mask != 0))
    }

    /// Index of a byte, and mask of a bit in it.
    fn places(&self, call: CallId) -> [(usize, u8); HASHES] {
        let bits = (self.bytes.len() * 8).max(1);
        let mut hash = u128::from_be_bytes(call.0);
        [(); HASHES].map(|()| {
            hash = hash.rotate_left(32).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            let bit = (hash >> 64) as usize % bits;
            (bit / 8, 1 << (bit % 8))
        })
    }
}

impl From<Seen> for String {
    fn from(seen: Seen) -> Self {
        use std::fmt::Write as _;
        seen.bytes.iter().fold(format!("{}:", seen.count), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl TryFrom<String> for Seen {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const INVALID: &str = "not a set of calls";
        let (count, digits) = text.split_once(':').ok_or(INVALID)?;
        let value = |digit: u8| char::from(digit).to_digit(16).ok_or(INVALID);
        let byte = |pair: &[u8]| match pair {
            [high, low] => Ok((value(*high)? << 4 | value(*low)?) as u8),
            _ => Err(INVALID),
        };
        let bytes = digits.as_bytes().chunks(2).map(byte).collect::<Result<_, _>>()?;
        Ok(Self { bytes, count: count.parse().map_err(|_| INVALID)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Digest;

    fn call(n: u32) -> CallId {
        Digest::of(&n.to_be_bytes())
    }

    #[test]
    fn calls_are_found_again_and_few_others() {
        let mut seen = Seen::with_room(1_000).unwrap();
        assert!((0..1_500).all(|n| seen.add(call(n))));
        let text = String::from(seen.clone());
        assert_eq!(Seen::try_from(text).unwrap(), seen);
        assert!((0..1_500).all(|n| seen.contains(call(n))));
        let wrong = (2_000..12_000).filter(|n| seen.contains(call(*n))).count();
        assert!(wrong < 200, "{wrong} of 10,000");
        assert!(!(2_000..9_000).all(|n| seen.add(call(n))), "it is full");
        assert!(Seen::with_room(1_000_000).is_none());
    }
}
