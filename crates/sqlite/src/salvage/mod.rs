//! Reads what is left of a store in a damaged file, page by page: see `amplifier-session-sqlite-reader`.
//!
//! | file | contents |
//! | --- | --- |
//! | `tables.rs` | which table a row belongs to, and its columns |
//! | `scan.rs` | finding all rows of our tables |
//! | `catalog.rs` | the rows that were found, by session |
//! | `source.rs` | the rows as values of the model |

mod catalog;
mod scan;
mod source;
mod tables;

pub(crate) use source::Salvage;
