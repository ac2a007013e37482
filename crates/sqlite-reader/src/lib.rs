//! Reads rows from damaged SQLite files.
//!
//! SQLite rejects every statement that touches a damaged page, and it can't reach the pages below a damaged inner page.
//! So this crate reads the pages itself, according to the [file format](https://sqlite.org/fileformat2.html), and
//! never writes. It knows nothing of the tables in the file.
//!
//! | file | contents |
//! | --- | --- |
//! | `pages.rs` | the pages of the file, with the newer ones in its write-ahead log |
//! | `log.rs` | the write-ahead log |
//! | `btree.rs` | the cells of a page, and their content |
//! | `record.rs` | the values of a row |
//! | `scan.rs` | finding rows, through the trees and on pages that no readable page refers to |
//! | `schema.rs` | the columns in the statement that created a table |

mod btree;
mod log;
mod pages;
mod record;
mod scan;
mod schema;

pub use log::committed_length;
pub use pages::{PageFile, RowPlace};
pub use record::{RowRecord, StoredValue};
pub use scan::{PageScan, ScannedRow};
pub use schema::column_names;

/// Whether pages may have this size.
fn is_page_size(size: usize) -> bool {
    (512..=65_536).contains(&size) && size.is_power_of_two()
}

/// A number of variable length, and the position after it.
fn varint(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let mut number = 0_u64;
    for length in 0..9 {
        let byte = *bytes.get(at + length)?;
        if length == 8 {
            return Some(((number << 8 | u64::from(byte)).cast_signed(), at + 9));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((number.cast_signed(), at + length + 1));
        }
    }
    None
}

/// The big-endian number at `at`.
fn number_at(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(length)?)?;
    Some(digits.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests;
