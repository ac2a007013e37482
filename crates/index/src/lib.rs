//! The derived search index of the embedded backends, for text and quantised vectors.
//!
//! The rows of a store are the source of truth; this index is derived from them and may be deleted at any time. Every
//! write to a store gives its rows a *revision*, a number that only grows. The index records the store and the revision
//! up to which it is current (its [`StoreRevision`]). A search uses the index, leaves out rows that have changed
//! since, and reads newer rows directly (the *tail*). So committed rows are found at once, from any process, whatever
//! the state of the folder. [`SearchIndex::fold`] updates the index from the rows (*folds*
//! the tail), which makes searches fast again and does not change results.
//!
//! The crate does not use SQL: a backend implements [`Rows`] over one read transaction and passes them to an
//! [`IndexUpdater`], which searches and decides when to fold.
//!
//! # Files
//!
//! The folder has three parts, each with a manifest that is replaced atomically and a folder of immutable files:
//! `text.json` and `text/` (a tantivy index with a document for each content type of a message), `vectors.json` and
//! `vectors/` (segments of the vectors of texts with one byte per dimension), and `turns.json` and `turns/` (the same
//! for the vectors of turns). A manifest lists the valid files, how to check them, and the revision. `lock` is held
//! during a fold, `readers` by handles with priority over long work, and `syncing` by a sync. All files are private to
//! their owner. A killed process leaves at most files that no manifest lists, which the next fold removes.

mod answer;
mod check;
mod error;
mod files;
mod filter;
mod folding;
mod index;
mod lag;
mod part;
mod readers;
mod reserve;
mod rows;
mod tail;
mod text;
mod top;
mod updater;
mod vectors;

pub use answer::{IndexAnswer, TextHit, VectorHit};
pub use index::{Folded, SearchIndex, Status, SyncLock, WhenBusy};
pub use rows::{MessageRow, Rows, SessionOfRow, StoreRevision, VectorRow};
pub use updater::{IndexUpdater, RowRefs, Snapshots, VectorRef};
