//! Renaming a user. Partition keys contain the user's name, so every document moves.

use std::collections::{BTreeMap, HashMap};

use amplifier_session_core::{
    Error, ErrorKind, Result,
    model::{SessionKey, UserId},
};

use crate::{
    batch::Operation,
    client::Container,
    documents::{
        DeletedDocument, FilesDocument, KnownRows, RawDocument, RenamedFrom, RowsState, SessionDocument, kind,
    },
    error,
    events::event_refs,
    ids,
    lease::{Expected, WriteLease},
    query::Select,
    store::Store,
    write,
};

/// Moves all sessions of `from` to `to`. Returns their number. If it is interrupted, repeating it completes it: until
/// the old session is deleted, the new one records of which session it is a copy.
pub(crate) async fn rename(store: &Store, from: &UserId, to: &UserId) -> Result<u64> {
    let sessions = sessions_to_move(store, from, to).await?;
    for (old, is_copied) in &sessions {
        let new = SessionKey::new(to.clone(), old.session_id.clone());
        // Always in the same order, so that opposite renames do not wait for each other.
        let (first, second) = if *old < new { (old, &new) } else { (&new, old) };
        let _locks = (store.locks.lock(first).await, store.locks.lock(second).await);
        // Held until the session is deleted, so that nothing can be written after the copy.
        let Some(mut lease) = WriteLease::begin(store, old, &Expected::Any, None).await? else { continue };
        if !is_copied && let Err(cause) = copy_session(store, &lease, &new).await {
            return Err(lease.abandon(cause).await);
        }
        // Afterwards, nobody writes it under its old name, even if the deletion is interrupted.
        lease.hide().await?;
        write::complete_deletion(store, lease, false).await?;
        clear_renamed_from(store, &new).await?;
    }
    move_deletions(store, from, to).await?;
    Ok(sessions.len() as u64)
}

/// Moves the records of deleted sessions.
async fn move_deletions(store: &Store, from: &UserId, to: &UserId) -> Result<()> {
    let deletions = store.deletions(from).await?;
    let copies = deletions.iter().map(|old| Operation::upsert(&DeletedDocument::new(to, &old.session_id)));
    store.sessions.write_many(to.as_str(), copies.collect::<Result<_>>()?).await?;
    let deletions = deletions.into_iter().map(|old| Operation::delete(old.id));
    // Rejected if another process renames the same user.
    store.sessions.write_many(from.as_str(), deletions.collect()).await.map(drop)
}

/// The sessions of `from` that reads show, and sessions that an earlier rename copied and hid but did not delete yet.
/// Each comes with a flag that tells whether it was copied. `Conflict` if both users have the same session or event.
async fn sessions_to_move(store: &Store, from: &UserId, to: &UserId) -> Result<BTreeMap<SessionKey, bool>> {
    let shared = |what: String| Error::new(ErrorKind::Conflict, format!("{from} and {to} both have {what}"));
    let mut sessions = BTreeMap::new();
    let select = Select::rows(kind::SESSION, from.as_str());
    for old in store.sessions.all::<SessionDocument>(select.documents()).await? {
        let SessionKey { session_id, .. } = old.session.key();
        let found = store.session(&SessionKey::new(to.clone(), session_id.clone())).await?;
        let found = found.filter(|found| found.committed);
        let is_copied = found.as_ref().is_some_and(|found| is_copy(found, &old));
        if old.committed && found.is_some() && !is_copied {
            return Err(shared(format!("a session {session_id}")));
        }
        if old.committed || is_copied {
            sessions.insert(old.session.key(), is_copied);
        }
    }
    let events = store.events.all(event_refs(to, None)).await?.into_iter();
    let present: HashMap<String, String> = events.map(|(id, partition, _)| (id, partition)).collect();
    for (id, ..) in store.events.all(event_refs(from, None)).await? {
        let Some(partition) = present.get(&id) else { continue };
        let copied_from = SessionKey { user_id: from.clone(), ..ids::session_of(partition)? };
        if !sessions.contains_key(&copied_from) {
            return Err(shared(format!("an event {id}")));
        }
    }
    Ok(sessions)
}

/// Whether one session is a copy of the current state of the other. A hidden session has not been written since.
fn is_copy(copy: &SessionDocument, old: &SessionDocument) -> bool {
    copy.committed
        && copy.renamed_from.as_ref().is_some_and(|from| {
            from.user_id == old.session.user_id && (!old.committed || from.version == old.version)
        })
}

/// Copies everything of a session into the partitions of its new name, its own document last.
async fn copy_session(store: &Store, old: &WriteLease<'_>, to: &SessionKey) -> Result<()> {
    let mut session = old.document.session.clone();
    let from = session.key();
    session.user_id = to.user_id.clone();
    let new = WriteLease::begin(store, to, &Expected::Exactly(None), Some(&session)).await?;
    let mut new = new.ok_or_else(error::conflict)?;
    match copy_rows(store, old, &mut new, to).await {
        Ok(files) => {
            let version = old.document.version.clone();
            let renamed_from = RenamedFrom { user_id: from.user_id, version };
            new.document.texts = old.document.texts;
            new.finish(session, files.as_ref(), Some(renamed_from)).await.map(drop)
        }
        Err(cause) => Err(new.abandon(cause).await),
    }
}

/// Copies the rows. Returns the data stored beside the session's fields.
async fn copy_rows(
    store: &Store,
    old: &WriteLease<'_>,
    new: &mut WriteLease<'_>,
    to: &SessionKey,
) -> Result<Option<FilesDocument>> {
    let from = old.document.session.key();
    let chunks = rows(&store.chunks, &ids::partition(&from)).await?;
    let chunks = chunks.into_iter().map(|document| Operation::upsert(&moved(document, to)));
    store.chunks.write_many(&ids::partition(to), chunks.collect::<Result<_>>()?).await?;
    new.document.rows = KnownRows {
        messages: copy_container(&store.messages, old, new, |known| known.messages.as_ref()).await?,
        events: copy_container(&store.events, old, new, |known| known.events.as_ref()).await?,
    };
    Ok(store.files(&from).await?.map(|mut files| {
        files.user_id = to.user_id.clone();
        files
    }))
}

/// Copies the rows of one container, and deletes rows that an earlier attempt left. `known` selects the known state of
/// the rows in this container. Returns that state for the next writer.
async fn copy_container(
    container: &Container,
    old: &WriteLease<'_>,
    new: &WriteLease<'_>,
    known: impl Fn(&KnownRows) -> Option<&RowsState>,
) -> Result<Option<RowsState>> {
    let to = new.document.session.key();
    let (old_partition, new_partition) = (ids::partition(&old.document.session.key()), ids::partition(&to));
    // Afterwards, no earlier writer can change the old rows.
    old.fence(container, &old_partition, None).await?;
    let mut fence = new.fence(container, &new_partition, known(&new.known)).await?;
    let moved: Vec<_> =
        rows(container, &old_partition).await?.into_iter().map(|row| moved(row, &to)).collect();
    let left = match known(&new.known) {
        None => rows(container, &new_partition).await?.into_iter().map(|row| row.id).collect(),
        Some(_) => Vec::new(),
    };
    let operations = Operation::replace(left, &moved)?;
    fence.write(operations.into_iter().map(|operation| vec![operation]).collect()).await?;
    Ok(known(&old.known).map(|rows| RowsState { end: rows.end, fence: fence.into_etag() }))
}

/// All documents of a partition except the fence.
async fn rows(container: &Container, partition: &str) -> Result<Vec<RawDocument>> {
    let mut rows: Vec<RawDocument> = container.all(Select::default().within(partition).documents()).await?;
    rows.retain(|row| row.id != ids::FENCE);
    Ok(rows)
}

/// The document in the partition of `key`.
fn moved(mut document: RawDocument, key: &SessionKey) -> RawDocument {
    document.set("user_id_session_id", ids::partition(key));
    document.set("user_id", key.user_id.as_str());
    document
}

/// Records that the new session is no longer a copy, because the old one is deleted.
async fn clear_renamed_from(store: &Store, key: &SessionKey) -> Result<()> {
    let Some(mut document) = store.session(key).await? else { return Ok(()) };
    document.renamed_from = None;
    let save = vec![Operation::save(&document)?];
    error::check(store.sessions.write(key.user_id.as_str(), save).await?.is_some())
}
