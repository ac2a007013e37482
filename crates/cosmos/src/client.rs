//! Reads, writes and queries the documents of a container. This is the only module that calls the SDK for documents.
//!
//! According to experiments, the SDK (1.0.0) differs from its apparent interface in these points:
//!
//! - A batch with a rejected operation is a success, with a status for each operation.
//! - Answers to writes have no body unless requested; the ETags of a batch are in its results.
//! - Before it returns an error, the SDK itself repeats throttled requests, as configured in `connect`.

use std::{sync::Arc, time::Duration};

use amplifier_session_core::{Error, ErrorField, Result};
use azure_data_cosmos::{
    ContainerClient, CosmosError, FeedScope, PartitionKey, Query as SdkQuery, TransactionalBatch,
    feed::QueryItemIterator,
    models::BatchResponse,
    options::{MaxItemCountHint, QueryOptions},
};
use futures_util::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, MapErr},
};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::{
    batch::{Operation, Size, pack},
    error, limits,
    query::CosmosQuery,
};

/// How many times a batch is sent if the service is unavailable, and the wait before the second time. The wait doubles
/// each time.
const ATTEMPTS: u32 = 4;
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The maximum number of concurrent reads in one call.
const READS: usize = 8;

/// The results of several reads, in their order.
pub(crate) async fn parallel<T>(
    reads: impl IntoIterator<Item = impl Future<Output = Result<T>>>,
) -> Result<Vec<T>> {
    stream::iter(reads).buffered(READS).try_collect().await
}

fn query_failed(error: CosmosError) -> Error {
    error::of_sdk("a query", error)
}

fn sdk_query<T>(query: CosmosQuery<T>) -> Result<SdkQuery> {
    let parameters = query.parameters.iter().map(|(name, value)| name.len() + value.to_string().len());
    let bytes = query.text.len() + parameters.sum::<usize>();
    limits::at_most(ErrorField::Query, bytes, limits::QUERY_BYTES, "bytes")?;
    let mut sdk = SdkQuery::from(query.text);
    for (name, value) in query.parameters {
        sdk = sdk.with_parameter(name, value).map_err(query_failed)?;
    }
    Ok(sdk)
}

/// The answers to a query, which are read a page at a time.
pub(crate) type Answers<T> = MapErr<QueryItemIterator<T>, fn(CosmosError) -> Error>;

/// A container.
#[derive(Clone)]
pub(crate) struct Container {
    pub(crate) sdk: ContainerClient,
    /// Limits the concurrent batches in all containers of a store.
    pub(crate) writes: Arc<Semaphore>,
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Container")
    }
}

impl Container {
    /// The document with this id, if there is one.
    pub(crate) async fn read<T: DeserializeOwned>(&self, partition: &str, id: &str) -> Result<Option<T>> {
        let failed = |failure| error::of_sdk("reading a document", failure);
        match self.sdk.read_item(PartitionKey::from(partition.to_owned()), id, None).await {
            Ok(answer) => {
                let body = answer.into_body().single().map_err(failed)?;
                serde_json::from_slice(&body).map(Some).map_err(error::malformed)
            }
            Err(missing) if error::status(&missing) == 404 => Ok(None),
            Err(failure) => Err(failed(failure)),
        }
    }

    /// The documents with these ids that exist, in the order of the ids.
    pub(crate) async fn read_all<T: DeserializeOwned>(
        &self,
        partition: &str,
        ids: Vec<String>,
    ) -> Result<Vec<T>> {
        let reads = ids.into_iter().map(|id| async move { self.read(partition, &id).await });
        let found: Vec<Option<T>> = parallel(reads).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Changes documents of one partition: all of them, or nothing. Returns the new ETag of the first one, or `None` if
    /// the batch was rejected because an operation met a document other than expected (404, 409 or 412).
    pub(crate) async fn write(&self, partition: &str, operations: Vec<Operation>) -> Result<Option<String>> {
        limits::at_most(ErrorField::Partition, partition.len(), limits::PARTITION_BYTES, "bytes")?;
        operations.iter().try_for_each(Operation::check)?;
        let failed = |failure| error::of_sdk("writing documents", failure);
        let batch = TransactionalBatch::new(partition.to_owned());
        let batch = operations.into_iter().try_fold(batch, |batch, operation| operation.add_to(batch));
        let answer = self.send(batch.map_err(failed)?).await.map_err(failed)?;
        let answer = answer.into_model().map_err(failed)?;
        // 424: not executed because of another operation.
        match answer.results().iter().find(|result| !result.is_success() && result.status_code() != 424) {
            None => {
                let etag = answer.results().first().and_then(|result| result.etag());
                Ok(Some(etag.unwrap_or_default().to_owned()))
            }
            Some(refused) if matches!(refused.status_code(), 404 | 409 | 412) => Ok(None),
            Some(refused) => {
                let message = "Cosmos DB refused a batch of documents".to_owned();
                Err(error::of_status(refused.status_code(), message, refused.retry_after()))
            }
        }
    }

    /// Sends a batch, repeatedly if the service is unavailable. If the batch was executed but its answer was lost, its
    /// repetition is either rejected because the documents are not as expected, or has the same effect again. Nothing
    /// is lost in either case.
    async fn send(&self, batch: TransactionalBatch) -> Result<BatchResponse, CosmosError> {
        // Fails only if the semaphore is closed, which it never is.
        let _permit = self.writes.acquire().await.ok();
        let mut wait = FIRST_WAIT;
        for _ in 1..ATTEMPTS {
            match self.sdk.execute_transactional_batch(batch.clone(), None).await {
                Err(failure) if error::is_unavailable(&failure) => {
                    tracing::info!(%failure, ?wait, "Cosmos DB is unavailable; repeating a batch of documents");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                answer => return answer,
            }
        }
        self.sdk.execute_transactional_batch(batch, None).await
    }

    /// Changes documents of one partition in as many batches as needed. Returns whether all of them succeeded.
    pub(crate) async fn write_many(&self, partition: &str, operations: Vec<Operation>) -> Result<bool> {
        let mut all_done = true;
        for batch in pack(operations, Size::BATCH, Operation::size) {
            all_done &= self.write(partition, batch).await?.is_some();
        }
        Ok(all_done)
    }

    /// The answers to a query, to be read one by one.
    pub(crate) async fn query<T: DeserializeOwned + Send + 'static>(
        &self,
        mut query: CosmosQuery<T>,
    ) -> Result<Answers<T>> {
        let partition = query.partition.take();
        let scope = partition.map_or_else(FeedScope::full_container, FeedScope::partition);
        let page = query.page.map_or(MaxItemCountHint::ServerDecides, MaxItemCountHint::Limit);
        let options = QueryOptions::default().with_max_item_count(page);
        let answers =
            self.sdk.query_items(sdk_query(query)?, scope, Some(options)).await.map_err(query_failed)?;
        Ok(answers.map_err(query_failed as fn(CosmosError) -> Error))
    }

    /// All answers to a query.
    pub(crate) async fn all<T: DeserializeOwned + Send + 'static>(
        &self,
        query: CosmosQuery<T>,
    ) -> Result<Vec<T>> {
        self.query(query).await?.try_collect().await
    }
}
