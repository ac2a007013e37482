//! Writing and deleting a session with its rows.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Add,
};

use amplifier_session_core::{
    Result,
    backend::{SessionChange, SessionDeletion, Version},
    model::{Message, Retimed, StoredEvent},
    text::Analyzer,
};
use serde::Deserialize;

use crate::{
    batch::Operation,
    documents::{
        EventDocument, FilesDocument, MessageDocument, RawDocument, RowsState, TextDocument, TextTotals,
        chunks_of, kind, texts_of,
    },
    error,
    fence::RowFence,
    ids,
    lease::{Expected, WriteLease},
    other_rows,
    query::{Select, VALUES},
    rewrite::Rewrite,
    store::Store,
    turns,
};

/// Writes one session.
pub(crate) async fn write(store: &Store, mut change: SessionChange) -> Result<Version> {
    let key = change.session.key();
    let _lock = store.locks.lock(&key).await;
    change.messages.put.sort_by_key(|message| message.sequence);
    change.events.put.sort_by_key(|stored| stored.event.sequence);
    let expected = Expected::Exactly(change.expected.clone());
    let files = files(store, &mut change).await?;
    let has_rows = !(change.messages.is_empty()
        && change.retimed.is_empty()
        && change.events.is_empty()
        && change.superseded.is_empty());
    if !has_rows && let Some(lease) = WriteLease::for_fields(store, &expected, &change.session).await? {
        return lease.finish(change.session, files.as_ref(), None).await;
    }
    let lease = WriteLease::begin(store, &key, &expected, Some(&change.session)).await?;
    let mut lease = lease.ok_or_else(error::conflict)?;
    match write_rows(store, &mut lease, &change).await {
        Ok(()) => lease.finish(change.session, files.as_ref(), None).await,
        Err(cause) => Err(lease.abandon(cause).await),
    }
}

/// The data stored beside the fields after the write, if the write changes it.
async fn files(store: &Store, change: &mut SessionChange) -> Result<Option<FilesDocument>> {
    if change.metadata_files.is_none() && change.skipped.is_none() && change.sync_state.is_none() {
        return Ok(None);
    }
    let mut files = FilesDocument::new(&change.session);
    if change.expected.is_some() {
        files = store.files(&change.session.key()).await?.unwrap_or(files);
    }
    files.merge(change);
    Ok(Some(files))
}

/// Writes messages and events concurrently, because they are in different containers.
async fn write_rows(store: &Store, lease: &mut WriteLease<'_>, change: &SessionChange) -> Result<()> {
    let partition = ids::partition(&change.session.key());
    other_rows::write_superseded(store, &partition, &change.superseded).await?;
    if lease.document.committed {
        // New messages have no summaries, and looking for them would cost a request for each append.
        let removed = change.removed_messages().below(lease.document.session.message_count);
        turns::mark_changed(store, &partition, change, &removed).await?;
        turns::remove_with(store, &partition, &removed).await?;
    }
    let known = lease.known.clone();
    let stored = &lease.document;
    let project = Some(&change.session.project_slug).filter(|slug| **slug != stored.session.project_slug);
    let rewrite = |container, known: Option<_>, truncate: Option<u32>, put| {
        // Unknown rows of a session without a completed write are leftovers.
        let is_leftover = known.is_none() && !stored.committed;
        let truncate = if is_leftover { 0 } else { truncate.unwrap_or(u32::MAX) };
        Rewrite { truncate, put, project, ..Rewrite::none(container, &partition, known) }
    };
    let put = change.messages.put.iter().map(|message| message.sequence).collect();
    let messages = rewrite(&store.messages, known.messages.as_ref(), change.messages.truncate, put);
    let put = change.events.put.iter().map(|stored| stored.event.sequence).collect();
    let events = rewrite(&store.events, known.events.as_ref(), change.events.truncate, put);
    // Both run to completion, so that no request is pending when the write is abandoned.
    let (messages, events) = tokio::join!(
        write_messages(store, lease, change, messages),
        write_events(store, lease, &change.events.put, events)
    );
    (lease.document.rows.messages, lease.document.texts) = messages?;
    lease.document.rows.events = events?;
    Ok(())
}

/// Writes messages. Returns the state of the rows for the next writer, and the totals of the session's texts.
async fn write_messages(
    store: &Store,
    lease: &WriteLease<'_>,
    change: &SessionChange,
    mut rewrite: Rewrite<'_>,
) -> Result<(Option<RowsState>, TextTotals)> {
    let texts_before = lease.document.texts;
    if rewrite.is_none() && change.retimed.is_empty() {
        return Ok((rewrite.known.cloned(), texts_before));
    }
    let (mut fence, mut operations) = rewrite.begin(lease).await?;
    let mut analyzer = Analyzer::new();
    let mut added = TextTotals::default();
    for message in &change.messages.put {
        let texts = texts_of(message, &mut analyzer);
        added = texts.iter().map(|text| text.totals()).fold(added, Add::add);
        operations.extend(put_message(&rewrite, message, &texts)?);
    }
    fence.write(operations).await?;
    // Last, because it reads the documents that a change of the project has written.
    retime(store, rewrite.partition, &change.retimed, &mut fence).await?;
    let replaces_all = rewrite.truncate == 0;
    let texts = if replaces_all {
        added
    } else if rewrite.only_appends() {
        texts_before + added
    } else {
        count_texts(store, rewrite.partition).await?
    };
    Ok((Some(rewrite.finish(fence)), texts))
}

/// Puts a message with its texts, in one batch if they fit. The pieces of its line precede it.
fn put_message(
    rewrite: &Rewrite<'_>,
    message: &Message,
    texts: &[TextDocument],
) -> Result<Vec<Vec<Operation>>> {
    let (mut document, pieces) = MessageDocument::new(message);
    document.etag = rewrite.etag(message.sequence, &document.id).unwrap_or_default().to_owned();
    let mut groups = Vec::new();
    for piece in &pieces {
        groups.push(vec![Operation::upsert(piece)?]);
    }
    let mut group = vec![Operation::save(&document)?];
    for text in texts {
        group.push(Operation::upsert(text)?);
    }
    let ids =
        pieces.iter().map(|piece| &piece.id).chain(texts.iter().map(|text| &text.id)).chain([&document.id]);
    group.extend(rewrite.leftovers(message.sequence, &ids.map(String::as_str).collect()));
    groups.push(group);
    Ok(groups)
}

/// Gives messages new times, each with its texts and vectors, because searches filter those by time. If the vectors of
/// a message are written concurrently, the message changes, and the batch is rejected.
async fn retime(store: &Store, partition: &str, retimed: &[Retimed], fence: &mut RowFence<'_>) -> Result<()> {
    if retimed.is_empty() {
        return Ok(());
    }
    fence.hold().await?;
    for some in retimed.chunks(VALUES) {
        let times: BTreeMap<u32, &Retimed> = some.iter().map(|retimed| (retimed.sequence, retimed)).collect();
        let sequences: Vec<u32> = times.keys().copied().collect();
        let mut groups: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
        let kinds = [kind::MESSAGE, kind::TEXT, kind::VECTOR, kind::TURN].join("', '");
        let kinds = format!("c.type IN ('{kinds}')");
        let select = Select::default().within(partition).and(kinds).at(&sequences);
        for mut row in store.messages.all::<RawDocument>(select.documents()).await? {
            let Some(retimed) = row.sequence().and_then(|sequence| times.get(&sequence)) else { continue };
            row.set("ts", String::from(retimed.ts));
            let group = groups.entry(retimed.sequence).or_default();
            if row.kind == kind::MESSAGE {
                row.set("ts_source", retimed.ts_source.as_str());
                row.set("ts_estimated", retimed.ts_source.is_estimated());
                group.insert(0, Operation::save(&row)?);
            } else {
                group.push(Operation::upsert(&row)?);
            }
        }
        fence.write(groups.into_values().collect()).await?;
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
struct CountedTexts {
    texts: u64,
    /// `None` if there is no text.
    tokens: Option<u64>,
}

/// Counts the texts of a partition.
async fn count_texts(store: &Store, partition: &str) -> Result<TextTotals> {
    let query = Select::rows(kind::TEXT, partition).and("c.part = 0");
    let query = query.fields("COUNT(1) AS texts, SUM(c.length) AS tokens");
    let counted = store.messages.all::<CountedTexts>(query).await?.pop();
    let totals = |CountedTexts { texts, tokens }| TextTotals { texts, text_tokens: tokens.unwrap_or(0) };
    Ok(counted.map(totals).unwrap_or_default())
}

/// Writes chunks first, then the events that refer to them. Deletes chunks that no event refers to any more.
async fn write_events(
    store: &Store,
    lease: &WriteLease<'_>,
    put: &[StoredEvent],
    mut rewrite: Rewrite<'_>,
) -> Result<Option<RowsState>> {
    if rewrite.is_none() {
        return Ok(rewrite.known.cloned());
    }
    let partition = rewrite.partition;
    let (mut fence, mut operations) = rewrite.begin(lease).await?;
    let (mut chunks, mut ids) = (Vec::new(), HashSet::new());
    for stored in put {
        let chunks_of_event = chunks_of(stored);
        operations.push(vec![Operation::upsert(&EventDocument::new(stored, &chunks_of_event))?]);
        for chunk in chunks_of_event {
            chunks.push(Operation::upsert(&chunk)?);
            ids.insert(chunk.id);
        }
    }
    store.chunks.write_many(partition, chunks).await?;
    fence.write(operations).await?;
    let unused: Vec<String> = rewrite.old_chunks().filter(|id| !ids.contains(*id)).cloned().collect();
    if !unused.is_empty() {
        // A writer that has taken over the session may need them.
        lease.check_ownership().await?;
        let select = Select::rows(kind::CHUNK, partition).with("ARRAY_CONTAINS(@, c.id)", unused);
        // If another process deletes one at the same time, the others are deleted with the session.
        delete_chunks(store, partition, select).await?;
    }
    Ok(Some(rewrite.finish(fence)))
}

/// Deletes chunks. Returns false if another process deleted one at the same time, so that some remain.
async fn delete_chunks(store: &Store, partition: &str, select: Select) -> Result<bool> {
    let ids: Vec<String> = store.chunks.all(select.fields("VALUE c.id")).await?;
    store.chunks.write_many(partition, ids.into_iter().map(Operation::delete).collect()).await
}

/// Deletes a session. Returns whether reads showed it.
pub(crate) async fn delete(store: &Store, session: &SessionDeletion) -> Result<bool> {
    let key = &session.key;
    let _lock = store.locks.lock(key).await;
    let expected = session.expected.clone().map_or(Expected::Any, Expected::IfStored);
    match WriteLease::begin(store, key, &expected, None).await? {
        Some(lease) => {
            let existed = lease.document.committed;
            complete_deletion(store, lease, existed).await.map(|()| existed)
        }
        None => Ok(false),
    }
}

/// Completes the deletion of a session. Deletes its rows first, so that an interrupted deletion can be repeated.
/// Records the deletion if `remember` is set.
pub(crate) async fn complete_deletion(store: &Store, lease: WriteLease<'_>, remember: bool) -> Result<()> {
    match delete_rows(store, &lease).await {
        Ok(files_exist) => lease.finish_deletion(files_exist, remember).await,
        Err(cause) => Err(lease.abandon(cause).await),
    }
}

/// Deletes all documents of a session except those in the container of sessions. Returns whether there is one beside
/// the session's own.
async fn delete_rows(store: &Store, lease: &WriteLease<'_>) -> Result<bool> {
    let key = lease.document.session.key();
    let partition = ids::partition(&key);
    for container in [&store.messages, &store.events] {
        // Ignores the known state of the rows, because a fence that does not exist could not be deleted.
        let mut rewrite = Rewrite { truncate: 0, ..Rewrite::none(container, &partition, None) };
        let (mut fence, removals) = rewrite.begin(lease).await?;
        fence.write(removals).await?;
        // A writer that only seemed dead must not find its fence missing: it could put rows of a session that does not
        // exist.
        if !lease.took_over {
            fence.delete().await?;
        }
    }
    error::check(delete_chunks(store, &partition, Select::rows(kind::CHUNK, &partition)).await?)?;
    other_rows::delete_superseded(store, &partition).await?;
    turns::delete_all(store, &partition).await?;
    Ok(store.files(&key).await?.is_some())
}
