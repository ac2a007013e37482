//! Vectors that are newer than the index.

use std::ops::ControlFlow;

use amplifier_session_core::{Result, model::ContentType};

use crate::{
    facts::{FactKeeper, Facts},
    filter::Filter,
    rows::{Rows, VectorRow},
    tail::{Identity, Source},
};

/// Reads vectors for the tail.
#[derive(Debug, Default)]
pub(crate) struct VectorSource {
    facts: FactKeeper,
}

/// A vector of the tail.
#[derive(Debug)]
pub(crate) struct TailVector {
    facts: Facts,
    content_type: ContentType,
    pub(super) vector: Box<[f32]>,
}

impl TailVector {
    pub(super) fn admitted_by(&self, filter: &Filter<'_>) -> bool {
        filter.admits_content(self.content_type) && self.facts.admitted_by(filter)
    }
}

impl Source for VectorSource {
    type Row<'a> = VectorRow<'a>;
    type Item = TailVector;

    fn rows_after(
        rows: &mut dyn Rows,
        revision: u64,
        each: &mut dyn FnMut(VectorRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        rows.vectors_after(revision, each)
    }

    fn removed_after(rows: &mut dyn Rows, revision: u64) -> Result<Vec<u64>> {
        rows.removed_vectors_after(revision)
    }

    fn identity(row: &VectorRow<'_>) -> Identity {
        let mut checksum = crc32fast::Hasher::new();
        row.vector.iter().for_each(|x| checksum.update(&x.to_le_bytes()));
        let bytes = size_of_val(row.vector);
        Identity { key: row.key, revision: row.revision, bytes, checksum: checksum.finalize() }
    }

    fn item(&mut self, row: &VectorRow<'_>) -> TailVector {
        TailVector { facts: self.facts.of_vector(row), content_type: row.content_type, vector: row.vector.into() }
    }
}
