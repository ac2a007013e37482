//! Writing and deleting sessions with their rows.

use std::collections::{BTreeMap, HashSet};

use amplifier_session_core::{
    Result,
    backend::{RowChange, SessionChange, Version},
    model::{Message, Retimed, SessionKey, StoredEvent},
    text::Analyzer,
};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    client::{Container, Operation, Within},
    documents::{
        EventDocument, FilesDocument, MessageDocument, Rows, TextDocument, VectorDocument, chunks_of, kind,
        pieces_of, texts_of,
    },
    error,
    fence::Fence,
    ids,
    lease::{Expected, WriteLease},
    queries, sessions,
    store::Store,
};

/// How many messages get another time at once.
const RETIMED: usize = 500;

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
    /// Rows from the first changed one on, by their sequence.
    there: BTreeMap<u32, Vec<Row>>,
    /// No row before the first changed one has this sequence or a higher one.
    below: u32,
    /// Rows from here on go, unless they are put.
    truncate: u32,
    put: HashSet<u32>,
}

impl Plan {
    /// `end` says from which sequence on there are no rows, where that is known: what lies behind is not asked for.
    async fn of<T>(
        (container, partition): (&Container, &str),
        fence: &mut Fence<'_>,
        change: &RowChange<T>,
        sequence: impl Fn(&T) -> u32,
        wipe: bool,
        end: Option<u32>,
    ) -> Result<Self> {
        let truncate = if wipe { 0 } else { change.truncate.unwrap_or(u32::MAX) };
        let put: HashSet<u32> = change.put.iter().map(sequence).collect();
        let first = put.iter().copied().min().unwrap_or(u32::MAX).min(truncate);
        let end = end.unwrap_or(u32::MAX);
        let mut there: BTreeMap<u32, Vec<Row>> = BTreeMap::new();
        if first < end {
            fence.hold().await?;
            let rows: Vec<Row> =
                container.all(Within::Partition(partition), queries::rows_from(first)).await?;
            for row in rows {
                there.entry(row.sequence).or_default().push(row);
            }
        }
        Ok(Self { there, below: first.min(end), truncate, put })
    }

    /// The rows that go, the last ones first: what is left of a removal that breaks off has no gap.
    fn removals(&self) -> Vec<Operation> {
        let from_last = self.there.iter().rev();
        let gone = from_last.filter(|(sequence, _)| !self.keeps(**sequence) && !self.put.contains(sequence));
        gone.flat_map(|(_, rows)| rows).map(Row::delete).collect()
    }

    /// Removes what stands beside a row that is put, unless it has one of the ids that are put.
    fn leftovers(&self, sequence: u32, ids: &HashSet<&str>) -> Vec<Operation> {
        let rows = self.there.get(&sequence).into_iter().flatten();
        rows.filter(|row| !ids.contains(row.id.as_str())).map(Row::delete).collect()
    }

    fn etag(&self, sequence: u32, id: &str) -> Option<&str> {
        self.there.get(&sequence)?.iter().find(|row| row.id == id).map(|row| row.etag.as_str())
    }

    /// Whether a row of another sequence stays as it is.
    fn keeps(&self, sequence: u32) -> bool {
        sequence < self.truncate && !self.put.contains(&sequence)
    }

    /// From which sequence on there are no rows when it is done.
    fn end(&self) -> u32 {
        let kept = self.there.keys().rev().find(|sequence| self.keeps(**sequence));
        let last = kept.into_iter().chain(&self.put).max();
        last.map_or(0, |last| last.saturating_add(1)).max(self.below)
    }
}

/// Writes one session.
pub(crate) async fn write(store: &Store, mut change: SessionChange) -> Result<Version> {
    let key = change.session.key();
    let _turn = store.session_lock(&key).await;
    let expected = Expected::Exactly(change.expected.clone());
    let files = files(store, &mut change).await?;
    if change.messages.is_empty() && change.retimed.is_empty() && change.events.is_empty() {
        let writer = WriteLease::for_fields(store, &expected, &change.session).await?;
        let same_project =
            |writer: &WriteLease<'_>| writer.document.session.project_slug == change.session.project_slug;
        if let Some(mut writer) = writer.filter(same_project) {
            writer.document.session = change.session;
            writer.document.renamed_from = None;
            return writer.finish(files.as_ref()).await;
        }
    }
    let writer = WriteLease::begin(store, &key, &expected, Some(&change.session)).await?;
    let mut writer = writer.ok_or_else(error::conflict)?;
    match write_rows(store, &mut writer, &change).await {
        Ok(()) => {
            writer.document.session = change.session;
            writer.document.renamed_from = None;
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

/// Writes messages and events, side by side: they lie in different containers.
async fn write_rows(store: &Store, writer: &mut WriteLease<'_>, change: &SessionChange) -> Result<()> {
    let partition = ids::partition(&change.session.key());
    let known = writer.known().clone();
    let moved = writer.document.session.project_slug != change.session.project_slug;
    // What an unfinished first write left is not ours to keep.
    let wipe = |known: Option<&Rows>| !writer.document.committed && known.is_none();
    let of_messages = Rewrite { wipe: wipe(known.messages.as_ref()), moved };
    let of_events = Rewrite { wipe: wipe(known.events.as_ref()), moved };
    let messages = async {
        if !of_messages.is_needed() && change.messages.is_empty() && change.retimed.is_empty() {
            return Ok(None);
        }
        write_messages(store, writer, &partition, change, of_messages).await.map(Some)
    };
    let events = async {
        if !of_events.is_needed() && change.events.is_empty() {
            return Ok(known.events.clone());
        }
        write_events(store, writer, &partition, change, of_events).await.map(Some)
    };
    let (messages, events) = tokio::join!(messages, events);
    let (messages, events) = (messages?, events?);
    let document = &mut writer.document;
    document.event_rows = events;
    match messages {
        Some(written) => {
            document.message_rows = Some(written.rows);
            (document.texts, document.text_tokens) = (written.texts.texts, written.texts.tokens);
        }
        None => document.message_rows = known.messages,
    }
    Ok(())
}

/// Which rows a write touches beside those that it names.
#[derive(Debug, Clone, Copy)]
struct Rewrite {
    /// All that are there go.
    wipe: bool,
    /// Those that stay get another project.
    moved: bool,
}

impl Rewrite {
    fn is_needed(self) -> bool {
        self.wipe || self.moved
    }
}

/// What is known of the messages when they are written.
struct WrittenMessages {
    rows: Rows,
    texts: Texts,
}

async fn write_messages(
    store: &Store,
    writer: &WriteLease<'_>,
    partition: &str,
    change: &SessionChange,
    rewrite: Rewrite,
) -> Result<WrittenMessages> {
    let known = writer.known().messages.as_ref();
    let mut fence = writer.fence(&store.messages, partition, known).await?;
    let (container, end) = ((&store.messages, partition), end_of(known, rewrite));
    let plan = Plan::of(container, &mut fence, &change.messages, |m| m.sequence, rewrite.wipe, end).await?;
    let mut operations: Vec<Vec<Operation>> = plan.removals().into_iter().map(|one| vec![one]).collect();
    if rewrite.moved {
        let all = queries::rows(kind::MESSAGE, "*", 0, None);
        let stays: Vec<MessageDocument> = store.messages.all(Within::Partition(partition), all).await?;
        for mut document in stays.into_iter().filter(|document| plan.keeps(document.sequence)) {
            document.project_slug = change.session.project_slug.clone();
            operations.push(vec![Operation::replace(document.id.clone(), &document, &document.etag)?]);
        }
        let all = queries::rows(kind::VECTOR, "*", 0, None);
        let stays: Vec<VectorDocument> = store.messages.all(Within::Partition(partition), all).await?;
        for mut vector in stays.into_iter().filter(|vector| plan.keeps(vector.sequence)) {
            vector.project_slug = Some(change.session.project_slug.clone());
            operations.push(vec![Operation::replace(vector.id.clone(), &vector, &vector.etag)?]);
        }
    }
    let mut analyzer = Analyzer::new();
    let mut put: Vec<&Message> = change.messages.put.iter().collect();
    put.sort_by_key(|message| message.sequence);
    let mut added = Texts::default();
    for message in put {
        put_message(&mut operations, &plan, message, partition, &mut analyzer, &mut added)?;
    }
    fence.write_groups(operations).await?;
    // Behind the others: where the project changes, those documents are written already.
    let retimed = retime(store, partition, &change.retimed, &mut fence).await?;
    fence.write_groups(retimed).await?;
    let texts = if rewrite.wipe {
        added
    } else if known.is_some() && plan.there.is_empty() {
        Texts {
            texts: writer.document.texts + added.texts,
            tokens: writer.document.text_tokens + added.tokens,
        }
    } else {
        count_texts(store, partition).await?
    };
    Ok(WrittenMessages { rows: Rows { end: plan.end(), fence: fence.into_etag() }, texts })
}

/// Gives messages another time, each with its texts and vectors, which are filtered by it, in one batch where they fit. A
/// message whose vectors are being written meanwhile is another by then, and the batch is refused.
async fn retime(
    store: &Store,
    partition: &str,
    retimed: &[Retimed],
    fence: &mut Fence<'_>,
) -> Result<Vec<Vec<Operation>>> {
    let mut groups = Vec::new();
    if retimed.is_empty() {
        return Ok(groups);
    }
    fence.hold().await?;
    for some in retimed.chunks(RETIMED) {
        let sequences: Vec<u32> = some.iter().map(|retimed| retimed.sequence).collect();
        let (messages, texts, vectors) = tokio::try_join!(
            rows_at::<MessageDocument>(store, partition, kind::MESSAGE, &sequences),
            rows_at::<TextDocument>(store, partition, kind::TEXT, &sequences),
            rows_at::<VectorDocument>(store, partition, kind::VECTOR, &sequences),
        )?;
        let times: BTreeMap<u32, &Retimed> = some.iter().map(|retimed| (retimed.sequence, retimed)).collect();
        let mut groups_of: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
        for mut document in messages {
            let Some(retimed) = times.get(&document.sequence) else { continue };
            (document.ts, document.ts_source) = (retimed.ts, Some(retimed.ts_source));
            document.ts_estimated = retimed.ts_source.is_estimated();
            let replace = Operation::replace(document.id.clone(), &document, &document.etag)?;
            groups_of.insert(document.sequence, vec![replace]);
        }
        for mut document in texts {
            let Some(retimed) = times.get(&document.sequence) else { continue };
            document.ts = retimed.ts;
            groups_of.entry(document.sequence).or_default().push(Operation::upsert(&document)?);
        }
        for mut document in vectors {
            let Some(retimed) = times.get(&document.sequence) else { continue };
            document.ts = retimed.ts;
            groups_of.entry(document.sequence).or_default().push(Operation::upsert(&document)?);
        }
        groups.extend(groups_of.into_values());
    }
    Ok(groups)
}

async fn rows_at<T: DeserializeOwned + Send + 'static>(
    store: &Store,
    partition: &str,
    kind: &str,
    sequences: &[u32],
) -> Result<Vec<T>> {
    store.messages.all(Within::Partition(partition), queries::rows_at(kind, "*", sequences)).await
}

/// From which sequence on there are no rows, as far as that is known.
fn end_of(known: Option<&Rows>, rewrite: Rewrite) -> Option<u32> {
    known.filter(|_| !rewrite.wipe).map(|rows| rows.end)
}

/// A message and what stands beside it, in one batch where they fit. Pieces of its line come before: they are named by the line.
fn put_message(
    operations: &mut Vec<Vec<Operation>>,
    plan: &Plan,
    message: &Message,
    partition: &str,
    analyzer: &mut Analyzer,
    added: &mut Texts,
) -> Result<()> {
    let document = MessageDocument::new(message, partition);
    let pieces = pieces_of(message, &document);
    let texts: Vec<TextDocument> = texts_of(message, partition, analyzer);
    let beside =
        pieces.iter().map(|piece| piece.id.as_str()).chain(texts.iter().map(|text| text.id.as_str()));
    let ids: HashSet<&str> = beside.chain([document.id.as_str()]).collect();
    for piece in &pieces {
        operations.push(vec![Operation::upsert(piece)?]);
    }
    let mut together = vec![match plan.etag(message.sequence, &document.id) {
        Some(etag) => Operation::replace(document.id.clone(), &document, etag)?,
        None => Operation::create(&document)?,
    }];
    for text in &texts {
        added.add(text);
        together.push(Operation::upsert(text)?);
    }
    together.extend(plan.leftovers(message.sequence, &ids));
    operations.push(together);
    Ok(())
}

/// Chunks first, then the events that name them, then chunks that no event names any more.
async fn write_events(
    store: &Store,
    writer: &WriteLease<'_>,
    partition: &str,
    change: &SessionChange,
    rewrite: Rewrite,
) -> Result<Rows> {
    let known = writer.known().events.as_ref();
    let mut fence = writer.fence(&store.events, partition, known).await?;
    let (container, end) = ((&store.events, partition), end_of(known, rewrite));
    let sequence = |stored: &StoredEvent| stored.event.sequence;
    let plan = Plan::of(container, &mut fence, &change.events, sequence, rewrite.wipe, end).await?;
    let mut operations = plan.removals();
    if rewrite.moved {
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
    let gone = plan.there.iter().filter(|(sequence, _)| !plan.keeps(**sequence)).flat_map(|(_, rows)| rows);
    let gone = gone.flat_map(|row| row.ids.iter().flatten());
    let gone: Vec<String> = gone.filter(|id| !named.contains(*id)).cloned().collect();
    if !gone.is_empty() {
        // Whoever took the session over may need them again.
        writer.check_mark().await?;
        remove_chunks(store, partition, &gone).await?;
    }
    Ok(Rows { end: plan.end(), fence: fence.into_etag() })
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

/// How many texts there are, and how many tokens are in them.
#[derive(Debug, Default)]
struct Texts {
    texts: u64,
    tokens: u64,
}

impl Texts {
    /// A text counts with the first of its documents.
    fn add(&mut self, text: &TextDocument) {
        if text.part == 0 {
            self.texts += 1;
            self.tokens += u64::from(text.length);
        }
    }
}

#[derive(Debug, Deserialize)]
struct CountedTexts {
    texts: u64,
    /// Nothing when there is no text.
    tokens: Option<u64>,
}

async fn count_texts(store: &Store, partition: &str) -> Result<Texts> {
    let counted: Vec<CountedTexts> =
        store.messages.all(Within::Partition(partition), queries::count_texts()).await?;
    let texts = |of: CountedTexts| Texts { texts: of.texts, tokens: of.tokens.unwrap_or(0) };
    Ok(counted.into_iter().next().map(texts).unwrap_or_default())
}

/// Removes a session: its rows first, so that a deletion that breaks off can be repeated.
pub(crate) async fn delete(store: &Store, key: &SessionKey) -> Result<bool> {
    let _turn = store.session_lock(key).await;
    let Some(writer) = WriteLease::begin(store, key, &Expected::Any, None).await? else { return Ok(false) };
    let remember = writer.document.committed;
    remove(store, writer, key, remember).await
}

/// Removes the session of a writer; whether reads showed it.
pub(crate) async fn remove(
    store: &Store,
    writer: WriteLease<'_>,
    key: &SessionKey,
    remember: bool,
) -> Result<bool> {
    let committed = writer.document.committed;
    match delete_rows(store, &writer, key).await {
        Ok(files_exist) => writer.finish_deletion(files_exist, remember).await.map(|()| committed),
        Err(cause) => Err(writer.give_up(cause).await),
    }
}

/// Removes everything of a session but its own document; whether it has another one.
async fn delete_rows(store: &Store, writer: &WriteLease<'_>, key: &SessionKey) -> Result<bool> {
    let partition = ids::partition(key);
    for container in [&store.messages, &store.events] {
        // Whatever is known of the rows: a fence that is not there could not be taken down.
        let mut fence = writer.fence(container, &partition, None).await?;
        let nothing = RowChange::<()>::default();
        let plan = Plan::of((container, &partition), &mut fence, &nothing, |()| 0, true, None).await?;
        fence.write(plan.removals()).await?;
        // It stays in the way of a writer that stood still: that could put rows where there is no session any more.
        if !writer.took_over() {
            fence.take_down().await?;
        }
    }
    let chunks: Vec<Id> = store.chunks.all(Within::Partition(&partition), queries::ids()).await?;
    let deletions = chunks.into_iter().map(|chunk| Operation::Delete { id: chunk.id, etag: None });
    if !store.chunks.write_many(&partition, deletions.collect()).await? {
        // Somebody else removed one of them, and the rest of its batch is still there.
        return Err(error::conflict());
    }
    Ok(sessions::files(store, key).await?.is_some())
}
