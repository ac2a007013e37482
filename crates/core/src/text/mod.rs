//! One analysis of text, for everything that finds words: the index, what is newer than the index, the
//! in-memory backend, and the snippets that show why something was found.
//!
//! - [`Analyzer`] turns text into [`Tokens`]; the same word gives the same term everywhere;
//! - [`query_terms`] are the terms of a query, without stop words;
//! - [`Snippets`] show the part of a text that matches best;
//! - [`bm25`] scores texts that no index holds as the index would.

mod analyzer;
pub mod bm25;
mod characters;
mod query;
mod snippet;
mod stems;
mod stop_words;
mod words;

pub use analyzer::{Analyzer, MAX_TOKEN_BYTES, Tokens};
pub use query::{MAX_QUERY_TERMS, query_terms};
pub use snippet::{Snippet, Snippets};
pub use words::holds_words;
