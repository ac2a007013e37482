//! Checks a query and prepares the connection that runs it.

use amplifier_session_core::{Error, ErrorField, Result, Scope};
use duckdb::Connection;

use super::{
    format::{self, SqlForm},
    payloads,
    query::{SqlColumn, SqlQuery},
    statement::ReadOnlyStatement,
    views::READY_VIEWS,
};
use crate::error;

/// A query that may be run.
pub(crate) struct Prepared {
    statement: ReadOnlyStatement,
    pub(crate) columns: Vec<SqlColumn>,
    limit: Option<usize>,
}

impl Prepared {
    /// Checks the scope and the statement, creates the views and finds the columns of the result.
    pub(super) fn new(connection: &Connection, scope: &Scope, query: &SqlQuery) -> Result<Self> {
        check_scope(connection, scope)?;
        let statement = ReadOnlyStatement::parse(connection, &query.sql)?;
        payloads::create_views(connection)?;
        for view in READY_VIEWS {
            connection.execute_batch(&view.create()).map_err(error::storage("sql"))?;
        }
        // Prepared as typed, so that an error shows the right position.
        connection.prepare(&query.sql).map_err(error::query)?;
        let describe = format!("DESCRIBE FROM {}", statement.nested());
        let mut describe = connection.prepare(&describe).map_err(error::query)?;
        let column = |row: &duckdb::Row<'_>| {
            let (name, sql_type): (String, String) = (row.get(0)?, row.get(1)?);
            Ok(SqlColumn { is_number: format::is_number(&sql_type), name, sql_type })
        };
        let columns = describe.query_map([], column).and_then(Iterator::collect).map_err(error::query)?;
        Ok(Self { statement, columns, limit: query.limit })
    }

    /// The statement with every value as text.
    pub(super) fn as_text(&self, form: SqlForm) -> String {
        self.select(|name, column| format::expression(name, &column.sql_type, form))
    }

    /// A `SELECT` with an expression for each column. It gets an unambiguous name for the column: several columns of
    /// the query may have the same name.
    pub(super) fn select(&self, expression: impl Fn(&str, &SqlColumn) -> String) -> String {
        let names: Vec<String> = (0..self.columns.len()).map(|at| format!("c{at}")).collect();
        let expressions: Vec<String> =
            names.iter().zip(&self.columns).map(|(name, column)| expression(name, column)).collect();
        let limit = self.limit.map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
        let (expressions, names) = (expressions.join(", "), names.join(", "));
        format!("SELECT {expressions} FROM {} AS query({names}){limit}", self.statement.nested())
    }
}

/// SQL sees the whole file, so it must contain only sessions of this user, or the scope must be everyone.
fn check_scope(connection: &Connection, scope: &Scope) -> Result<()> {
    let user = match scope {
        Scope::User(user) => user,
        Scope::Visible(viewer) => &viewer.user_id,
        _ => return Ok(()),
    };
    let others = "SELECT count(DISTINCT user_id) FROM sessions WHERE user_id <> ?1";
    let others: i64 =
        connection.query_row(others, [user.as_str()], |row| row.get(0)).map_err(error::storage("sql"))?;
    if others == 0 {
        return Ok(());
    }
    let whom = if others == 1 { "another user".to_owned() } else { format!("{others} other users") };
    let message = format!("SQL queries see the whole store, which contains sessions of {whom}");
    Err(Error::validation(ErrorField::Scope, message))
}
