//! Determines which writer may write the rows of a session.
//!
//! A session and its rows are in different containers, so no batch can change both. Instead, each writer of rows takes
//! the fence of their partition: a document with the writer's id. The writer replaces it at the start of each batch,
//! provided that it still has the ETag known to the writer. If another writer has taken the fence since, the whole
//! batch is rejected. No clock is involved.
//!
//! The session's document records the state after the last write: the ETag of the fence, and the end of the rows. With
//! that, the first batch itself takes the fence, and appending rows does not require reading existing ones. After an
//! incomplete write, nothing is known. The fence is taken first then, and the rows are read.

use amplifier_session_core::Result;
use serde::{Deserialize, Serialize};

use crate::{
    batch::{Operation, Size, batches},
    client::Container,
    documents::{Document, kind},
    error, ids,
};

#[derive(Debug, Serialize, Deserialize)]
struct FenceFields {
    user_id_session_id: String,
    holder: String,
}

type FenceDocument = Document<FenceFields>;

/// The right to write the rows of a partition.
#[derive(Debug)]
pub(crate) struct RowFence<'a> {
    container: &'a Container,
    document: FenceDocument,
    /// Whether this writer has already taken it.
    is_taken: bool,
}

impl<'a> RowFence<'a> {
    /// The fence in the state after the last write: with this ETag, or absent. The first batch takes it, and is
    /// rejected if another writer has taken it since.
    pub(crate) fn known(
        container: &'a Container,
        partition: &str,
        writer: &str,
        etag: Option<String>,
    ) -> Self {
        let fields = FenceFields { user_id_session_id: partition.to_owned(), holder: writer.to_owned() };
        let mut document = FenceDocument::of(kind::FENCE, ids::FENCE.to_owned(), fields);
        document.etag = etag.unwrap_or_default();
        Self { container, document, is_taken: false }
    }

    /// Takes the fence at once, whoever has it. The caller must then check that it still owns the session, because it
    /// may have lost the session in the meantime.
    pub(crate) async fn take(container: &'a Container, partition: &str, writer: &str) -> Result<Self> {
        let mut fence = Self::known(container, partition, writer, None);
        fence.send(vec![Operation::upsert(&fence.document)?]).await?;
        Ok(fence)
    }

    fn partition(&self) -> &str {
        &self.document.user_id_session_id
    }

    /// Its ETag, for the next writer. `None` if there is no fence.
    pub(crate) fn into_etag(self) -> Option<String> {
        Some(self.document.etag).filter(|etag| !etag.is_empty())
    }

    /// Takes the fence, unless it is already taken, so that rows that are read afterwards are current.
    pub(crate) async fn hold(&mut self) -> Result<()> {
        if self.is_taken { Ok(()) } else { self.write_batch(Vec::new()).await }
    }

    /// Changes documents, in as few batches as possible. The operations of a group are in one batch if they fit. `Conflict` if
    /// another writer has taken the fence, or has changed one of the documents.
    pub(crate) async fn write(&mut self, groups: Vec<Vec<Operation>>) -> Result<()> {
        // One operation of each batch is the fence's own.
        let room = Size { operations: Size::BATCH.operations - 1, ..Size::BATCH };
        for batch in batches(groups, room) {
            self.write_batch(batch).await?;
        }
        Ok(())
    }

    /// Deletes the fence of a partition without rows.
    pub(crate) async fn delete(self) -> Result<()> {
        let delete = Operation::delete_if(ids::FENCE.to_owned(), self.document.etag.clone());
        error::check(self.container.write(self.partition(), vec![delete]).await?.is_some())
    }

    async fn write_batch(&mut self, mut batch: Vec<Operation>) -> Result<()> {
        batch.insert(0, Operation::save(&self.document)?);
        self.send(batch).await
    }

    /// Sends a batch that begins with the fence.
    async fn send(&mut self, batch: Vec<Operation>) -> Result<()> {
        let etag = self.container.write(self.partition(), batch).await?;
        self.document.etag = etag.ok_or_else(error::conflict)?;
        self.is_taken = true;
        Ok(())
    }
}

/// The ETag of a partition's fence, which changes with every batch of its holder.
pub(crate) async fn etag(container: &Container, partition: &str) -> Result<Option<String>> {
    let document: Option<FenceDocument> = container.read(partition, ids::FENCE).await?;
    Ok(document.map(|fence| fence.etag))
}
