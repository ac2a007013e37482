//! Rows by the names of their columns. Not every generation has all columns.

use std::collections::HashMap;

use amplifier_session_core::{Error, ErrorKind, Result, model::Timestamp};
use amplifier_session_sql::python::DatabaseTables;

use crate::database::{OldCell, OldDatabase};

/// Rows whose numbers differ by at most this are read together with the rows between them.
const NEAR: i64 = 8;

/// A table, with the wanted columns that exist.
#[derive(Debug)]
pub(crate) struct OldTable {
    name: &'static str,
    columns: Vec<&'static str>,
}

/// A row of an [`OldTable`].
#[derive(Debug)]
pub(crate) struct OldRow<'a> {
    columns: &'a [&'static str],
    cells: Vec<OldCell>,
}

impl OldTable {
    /// The table with this name, if it exists.
    pub(crate) fn of(tables: &DatabaseTables, name: &'static str, wanted: &[&'static str]) -> Option<Self> {
        let columns = wanted.iter().copied().filter(|column| tables.has(name, column)).collect();
        tables.has_table(name).then_some(Self { name, columns })
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }

    /// The column in a statement; `NULL` if it does not exist.
    fn quoted(&self, column: &str) -> String {
        if self.has(column) { format!("\"{column}\"") } else { "NULL".to_owned() }
    }

    /// The numbers of all rows with the values of two columns, ordered by the column `order` if it exists.
    pub(crate) fn row_numbers(
        &self,
        database: &dyn OldDatabase,
        columns: [&str; 2],
        order: Option<&str>,
        each: &mut dyn FnMut(i64, [String; 2]),
    ) -> Result<()> {
        let [first, second] = columns.map(|column| self.quoted(column));
        let order = order.filter(|order| self.has(order)).map_or_else(String::new, |o| format!("\"{o}\", "));
        let sql = format!("SELECT rowid, {first}, {second} FROM \"{}\" ORDER BY {order}rowid", self.name);
        database.read(&sql, &mut |cells| {
            let [OldCell::Integer(number), first, second] = cells.as_slice() else {
                return Err(unreadable(self.name));
            };
            each(*number, [first, second].map(|cell| text(cell).unwrap_or_default()));
            Ok(())
        })
    }

    /// The rows with these numbers, in this order.
    pub(crate) fn rows(&self, database: &dyn OldDatabase, numbers: &[i64]) -> Result<Vec<(i64, OldRow<'_>)>> {
        if self.columns.is_empty() {
            return Ok(Vec::new());
        }
        let columns: Vec<String> = self.columns.iter().map(|column| self.quoted(column)).collect();
        let select = format!("SELECT rowid, {} FROM \"{}\"", columns.join(", "), self.name);
        let mut found = HashMap::with_capacity(numbers.len());
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        // For a list of numbers, DuckDB would read the whole table; for a range, it reads only a part.
        for run in sorted.chunk_by(|a, b| b - a <= NEAR) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let sql = format!("{select} WHERE rowid BETWEEN {first} AND {last}");
            database.read(&sql, &mut |mut cells| {
                let values = cells.split_off(1.min(cells.len()));
                let Some(OldCell::Integer(number)) = cells.first() else { return Err(unreadable(self.name)) };
                if run.binary_search(number).is_ok() {
                    found.insert(*number, values);
                }
                Ok(())
            })?;
        }
        let rows = numbers.iter().map(|number| {
            let cells = found.remove(number).ok_or_else(|| unreadable(self.name))?;
            Ok((*number, OldRow { columns: &self.columns, cells }))
        });
        rows.collect()
    }
}

impl OldRow<'_> {
    /// The value of a column; `Null` if it does not exist.
    pub(crate) fn get(&self, column: &str) -> &OldCell {
        let index = self.columns.iter().position(|name| *name == column);
        index.and_then(|index| self.cells.get(index)).unwrap_or(&OldCell::Null)
    }

    /// The first text in these columns.
    pub(crate) fn text(&self, columns: &[&str]) -> Option<String> {
        columns.iter().find_map(|column| text(self.get(column)))
    }

    /// A whole number of at least 0.
    pub(crate) fn number(&self, column: &str) -> Option<u32> {
        let number: i64 = match self.get(column) {
            OldCell::Integer(number) => *number,
            OldCell::Real(number) if number.fract() == 0.0 && number.abs() < 1e15 => *number as i64,
            OldCell::Text(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        u32::try_from(number).ok()
    }

    /// The number of a turn, from 1.
    pub(crate) fn turn(&self, column: &str) -> Option<u32> {
        self.number(column).filter(|turn| *turn >= 1)
    }

    /// A point in time.
    pub(crate) fn time(&self, column: &str) -> Option<Timestamp> {
        match self.get(column) {
            OldCell::Time(time) => Some(*time),
            OldCell::Text(text) => time(text.trim()),
            OldCell::Integer(number) => Timestamp::from_json(&(*number).into()),
            OldCell::Real(number) => Timestamp::from_json(&(*number).into()),
            _ => None,
        }
    }
}

/// A point in time as text. Also accepts a number of seconds, and `UTC` after the time.
fn time(text: &str) -> Option<Timestamp> {
    let number = || serde_json::from_str(text).ok().and_then(|number| Timestamp::from_json(&number));
    Timestamp::parse(text.trim_end_matches(" UTC")).ok().or_else(number)
}

fn text(cell: &OldCell) -> Option<String> {
    match cell {
        OldCell::Text(text) => Some(text.clone()),
        OldCell::Integer(number) => Some(number.to_string()),
        OldCell::Real(number) => Some(number.to_string()),
        OldCell::Time(time) => Some(time.to_string()),
        OldCell::Null | OldCell::Vector(_) => None,
    }
}

fn unreadable(table: &str) -> Error {
    let message = format!("the table {table:?} of the old database can't be read");
    Error::new(ErrorKind::StorageIo, message).with_operation("upgrade")
}
