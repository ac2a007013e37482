//! Another name for a user: partitions carry it, so that every document moves.

use std::collections::{HashMap, HashSet};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::SessionQuery,
    model::{Session, SessionKey, UserId},
};
use serde_json::Value;

use crate::{
    client::{Operation, Outcome, Within},
    documents::SessionDocument,
    error, events, ids, queries, sessions,
    store::Store,
    write,
    writer::{self, Expected, Writer},
};

/// Moves all sessions of `from`; returns how many. When it breaks off, repeating it completes it: a session that has its
/// new name and not yet lost its old one says so.
pub(crate) async fn rename(store: &Store, from: &UserId, to: &UserId) -> Result<u64> {
    let old = all_sessions(store, from).await?;
    let moving = check(store, &old, (from, to)).await?;
    for session in &old {
        if !moving.contains(&session.key()) {
            move_session(store, session, to).await?;
        }
        write::delete(store, &session.key()).await?;
        settle(store, &SessionKey::new(to.clone(), session.session_id.clone())).await?;
    }
    Ok(old.len() as u64)
}

async fn all_sessions(store: &Store, user: &UserId) -> Result<Vec<Session>> {
    sessions::list(store, &SessionQuery::new(user.clone()).with_limit(usize::MAX)).await
}

/// The old keys of sessions that have moved already, all but the deletion.
async fn check(
    store: &Store,
    old: &[Session],
    (from, to): (&UserId, &UserId),
) -> Result<HashSet<SessionKey>> {
    let twice = |what: String| Error::new(ErrorKind::Conflict, format!("{from} and {to} both have {what}"));
    let mut moving = HashSet::new();
    for session in old {
        let key = SessionKey::new(to.clone(), session.session_id.clone());
        match writer::read(store, &key).await? {
            Some(found) if found.renamed_from.as_ref() == Some(from) => {
                moving.insert(session.key());
            }
            Some(found) if found.committed => return Err(twice(format!("a session {}", session.session_id))),
            _ => {}
        }
    }
    let here: HashMap<String, String> = events::of_user(store, to)
        .await?
        .into_iter()
        .map(|event| (event.event_id, event.user_id_session_id))
        .collect();
    let ids_of_old: HashSet<String> = old.iter().map(|session| session.session_id.to_string()).collect();
    for event in events::of_user(store, from).await? {
        if let Some(partition) = here.get(&event.event_id)
            && !ids_of_old.contains(ids::session_of(partition)?.session_id.as_str())
        {
            return Err(twice(format!("an event {}", event.event_id)));
        }
    }
    Ok(moving)
}

/// Copies everything of a session into the partitions of its new name, its own document last.
async fn move_session(store: &Store, session: &Session, to: &UserId) -> Result<()> {
    let new = SessionKey::new(to.clone(), session.session_id.clone());
    let old_partition = ids::partition(&session.key());
    let mut renamed = session.clone();
    renamed.user_id = to.clone();
    let writer = Writer::begin(store, &new, &Expected::Exactly(None), Some(&renamed)).await?;
    let mut writer = writer.ok_or_else(error::conflict)?;
    for container in [&store.messages, &store.events, &store.chunks] {
        let documents: Vec<Value> =
            container.all(Within::Partition(&old_partition), queries::everything()).await?;
        let moved = documents.into_iter().filter(|document| document.get("id").is_none_or(|id| id != ids::FENCE));
        let operations = moved.map(|document| Operation::Upsert(in_partition(document, &new)));
        container.write_many(&ids::partition(&new), operations.collect()).await?;
    }
    let old = writer::read(store, &session.key()).await?.ok_or_else(error::conflict)?;
    let files = sessions::files(store, &session.key()).await?.map(|mut files| {
        files.user_id = to.clone();
        files
    });
    writer.document.session = renamed;
    writer.document.renamed_from = Some(session.user_id.clone());
    (writer.document.texts, writer.document.text_tokens) = (old.texts, old.text_tokens);
    writer.finish(files.as_ref()).await.map(drop)
}

/// The document as it is in a partition of `key`, without the fields of the service.
fn in_partition(mut document: Value, key: &SessionKey) -> Value {
    if let Some(fields) = document.as_object_mut() {
        fields.retain(|name, _| !name.starts_with('_'));
        fields.insert("user_id_session_id".to_owned(), ids::partition(key).into());
        if fields.contains_key("user_id") {
            fields.insert("user_id".to_owned(), key.user_id.as_str().into());
        }
    }
    document
}

/// The old session is gone: the new one is one like any other.
async fn settle(store: &Store, key: &SessionKey) -> Result<()> {
    let Some(mut document): Option<SessionDocument> = writer::read(store, key).await? else { return Ok(()) };
    document.renamed_from = None;
    let replace = Operation::replace(document.id.clone(), &document, &document.etag)?;
    match store.sessions.write(key.user_id.as_str(), vec![replace]).await? {
        Outcome::Done(_) => Ok(()),
        Outcome::Refused => Err(error::conflict()),
    }
}
