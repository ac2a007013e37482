//! The indexes that searches use: of texts and of vectors.

mod derived;
pub(crate) mod text;
pub(crate) mod vectors;

use amplifier_session_core::{
    Result, Scope,
    search::{SearchFilter, SessionFilter},
};
use amplifier_session_sql::Conditions;

use crate::connection::POSTGRES;

/// `FROM` and the conditions for the rows of `table` in scope, under the name `alias`. A filter of messages refers to
/// `transcripts t`, which the caller joins.
///
/// If all sessions of a user are in scope, they are not looked up for each row.
fn in_scope_of(
    table: &str,
    alias: &str,
    scope: &Scope,
    filter: &SearchFilter,
) -> Result<(String, Conditions)> {
    match scope {
        Scope::User(user) if filter.sessions == SessionFilter::default() => {
            let mut conditions = Conditions::of_messages(POSTGRES, &Scope::Everyone, filter)?;
            conditions.compare(&format!("{alias}.user_id = ?"), user.to_string());
            Ok((format!("FROM {table} {alias}"), conditions))
        }
        _ => {
            let of_session = format!("s.user_id = {alias}.user_id AND s.session_id = {alias}.session_id");
            let tables = format!("FROM {table} {alias} JOIN sessions s ON {of_session}");
            Ok((tables, Conditions::of_messages(POSTGRES, scope, filter)?))
        }
    }
}
