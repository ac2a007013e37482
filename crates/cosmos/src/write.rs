//! Writing and deleting sessions with their rows.

use std::collections::HashSet;

use amplifier_session_core::{
    Result,
    backend::{RowChange, SessionChange, Version},
    model::{Message, SessionKey, StoredEvent},
    text::Analyzer,
};
use serde::Deserialize;

use crate::{
    client::{Container, Operation, Within},
    documents::{
        EventDocument, FilesDocument, MessageDocument, TextDocument, chunks_of, kind, pieces_of, texts_of,
    },
    error,
    fence::Fence,
    ids, queries, sessions,
    store::Store,
    writer::{Expected, Writer},
};

/// A row that is there.
#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    sequence: u32,
    #[serde(rename = "_etag")]
    etag: String,
    /// Ids of the chunks of an event's payload.
    ids: Option<Vec<String>>,
}

impl Row {
    /// Removes it. A message only as it is: its vectors may come to it meanwhile.
    fn delete(&self) -> Operation {
        let etag = (self.kind == kind::MESSAGE).then(|| self.etag.clone());
        Operation::Delete { id: self.id.clone(), etag }
    }
}

/// What happens to the rows of a partition.
struct Plan {
    there: Vec<Row>,
    /// Rows from here on go, unless they are put.
    truncate: u32,
    put: HashSet<u32>,
}

impl Plan {
    async fn of<T>(
        container: &Container,
        partition: &str,
        change: &RowChange<T>,
        sequence: impl Fn(&T) -> u32,
        wipe: bool,
    ) -> Result<Self> {
        let truncate = if wipe { 0 } else { change.truncate.unwrap_or(u32::MAX) };
        let put: HashSet<u32> = change.put.iter().map(sequence).collect();
        let first = put.iter().copied().min().unwrap_or(u32::MAX).min(truncate);
        let there = if first == u32::MAX {
            Vec::new()
        } else {
            container.all(Within::Partition(partition), queries::rows_from(first)).await?
        };
        Ok(Self { there, truncate, put })
    }

    /// The rows that go, the last ones first: what is left of a removal that breaks off has no gap.
    fn removals(&self) -> Vec<Operation> {
        let goes = |row: &&Row| row.sequence >= self.truncate && !self.put.contains(&row.sequence);
        let mut rows: Vec<&Row> = self.there.iter().filter(goes).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.sequence));
        rows.into_iter().map(Row::delete).collect()
    }

    /// Removes what stands beside a row that is put, unless it has one of the ids that are put.
    fn leftovers(&self, sequence: u32, ids: &HashSet<&str>) -> Vec<Operation> {
        let rows = self.there.iter().filter(|row| row.sequence == sequence && !ids.contains(row.id.as_str()));
        rows.map(Row::delete).collect()
    }

    fn etag(&self, id: &str) -> Option<&str> {
        self.there.iter().find(|row| row.id == id).map(|row| row.etag.as_str())
    }

    /// Whether a row of another sequence stays as it is.
    fn keeps(&self, sequence: u32) -> bool {
        sequence < self.truncate && !self.put.contains(&sequence)
    }
}

/// Writes one session.
pub(crate) async fn write(store: &Store, mut change: SessionChange) -> Result<Version> {
    let key = change.session.key();
    let _turn = store.turn(&key).await;
    let expected = Expected::Exactly(change.expected.clone());
    let files = files(store, &mut change).await?;
    if change.messages.is_empty() && change.events.is_empty() {
        let writer = Writer::for_fields(store, &expected, &change.session).await?;
        let same_project =
            |writer: &Writer<'_>| writer.document.session.project_slug == change.session.project_slug;
        if let Some(mut writer) = writer.filter(same_project) {
            writer.document.session = change.session;
            return writer.finish(files.as_ref()).await;
        }
    }
    let writer = Writer::begin(store, &key, &expected, Some(&change.session)).await?;
    let mut writer = writer.ok_or_else(error::conflict)?;
    match write_rows(store, &mut writer, &change).await {
        Ok(()) => {
            writer.document.session = change.session;
            writer.finish(files.as_ref()).await
        }
        Err(cause) => Err(writer.give_up(cause).await),
    }
}

/// What is kept beside the fields as it is after the write, if the write changes it.
async fn files(store: &Store, change: &mut SessionChange) -> Result<Option<FilesDocument>> {
    if change.metadata_files.is_none() && change.skipped.is_none() && change.sync_state.is_none() {
        return Ok(None);
    }
    let found = match change.expected {
        Some(_) => sessions::files(store, &change.session.key()).await?,
        None => None,
    };
    let mut files = found.unwrap_or_else(|| FilesDocument::new(&change.session));
    files.merge(change);
    Ok(Some(files))
}

async fn write_rows(store: &Store, writer: &mut Writer<'_>, change: &SessionChange) -> Result<()> {
    let partition = ids::partition(&change.session.key());
    // What an unfinished first write left is not ours to keep.
    let wipe = !writer.document.committed;
    let moved = writer.document.session.project_slug != change.session.project_slug;
    if wipe || moved || !change.messages.is_empty() {
        let mut fence = Fence::take(&store.messages, &partition, writer.mark()).await?;
        let operations = message_operations(store, &partition, change, wipe, moved).await?;
        fence.write(operations).await?;
        let counted = count_texts(store, &partition).await?;
        (writer.document.texts, writer.document.text_tokens) = (counted.texts, counted.tokens.unwrap_or(0));
    }
    if wipe || moved || !change.events.is_empty() {
        let mut fence = Fence::take(&store.events, &partition, writer.mark()).await?;
        write_events(store, &mut fence, &partition, change, (wipe, moved)).await?;
    }
    Ok(())
}

async fn message_operations(
    store: &Store,
    partition: &str,
    change: &SessionChange,
    wipe: bool,
    moved: bool,
) -> Result<Vec<Operation>> {
    let plan = Plan::of(&store.messages, partition, &change.messages, |m| m.sequence, wipe).await?;
    let mut operations = plan.removals();
    if moved {
        let all = queries::rows(kind::MESSAGE, "*", 0, None);
        let stays: Vec<MessageDocument> = store.messages.all(Within::Partition(partition), all).await?;
        for mut document in stays.into_iter().filter(|document| plan.keeps(document.sequence)) {
            document.project_slug = change.session.project_slug.clone();
            operations.push(Operation::replace(document.id.clone(), &document, &document.etag)?);
        }
    }
    let mut analyzer = Analyzer::new();
    let mut put: Vec<&Message> = change.messages.put.iter().collect();
    put.sort_by_key(|message| message.sequence);
    for message in put {
        put_message(&mut operations, &plan, message, partition, &mut analyzer)?;
    }
    Ok(operations)
}

fn put_message(
    operations: &mut Vec<Operation>,
    plan: &Plan,
    message: &Message,
    partition: &str,
    analyzer: &mut Analyzer,
) -> Result<()> {
    let document = MessageDocument::new(message, partition);
    let pieces = pieces_of(message, &document);
    let texts: Vec<TextDocument> = texts_of(message, partition, analyzer);
    let beside =
        pieces.iter().map(|piece| piece.id.as_str()).chain(texts.iter().map(|text| text.id.as_str()));
    let ids: HashSet<&str> = beside.chain([document.id.as_str()]).collect();
    operations.extend(plan.leftovers(message.sequence, &ids));
    for piece in &pieces {
        operations.push(Operation::upsert(piece)?);
    }
    for text in &texts {
        operations.push(Operation::upsert(text)?);
    }
    operations.push(match plan.etag(&document.id) {
        Some(etag) => Operation::replace(document.id.clone(), &document, etag)?,
        None => Operation::create(&document)?,
    });
    Ok(())
}

/// Chunks first, then the events that name them, then chunks that no event names any more.
async fn write_events(
    store: &Store,
    fence: &mut Fence<'_>,
    partition: &str,
    change: &SessionChange,
    (wipe, moved): (bool, bool),
) -> Result<()> {
    let sequence = |stored: &StoredEvent| stored.event.sequence;
    let plan = Plan::of(&store.events, partition, &change.events, sequence, wipe).await?;
    let mut operations = plan.removals();
    if moved {
        let all = queries::rows(kind::EVENT, "*", 0, None);
        let stays: Vec<EventDocument> = store.events.all(Within::Partition(partition), all).await?;
        for mut document in stays.into_iter().filter(|document| plan.keeps(document.sequence)) {
            document.project_slug = change.session.project_slug.clone();
            operations.push(Operation::replace(document.id.clone(), &document, &document.etag)?);
        }
    }
    let mut named = HashSet::new();
    let mut chunks_put = Vec::new();
    let mut put: Vec<&StoredEvent> = change.events.put.iter().collect();
    put.sort_by_key(|stored| stored.event.sequence);
    for stored in put {
        let chunks = chunks_of(stored, partition);
        operations.push(Operation::upsert(&EventDocument::new(stored, partition, &chunks))?);
        for chunk in chunks {
            chunks_put.push(Operation::upsert(&chunk)?);
            named.insert(chunk.id);
        }
    }
    store.chunks.write_many(partition, chunks_put).await?;
    fence.write(operations).await?;
    let gone =
        plan.there.iter().filter(|row| !plan.keeps(row.sequence)).flat_map(|row| row.ids.iter().flatten());
    let gone: Vec<String> = gone.filter(|id| !named.contains(*id)).cloned().collect();
    remove_chunks(store, partition, &gone).await
}

/// Removes chunks, as far as they are there.
async fn remove_chunks(store: &Store, partition: &str, ids: &[String]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let there: Vec<Id> = store.chunks.all(Within::Partition(partition), queries::of_ids(ids)).await?;
    let deletions = there.into_iter().map(|found| Operation::Delete { id: found.id, etag: None });
    // Where one is refused, somebody else removed it: what is left is removed with the session.
    store.chunks.write_many(partition, deletions.collect()).await.map(drop)
}

#[derive(Debug, Deserialize)]
struct Id {
    id: String,
}

#[derive(Debug, Deserialize)]
struct CountedTexts {
    texts: u64,
    /// Nothing when there is no text.
    tokens: Option<u64>,
}

async fn count_texts(store: &Store, partition: &str) -> Result<CountedTexts> {
    let counted = store.messages.all(Within::Partition(partition), queries::count_texts()).await?;
    Ok(counted.into_iter().next().unwrap_or(CountedTexts { texts: 0, tokens: None }))
}

/// Removes a session: its rows first, so that a deletion that breaks off can be repeated.
pub(crate) async fn delete(store: &Store, key: &SessionKey) -> Result<bool> {
    let _turn = store.turn(key).await;
    let Some(writer) = Writer::begin(store, key, &Expected::Any, None).await? else { return Ok(false) };
    let committed = writer.document.committed;
    match delete_rows(store, &writer, key).await {
        Ok(files_exist) => writer.finish_deletion(files_exist).await.map(|()| committed),
        Err(cause) => Err(writer.give_up(cause).await),
    }
}

/// Removes everything of a session but its own document; whether it has another one.
async fn delete_rows(store: &Store, writer: &Writer<'_>, key: &SessionKey) -> Result<bool> {
    let partition = ids::partition(key);
    for container in [&store.messages, &store.events] {
        let mut fence = Fence::take(container, &partition, writer.mark()).await?;
        let nothing = RowChange::<()>::default();
        let plan = Plan::of(container, &partition, &nothing, |()| 0, true).await?;
        fence.write(plan.removals()).await?;
        fence.take_down().await?;
    }
    let chunks: Vec<Id> = store.chunks.all(Within::Partition(&partition), queries::ids()).await?;
    let deletions = chunks.into_iter().map(|chunk| Operation::Delete { id: chunk.id, etag: None });
    store.chunks.write_many(&partition, deletions.collect()).await?;
    Ok(sessions::files(store, key).await?.is_some())
}
