//! Who may write the rows of a session.
//!
//! Rows and session lie in different containers, so that no one batch can change both. Instead, whoever writes rows takes
//! the partition's fence, a document with the writer's mark, and begins each batch with replacing it under the ETag that
//! it has. When somebody else took the fence since, the batch is refused as a whole. No clock is involved.

use amplifier_session_core::Result;
use serde::{Deserialize, Serialize};

use crate::{
    client::{Container, Operation, Outcome, batches},
    documents::kind,
    error, ids, limits,
};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct FenceDocument {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    user_id_session_id: String,
    holder: String,
    #[serde(rename = "_etag", default, skip_serializing)]
    etag: String,
}

/// The right to write the rows of a partition.
#[derive(Debug)]
pub(crate) struct Fence<'a> {
    container: &'a Container,
    partition: &'a str,
    document: FenceDocument,
}

impl<'a> Fence<'a> {
    /// Takes the fence, from whoever has it.
    pub(crate) async fn take(container: &'a Container, partition: &'a str, holder: &str) -> Result<Self> {
        let document = FenceDocument {
            id: ids::FENCE.to_owned(),
            kind: kind::FENCE.to_owned(),
            user_id_session_id: partition.to_owned(),
            holder: holder.to_owned(),
            etag: String::new(),
        };
        let mut fence = Self { container, partition, document };
        let taken = container.write(partition, vec![Operation::upsert(&fence.document)?]).await?;
        fence.keep(taken)?;
        Ok(fence)
    }

    /// Changes documents, as many at once as fit; a `Conflict` when the fence is somebody else's by now, or when a document
    /// was changed meanwhile.
    pub(crate) async fn write(&mut self, operations: Vec<Operation>) -> Result<()> {
        // One operation of a batch is the fence's own.
        for batch in batches(operations, limits::BATCH_OPERATIONS - 1) {
            self.write_batch(batch).await?;
        }
        Ok(())
    }

    /// Takes the fence down: the partition has no rows any more.
    pub(crate) async fn take_down(self) -> Result<()> {
        let delete = Operation::Delete { id: ids::FENCE.to_owned(), etag: Some(self.document.etag) };
        match self.container.write(self.partition, vec![delete]).await? {
            Outcome::Done(_) => Ok(()),
            Outcome::Refused => Err(error::conflict()),
        }
    }

    async fn write_batch(&mut self, mut batch: Vec<Operation>) -> Result<()> {
        batch.insert(0, Operation::replace(ids::FENCE.to_owned(), &self.document, &self.document.etag)?);
        let outcome = self.container.write(self.partition, batch).await?;
        self.keep(outcome)
    }

    fn keep(&mut self, outcome: Outcome) -> Result<()> {
        match outcome {
            Outcome::Done(etags) => {
                self.document.etag = etags.into_iter().next().unwrap_or_default();
                Ok(())
            }
            Outcome::Refused => Err(error::conflict()),
        }
    }
}

/// What a fence is like now: it changes with every batch of its holder.
pub(crate) async fn pulse(container: &Container, partition: &str) -> Result<Option<String>> {
    let document: Option<FenceDocument> = container.read(partition, ids::FENCE).await?;
    Ok(document.map(|fence| fence.etag))
}
