//! Reads that are the same in every database: queries, and functions for reads that need several queries.
//!
//! Functions that take a [`Reader`](crate::Reader) are for embedded databases. They fail with the errors of the
//! database, and with `Validation` for an unknown scope. Functions that return a [`Query`](crate::Query) are for any
//! database.

pub mod changes;
pub mod events;
pub mod integrity;
pub mod messages;
pub mod meta;
mod one_by_one;
pub mod sessions;
pub mod vectors;

use amplifier_session_core::model::SessionKey;

use crate::Value;

/// The values `?1` and `?2` of a query about one session.
pub(crate) fn of_session(key: &SessionKey) -> [Value; 2] {
    [key.user_id.to_string().into(), key.session_id.to_string().into()]
}

/// The row limit of a statement: SQL has signed integers.
#[must_use]
pub fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}
