//! Runs queries on a connection, in DuckDB's dialect.

use std::{fmt::Write, ops::ControlFlow};

use amplifier_session_core::{Result, model::Timestamp};
use amplifier_session_sql::{Conditions, Dialect, Query, Reader, Value, rows::EVENT_OF_SESSION};
use duckdb::{
    Connection, ParamsFromIter, params_from_iter,
    types::{self, TimeUnit},
};

use crate::{columns::Cursor, error::storage};

/// A connection that reads.
#[derive(Debug)]
pub struct Read<'a>(pub(crate) &'a Connection);

impl Reader for Read<'_> {
    const DIALECT: Dialect = DUCKDB;

    fn each<T>(&self, query: &Query<T>, mut each: impl FnMut(T) -> ControlFlow<()>) -> Result<()> {
        let failed = storage(query.operation);
        let mut statement = self.0.prepare_cached(&query.sql).map_err(&failed)?;
        let mut found = statement.query(params(&query.values)).map_err(&failed)?;
        while let Some(row) = found.next().map_err(&failed)? {
            if each((query.decode)(&Cursor(row))?).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Lists are lists. Words are looked for in the rows: a function of the library in SQL would need unsafe code.
pub(crate) const DUCKDB: Dialect = Dialect {
    list_holds: |list, value| format!("list_contains({list}, {value})"),
    session_says: None,
    event_says: None,
    day: |time| format!("CAST({time} AS DATE)"),
    list_from: |_| "sessions s",
    messages_of_sessions: "sessions s JOIN transcripts t ON t.user_id = s.user_id AND t.session_id = s.session_id",
    events_in_order: |_, _| format!("events e JOIN sessions s {EVENT_OF_SESSION}"),
    beside_sessions: |table| {
        format!("sessions s JOIN {table} t ON t.user_id = s.user_id AND t.session_id = s.session_id")
    },
    all_vectors: "vectors_of_generations",
};

/// The values of a statement with these conditions.
pub(crate) fn values(conditions: &Conditions) -> ParamsFromIter<impl Iterator<Item = types::Value>> {
    params(conditions.values())
}

fn params(values: &[Value]) -> ParamsFromIter<impl Iterator<Item = types::Value>> {
    params_from_iter(values.iter().map(|value| match value {
        Value::Text(text) => types::Value::Text(text.clone()),
        Value::Integer(number) => types::Value::BigInt(*number),
        Value::Time(ts) => time(*ts),
        _ => types::Value::Null,
    }))
}

/// A point in time as it is stored.
pub(crate) fn time(ts: Timestamp) -> types::Value {
    types::Value::Timestamp(TimeUnit::Microsecond, ts.as_micros())
}

/// The condition that `column` is one of our own numbers. They stand in the statement: DuckDB takes an index for them only
/// if it sees them when it plans.
pub(crate) fn is_one_of(column: &str, numbers: impl IntoIterator<Item = i64>) -> String {
    let mut numbers: Vec<i64> = numbers.into_iter().collect();
    numbers.sort_unstable();
    numbers.dedup();
    match numbers.as_slice() {
        [] => "FALSE".to_owned(),
        [first, .., last] if *last - *first == numbers.len() as i64 - 1 => {
            format!("{column} BETWEEN {first} AND {last}")
        }
        [first, rest @ ..] => {
            let mut condition = format!("{column} IN ({first}");
            for number in rest {
                // Writing to a string does not fail.
                let _ = write!(condition, ", {number}");
            }
            condition.push(')');
            condition
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_a_range() {
        assert_eq!(is_one_of("k", []), "FALSE");
        assert_eq!(is_one_of("k", [7]), "k IN (7)");
        assert_eq!(is_one_of("k", [3, 1, 2, 2]), "k BETWEEN 1 AND 3");
        assert_eq!(is_one_of("k", [5, 1]), "k IN (1, 5)");
    }
}
