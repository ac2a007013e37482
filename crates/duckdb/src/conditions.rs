//! What DuckDB says differently in conditions, and how their values are bound.

use std::fmt::Write;

use amplifier_session_core::model::Timestamp;
use amplifier_session_sql::{Conditions, Dialect, Value};
use duckdb::{
    ParamsFromIter, params_from_iter,
    types::{self, TimeUnit},
};

/// Lists are lists. Words of titles are looked for in the rows: a function of the library in SQL would need unsafe code.
pub(crate) const DUCKDB: Dialect = Dialect {
    list_holds: |list, value| format!("list_contains({list}, {value})"),
    session_says: None,
    event_says: None,
};

/// The values of a statement with these conditions.
pub(crate) fn values(conditions: &Conditions) -> ParamsFromIter<impl Iterator<Item = types::Value>> {
    params_from_iter(conditions.values().iter().map(value))
}

fn value(value: &Value) -> types::Value {
    match value {
        Value::Text(text) => types::Value::Text(text.clone()),
        Value::Integer(number) => types::Value::BigInt(*number),
        Value::Time(ts) => time(*ts),
        _ => types::Value::Null,
    }
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
