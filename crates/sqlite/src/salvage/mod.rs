//! Reads what is left of a damaged file.
//!
//! SQLite rejects every statement that touches a damaged page, and it can't reach the pages below a damaged inner page.
//! So this module reads the pages itself, according to the [file format](https://sqlite.org/fileformat2.html), and
//! never writes.
//!
//! | file | contents |
//! | --- | --- |
//! | `pages.rs` | the pages of the file, with the newer ones in its write-ahead log |
//! | `log.rs` | the write-ahead log |
//! | `btree.rs` | the cells of a page, and their content |
//! | `record.rs` | the values of a row |
//! | `tables.rs` | which table a row belongs to, and its columns |
//! | `scan.rs` | finding all rows |
//! | `catalog.rs` | the rows that were found, by session |
//! | `source.rs` | the rows as values of the model |

mod btree;
mod catalog;
mod log;
mod pages;
mod record;
mod scan;
mod source;
mod tables;

pub(crate) use log::committed_length;
pub(crate) use source::Salvage;

/// Whether pages may have this size.
fn is_page_size(size: usize) -> bool {
    (512..=65_536).contains(&size) && size.is_power_of_two()
}

/// The big-endian number at `at`.
fn number_at(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(length)?)?;
    Some(digits.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}
