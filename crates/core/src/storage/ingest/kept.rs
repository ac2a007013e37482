//! Stored rows that are kept although a damaged file no longer contains them.

use std::collections::HashMap;

use super::SessionIngest;
use crate::model::{Digest, LineKind};

/// The stored rows from the damaged part of a file on. Rows are neither replaced nor removed: a later line is either
/// one of them, or new and stored after all of them.
#[derive(Debug)]
pub(super) struct KeptRows {
    /// The sequences with each digest that were not found yet, in ascending order.
    places: HashMap<Digest, Vec<u32>>,
    /// The sequence from which the next line is looked for first.
    next: u32,
    missing: u32,
}

impl KeptRows {
    /// `digests` are the digests of the rows from `first` on.
    pub(super) fn new(first: u32, digests: impl Iterator<Item = Digest>) -> Self {
        let mut places: HashMap<Digest, Vec<u32>> = HashMap::new();
        let mut missing = 0;
        for (place, digest) in (first..).zip(digests) {
            places.entry(digest).or_default().push(place);
            missing += 1;
        }
        Self { places, next: first, missing }
    }

    /// Whether a line is one of the kept rows. Each row is found once. If several rows have the text of the line, it is the
    /// next one after the row found before; rows that were stored after the damage may be in another order than their
    /// lines.
    pub(super) fn finds(&mut self, digest: Digest) -> bool {
        let Some(places) = self.places.get_mut(&digest).filter(|places| !places.is_empty()) else {
            return false;
        };
        let after = places.partition_point(|place| *place < self.next);
        let place = places.remove(if after < places.len() { after } else { 0 });
        self.next = place + 1;
        self.missing -= 1;
        true
    }

    /// The number of rows that were not found.
    pub(super) fn missing(&self) -> u32 {
        self.missing
    }
}

/// What to do if a file is damaged. After the damage, lines can't be identified by their number, and missing lines were
/// not removed on purpose.
impl SessionIngest {
    /// Keeps all stored rows of a kind from the next line on. Later lines are matched with them by their text, or stored
    /// after the last one.
    pub fn keep_stored(&mut self, kind: LineKind) {
        match kind {
            LineKind::Message => self.messages.keep_stored(&mut self.writer.derived),
            LineKind::Event => _ = self.events.position.keep_stored(),
        }
    }

    /// The number of stored rows of a kind that the lines so far do not contain.
    #[must_use]
    pub fn missing(&self, kind: LineKind) -> u32 {
        self.position(kind).missing()
    }

    /// Whether `line`, the last one, would replace a stored row that is not the last one.
    #[must_use]
    pub fn cuts_off(&self, kind: LineKind, line: &[u8]) -> bool {
        self.position(kind).cuts_off(self.masker.digest(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    #[test]
    fn each_row_is_found_once() {
        let mut kept = KeptRows::new(3, ["a", "ok", "b", "ok", "c"].map(digest).into_iter());
        assert!(kept.finds(digest("ok")) && kept.finds(digest("ok")) && !kept.finds(digest("ok")));
        assert!(kept.finds(digest("b")), "although it lies before the second `ok`");
        assert!(kept.finds(digest("c")) && !kept.finds(digest("c")) && !kept.finds(digest("d")));
        assert_eq!(kept.missing(), 1);
    }
}
