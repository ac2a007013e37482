//! The vector part, of texts or of turns: [codes] with one byte per dimension, scanned exhaustively.
//!
//! Rows are sorted by session in immutable [segments](segment), so that a scope or a filter selects ranges of rows
//! before anything is compared. A scan reads half of each byte. The best rows are compared again by whole bytes, and
//! the best of those by their full vectors from the store.

mod builder;
mod check;
mod codes;
mod fold;
mod four_bits;
mod lazy;
mod scan;
mod segment;
mod tail;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_core::Result;
use serde::{Deserialize, Serialize};

pub(crate) use fold::fold;
use lazy::LazySegment;
pub(crate) use scan::search;
use segment::SegmentEntry;
pub(crate) use tail::VectorTailBuffer;

use crate::{error::PartError, part::IndexPart, rows::StoreRevision};

/// The index of the vectors of texts, or with `TURNS`, of turns. Segments are read when a search first needs them.
#[derive(Debug)]
pub(crate) struct VectorPart<const TURNS: bool> {
    folder: PathBuf,
    store_revision: StoreRevision,
    next: u64,
    segments: Vec<Arc<LazySegment>>,
}

/// The current segments.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct VectorManifest {
    #[serde(rename = "mark")]
    store_revision: StoreRevision,
    /// The number of the next segment file.
    next: u64,
    segments: Vec<SegmentEntry>,
}

impl<const TURNS: bool> IndexPart for VectorPart<TURNS> {
    const NAME: &'static str = if TURNS { "index of turns" } else { "vector index" };
    const ROWS: &'static str = if TURNS { "turns" } else { "vectors" };
    const FOLDER: &'static str = if TURNS { "turns" } else { "vectors" };
    const FORMAT: u32 = 4;
    type Manifest = VectorManifest;

    fn open(folder: &Path, manifest: VectorManifest, before: Option<&Self>) -> Result<Self, PartError> {
        let open = |entry: SegmentEntry| {
            let mut known = before.iter().flat_map(|part| &part.segments);
            match known.find(|known| known.entry == entry) {
                Some(known) => Ok(Arc::clone(known)),
                None => LazySegment::open(folder, entry).map(Arc::new),
            }
        };
        let segments = manifest.segments.into_iter().map(open).collect::<Result<_, PartError>>()?;
        Ok(Self {
            folder: folder.to_owned(),
            store_revision: manifest.store_revision,
            next: manifest.next,
            segments,
        })
    }

    fn store_revision(&self) -> StoreRevision {
        self.store_revision
    }

    fn prepare_search(&self) -> Result<(), PartError> {
        self.segments.iter().try_for_each(|segment| segment.prepare(&self.folder))
    }
}

impl<const TURNS: bool> VectorPart<TURNS> {
    /// The largest key of a vector.
    pub(crate) fn largest_key(&self) -> u64 {
        self.segments.iter().map(|segment| segment.entry.keys.1).max().unwrap_or_default()
    }

    fn manifest(&self) -> VectorManifest {
        let segments = self.segments.iter().map(|segment| segment.entry.clone()).collect();
        VectorManifest { store_revision: self.store_revision, next: self.next, segments }
    }
}
