//! Updates the vector index from the rows.

use std::{collections::HashSet, ops::ControlFlow};

use amplifier_session_core::{Error, Result};

use super::{
    VectorManifest, VectorPart,
    builder::SegmentBuilder,
    segment::{SegmentEntry, SegmentKind, SegmentTable},
};
use crate::{
    error::{PartError, io_error, unreadable},
    part::{PartFolded, PartFolder, publish, step_revision},
    rows::{Rows, StoreRevision},
};

/// Maximum size of the codes in a segment, which limits the memory of a merge. Each core scans whole segments.
const LARGEST_SEGMENT: u64 = 8 << 20;
/// This many segments of about the same size are merged.
const MERGED_AT_ONCE: usize = 4;
/// Segments with up to this many bytes of codes count as the same size.
const SMALLEST_TIER: u64 = 256 << 10;

/// Updates an index of vectors from the rows. The caller holds the writer's lock.
pub(crate) fn fold<const TURNS: bool>(
    part_folder: &PartFolder<VectorPart<TURNS>>,
    rows: &mut dyn Rows,
    step_bytes: u64,
) -> Result<PartFolded> {
    let view = part_folder.view_for_fold(rows)?;
    let mut folded = PartFolded { rows: 0, rebuilt: view.reason };
    let manifest = match view.part {
        Some(part) => part.manifest(),
        None => VectorManifest::empty(view.now.store),
    };
    let mut fold = Fold { part_folder, manifest, step_bytes };
    fold.sweep();
    while fold.manifest.store_revision != view.now {
        folded.rows += fold.step(rows, view.now)?;
    }
    Ok(folded)
}

struct Fold<'a, const TURNS: bool> {
    part_folder: &'a PartFolder<VectorPart<TURNS>>,
    manifest: VectorManifest,
    step_bytes: u64,
}

impl<const TURNS: bool> Fold<'_, TURNS> {
    /// Adds the next segment of rows and publishes it. Returns the number of rows.
    fn step(&mut self, rows: &mut dyn Rows, now: StoreRevision) -> Result<u64> {
        let after = self.manifest.store_revision.revision;
        let removed = rows.removed_vectors_after(TURNS, after)?;
        let mut gathered = Gathered { keys: removed.into_iter().collect(), ..Gathered::default() };
        let end = self.gather(rows, after, &mut gathered)?;
        self.drop_rows(&gathered.keys)?;
        self.manifest.segments.append(&mut gathered.segments);
        self.merge()?;
        self.manifest.store_revision = step_revision(end, rows, now)?;
        self.publish()?;
        Ok(gathered.rows)
    }

    /// Writes rows above `after` as segments, at least those of one revision. Returns the last revision; `None` if all
    /// rows were written.
    fn gather(&mut self, rows: &mut dyn Rows, after: u64, gathered: &mut Gathered) -> Result<Option<u64>> {
        // Half a step, because the following merge may need as much again.
        let full = LARGEST_SEGMENT.min(self.step_bytes / 2);
        let mut builder = SegmentBuilder::new(SegmentKind::default());
        let mut last = after;
        let mut end = None;
        rows.vectors_after(TURNS, after, &mut |row| {
            if row.revision != last && !gathered.segments.is_empty() {
                end = Some(last);
                return Ok(ControlFlow::Break(()));
            }
            if builder.kind() != SegmentKind::of(&row) || builder.code_bytes() >= full {
                let done = std::mem::replace(&mut builder, SegmentBuilder::new(SegmentKind::of(&row)));
                gathered.segments.extend(self.write(done)?);
            }
            builder.add(&row);
            gathered.keys.insert(row.key);
            gathered.rows += 1;
            last = row.revision;
            Ok(ControlFlow::Continue(()))
        })?;
        gathered.segments.extend(self.write(builder)?);
        Ok(end)
    }

    /// Rewrites the segments that contain rows with these keys, without these rows.
    fn drop_rows(&mut self, keys: &HashSet<u64>) -> Result<()> {
        for entry in std::mem::take(&mut self.manifest.segments) {
            let (first, last) = entry.keys;
            let held = keys.iter().any(|key| (first..=last).contains(key))
                && SegmentTable::open(&self.part_folder.folder, &entry)
                    .map_err(|error| self.give_up(error))?
                    .keys
                    .iter()
                    .any(|key| keys.contains(key));
            if held {
                let rewritten = self.rewrite(&[entry], |key| !keys.contains(&key))?;
                self.manifest.segments.extend(rewritten);
            } else {
                self.manifest.segments.push(entry);
            }
        }
        Ok(())
    }

    /// Merges small segments until only a few of each size are left.
    fn merge(&mut self) -> Result<()> {
        while let Some(chosen) = mergeable(&self.manifest.segments) {
            let merged = self.rewrite(&chosen, |_| true)?;
            self.manifest.segments.retain(|entry| !chosen.contains(entry));
            self.manifest.segments.extend(merged);
        }
        Ok(())
    }

    /// Merges segments into one, with the rows for whose keys `keep` returns true.
    fn rewrite(
        &mut self,
        entries: &[SegmentEntry],
        keep: impl Fn(u64) -> bool,
    ) -> Result<Option<SegmentEntry>> {
        let mut builder =
            SegmentBuilder::new(entries.first().map_or_else(SegmentKind::default, |entry| entry.kind));
        for entry in entries {
            SegmentTable::open(&self.part_folder.folder, entry)
                .and_then(|table| builder.add_segment(&table, &keep))
                .map_err(|error| self.give_up(error))?;
        }
        self.write(builder)
    }

    fn write(&mut self, builder: SegmentBuilder) -> Result<Option<SegmentEntry>> {
        let name = format!("{:08}.seg", self.manifest.next);
        self.manifest.next += 1;
        builder
            .write(&self.part_folder.folder, name)
            .map_err(|error| io_error(error, &self.part_folder.folder))
    }

    fn publish(&self) -> Result<()> {
        let path = self.part_folder.manifest_path();
        publish::<VectorPart<TURNS>>(path, &self.manifest).map_err(|error| io_error(error, path))?;
        self.sweep();
        Ok(())
    }

    /// A file that passed the check is damaged: the next fold rebuilds the part.
    fn give_up(&self, error: PartError) -> Error {
        match self.part_folder.clear() {
            Ok(()) => unreadable(error).retryable(),
            Err(error) => error,
        }
    }

    /// Removes files of earlier manifests and of killed processes.
    fn sweep(&self) {
        self.part_folder.sweep(|name| self.manifest.segments.iter().any(|entry| entry.name == name));
    }
}

/// The rows that a step has read.
#[derive(Default)]
struct Gathered {
    rows: u64,
    segments: Vec<SegmentEntry>,
    /// Keys whose rows in older segments are outdated.
    keys: HashSet<u64>,
}

/// Finds segments to merge: several of about the same size, together not too large.
fn mergeable(segments: &[SegmentEntry]) -> Option<Vec<SegmentEntry>> {
    let tier =
        |entry: &SegmentEntry| (entry.kind, (entry.code_bytes().max(SMALLEST_TIER) / SMALLEST_TIER).ilog(4));
    segments.iter().map(tier).find_map(|wanted| {
        let same: Vec<_> = segments.iter().filter(|entry| tier(entry) == wanted).collect();
        if same.len() < MERGED_AT_ONCE {
            return None;
        }
        let mut bytes = 0_u64;
        let fitting = same.into_iter().take_while(|entry| {
            bytes = entry.code_bytes().saturating_add(bytes);
            bytes <= LARGEST_SEGMENT
        });
        let chosen: Vec<_> = fitting.cloned().collect();
        (chosen.len() > 1).then_some(chosen)
    })
}

impl VectorManifest {
    fn empty(store: [u8; 16]) -> Self {
        // A revision that no store with rows has, so that the first step publishes.
        Self { store_revision: StoreRevision { store, revision: 0, nonce: 0 }, next: 1, segments: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, rows: u64) -> SegmentEntry {
        let json = format!(
            r#"{{"name":"{name}","rows":{rows},"generation":0,"dimensions":256,"keys":[0,1],"header":0,"stamp":{{"length":0,"changed":[0,0]}}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn merging_leaves_few_segments_of_each_size() {
        let mut segments = Vec::new();
        for n in 0..2_000 {
            segments.push(entry(&n.to_string(), 500));
            while let Some(chosen) = mergeable(&segments) {
                let rows = chosen.iter().map(|entry| entry.rows).sum();
                segments.retain(|entry| !chosen.contains(entry));
                segments.push(entry(&format!("{}+", chosen[0].name), rows));
            }
        }
        assert_eq!(segments.iter().map(|entry| entry.rows).sum::<u64>(), 1_000_000);
        assert!(segments.iter().all(|entry| entry.code_bytes() <= LARGEST_SEGMENT));
        assert!(segments.len() < 60, "{}", segments.len());
    }
}
