//! The store as a whole: its description, and its table of keys and values.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreInfo;
use crate::{Error, ErrorField, Result, known_json, model::EmbeddingSpace};

/// Describes the store, and stores values for the store as a whole.
#[async_trait]
pub trait Meta: Send + Sync {
    /// Describes the store. Returns immediately.
    fn info(&self) -> StoreInfo;

    /// All entries of the schema meta table. A backend that creates a store writes [`VERSION`] and [`WRITER`].
    async fn meta(&self) -> Result<BTreeMap<String, String>>;

    /// Stores `value` under `key` if the stored value is `expected`; `None` means that there is none. Returns the value
    /// that is stored afterwards.
    async fn swap_meta(&self, key: &str, expected: Option<&str>, value: &str) -> Result<Option<String>>;
}

/// The schema version that this library writes.
pub const SCHEMA_VERSION: u32 = 4;
/// Key of the schema version.
pub const VERSION: &str = "version";
/// Key of the name of the program that created the store.
pub const WRITER: &str = "writer";
/// The beginning of the value of [`WRITER`] in stores of this library; a version may follow.
pub const WRITER_NAME: &str = "amplifier-session-storage";
/// Key of the store's random identity.
pub const STORE_ID: &str = "store_id";
/// Key of the user who first wrote the store.
pub const USER_ID: &str = "user_id";
/// Key of the version of the [`EXTRACTION`](crate::content::EXTRACTION) rules that the derived texts follow. If absent,
/// it is the first version.
pub const EXTRACTION: &str = "extraction";
/// Key of the version of the [`SUMMARIES`](crate::events::SUMMARIES) rules that the summaries of events follow. If
/// absent, it is the first version.
pub const SUMMARIES: &str = "summaries";
/// Key of the version of the [`TITLES`](crate::content::TITLES) rules that the titles of sessions follow. If absent, it
/// is the first version.
pub const TITLES: &str = "titles";
/// Key of the treatment of secrets in stored lines: `off`, `mark` or `mask`. If absent, it is `mark`.
pub const SECRETS: &str = "secrets";
/// Key of the version of the [`MASKING`](crate::content::MASKING) rules by which all stored lines were masked. If `0`
/// or absent, they were not masked.
pub const MASKED: &str = "masked";
/// Key of the findings of secrets that a person has judged to be harmless: digests, separated by spaces.
pub const IGNORED_SECRETS: &str = "ignored_secrets";
/// Key of the lines whose secrets a person has removed: digests of the lines before that, separated by spaces.
pub const PURGED_LINES: &str = "purged_lines";
/// The beginning of the keys of the places up to which this store follows others; the address of the other store follows,
/// and its user.
pub const FOLLOWED: &str = "followed ";
/// Keys of the files that may still contain words of deleted rows, in stores in files. A value that is not empty makes
/// the next [`Sessions::delete_sessions`](super::Sessions::delete_sessions) erase them.
pub const TO_ERASE: [&str; 2] = ["to_erase_from_index", "to_erase_from_database"];
/// Key of the current [`Generation`] of vectors.
pub const EMBEDDING_SPACE: &str = "embedding_space";
/// Key of the [`Generation`] that a rebuild is making. If it has the same space as the current one, no rebuild is in
/// progress: it was completed or abandoned.
pub const NEXT_EMBEDDING_SPACE: &str = "next_embedding_space";

/// A generation of vectors of one space. A rebuild makes a new generation beside the current one, which searches use
/// until the new one is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// The space of its vectors.
    #[serde(flatten)]
    pub space: EmbeddingSpace,
    /// Its number, which is never reused in a store. The first is 0.
    #[serde(default)]
    pub number: u32,
}

impl Generation {
    /// The stored form.
    #[must_use]
    pub fn to_value(&self) -> String {
        known_json(self)
    }

    /// Parses the stored form.
    pub(crate) fn parse(value: &str) -> Option<Self> {
        serde_json::from_str(value).ok()
    }
}

/// The generations of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Generations {
    /// The generation that searches use; `None` if the store never had vectors.
    pub current: Option<Generation>,
    /// The generation that a rebuild is making.
    pub next: Option<Generation>,
    /// The highest number in use.
    pub last_number: u32,
}

impl Generations {
    /// The generations in the entries of the meta table.
    #[must_use]
    pub fn of(entries: &BTreeMap<String, String>) -> Self {
        let generation = |key| entries.get(key).and_then(|value: &String| Generation::parse(value));
        let (current, next) = (generation(EMBEDDING_SPACE), generation(NEXT_EMBEDDING_SPACE));
        let last_number = current.iter().chain(&next).map(|generation| generation.number).max().unwrap_or(0);
        let is_under_way = |next: &Generation| current.as_ref().is_some_and(|held| held.space != next.space);
        Self { next: next.filter(is_under_way), current, last_number }
    }

    /// The number of the current generation, or 0 if there is none yet.
    #[must_use]
    pub fn current_number(&self) -> u32 {
        self.current.as_ref().map_or(0, |generation| generation.number)
    }

    /// The numbers of the current and the next generation.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        std::iter::once(self.current_number()).chain(self.next.as_ref().map(|next| next.number))
    }

    /// Whether this is the number of the next generation.
    #[must_use]
    pub fn is_next(&self, number: u32) -> bool {
        self.next.as_ref().is_some_and(|generation| generation.number == number)
    }

    /// The space of the generation with this number.
    ///
    /// # Errors
    ///
    /// `Validation` if the store has no such generation.
    pub fn space(&self, number: u32) -> Result<&EmbeddingSpace> {
        let mut generations = self.current.iter().chain(&self.next);
        let found = generations.find(|generation| generation.number == number);
        found.map(|generation| &generation.space).ok_or_else(|| {
            Error::validation(ErrorField::Vector, format!("the store has no vectors of generation {number}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_without_a_number_is_generation_zero() {
        let entries = [(EMBEDDING_SPACE, r#"{"model":"m","dimensions":3}"#)];
        let entries = entries.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let generations = Generations::of(&entries);
        let space = EmbeddingSpace { model: "m".into(), dimensions: 3 };
        assert_eq!(generations.current, Some(Generation { space: space.clone(), number: 0 }));
        assert!(
            generations.current_number() == 0 && !generations.is_next(0) && generations.space(1).is_err()
        );
        let next = Generation { space, number: 7 };
        assert_eq!(Generation::parse(&next.to_value()), Some(next));
    }

    #[test]
    fn a_next_generation_with_the_current_space_is_ignored() {
        let generation = |dimensions, number| {
            let space = EmbeddingSpace { model: "m".into(), dimensions };
            Generation { space, number }
        };
        let of = |current: &Generation, next: &Generation| {
            let entries = [(EMBEDDING_SPACE, current), (NEXT_EMBEDDING_SPACE, next)];
            Generations::of(&entries.map(|(key, value)| (key.to_owned(), value.to_value())).into())
        };
        let under_way = of(&generation(3, 0), &generation(4, 1));
        assert!(under_way.is_next(1) && under_way.last_number == 1);
        for number in [4, 5] {
            let ended = of(&generation(4, 4), &generation(4, number));
            assert!(ended.next.is_none() && ended.last_number == number);
        }
    }
}
