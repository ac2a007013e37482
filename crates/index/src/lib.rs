//! The derived search index of the embedded backends: text and quantised vectors.
//!
//! The rows of a store are the truth; this index is derived from them and may be deleted at any time. Every write
//! of a store gives its rows a *revision*, a number that only grows. The index remembers which revision of which
//! store it holds (its [`StoreRevision`]). A search asks the index, leaves out what has changed since, and looks at the
//! rows newer than the mark directly (the *tail*): so a committed row is found at once, from any process, whatever
//! state the folder is in. [`SearchIndex::fold`] brings the index up to the rows, which makes searches fast again
//! and changes no answer.
//!
//! The crate knows no SQL: a backend implements [`Rows`] over one read transaction, and hands them to a [`IndexUpdater`], which
//! searches and decides when to fold.
//!
//! # Files
//!
//! The folder has two parts, each with a manifest that is replaced at once and a folder of files that never change:
//! `text.json` and `text/` (a tantivy index with a document for each content type of a message), `vectors.json` and
//! `vectors/` (segments of vectors in one byte a dimension). A manifest names the files that count, how to tell
//! whether they are what was written, and the mark. `lock` is held by the one who folds, `readers` by those whom long
//! work gives way to, `syncing` by a sync. Everything is made for its
//! owner alone; a process that is killed at any moment leaves at most files that no manifest names, which the next
//! fold removes.

mod answer;
mod error;
mod facts;
mod files;
mod filter;
mod folding;
mod index;
mod part;
mod readers;
mod rows;
mod step;
mod tail;
mod text;
mod top;
mod updater;
mod vectors;

pub use answer::{Answer, TextHit, VectorHit};
pub use index::{Folded, SearchIndex, Status, SyncLock, WhenBusy};
pub use rows::{MessageRow, Rows, StoreRevision, VectorRow};
pub use updater::{IndexUpdater, PlacedRows, Snapshots, VectorPlace};
