//! Stored rows that stay although the lines of a damaged file do not contain them.

use std::collections::HashMap;

use super::SessionIngest;
use crate::model::{Digest, RawJson};

/// The stored rows from a damaged place of a file on. None of them is replaced or removed: a line that comes later is
/// one of them, or new and stored after all of them.
#[derive(Debug)]
pub(super) struct KeptRows {
    /// Where each digest is stored, in ascending order.
    places: HashMap<Digest, Vec<u32>>,
    /// The place from which on the next line may be found.
    next: u32,
    missing: u32,
}

impl KeptRows {
    /// `digests` are those of the rows from `first` on.
    pub(super) fn new(first: u32, digests: impl Iterator<Item = Digest>) -> Self {
        let mut places: HashMap<Digest, Vec<u32>> = HashMap::new();
        let mut missing = 0;
        for (place, digest) in (first..).zip(digests) {
            places.entry(digest).or_default().push(place);
            missing += 1;
        }
        Self { places, next: first, missing }
    }

    /// Whether a line is a kept row after those that were found before.
    pub(super) fn finds(&mut self, digest: Digest) -> bool {
        let next = self.next;
        let places = self.places.get(&digest).map(Vec::as_slice).unwrap_or_default();
        let Some(place) = places.get(places.partition_point(|place| *place < next)) else { return false };
        self.next = place + 1;
        self.missing -= 1;
        true
    }

    /// How many of the rows were not found.
    pub(super) fn missing(&self) -> u32 {
        self.missing
    }
}

/// What to do where a file is damaged. Lines from there on can't be told by their number any more, and what is gone
/// from the file was not taken out of it on purpose.
impl SessionIngest {
    /// Keeps every stored message from the next line on. Lines that follow are found among them by their text, or
    /// stored after the last.
    pub fn keep_stored_messages(&mut self) {
        self.messages.keep_stored();
    }

    /// How many stored messages the lines so far do not contain.
    #[must_use]
    pub fn missing_messages(&self) -> u32 {
        self.messages.missing()
    }

    /// Whether `line`, as the last one, would take the place of another stored message than the last.
    #[must_use]
    pub fn cuts_off_messages(&self, line: &RawJson) -> bool {
        self.messages.cuts_off(Digest::of(line.as_bytes()))
    }

    /// Whether `line`, as the first one, is not the first stored message.
    #[must_use]
    pub fn begins_other_messages(&self, line: &RawJson) -> bool {
        self.messages.begins_otherwise(Digest::of(line.as_bytes()))
    }

    /// Keeps every stored event from the next line on, as [`SessionIngest::keep_stored_messages`] does messages.
    pub fn keep_stored_events(&mut self) {
        self.events.keep_stored();
    }

    /// How many stored events the lines so far do not contain.
    #[must_use]
    pub fn missing_events(&self) -> u32 {
        self.events.missing()
    }

    /// Whether `line`, as the first one, is not the first stored event.
    #[must_use]
    pub fn begins_other_events(&self, line: &RawJson) -> bool {
        self.events.begins_otherwise(Digest::of(line.as_bytes()))
    }

    /// Whether `line`, as the last one, would take the place of another stored event than the last.
    #[must_use]
    pub fn cuts_off_events(&self, line: &RawJson) -> bool {
        self.events.cuts_off(Digest::of(line.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    #[test]
    fn rows_are_found_in_their_order() {
        let mut kept = KeptRows::new(3, ["a", "ok", "b", "ok", "c"].map(digest).into_iter());
        assert!(kept.finds(digest("ok")) && kept.finds(digest("ok")));
        assert!(!kept.finds(digest("b")), "it lies before the second `ok`");
        assert!(!kept.finds(digest("ok")) && kept.finds(digest("c")));
        assert_eq!(kept.missing(), 2);
    }
}
