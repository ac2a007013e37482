//! Values that can be missing only because of a mistake in this project. Debug builds panic then; other builds go on
//! with less, instead of failing in the middle of a sync.

use std::slice::SliceIndex;

use serde::Serialize;

/// Parts of texts and lists whose bounds are known to be right.
pub trait KnownPart {
    /// The part at `range`, or an empty one if `range` is out of bounds.
    #[must_use]
    fn part<R: SliceIndex<Self, Output = Self>>(&self, range: R) -> &Self;
}

impl KnownPart for str {
    #[track_caller]
    fn part<R: SliceIndex<Self, Output = Self>>(&self, range: R) -> &Self {
        let part = self.get(range);
        debug_assert!(part.is_some(), "the text has no such part");
        part.unwrap_or_default()
    }
}

impl<T> KnownPart for [T] {
    #[track_caller]
    fn part<R: SliceIndex<Self, Output = Self>>(&self, range: R) -> &Self {
        let part = self.get(range);
        debug_assert!(part.is_some(), "the list has no such part");
        part.unwrap_or_default()
    }
}

/// The JSON of a value that always has one: without maps whose keys are no texts.
#[must_use]
pub fn known_json(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value);
    debug_assert!(json.is_ok(), "the value has no JSON: {json:?}");
    json.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_range() {
        assert_eq!(("häuser".part(1..3), [1, 2, 3].part(2..)), ("ä", &[3][..]));
        assert_eq!(known_json(&["a"]), r#"["a"]"#);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "no such part")]
    fn a_part_beyond_the_end_is_a_mistake() {
        let _ = [1, 2].part(1..4);
    }
}
