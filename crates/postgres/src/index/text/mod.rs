//! The index of texts: which texts contain a term, and how often.
//!
//! Terms are those of `core`, and so are the scores, so that the ranking is the same as in every other store. A *block*
//! has the texts of some messages of one user: a row in `text_blocks` lists them, and for each term there is a row in
//! `postings`. A transaction that writes messages also writes a block of their texts, so that they are found as soon as
//! they are committed. Later updates merge blocks.
//!
//! A text is named by the key of its message and its content type. A message that is replaced gets a new key, so what a
//! block has of the old one refers to nothing. The keys of removed messages are in the table `removed` until an update
//! takes their texts from the blocks.
//!
//! | file | contents |
//! | --- | --- |
//! | `block.rs` | the form of a block |
//! | `new.rs` | the block of new messages |
//! | `search.rs` | searches |
//! | `statistics.rs` | counts of texts and terms, for the ranking |
//! | `newest.rs` | the newest messages that match; which messages use tools |
//! | `removed.rs` | removed messages that blocks still have |
//! | `terms.rs` | finding terms by patterns |
//! | `update.rs` | taking removed messages from blocks, merging blocks, making all anew |
//! | `check.rs` | comparing the blocks with the rows |

mod block;
mod check;
mod new;
mod newest;
mod removed;
mod search;
mod statistics;
mod terms;
mod update;

pub(crate) use check::check;
pub(crate) use new::NewTexts;
pub(crate) use newest::newest;
pub(crate) use search::candidates;
pub(crate) use terms::terms;
pub(crate) use update::{IndexedMessage, rebuild, reindex, update};
