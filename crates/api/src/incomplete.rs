//! The parts in which an operation did not look, as data.

use amplifier_session_core::{
    model::DamagedRow,
    search::{MissingVectors, SearchMode, SearchOptions, SearchResults},
};
use serde::{Deserialize, Serialize};

/// Why an answer may lack something that is in the store or in the session folders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum IncompleteReason {
    /// Changes of session folders were not read first. Only a face on their machine reads them.
    NotRefreshed {
        /// The reason.
        because: RefreshGap,
        /// The number of sessions that changed, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sessions: Option<u64>,
    },
    /// Messages have no vectors yet, so they are not found by meaning.
    MissingVectors {
        /// The number of messages, regardless of filters.
        messages: u64,
        /// The number of messages with and without vectors.
        of: u64,
    },
    /// The search was only by words, although it was to be by meaning too.
    WordsOnly,
    /// The search examined only some of its candidates, because too few of them met its conditions.
    PartlyExamined {
        /// The number of messages that were examined, the best or the newest ones.
        examined: u64,
    },
    /// Rows can't be read.
    Damaged {
        /// The number of rows.
        rows: u64,
    },
    /// Sessions can't be read.
    DamagedSessions {
        /// The number of sessions.
        sessions: u64,
    },
}

/// Why changes of session folders were not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RefreshGap {
    /// The refresh is turned off.
    TurnedOff,
    /// Reading them would take too long.
    TooMuch,
    /// A sync is running, which reads them.
    Busy,
    /// Reading them failed.
    Failed,
}

impl IncompleteReason {
    /// The reasons of an answer without `damaged` rows.
    pub(crate) fn of_damage(damaged: &[DamagedRow]) -> Vec<Self> {
        let sessions = damaged.iter().filter(|row| row.sequence.is_none()).count() as u64;
        let rows = damaged.len() as u64 - sessions;
        let rows = (rows > 0).then_some(Self::Damaged { rows });
        rows.into_iter().chain((sessions > 0).then_some(Self::DamagedSessions { sessions })).collect()
    }

    /// The reasons of a search with these results.
    pub(crate) fn of_results(options: &SearchOptions, found: &SearchResults) -> Vec<Self> {
        let partly = found.examined.map(|examined| Self::PartlyExamined { examined });
        let others = Self::of_search(options, found.mode, found.missing_vectors, &found.damaged);
        partly.into_iter().chain(others).collect()
    }

    /// The reasons of a search that ran in the mode `ran`.
    pub(crate) fn of_search(
        options: &SearchOptions,
        ran: SearchMode,
        missing: Option<MissingVectors>,
        damaged: &[DamagedRow],
    ) -> Vec<Self> {
        // An exact text has no meaning, and neither has no text.
        let has_meaning = options.conditions.exact.is_none() && !options.query.trim().is_empty();
        let is_by_words = has_meaning && options.mode != ran && ran == SearchMode::FullText;
        let words_only = is_by_words.then_some(Self::WordsOnly);
        let vectors = missing.map(|MissingVectors { messages, of }| Self::MissingVectors { messages, of });
        words_only.into_iter().chain(vectors).chain(Self::of_damage(damaged)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_json_with_a_reason() {
        let because = RefreshGap::TooMuch;
        let reasons = [
            IncompleteReason::NotRefreshed { because, sessions: Some(12) },
            IncompleteReason::WordsOnly,
            IncompleteReason::Damaged { rows: 2 },
        ];
        let json = serde_json::to_string(&reasons).unwrap();
        let expected = r#"[{"reason":"not_refreshed","because":"too_much","sessions":12},{"reason":"words_only"},{"reason":"damaged","rows":2}]"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<Vec<IncompleteReason>>(&json).unwrap(), reasons);
    }

    #[test]
    fn damaged_sessions_are_counted_apart_from_rows() {
        let row = |sequence: &str| -> DamagedRow {
            let json = format!(
                r#"{{"kind":"message","user_id":"ben","session_id":"x","sequence":{sequence},"reason":"broken"}}"#
            );
            serde_json::from_str(&json).unwrap()
        };
        assert_eq!(
            IncompleteReason::of_damage(&[row("1"), row("null"), row("2")]),
            [IncompleteReason::Damaged { rows: 2 }, IncompleteReason::DamagedSessions { sessions: 1 }]
        );
        assert!(IncompleteReason::of_damage(&[]).is_empty());
    }
}
