//! How a write changes the rows of a session in one container.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use amplifier_session_core::{Result, model::ProjectSlug};

use serde::Deserialize;

use crate::{
    batch::Operation,
    client::Container,
    documents::{RawDocument, RowsState, kind},
    fence::RowFence,
    lease::WriteLease,
    query::Select,
};

#[derive(Debug, Deserialize)]
pub(crate) struct StoredRow {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    sequence: u32,
    #[serde(rename = "_etag")]
    etag: String,
    /// Ids of the chunks of an event's payload.
    ids: Option<Vec<String>>,
}

/// The rows that a write puts and removes, and the stored rows that this affects.
pub(crate) struct Rewrite<'a> {
    pub(crate) container: &'a Container,
    pub(crate) partition: &'a str,
    /// The known state of the stored rows.
    pub(crate) known: Option<&'a RowsState>,
    /// Rows from this sequence on are removed, unless they are put.
    pub(crate) truncate: u32,
    pub(crate) put: BTreeSet<u32>,
    /// The new project of the other rows, if it changes.
    pub(crate) project: Option<&'a ProjectSlug>,
    /// The stored rows from the first changed one on.
    pub(crate) stored: BTreeMap<u32, Vec<StoredRow>>,
}

impl<'a> Rewrite<'a> {
    /// Changes nothing.
    pub(crate) fn none(container: &'a Container, partition: &'a str, known: Option<&'a RowsState>) -> Self {
        let (put, stored) = (BTreeSet::new(), BTreeMap::new());
        Self { container, partition, known, truncate: u32::MAX, put, project: None, stored }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.truncate == u32::MAX && self.put.is_empty() && self.project.is_none()
    }

    /// Reads the stored rows from the first changed one on, unless there can be no such rows. Returns the fence, and
    /// the operations on stored rows that must precede the new ones.
    pub(crate) async fn begin(
        &mut self,
        lease: &WriteLease<'_>,
    ) -> Result<(RowFence<'a>, Vec<Vec<Operation>>)> {
        let mut fence = lease.fence(self.container, self.partition, self.known).await?;
        if self.first() < self.known_end() {
            fence.hold().await?;
            // Fences have no sequence.
            let select = Select::default().within(self.partition).with("c.sequence >= @", self.first());
            let fields = "c.id, c.type, c.sequence, c._etag, c.payload.ids";
            for row in self.container.all::<StoredRow>(select.fields(fields)).await? {
                self.stored.entry(row.sequence).or_default().push(row);
            }
        }
        let mut operations = self.removals();
        operations.extend(self.moves().await?);
        Ok((fence, operations))
    }

    fn first(&self) -> u32 {
        self.put.first().copied().unwrap_or(u32::MAX).min(self.truncate)
    }

    fn known_end(&self) -> u32 {
        self.known.map_or(u32::MAX, |rows| rows.end)
    }

    /// Whether the change only adds rows.
    pub(crate) fn only_appends(&self) -> bool {
        self.known.is_some() && self.stored.is_empty()
    }

    /// Whether the row with this sequence stays.
    fn keeps(&self, sequence: u32) -> bool {
        sequence < self.truncate && !self.put.contains(&sequence)
    }

    /// Removes rows, the last ones first, so that an interrupted removal leaves no gap.
    fn removals(&self) -> Vec<Vec<Operation>> {
        let rows = self.stored.iter().rev();
        let removed = rows.filter(|(sequence, _)| !self.keeps(**sequence) && !self.put.contains(sequence));
        removed.flat_map(|(_, rows)| rows).map(|row| vec![delete(row)]).collect()
    }

    /// Sets the new project of the rows that stay.
    async fn moves(&self) -> Result<Vec<Vec<Operation>>> {
        let Some(project) = self.project else { return Ok(Vec::new()) };
        let mut moves = Vec::new();
        let kinds = [kind::MESSAGE, kind::VECTOR, kind::TURN, kind::EVENT].join("', '");
        let kinds = format!("c.type IN ('{kinds}')");
        let select = Select::default().within(self.partition).and(kinds);
        for mut row in self.container.all::<RawDocument>(select.documents()).await? {
            if row.sequence().is_some_and(|sequence| self.keeps(sequence)) {
                row.set("project_slug", project.as_str());
                moves.push(vec![Operation::save(&row)?]);
            }
        }
        Ok(moves)
    }

    /// The ETag of the stored row with this id.
    pub(crate) fn etag(&self, sequence: u32, id: &str) -> Option<&str> {
        self.stored.get(&sequence)?.iter().find(|row| row.id == id).map(|row| row.etag.as_str())
    }

    /// Removes the stored rows of a message that is put, except those with the ids that are put.
    pub(crate) fn leftovers(&self, sequence: u32, put: &HashSet<&str>) -> Vec<Operation> {
        let rows = self.stored.get(&sequence).into_iter().flatten();
        rows.filter(|row| !put.contains(row.id.as_str())).map(delete).collect()
    }

    /// The chunks of the payloads of rows that do not stay.
    pub(crate) fn old_chunks(&self) -> impl Iterator<Item = &String> {
        let rows = self.stored.iter().filter(|(sequence, _)| !self.keeps(**sequence));
        rows.flat_map(|(_, rows)| rows).flat_map(|row| row.ids.iter().flatten())
    }

    /// The state of the rows for the next writer.
    pub(crate) fn finish(self, fence: RowFence<'_>) -> RowsState {
        let kept = self.stored.keys().rev().find(|sequence| self.keeps(**sequence));
        let last = kept.max(self.put.last());
        let end = last.map_or(0, |last| last.saturating_add(1));
        RowsState { end: end.max(self.first().min(self.known_end())), fence: fence.into_etag() }
    }
}

/// A message is deleted only if it has not changed, because vectors of it may be written at the same time.
fn delete(row: &StoredRow) -> Operation {
    if row.kind == kind::MESSAGE {
        Operation::delete_if(row.id.clone(), row.etag.clone())
    } else {
        Operation::delete(row.id.clone())
    }
}
