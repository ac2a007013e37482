//! Text analysis for everything that searches words: the index, rows that are newer than the index, the in-memory
//! backend, and snippets.
//!
//! - [`Analyzer`] splits text into [`Tokens`]; the same word gives the same term everywhere.
//! - [`QueryWords`] are the words of a query; [`query_terms`] are its terms without stop words.
//! - [`TermPlaces`] are where the terms of a query are in a text, and a [`TermPhrase`] is found by them.
//! - [`Snippets`] cuts out the best matching part of a text.
//! - [`without_escapes`] removes the escape sequences of terminals.
//! - [`counted`], [`grouped`] and [`size`] write numbers for people.
//! - [`bm25`] scores texts that are not in the index, as the index would.

mod amounts;
mod analyzer;
pub mod bm25;
mod characters;
mod codes;
mod completions;
mod layout;
mod phrase;
mod places;
mod query;
mod snippet;
mod stems;
mod words;

pub use amounts::{counted, grouped, size};
pub use analyzer::{Analyzer, MAX_TOKEN_BYTES, Tokens};
pub(crate) use characters::is_south_east_asian;
pub use codes::without_escapes;
pub(crate) use codes::{has_codes_before_words, without_codes};
pub(crate) use completions::{shorter_stems, stems_of_end, stems_of_part, stems_of_typos};
pub(crate) use layout::without_reminders;
pub(crate) use phrase::{Phrase, WordList, collapsed, folded_words, is_unspaced_alone};
pub use places::{TermPhrase, TermPlaces};
pub use query::{Identifier, MAX_QUERY_TERMS, QueryWords, query_terms};
pub use snippet::{Snippet, Snippets};
pub use words::{ascii_parts, composed, holds_words};
