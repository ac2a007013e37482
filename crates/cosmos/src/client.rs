//! The only place that knows the SDK: documents in and out, queries in pages, batches in one partition.
//!
//! What it does differently from what the SDK's interface suggests (version 1.0.0, each found by trying):
//!
//! - A batch of which an operation is refused comes back as a success, with a status for each operation.
//! - Writes answer without a body unless asked for one; ETags of a batch stand in its results.
//! - A throttled request is tried again by the SDK itself, as long as it is told to (`store`), before it is an error here.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use amplifier_session_core::{Error, Result};
use azure_core::http::Etag;
use azure_data_cosmos::{
    ContainerClient, CosmosError, FeedScope, PartitionKey, Query as SdkQuery, TransactionalBatch,
    feed::QueryPageIterator,
    models::BatchResponse,
    options::{
        BatchDeleteOptions, BatchReplaceOptions, ItemReadOptions, MaxItemCountHint, Precondition,
        QueryOptions,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::{error, limits};

/// A change of one document.
#[derive(Debug)]
pub(crate) enum Operation {
    /// A new document: refused when there is one of this id.
    Create(Value),
    /// A document, whether there is one of this id or not.
    Upsert(Value),
    /// Another text of a document: refused when its ETag is another one.
    Replace { id: String, document: Value, etag: String },
    /// No document: refused when there is none, or when its ETag is another one.
    Delete { id: String, etag: Option<String> },
}

impl Operation {
    pub(crate) fn create(document: &impl Serialize) -> Result<Self> {
        Ok(Self::Create(to_value(document)?))
    }

    pub(crate) fn upsert(document: &impl Serialize) -> Result<Self> {
        Ok(Self::Upsert(to_value(document)?))
    }

    pub(crate) fn replace(id: String, document: &impl Serialize, etag: &str) -> Result<Self> {
        Ok(Self::Replace { id, document: to_value(document)?, etag: etag.to_owned() })
    }

    /// How many bytes it takes in a batch, without what stands around it.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Create(document) | Self::Upsert(document) | Self::Replace { document, .. } => {
                json_bytes(document)
            }
            Self::Delete { id, .. } => id.len(),
        }
    }

    fn check(&self) -> Result<()> {
        let id = match self {
            Self::Create(document) | Self::Upsert(document) => {
                document.get("id").and_then(Value::as_str).unwrap_or_default()
            }
            Self::Replace { id, .. } | Self::Delete { id, .. } => id,
        };
        limits::check_id(id)?;
        limits::check_item(self.bytes())
    }

    fn add_to(self, batch: TransactionalBatch) -> Result<TransactionalBatch, CosmosError> {
        match self {
            Self::Create(document) => batch.create_item(document),
            Self::Upsert(document) => batch.upsert_item(document, None),
            Self::Replace { id, document, etag } => {
                let options = BatchReplaceOptions::default().with_precondition(if_match(etag));
                batch.replace_item(id, document, Some(options))
            }
            Self::Delete { id, etag } => {
                let matching = |etag| BatchDeleteOptions::default().with_precondition(if_match(etag));
                Ok(batch.delete_item(id, etag.map(matching)))
            }
        }
    }
}

/// Operations in as many batches as they need, each of at most `most` of them and of so many bytes.
pub(crate) fn batches(operations: Vec<Operation>, most: usize, most_bytes: usize) -> Vec<Vec<Operation>> {
    batches_of_groups(operations.into_iter().map(|one| vec![one]).collect(), most, most_bytes)
}

/// The same; the operations of a group are parted only where no batch can hold them all.
pub(crate) fn batches_of_groups(
    groups: Vec<Vec<Operation>>,
    most: usize,
    most_bytes: usize,
) -> Vec<Vec<Operation>> {
    let mut batches: Vec<Vec<Operation>> = Vec::new();
    let mut bytes = 0;
    for group in groups {
        let of_group: usize = group.iter().map(Operation::bytes).sum();
        let fits = |batch: &Vec<Operation>, bytes: usize, count: usize, more: usize| {
            batch.len() + count <= most && bytes + more <= most_bytes
        };
        if !batches.last().is_some_and(|batch| fits(batch, bytes, group.len(), of_group)) {
            batches.push(Vec::new());
            bytes = 0;
        }
        for operation in group {
            let more = operation.bytes();
            if batches.last().is_some_and(|batch| !batch.is_empty() && !fits(batch, bytes, 1, more)) {
                batches.push(Vec::new());
                bytes = 0;
            }
            if let Some(batch) = batches.last_mut() {
                batch.push(operation);
            }
            bytes += more;
        }
    }
    batches
}

/// The length of pages where `limit` answers are wanted, some of which may turn out not to be meant.
pub(crate) fn page_of(limit: usize) -> usize {
    limit.clamp(20, 1_000)
}

fn if_match(etag: String) -> Precondition {
    Precondition::IfMatch(Etag::from(etag))
}

fn to_value(document: &impl Serialize) -> Result<Value> {
    serde_json::to_value(document).map_err(error::malformed)
}

/// The length of `value` as JSON.
fn json_bytes(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

/// How often a batch is sent while the service is away, and how long is waited before the second time: then twice as long.
const ATTEMPTS: u32 = 4;
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// How many reads of one call are under way at once.
pub(crate) const READS: usize = 8;

/// What came of a batch.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// All of it happened; the ETags of the documents, in order of the operations.
    Done(Vec<String>),
    /// Nothing of it happened: an operation met a document other than expected (404, 409 or 412).
    Refused,
}

/// A query with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub(crate) text: String,
    pub(crate) parameters: Vec<(String, Value)>,
    /// How many answers are wanted, where more of them are not read: a page that is larger is paid for in vain.
    page: Option<NonZeroU32>,
}

impl Query {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), parameters: Vec::new(), page: None }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    /// Asks for pages of so many answers.
    pub(crate) fn in_pages_of(mut self, answers: usize) -> Self {
        self.page = u32::try_from(answers).ok().and_then(NonZeroU32::new);
        self
    }

    fn bytes(&self) -> usize {
        let parameters = self.parameters.iter();
        self.text.len() + parameters.map(|(name, value)| name.len() + json_bytes(value)).sum::<usize>()
    }

    fn into_sdk(self) -> Result<SdkQuery> {
        limits::check_query(self.bytes())?;
        let mut query = SdkQuery::from(self.text);
        for (name, value) in self.parameters {
            query = query.with_parameter(name, value).map_err(|e| error::of_sdk("a query", e))?;
        }
        Ok(query)
    }
}

/// Where a query looks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Within<'a> {
    Partition(&'a str),
    All,
}

/// A container.
#[derive(Clone)]
pub(crate) struct Container {
    sdk: ContainerClient,
    /// A permit for each batch that may be under way, in all containers of a store.
    writes: Arc<Semaphore>,
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Container")
    }
}

impl Container {
    pub(crate) fn new(sdk: ContainerClient, writes: Arc<Semaphore>) -> Self {
        Self { sdk, writes }
    }

    /// The document of this id, if there is one.
    pub(crate) async fn read<T: DeserializeOwned>(&self, partition: &str, id: &str) -> Result<Option<T>> {
        let key = PartitionKey::from(partition.to_owned());
        match self.sdk.read_item(key, id, Some(ItemReadOptions::default())).await {
            Ok(answer) => {
                let body = answer.into_body().single().map_err(|e| error::of_sdk("reading a document", e))?;
                serde_json::from_slice(&body).map(Some).map_err(error::malformed)
            }
            Err(missing) if u16::from(missing.status().status_code()) == 404 => Ok(None),
            Err(failure) => Err(error::of_sdk("reading a document", failure)),
        }
    }

    /// Changes documents of one partition, all of them or none. No operations are no request.
    pub(crate) async fn write(&self, partition: &str, operations: Vec<Operation>) -> Result<Outcome> {
        if operations.is_empty() {
            return Ok(Outcome::Done(Vec::new()));
        }
        limits::check_partition(partition)?;
        operations.iter().try_for_each(Operation::check)?;
        let failed = |e| error::of_sdk("writing documents", e);
        let mut batch = TransactionalBatch::new(partition.to_owned());
        for operation in operations {
            batch = operation.add_to(batch).map_err(failed)?;
        }
        let answer = self.send(batch).await.map_err(failed)?;
        let answer = answer.into_model().map_err(failed)?;
        // Operations that did not happen because of another one have 424.
        match answer.results().iter().find(|result| !result.is_success() && result.status_code() != 424) {
            None => {
                let etags =
                    answer.results().iter().map(|result| result.etag().unwrap_or_default().to_owned());
                Ok(Outcome::Done(etags.collect()))
            }
            Some(refused) if matches!(refused.status_code(), 404 | 409 | 412) => Ok(Outcome::Refused),
            Some(refused) => Err(refusal(refused.status_code(), refused.retry_after())),
        }
    }

    /// Sends a batch, again when the service was away. When it happened although no answer came, its repetition is refused
    /// for what it expects of its documents, or does the same once more: in neither case is anything lost.
    async fn send(&self, batch: TransactionalBatch) -> Result<BatchResponse, CosmosError> {
        // An error says that the semaphore is closed, which it never is.
        let _permit = self.writes.acquire().await.ok();
        let mut wait = FIRST_WAIT;
        for _ in 1..ATTEMPTS {
            match self.sdk.execute_transactional_batch(batch.clone(), None).await {
                Err(failure) if error::is_away(&failure) => {
                    tracing::info!(%failure, ?wait, "Cosmos DB did not take a batch of documents; it is repeated");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                answer => return answer,
            }
        }
        self.sdk.execute_transactional_batch(batch, None).await
    }

    /// Changes documents of one partition in as many batches as they need; true when none was refused.
    pub(crate) async fn write_many(&self, partition: &str, operations: Vec<Operation>) -> Result<bool> {
        let mut all = true;
        for batch in batches(operations, limits::BATCH_OPERATIONS, limits::BATCH_BYTES) {
            all &= self.write(partition, batch).await? != Outcome::Refused;
        }
        Ok(all)
    }

    /// The answers to a query, a page at a time.
    pub(crate) async fn query<T: DeserializeOwned + Send + 'static>(
        &self,
        within: Within<'_>,
        query: Query,
    ) -> Result<Pages<T>> {
        let scope = match within {
            Within::Partition(key) => FeedScope::partition(key.to_owned()),
            Within::All => FeedScope::full_container(),
        };
        let page = query.page.map_or(MaxItemCountHint::ServerDecides, MaxItemCountHint::Limit);
        let options = QueryOptions::default().with_max_item_count(page);
        let answers = self.sdk.query_items(query.into_sdk()?, scope, Some(options)).await;
        let pages = answers.map_err(|e| error::of_sdk("a query", e))?.into_pages();
        Ok(Pages { pages })
    }

    /// All answers to a query.
    pub(crate) async fn all<T: DeserializeOwned + Send + 'static>(
        &self,
        within: Within<'_>,
        query: Query,
    ) -> Result<Vec<T>> {
        let mut pages = self.query(within, query).await?;
        let mut all = Vec::new();
        while let Some(page) = pages.next().await? {
            all.extend(page);
        }
        Ok(all)
    }
}

fn refusal(code: u16, retry_after: Option<std::time::Duration>) -> Error {
    let error = error::of_status(code, "a batch of documents was refused by Cosmos DB".to_owned());
    match retry_after {
        Some(wait) if error.is_retryable() => error.retryable_after(wait),
        _ => error,
    }
}

/// The answers to a query, a page at a time. A page may be empty before the end.
pub(crate) struct Pages<T: Send + 'static> {
    pages: QueryPageIterator<T>,
}

impl<T: DeserializeOwned + Send + 'static> Pages<T> {
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<T>>> {
        use futures_util::TryStreamExt as _;
        let page = self.pages.try_next().await.map_err(|e| error::of_sdk("a query", e))?;
        Ok(page.map(|page| page.into_items()))
    }
}
