//! Reads of the feed of changes.
//!
//! Every change of a session has a number, which is in its row, or in that of its removal. Numbers rise in the order in
//! which changes become visible. Several changes of one transaction may have the same number.

use std::collections::HashMap;

use amplifier_session_core::{
    Result, Scope,
    backend::{ChangeCursor, ChangePage, ChangedFrom, SessionChanged, Version, meta::STORE_ID},
    model::{SessionId, SessionKey, UserId},
    search::SessionFilter,
};

use super::limit;
use crate::{
    Columns, Conditions, Query, Reader, damaged,
    rows::{self, SESSION},
    unless_damaged,
};

const OPERATION: &str = "changes";

/// How a database numbers changes.
#[derive(Debug, Clone, Copy)]
pub struct ChangeNumbers {
    /// The column with the number, in `sessions` and `session_removals`.
    pub column: &'static str,
    /// Sets the number in an `UPDATE` of sessions that also sets `revision`; begins with a comma, if it is not empty.
    pub set: &'static str,
    /// The table `sessions s`, to be read by number.
    pub sessions: &'static str,
    /// The table `transcripts`, to be read by `revision`, if that is the number of the change that wrote a row.
    pub messages: Option<&'static str>,
    /// Selects the last number up to which all changes are visible, and a value that identifies this state of the store.
    pub last: &'static str,
    /// Selects the same value for the number `?1`. No row if the store did not get as far.
    pub state: &'static str,
}

/// Changes are numbered by revisions, which are taken and committed in the same order. The table `revisions` has a nonce for
/// each.
pub const BY_REVISION: ChangeNumbers = ChangeNumbers {
    column: "revision",
    set: "",
    sessions: "sessions s",
    messages: Some("transcripts"),
    last: "SELECT revision, nonce FROM revisions ORDER BY revision DESC LIMIT 1",
    state: "SELECT nonce FROM revisions WHERE revision = ?1",
};

/// A place in the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FeedPosition {
    number: i64,
    /// Among the changes with this number: see [`rank`].
    rank: i64,
    /// Identifies the state of the store when it had the number.
    state: i64,
}

/// The order of the changes with one number: by session, and a removal after a write.
fn rank(key: i64, is_removal: bool) -> i64 {
    key.saturating_mul(2).saturating_add(i64::from(is_removal))
}

/// A change with its place.
struct NumberedChange {
    number: i64,
    rank: i64,
    /// `None` if the row can't be read.
    changed: Option<SessionChanged>,
}

/// The page of changes after a cursor. `reader` reads one snapshot.
pub fn page<R: Reader>(
    reader: &R,
    scope: &Scope,
    after: Option<&ChangeCursor>,
    most: usize,
) -> Result<ChangePage> {
    let (store, last) = (store_id(reader)?, last(reader)?);
    let cursor = |FeedPosition { number, rank, state }: &FeedPosition| {
        ChangeCursor::new(&store, scope, &(number, rank, state))
    };
    let Some(after) = after else { return Ok(ChangePage::beginning(cursor(&last))) };
    let position = after.position(&store, scope);
    let Some(after) = position.map(|(number, rank, state)| FeedPosition { number, rank, state }) else {
        return Ok(ChangePage::reset(cursor(&last)));
    };
    if after.number > last.number || state(reader, after.number)? != Some(after.state) {
        return Ok(ChangePage::reset(cursor(&last)));
    }
    if after == last {
        return Ok(ChangePage::beginning(cursor(&last)));
    }
    let most = most.max(1);
    let mut found = written(reader, scope, &after, &last, most)?;
    found.extend(removed(reader, scope, &after, &last, most)?);
    found.sort_by_key(|change| (change.number, change.rank));
    found.truncate(most);
    let end = match found.last() {
        Some(NumberedChange { number, rank, .. }) if found.len() == most => {
            let state = state(reader, *number)?.ok_or_else(|| damaged("revision"))?;
            FeedPosition { number: *number, rank: *rank, state }
        }
        _ => last,
    };
    let mut changes = found.into_iter().filter_map(|change| change.changed).collect();
    set_first_messages(reader, &after, &end, &mut changes)?;
    Ok(ChangePage { changes, cursor: cursor(&end), reset: false })
}

fn store_id(reader: &impl Reader) -> Result<String> {
    let sql = "SELECT value FROM schema_meta WHERE key = ?1";
    let id = reader.first(&Query::new(OPERATION, sql, [STORE_ID.into()], |row| row.text(0)))?;
    id.ok_or_else(|| damaged("store id"))
}

/// The end of the feed.
fn last<R: Reader>(reader: &R) -> Result<FeedPosition> {
    let decode = |row: &dyn Columns| Ok((row.integer(0)?, row.integer(1)?));
    let (number, state) =
        reader.first(&Query::new(OPERATION, R::DIALECT.changes.last, [], decode))?.unwrap_or_default();
    Ok(FeedPosition { number, rank: i64::MAX, state })
}

fn state<R: Reader>(reader: &R, number: i64) -> Result<Option<i64>> {
    // Before the first revision.
    if number == 0 {
        return Ok(Some(0));
    }
    reader.first(&Query::new(OPERATION, R::DIALECT.changes.state, [number.into()], |row| row.integer(0)))
}

/// The conditions on the rows of `s` between two places. `is_removal` is 1 for removals.
fn between<R: Reader>(
    scope: &Scope,
    after: &FeedPosition,
    last: &FeedPosition,
    is_removal: bool,
) -> Result<(Conditions, String)> {
    let mut conditions = Conditions::of_sessions(R::DIALECT, scope, &SessionFilter::default())?;
    let in_scope = conditions.sql();
    let column = R::DIALECT.changes.column;
    let [number, rank, last] = [after.number, after.rank, last.number].map(|value| conditions.bind(value));
    conditions.require(format!(
        "s.{column} >= {number} AND s.{column} <= {last}
         AND (s.{column} > {number} OR s.key * 2 + {} > {rank})",
        i64::from(is_removal)
    ));
    Ok((conditions, in_scope))
}

fn written<R: Reader>(
    reader: &R,
    scope: &Scope,
    after: &FeedPosition,
    last: &FeedPosition,
    most: usize,
) -> Result<Vec<NumberedChange>> {
    let (mut conditions, _) = between::<R>(scope, after, last, false)?;
    let (from, column) = (R::DIALECT.changes.sessions, R::DIALECT.changes.column);
    let page = conditions.bind(limit(most));
    let sql = format!(
        "SELECT {SESSION}, revision, s.{column}, s.key FROM {from} WHERE {}
         ORDER BY s.{column}, s.key LIMIT {page}",
        conditions.sql()
    );
    reader.rows(&Query::with_conditions(OPERATION, sql, conditions, |row| {
        let version = Version(row.integer(26)?.to_string());
        let from = ChangedFrom::default();
        let written = |session| SessionChanged::Written { session: Box::new(session), version, from };
        Ok(NumberedChange {
            number: row.integer(27)?,
            rank: rank(row.integer(28)?, false),
            changed: unless_damaged(rows::session(row))?.map(written),
        })
    }))
}

/// Sets the first messages that changed between two places. Every write of a message also writes its session, so the
/// messages of a page have no later numbers than its sessions. Removed messages were the last ones: then, nothing changed
/// before the end.
///
/// After a page that was full, the reader lacks changes from before the place as well, of sessions that were changed again.
/// Then, the first messages stay unknown.
fn set_first_messages<R: Reader>(
    reader: &R,
    after: &FeedPosition,
    end: &FeedPosition,
    changes: &mut Vec<SessionChanged>,
) -> Result<()> {
    let is_known = after.rank == i64::MAX && !changes.is_empty();
    let Some(messages) = R::DIALECT.changes.messages.filter(|_| is_known) else { return Ok(()) };
    let sql = format!(
        "SELECT user_id, session_id, min(sequence) FROM {messages}
         WHERE revision > ?1 AND revision <= ?2 GROUP BY user_id, session_id"
    );
    let decode = |row: &dyn Columns| Ok(((row.text(0)?, row.text(1)?), row.integer(2)?));
    let rows = reader.rows(&Query::new(OPERATION, sql, [after.number.into(), end.number.into()], decode))?;
    let first: HashMap<(String, String), i64> = rows.into_iter().collect();
    for changed in changes {
        if let SessionChanged::Written { session, from, .. } = changed {
            let key = (session.user_id.to_string(), session.session_id.to_string());
            let changed = first.get(&key).and_then(|sequence| u32::try_from(*sequence).ok());
            from.messages = changed.unwrap_or(u32::MAX).min(session.message_count);
        }
    }
    Ok(())
}

/// The removals of sessions that were in the scope. If a session is in the scope again, its last write is reported instead.
fn removed<R: Reader>(
    reader: &R,
    scope: &Scope,
    after: &FeedPosition,
    last: &FeedPosition,
    most: usize,
) -> Result<Vec<NumberedChange>> {
    let (mut conditions, in_scope) = between::<R>(scope, after, last, true)?;
    let column = R::DIALECT.changes.column;
    let page = conditions.bind(limit(most));
    let sql = format!(
        "SELECT r.user_id, r.session_id, r.number, r.key
         FROM (SELECT s.user_id, s.session_id, s.{column} AS number, s.key FROM session_removals s WHERE {}) r
         WHERE NOT EXISTS (
             SELECT 1 FROM sessions s
             WHERE s.user_id = r.user_id AND s.session_id = r.session_id AND {in_scope})
         ORDER BY r.number, r.key LIMIT {page}",
        conditions.sql()
    );
    reader.rows(&Query::with_conditions(OPERATION, sql, conditions, |row| {
        let key = SessionKey::new(UserId::new(row.text(0)?)?, SessionId::new(row.text(1)?)?);
        Ok(NumberedChange {
            number: row.integer(2)?,
            rank: rank(row.integer(3)?, true),
            changed: Some(SessionChanged::Removed(key)),
        })
    }))
}
