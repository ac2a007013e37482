//! The newest messages that match a query, however well, and the messages that use tools.

use std::collections::{BTreeSet, HashSet};

use amplifier_session_core::{
    Result, Scope,
    backend::{Candidates, DatedMessage, TextQuery},
    content::MessageLine,
    model::{RawJson, Role, SessionId},
};
use amplifier_session_sql::{
    Columns, Query, Reader as _, is_one_of,
    rows::{DATED_MESSAGE, dated_message},
};
use tokio_postgres::types::Type;

use super::{
    block::{TextKey, decode_texts},
    removed::RemovedKeys,
    search::{LOOKED_UP, each_match, lists},
};
use crate::{columns::PgRow, connection::PgReader, index::in_scope_of};

const OPERATION: &str = "newest_messages";

/// Number of messages whose lines are read at a time.
const READ_AT_ONCE: usize = 512;

/// The newest messages with a text that matches a query. `reader` reads one snapshot.
pub(crate) fn newest(reader: &PgReader<'_>, query: &TextQuery) -> Result<Candidates<DatedMessage>> {
    let keys = matching(reader, query)?;
    let mut messages = in_scope(reader, query, keys)?;
    if !query.tools.is_empty() {
        messages = with_tools(reader, query, messages)?;
    }
    messages.truncate(query.limit);
    Ok(Candidates::new(messages.into_iter().map(|(_, message)| message).collect()))
}

/// The keys of messages with a matching text, in scope or not.
fn matching(reader: &PgReader<'_>, query: &TextQuery) -> Result<BTreeSet<i64>> {
    let removed = RemovedKeys::read(reader, OPERATION)?;
    let mut keys = BTreeSet::new();
    if query.terms.is_empty() {
        let is_asked_for = |text: TextKey| {
            text.content_type().is_some_and(|of| query.content_types.contains(of)) && !removed.have(text)
        };
        for text in all_texts(reader, query)?.into_iter().filter(|text| is_asked_for(*text)) {
            keys.insert(text.key());
        }
        return Ok(keys);
    }
    let lists = lists(reader, query)?;
    each_match(query, lists, &removed, &mut |text, _| {
        keys.insert(text.key());
    })?;
    Ok(keys)
}

/// All texts that the scope may have.
fn all_texts(reader: &PgReader<'_>, query: &TextQuery) -> Result<Vec<TextKey>> {
    let user = match &query.scope {
        Scope::User(user) => Some(user.as_str()),
        _ => None,
    };
    let sql = "SELECT texts FROM text_blocks WHERE $1::text IS NULL OR user_id = $1";
    let mut texts = Vec::new();
    for row in &reader.query(OPERATION, sql, &[(&user, Type::TEXT)])? {
        texts.extend(decode_texts(PgRow(row).bytes_ref(0)?)?.into_iter().map(|(text, _)| text));
    }
    Ok(texts)
}

/// Those of the messages that the query admits, newest first, with their keys.
fn in_scope(
    reader: &PgReader<'_>,
    query: &TextQuery,
    keys: BTreeSet<i64>,
) -> Result<Vec<(i64, DatedMessage)>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let (tables, mut conditions) = in_scope_of("transcripts", "t", &query.scope, &query.filter)?;
    if keys.len() <= LOOKED_UP {
        conditions.require(is_one_of("t.key", keys.iter().copied()));
    }
    let sql = format!(
        "SELECT {DATED_MESSAGE} {tables} WHERE {}
            ORDER BY t.ts DESC, t.key DESC",
        conditions.sql()
    );
    let mut found = reader.rows(&Query::with_conditions(OPERATION, sql, conditions, dated_message).once())?;
    found.retain(|(key, _)| keys.contains(key));
    Ok(found)
}

/// The newest of these messages that use the tools of the query, at most its limit.
fn with_tools(
    reader: &PgReader<'_>,
    query: &TextQuery,
    messages: Vec<(i64, DatedMessage)>,
) -> Result<Vec<(i64, DatedMessage)>> {
    let mut found = Vec::new();
    for page in messages.chunks(READ_AT_ONCE) {
        let users = users_of_tools(reader, query, page.iter().map(|(key, _)| *key).collect())?;
        found.extend(page.iter().filter(|(key, _)| users.contains(key)).cloned());
        if found.len() >= query.limit {
            break;
        }
    }
    Ok(found)
}

/// Those of the messages with these keys that use the tools of the query. Their lines are read.
pub(super) fn users_of_tools(
    reader: &PgReader<'_>,
    query: &TextQuery,
    keys: BTreeSet<i64>,
) -> Result<HashSet<i64>> {
    let decode = |row: &dyn Columns| {
        let (session, role) = (SessionId::new(row.text(1)?)?, row.text_ref(2)?.parse::<Role>()?);
        let raw = RawJson::new(row.line(3)?.as_ref());
        Ok((row.integer(0)?, MessageLine::stored(&raw, role, session.source()).used_tools()))
    };
    let mut users = HashSet::new();
    let keys: Vec<i64> = keys.into_iter().collect();
    for keys in keys.chunks(READ_AT_ONCE) {
        let sql = format!(
            "SELECT t.key, t.session_id, t.role, t.raw FROM transcripts t WHERE {}",
            is_one_of("t.key", keys.iter().copied())
        );
        let read = reader.rows(&Query::new(OPERATION, sql, [], decode).once())?;
        users.extend(read.into_iter().filter(|(_, used)| query.has_tools(used)).map(|(key, _)| key));
    }
    Ok(users)
}
