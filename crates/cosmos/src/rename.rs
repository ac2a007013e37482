//! Renaming a user. Partition keys contain the user's name, so every document moves.

use std::collections::{BTreeSet, HashMap, HashSet};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope,
    model::{Session, SessionId, SessionKey, UserId},
    search::SessionFilter,
};

use crate::{
    batch::Operation,
    client::Container,
    documents::{DeletedDocument, FilesDocument, RawDocument, RenamedFrom, Rows, SessionDocument, kind},
    error,
    events::EventPlace,
    ids,
    lease::{Expected, WriteLease},
    query::Select,
    scope,
    store::Store,
    write,
};

/// Moves all sessions of `from` to `to`. Returns how many. If it breaks off, repeating it completes it: until the old session
/// is deleted, the new one records what it is a copy of.
pub(crate) async fn rename(store: &Store, from: &UserId, to: &UserId) -> Result<u64> {
    let old_sessions = all_sessions(store, from, to).await?;
    let copied = check(store, &old_sessions, (from, to)).await?;
    for session in &old_sessions {
        let (old, new) = (session.key(), SessionKey::new(to.clone(), session.session_id.clone()));
        // Always in the same order, so that opposite renames do not wait for each other.
        let (first, second) = if old < new { (&old, &new) } else { (&new, &old) };
        let _locks = (store.locks.lock(first).await, store.locks.lock(second).await);
        // Held until the session is deleted, so that nothing can be written after it was copied.
        let Some(mut lease) = WriteLease::begin(store, &old, &Expected::Any, None).await? else { continue };
        if !copied.contains(&old.session_id)
            && let Err(cause) = copy_session(store, &lease, &new).await
        {
            return Err(lease.abandon(cause).await);
        }
        // From here on, nobody writes it under its old name, even if the deletion breaks off.
        lease.hide().await?;
        write::complete_deletion(store, lease, false).await?;
        settle(store, &new).await?;
    }
    move_deletions(store, from, to).await?;
    Ok(old_sessions.len() as u64)
}

/// Moves the records of deleted sessions.
async fn move_deletions(store: &Store, from: &UserId, to: &UserId) -> Result<()> {
    let deletions = store.deletions(from).await?;
    let copies = deletions.iter().map(|old| Operation::upsert(&DeletedDocument::new(to, &old.session_id)));
    store.sessions.write_many(to.as_str(), copies.collect::<Result<_>>()?).await?;
    let deletions = deletions.into_iter().map(|old| Operation::delete(old.id));
    // Refused if another process renames the same user.
    store.sessions.write_many(from.as_str(), deletions.collect()).await.map(drop)
}

/// The sessions that reads show, and those that an earlier rename has copied and not yet deleted.
async fn all_sessions(store: &Store, from: &UserId, to: &UserId) -> Result<Vec<Session>> {
    let shown = scope::sessions(store, &Scope::User(from.clone()), &SessionFilter::default()).await?;
    let mut all: Vec<Session> = shown.into_values().collect();
    let hidden = Select::rows(kind::SESSION, from.as_str()).and("c.committed = false");
    for document in store.sessions.all::<SessionDocument>(hidden.documents()).await? {
        let key = SessionKey::new(to.clone(), document.session.session_id.clone());
        if store.session(&key).await?.is_some_and(|copy| is_copy(&copy, &document)) {
            all.push(document.fields.session);
        }
    }
    Ok(all)
}

/// Whether one session is a copy of the other as that is now. A hidden one has not been written since.
fn is_copy(copy: &SessionDocument, old: &SessionDocument) -> bool {
    copy.committed
        && copy.renamed_from.as_ref().is_some_and(|from| {
            from.user_id == old.session.user_id && (!old.committed || from.version == old.version)
        })
}

/// Checks that the users share no session or event. Returns the sessions that have already been copied.
async fn check(
    store: &Store,
    old_sessions: &[Session],
    (from, to): (&UserId, &UserId),
) -> Result<HashSet<SessionId>> {
    let shared = |what: String| Error::new(ErrorKind::Conflict, format!("{from} and {to} both have {what}"));
    let mut copied = HashSet::new();
    for session in old_sessions {
        let key = SessionKey::new(to.clone(), session.session_id.clone());
        let Some(found) = store.session(&key).await?.filter(|found| found.committed) else { continue };
        match store.session(&session.key()).await? {
            Some(old) if is_copy(&found, &old) => copied.insert(key.session_id),
            _ => return Err(shared(format!("a session {}", session.session_id))),
        };
    }
    let events = store.events.all(EventPlace::query(to, None)).await?.into_iter();
    let present: HashMap<String, String> =
        events.map(|event| (event.event_id, event.user_id_session_id)).collect();
    let old_ids: BTreeSet<&SessionId> = old_sessions.iter().map(|session| &session.session_id).collect();
    for event in store.events.all(EventPlace::query(from, None)).await? {
        if let Some(partition) = present.get(&event.event_id)
            && !old_ids.contains(&ids::session_of(partition)?.session_id)
        {
            return Err(shared(format!("an event {}", event.event_id)));
        }
    }
    Ok(copied)
}

/// Copies everything of a session into the partitions of its new name, its own document last.
async fn copy_session(store: &Store, old: &WriteLease<'_>, to: &SessionKey) -> Result<()> {
    let mut session = old.document.session.clone();
    let from = session.key();
    session.user_id = to.user_id.clone();
    let new = WriteLease::begin(store, to, &Expected::Exactly(None), Some(&session)).await?;
    let mut new = new.ok_or_else(error::conflict)?;
    match copy_rows(store, (old, &from), (&mut new, to)).await {
        Ok(files) => {
            let version = old.document.version.clone();
            let renamed_from = RenamedFrom { user_id: from.user_id, version };
            new.document.texts = old.document.texts;
            new.finish(session, files.as_ref(), Some(renamed_from)).await.map(drop)
        }
        Err(cause) => Err(new.abandon(cause).await),
    }
}

/// Copies the rows. Returns what is stored beside the session's fields.
async fn copy_rows(
    store: &Store,
    (old, from): (&WriteLease<'_>, &SessionKey),
    (new, to): (&mut WriteLease<'_>, &SessionKey),
) -> Result<Option<FilesDocument>> {
    let chunks = everything(&store.chunks, &ids::partition(from)).await?;
    let chunks = chunks.into_iter().map(|document| Operation::upsert(&moved(document, to)));
    store.chunks.write_many(&ids::partition(to), chunks.collect::<Result<_>>()?).await?;
    let (was, known) = (&old.known, new.known.clone());
    let fence = copy_container(&store.messages, (old, from), (new, to), known.messages.as_ref()).await?;
    new.document.rows.messages = was.messages.as_ref().map(|rows| Rows { end: rows.end, fence });
    let fence = copy_container(&store.events, (old, from), (new, to), known.events.as_ref()).await?;
    new.document.rows.events = was.events.as_ref().map(|rows| Rows { end: rows.end, fence });
    Ok(store.files(from).await?.map(|mut files| {
        files.user_id = to.user_id.clone();
        files
    }))
}

/// Copies the rows of one container, and deletes what an earlier attempt left there. Returns the ETag of the fence.
async fn copy_container(
    container: &Container,
    (old, from): (&WriteLease<'_>, &SessionKey),
    (new, to): (&WriteLease<'_>, &SessionKey),
    known: Option<&Rows>,
) -> Result<Option<String>> {
    let (old_partition, new_partition) = (ids::partition(from), ids::partition(to));
    // From here on, no earlier writer can change the old rows.
    old.fence(container, &old_partition, None).await?;
    let mut fence = new.fence(container, &new_partition, known).await?;
    let mut rows = everything(container, &old_partition).await?;
    rows.retain(|row| row.id != ids::FENCE);
    let mut operations = Vec::new();
    if known.is_none() {
        let kept: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).chain([ids::FENCE]).collect();
        let mut left = everything(container, &new_partition).await?;
        left.retain(|row| !kept.contains(row.id.as_str()));
        operations.extend(left.into_iter().map(|row| vec![Operation::delete(row.id)]));
    }
    for row in rows {
        operations.push(vec![Operation::upsert(&moved(row, to))?]);
    }
    fence.write(operations).await?;
    Ok(fence.into_etag())
}

async fn everything(container: &Container, partition: &str) -> Result<Vec<RawDocument>> {
    container.all(Select::default().within(partition).documents()).await
}

/// The document in the partition of `key`.
fn moved(mut document: RawDocument, key: &SessionKey) -> RawDocument {
    document.set("user_id_session_id", ids::partition(key));
    document.set("user_id", key.user_id.as_str());
    document
}

/// The old session is deleted, so the new one is no longer a copy.
async fn settle(store: &Store, key: &SessionKey) -> Result<()> {
    let Some(mut document) = store.session(key).await? else { return Ok(()) };
    document.renamed_from = None;
    let save = vec![Operation::save(&document)?];
    store.sessions.write(key.user_id.as_str(), save).await?.etags().map(drop)
}
