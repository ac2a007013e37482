//! Checks that a query is one statement that only reads.

use amplifier_session_core::{Error, ErrorField, Result};
use duckdb::Connection;

use crate::error;

/// The text of one statement that only reads, without the semicolons around it.
#[derive(Debug)]
pub(crate) struct ReadOnlyStatement(String);

impl ReadOnlyStatement {
    /// Parses a text, which must be one statement.
    pub(super) fn parse(connection: &Connection, sql: &str) -> Result<Self> {
        let refused = |why: &str| Err(Error::validation(ErrorField::Query, why));
        match Parsed::of(connection, sql)? {
            Parsed::Reads(1) => Self::without_semicolons(connection, sql),
            Parsed::Reads(0) => refused("the query contains no statement"),
            Parsed::Reads(_) => refused("the query must be one statement"),
            Parsed::DoesMore => refused(
                "the statement does more than read: use SELECT, FROM, WITH, VALUES, DESCRIBE, SHOW, SUMMARIZE, or PIVOT with \
                 the values listed in IN",
            ),
            // The parser reads the whole text before any of it runs, so this only reports the error and its position.
            Parsed::Wrong => match connection.prepare(sql) {
                Err(source) => Err(error::query(source)),
                Ok(_) => refused("DuckDB rejects the statement"),
            },
        }
    }

    /// The statement as a table. It parses, so no parenthesis in it closes ours.
    pub(super) fn nested(&self) -> String {
        format!("(\n{}\n)", self.0)
    }

    /// A semicolon ends the statement if only comments follow it and a whole statement precedes it.
    fn without_semicolons(connection: &Connection, sql: &str) -> Result<Self> {
        let mut statement = sql.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        while let Some((before, after)) = statement.rsplit_once(';') {
            let is_end = Parsed::of(connection, after)? == Parsed::Reads(0)
                && Parsed::of(connection, before)? == Parsed::Reads(1);
            if !is_end {
                break;
            }
            statement = before;
        }
        Ok(Self(statement.to_owned()))
    }
}

/// The result of DuckDB's parser for a text. Nothing is run.
#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    /// This number of read-only statements.
    Reads(i64),
    DoesMore,
    Wrong,
}

impl Parsed {
    fn of(connection: &Connection, sql: &str) -> Result<Self> {
        let parse = "SELECT json_extract_string(parsed, '$.error_type'),
                coalesce(json_array_length(parsed, '$.statements'), 0)
            FROM (SELECT CAST(json_serialize_sql(CAST(?1 AS VARCHAR)) AS JSON) AS parsed)";
        let read = |row: &duckdb::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let (error, statements): (Option<String>, i64) =
            connection.query_row(parse, [sql], read).map_err(error::storage("sql"))?;
        Ok(match error.as_deref() {
            None => Self::Reads(statements),
            // DuckDB's error for statements other than SELECT.
            Some("not implemented") => Self::DoesMore,
            Some(_) => Self::Wrong,
        })
    }
}
