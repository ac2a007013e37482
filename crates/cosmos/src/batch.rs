//! Changes of documents, and their distribution over batches.

use std::{collections::HashSet, ops::Add};

use amplifier_session_core::{ErrorField, Result};
use azure_data_cosmos::{
    CosmosError, TransactionalBatch,
    options::{BatchDeleteOptions, BatchReplaceOptions, Precondition},
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{documents::Document, error, limits};

/// A change of one document.
#[derive(Debug)]
pub(crate) struct Operation {
    id: String,
    /// The new content; `None` for a deletion.
    json: Option<Box<RawValue>>,
    /// The ETag that the stored document must have.
    etag: Option<String>,
    /// Whether any stored document is replaced.
    is_upsert: bool,
}

impl Operation {
    /// Creates a document without an ETag, or replaces one that was read. Rejected if the stored document has changed
    /// since.
    pub(crate) fn save<T: Serialize>(document: &Document<T>) -> Result<Self> {
        let etag = Some(&document.etag).filter(|etag| !etag.is_empty()).cloned();
        Ok(Self { etag, is_upsert: false, ..Self::upsert(document)? })
    }

    /// Creates or replaces a document, whatever is stored.
    pub(crate) fn upsert<T: Serialize>(document: &Document<T>) -> Result<Self> {
        let json = to_raw_value(document).map_err(error::malformed)?;
        Ok(Self { id: document.id.clone(), json: Some(json), etag: None, is_upsert: true })
    }

    /// Deletes a document. Rejected if it does not exist.
    pub(crate) fn delete(id: String) -> Self {
        Self { id, json: None, etag: None, is_upsert: false }
    }

    /// Deletes a document. Rejected if it does not exist, or if its ETag differs.
    pub(crate) fn delete_if(id: String, etag: String) -> Self {
        Self { etag: Some(etag), ..Self::delete(id) }
    }

    /// Replaces the documents with the ids `old` by `documents`: deletes those that are not among `documents`.
    pub(crate) fn replace<T: Serialize>(old: Vec<String>, documents: &[Document<T>]) -> Result<Vec<Self>> {
        let kept: HashSet<&str> = documents.iter().map(|document| document.id.as_str()).collect();
        let deleted = old.into_iter().filter(|id| !kept.contains(id.as_str())).map(Self::delete).map(Ok);
        deleted.chain(documents.iter().map(Self::upsert)).collect()
    }

    pub(crate) fn size(&self) -> Size {
        Size { operations: 1, bytes: self.json.as_ref().map_or(self.id.len(), |json| json.get().len()) }
    }

    /// Checks the limits of Cosmos DB.
    pub(crate) fn check(&self) -> Result<()> {
        limits::check_id(&self.id)?;
        limits::at_most(ErrorField::Document, self.size().bytes, limits::BYTES, "bytes")
    }

    pub(crate) fn add_to(self, batch: TransactionalBatch) -> Result<TransactionalBatch, CosmosError> {
        let matching = self.etag.map(|etag| Precondition::IfMatch(etag.into()));
        match (self.json, matching) {
            (None, matching) => {
                let options = matching.map(|etag| BatchDeleteOptions::default().with_precondition(etag));
                Ok(batch.delete_item(self.id, options))
            }
            (json, _) if self.is_upsert => batch.upsert_item(json, None),
            (json, None) => batch.create_item(json),
            (json, Some(etag)) => {
                let options = BatchReplaceOptions::default().with_precondition(etag);
                batch.replace_item(self.id, json, Some(options))
            }
        }
    }
}

/// The size of operations in a batch, or the room for them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Size {
    pub(crate) operations: usize,
    pub(crate) bytes: usize,
}

impl Size {
    /// The room in a batch.
    pub(crate) const BATCH: Self = Self { operations: limits::BATCH_OPERATIONS, bytes: limits::BYTES };

    pub(crate) fn of(operations: &[Operation]) -> Self {
        operations.iter().map(Operation::size).fold(Self::default(), Add::add)
    }

    /// The room that remains beside `other`.
    pub(crate) fn without(self, other: Self) -> Self {
        Self {
            operations: self.operations.saturating_sub(other.operations),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    fn fits(self, room: Self) -> bool {
        self.operations <= room.operations && self.bytes <= room.bytes
    }
}

impl Add for Size {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { operations: self.operations + other.operations, bytes: self.bytes + other.bytes }
    }
}

/// Groups consecutive items so that each group fits into `room`. An item that does not fit forms its own group.
pub(crate) fn pack<T>(
    items: impl IntoIterator<Item = T>,
    room: Size,
    size: impl Fn(&T) -> Size,
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut used = Size::default();
    for item in items {
        let with_item = used + size(&item);
        match groups.last_mut().filter(|_| with_item.fits(room)) {
            Some(group) => {
                group.push(item);
                used = with_item;
            }
            None => {
                used = size(&item);
                groups.push(vec![item]);
            }
        }
    }
    groups
}

/// Batches that fit into `room`. A group stays in one batch unless it is too large.
pub(crate) fn batches(groups: Vec<Vec<Operation>>, room: Size) -> Vec<Vec<Operation>> {
    let parts = groups.into_iter().flat_map(|group| pack(group, room, Operation::size));
    let batches = pack(parts, room, |part| Size::of(part));
    batches.into_iter().map(|parts| parts.into_iter().flatten().collect()).collect()
}
