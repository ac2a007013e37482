//! A container of a document store.

use std::{
    collections::BTreeMap,
    ops::{Bound, RangeBounds},
};

/// Documents of one kind, each in a partition and with an id that is unique there.
///
/// It can do what such a store can: point reads, writes, and queries that are answered in pages, in one
/// partition or across all of them.
#[derive(Debug)]
pub(super) struct Container<P, I, D> {
    partitions: BTreeMap<P, BTreeMap<I, D>>,
}

impl<P: Ord + Clone, I: Ord + Clone, D: Clone> Container<P, I, D> {
    pub(super) fn new() -> Self {
        Self { partitions: BTreeMap::new() }
    }

    pub(super) fn get(&self, partition: &P, id: &I) -> Option<D> {
        self.partitions.get(partition)?.get(id).cloned()
    }

    pub(super) fn put(&mut self, partition: &P, id: I, document: D) {
        self.partitions.entry(partition.clone()).or_default().insert(id, document);
    }

    /// Removes a document; whether there was one.
    pub(super) fn remove(&mut self, partition: &P, id: &I) -> bool {
        self.partitions.get_mut(partition).is_some_and(|documents| documents.remove(id).is_some())
    }

    /// Changes a document in its place.
    pub(super) fn patch(&mut self, partition: &P, id: &I, change: impl FnOnce(&mut D)) {
        if let Some(document) = self.partitions.get_mut(partition).and_then(|documents| documents.get_mut(id))
        {
            change(document);
        }
    }

    /// Up to `limit` documents of a partition whose ids lie in `ids`, in order.
    pub(super) fn page(&self, partition: &P, ids: impl RangeBounds<I>, limit: usize) -> Vec<(I, D)> {
        let Some(documents) = self.partitions.get(partition) else { return Vec::new() };
        documents.range(ids).take(limit).map(|(id, document)| (id.clone(), document.clone())).collect()
    }

    /// All ids of a partition that lie in `ids`, in order.
    pub(super) fn ids(&self, partition: &P, ids: impl RangeBounds<I>) -> Vec<I> {
        let Some(documents) = self.partitions.get(partition) else { return Vec::new() };
        documents.range(ids).map(|(id, _)| id.clone()).collect()
    }

    /// Up to `limit` documents of any partition behind `after`, in order.
    pub(super) fn page_across(&self, after: Option<&(P, I)>, limit: usize) -> Vec<((P, I), D)> {
        let first = after.map_or(Bound::Unbounded, |(partition, _)| Bound::Included(partition.clone()));
        let documents =
            self.partitions.range((first, Bound::Unbounded)).flat_map(|(partition, documents)| {
                let behind = match after {
                    Some((of, id)) if of == partition => Bound::Excluded(id.clone()),
                    _ => Bound::Unbounded,
                };
                documents
                    .range((behind, Bound::Unbounded))
                    .map(|(id, document)| ((partition.clone(), id.clone()), document.clone()))
            });
        documents.take(limit).collect()
    }
}
