//! The derived search index of the embedded backends: text and quantised vectors.
//!
//! The rows of a store are the truth; this index is derived from them and may be deleted at any time. Every write
//! of a store gives its rows a *revision*, a number that only grows. The index remembers which revision of which
//! store it holds (its [`Mark`]). A search asks the index, leaves out what has changed since, and looks at the
//! rows newer than the mark directly (the *tail*): so a committed row is found at once, from any process, whatever
//! state the folder is in. [`SearchIndex::fold`] brings the index up to the rows, which makes searches fast again
//! and changes no answer.
//!
//! The crate knows no SQL: a backend implements [`Rows`] over one read transaction.

mod answer;
mod error;
mod facts;
mod files;
mod filter;
mod index;
mod part;
mod rows;
mod step;
mod tail;
mod text;
mod top;
mod vectors;

pub use answer::{Answer, TextHit, VectorHit};
pub use index::{Folded, SearchIndex, Status, WhenBusy};
pub use rows::{Mark, MessageRow, Rows, VectorRow};
