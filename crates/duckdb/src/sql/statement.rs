//! One statement, which reads.

use amplifier_session_core::{Error, Result};
use duckdb::Connection;

use crate::error::{question, storage};

/// The text of one statement that reads, without the semicolons around it.
#[derive(Debug)]
pub(super) struct Statement(String);

impl Statement {
    /// Takes the one statement in a text.
    pub(super) fn parse(connection: &Connection, sql: &str) -> Result<Self> {
        let refused = |why: &str| Err(Error::validation("query", why));
        match Parsed::of(connection, sql)? {
            Parsed::Reads(1) => Self::without_semicolons(connection, sql),
            Parsed::Reads(0) => refused("there is no statement in the query"),
            Parsed::Reads(_) => refused("one statement is taken at a time"),
            Parsed::DoesMore => refused(
                "the statement does not only read: SELECT, FROM, WITH, VALUES, DESCRIBE, SHOW and SUMMARIZE do, and PIVOT where \
                 IN names the values",
            ),
            // What is wrong is told here, with its place: the parser reads the whole text before any of it runs.
            Parsed::Wrong => match connection.prepare(sql) {
                Err(error) => Err(question(error)),
                Ok(_) => refused("DuckDB does not understand the statement"),
            },
        }
    }

    /// As a table. It was parsed before, so that no parenthesis in it closes ours.
    pub(super) fn nested(&self) -> String {
        format!("(\n{}\n)", self.0)
    }

    /// A semicolon ends the statement where nothing but comments stands behind it, and a whole statement before it.
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

/// What DuckDB's parser makes of a text. None of it runs.
#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    /// So many statements that read.
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
            connection.query_row(parse, [sql], read).map_err(storage("sql"))?;
        Ok(match error.as_deref() {
            None => Self::Reads(statements),
            // So DuckDB names the error for statements of other kinds than SELECT.
            Some("not implemented") => Self::DoesMore,
            Some(_) => Self::Wrong,
        })
    }
}
