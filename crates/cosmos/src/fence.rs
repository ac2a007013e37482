//! Who may write the rows of a session.
//!
//! Rows and session lie in different containers, so that no one batch can change both. Instead, whoever writes rows takes
//! the partition's fence, a document with the writer's mark, and begins each batch with replacing it under the ETag that
//! it has. When somebody else took the fence since, the batch is refused as a whole. No clock is involved.
//!
//! The session's document says what the last writer left: the ETag of the fence, and where the rows end. With that the
//! fence is taken by the first batch itself, and what is appended needs no look at what is there. After a write that did
//! not come to its end nothing is known; then the fence is taken first, and the rows are read.

use amplifier_session_core::Result;
use serde::{Deserialize, Serialize};

use crate::{
    client::{Container, Operation, Outcome, batches_of_groups},
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
    /// Whether this writer has taken it yet.
    is_held: bool,
}

impl<'a> Fence<'a> {
    /// The fence as the last writer left it: with this ETag, or none at all. It is taken with the first batch, which is
    /// refused when that is not so any more.
    pub(crate) fn known(
        container: &'a Container,
        partition: &'a str,
        holder: &str,
        etag: Option<String>,
    ) -> Self {
        let document = FenceDocument {
            id: ids::FENCE.to_owned(),
            kind: kind::FENCE.to_owned(),
            user_id_session_id: partition.to_owned(),
            holder: holder.to_owned(),
            etag: etag.unwrap_or_default(),
        };
        Self { container, partition, document, is_held: false }
    }

    /// Takes the fence at once, from whoever has it. Whoever does that has to look afterwards whether the session still
    /// has its mark: it may have lost the session while it came to this.
    pub(crate) async fn take(container: &'a Container, partition: &'a str, holder: &str) -> Result<Self> {
        let mut fence = Self::known(container, partition, holder, None);
        let taken = container.write(partition, vec![Operation::upsert(&fence.document)?]).await?;
        fence.keep(taken)?;
        Ok(fence)
    }

    /// Its ETag, for the next writer; `None` when there is none.
    pub(crate) fn into_etag(self) -> Option<String> {
        Some(self.document.etag).filter(|etag| !etag.is_empty())
    }

    /// Takes the fence before rows are read: what this client reads of the partition then is not older than that.
    pub(crate) async fn hold(&mut self) -> Result<()> {
        if self.is_held { Ok(()) } else { self.write_batch(Vec::new()).await }
    }

    /// Changes documents, as many at once as fit; a `Conflict` when the fence is somebody else's by now, or when a document
    /// was changed meanwhile.
    pub(crate) async fn write(&mut self, operations: Vec<Operation>) -> Result<()> {
        self.write_groups(operations.into_iter().map(|one| vec![one]).collect()).await
    }

    /// The same, with the operations of a group in one batch where they fit.
    pub(crate) async fn write_groups(&mut self, groups: Vec<Vec<Operation>>) -> Result<()> {
        // One operation of a batch is the fence's own.
        for batch in batches_of_groups(groups, limits::BATCH_OPERATIONS - 1, limits::BATCH_BYTES) {
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
        let hold = match self.document.etag.as_str() {
            "" => Operation::create(&self.document)?,
            etag => Operation::replace(ids::FENCE.to_owned(), &self.document, etag)?,
        };
        batch.insert(0, hold);
        let outcome = self.container.write(self.partition, batch).await?;
        self.keep(outcome)
    }

    fn keep(&mut self, outcome: Outcome) -> Result<()> {
        match outcome {
            Outcome::Done(etags) => {
                self.document.etag = etags.into_iter().next().unwrap_or_default();
                self.is_held = true;
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
