//! Functions that SQL statements call.
//!
//! They call `core`, so that a database that counts or filters gets the same results as code that examines every row.

use std::{
    borrow::Cow,
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use amplifier_session_core::{model::event_mentions, text::holds_words};
use amplifier_session_sql::views::{chunk_text, line_field};
use rusqlite::{
    Connection, Result,
    functions::{Aggregate, Context, FunctionFlags},
};

use crate::columns::stored_line;

/// Registers the functions of the views: [`line_field`] and [`chunk_text`]. Only a connection with them can read the
/// views of messages and of vectors.
///
/// # Errors
///
/// Errors of SQLite.
pub fn register_view_functions(connection: &Connection) -> Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("line_field", 4, flags, |row| {
        let Some((session, role, line)) = line(row) else { return Ok(None) };
        Ok(text(row, 3).and_then(|name| line_field(session, role, &line, name)))
    })?;
    connection.create_scalar_function("chunk_text", 6, flags, |row| {
        let Some((session, role, line)) = line(row) else { return Ok(None) };
        let span = (row.get(4)?, row.get(5)?);
        Ok(text(row, 3).and_then(|content_type| chunk_text(session, role, &line, content_type, span)))
    })
}

/// The first three arguments: the id of the session, the role, and the line, decompressed.
fn line<'a>(row: &'a Context<'_>) -> Option<(&'a str, &'a str, Cow<'a, [u8]>)> {
    let line = row.get_raw(2).as_bytes().ok()?;
    Some((text(row, 0)?, text(row, 1)?, stored_line(line).ok()?))
}

/// Registers the functions of this crate.
///
/// - `holds_words(wanted, name, first_prompt, session_id, description)`: whether the title or description of a session
///   contains all words.
/// - `event_mentions(wanted, error_type, summary)`: whether an event contains all words.
/// - `lines_again(session, digest)`: how many rows of a group have the digest of an earlier row of the same session.
pub(crate) fn register(connection: &Connection) -> Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function("holds_words", 5, flags, |row| {
        let text = |index| text(row, index);
        let (name, first_prompt) = (text(1), text(2));
        // As `Session::title`.
        let given = name.filter(|name| !name.trim().is_empty());
        let title = given.or(first_prompt).or(text(3)).unwrap_or_default();
        Ok(holds_words(&[title, text(4).unwrap_or_default()], text(0).unwrap_or_default()))
    })?;
    connection.create_scalar_function("event_mentions", 3, flags, |row| {
        let text = |index| text(row, index);
        let summary = serde_json::from_str(text(2).unwrap_or_default()).unwrap_or_default();
        Ok(event_mentions(text(1), &summary, text(0).unwrap_or_default()))
    })?;
    register_view_functions(connection)?;
    connection.create_aggregate_function("lines_again", 2, flags, LinesAgain)
}

/// A text argument. Any other value, in a damaged row, contains no words.
fn text<'a>(row: &'a Context<'_>, index: usize) -> Option<&'a str> {
    row.get_raw(index).as_str_or_null().ok().flatten()
}

/// A set of 64-bit hashes is faster than `count(DISTINCT …)`, which sorts.
struct LinesAgain;

#[derive(Default)]
struct SeenLines {
    seen: HashSet<u64>,
    again: i64,
}

impl Aggregate<SeenLines, i64> for LinesAgain {
    fn init(&self, _: &mut Context<'_>) -> Result<SeenLines> {
        Ok(SeenLines::default())
    }

    fn step(&self, row: &mut Context<'_>, lines: &mut SeenLines) -> Result<()> {
        if let (Ok(session), Ok(digest)) = (row.get_raw(0).as_i64(), row.get_raw(1).as_blob()) {
            let mut hasher = DefaultHasher::new();
            (session, digest).hash(&mut hasher);
            lines.again += i64::from(!lines.seen.insert(hasher.finish()));
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, lines: Option<SeenLines>) -> Result<i64> {
        Ok(lines.unwrap_or_default().again)
    }
}
