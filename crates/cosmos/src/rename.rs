//! Another name for a user: partitions carry it, so that every document moves.

use std::collections::{HashMap, HashSet};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    backend::SessionQuery,
    model::{Session, SessionKey, UserId},
};
use serde_json::Value;

use crate::{
    client::{Container, Operation, Outcome, Within},
    documents::{DeletedDocument, FilesDocument, RenamedFrom, Rows, SessionDocument},
    error, events, ids,
    lease::{self, Expected, WriteLease},
    queries, sessions,
    store::Store,
    write,
};

/// Moves all sessions of `from`; returns how many. When it breaks off, repeating it completes it: a session that has its
/// new name and not yet lost its old one says so.
pub(crate) async fn rename(store: &Store, from: &UserId, to: &UserId) -> Result<u64> {
    let old = all_sessions(store, from, to).await?;
    let moving = check(store, &old, (from, to)).await?;
    for session in &old {
        let (old, new) = (session.key(), SessionKey::new(to.clone(), session.session_id.clone()));
        // In one order, so that two that move sessions to and fro don't wait for each other.
        let (first, second) = if old < new { (&old, &new) } else { (&new, &old) };
        let _turns = (store.session_lock(first).await, store.session_lock(second).await);
        // Held until it is gone: what somebody wrote after it was copied would be lost.
        let Some(mut writer) = WriteLease::begin(store, &old, &Expected::Any, None).await? else { continue };
        if !moving.contains(&old)
            && let Err(cause) = move_session(store, &mut writer, &old, &new).await
        {
            return Err(writer.give_up(cause).await);
        }
        // From here on nobody writes it under its old name, also when the removal breaks off.
        writer.hide().await?;
        write::remove(store, writer, &old, false).await?;
        settle(store, &new).await?;
    }
    move_deletions(store, from, to).await?;
    Ok(old.len() as u64)
}

/// What is remembered of deleted sessions goes with the name, too.
async fn move_deletions(store: &Store, from: &UserId, to: &UserId) -> Result<()> {
    let deletions = sessions::deletions(store, from).await?;
    let copies = deletions.iter().map(|old| Operation::upsert(&DeletedDocument::new(to, &old.session_id)));
    store.sessions.write_many(to.as_str(), copies.collect::<Result<_>>()?).await?;
    let gone = deletions.into_iter().map(|old| Operation::Delete { id: old.id, etag: None });
    // Where one is refused, somebody else renames the same user.
    store.sessions.write_many(from.as_str(), gone.collect()).await.map(drop)
}

/// Those that reads show, and those that an earlier rename has copied and not yet removed.
async fn all_sessions(store: &Store, from: &UserId, to: &UserId) -> Result<Vec<Session>> {
    let shown = SessionQuery::new(from.clone()).with_limit(usize::MAX);
    let mut all = sessions::list(store, &shown).await?;
    let within = Within::Partition(from.as_str());
    let hidden: Vec<SessionDocument> = store.sessions.all(within, queries::hidden_sessions()).await?;
    for document in hidden {
        let key = SessionKey::new(to.clone(), document.session.session_id.clone());
        if lease::read(store, &key).await?.is_some_and(|copy| is_copy(&copy, &document)) {
            all.push(document.session);
        }
    }
    Ok(all)
}

/// Whether one session is a copy of the other as that is now. One that is hidden has not been written since.
fn is_copy(copy: &SessionDocument, old: &SessionDocument) -> bool {
    copy.committed
        && copy.renamed_from.as_ref().is_some_and(|from| {
            from.user_id == old.session.user_id && (!old.committed || from.version == old.version)
        })
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
        let Some(found) = lease::read(store, &key).await?.filter(|found| found.committed) else { continue };
        match lease::read(store, &session.key()).await? {
            Some(old) if is_copy(&found, &old) => {
                moving.insert(session.key());
            }
            _ => return Err(twice(format!("a session {}", session.session_id))),
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
async fn move_session(
    store: &Store,
    old: &mut WriteLease<'_>,
    from: &SessionKey,
    to: &SessionKey,
) -> Result<()> {
    let mut renamed = old.document.session.clone();
    renamed.user_id = to.user_id.clone();
    let new = WriteLease::begin(store, to, &Expected::Exactly(None), Some(&renamed)).await?;
    let mut new = new.ok_or_else(error::conflict)?;
    match copy(store, old, &mut new, (from, to)).await {
        Ok(files) => {
            new.document.session = renamed;
            let version = old.document.version.clone();
            new.document.renamed_from = Some(RenamedFrom { user_id: from.user_id.clone(), version });
            (new.document.texts, new.document.text_tokens) = (old.document.texts, old.document.text_tokens);
            new.finish(files.as_ref()).await.map(drop)
        }
        Err(cause) => Err(new.give_up(cause).await),
    }
}

/// Copies the rows; the answer is what is kept beside the session's fields.
async fn copy(
    store: &Store,
    old: &WriteLease<'_>,
    new: &mut WriteLease<'_>,
    (from, to): (&SessionKey, &SessionKey),
) -> Result<Option<FilesDocument>> {
    let chunks = documents(&store.chunks, from).await?;
    let chunks = chunks.into_iter().map(|document| Operation::Upsert(in_partition(document, to)));
    store.chunks.write_many(&ids::partition(to), chunks.collect()).await?;
    let known = new.known().clone();
    let messages = copy_rows(&store.messages, (old, from), (new, to), known.messages.as_ref()).await?;
    let events = copy_rows(&store.events, (old, from), (new, to), known.events.as_ref()).await?;
    let rows = |end: Option<&Rows>, fence| end.map(|rows| Rows { end: rows.end, fence });
    new.document.message_rows = rows(old.known().messages.as_ref(), messages);
    new.document.event_rows = rows(old.known().events.as_ref(), events);
    Ok(sessions::files(store, from).await?.map(|mut files| {
        files.user_id = to.user_id.clone();
        files
    }))
}

/// Copies the rows of one container, and removes what an earlier attempt left there; the answer is the ETag of the fence.
async fn copy_rows(
    container: &Container,
    (old, from): (&WriteLease<'_>, &SessionKey),
    (new, to): (&WriteLease<'_>, &SessionKey),
    known: Option<&Rows>,
) -> Result<Option<String>> {
    let (old_partition, new_partition) = (ids::partition(from), ids::partition(to));
    // Whoever wrote the old rows before can't any more.
    old.fence(container, &old_partition, None).await?;
    let mut fence = new.fence(container, &new_partition, known).await?;
    let moved = documents(container, from).await?;
    let mut operations = Vec::new();
    if known.is_none() {
        let kept: HashSet<&str> = moved.iter().filter_map(id_of).chain([ids::FENCE]).collect();
        for left in documents(container, to).await? {
            if let Some(id) = id_of(&left).filter(|id| !kept.contains(id)) {
                operations.push(Operation::Delete { id: id.to_owned(), etag: None });
            }
        }
    }
    let moved = moved.into_iter().filter(|document| id_of(document) != Some(ids::FENCE));
    operations.extend(moved.map(|document| Operation::Upsert(in_partition(document, to))));
    fence.write(operations).await?;
    Ok(fence.into_etag())
}

async fn documents(container: &Container, key: &SessionKey) -> Result<Vec<Value>> {
    container.all(Within::Partition(&ids::partition(key)), queries::everything()).await
}

fn id_of(document: &Value) -> Option<&str> {
    document.get("id").and_then(Value::as_str)
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
    let Some(mut document): Option<SessionDocument> = lease::read(store, key).await? else { return Ok(()) };
    document.renamed_from = None;
    let replace = Operation::replace(document.id.clone(), &document, &document.etag)?;
    match store.sessions.write(key.user_id.as_str(), vec![replace]).await? {
        Outcome::Done(_) => Ok(()),
        Outcome::Refused => Err(error::conflict()),
    }
}
