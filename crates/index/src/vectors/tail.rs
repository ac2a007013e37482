//! Vectors that are newer than the index.

use std::{collections::HashMap, ops::ControlFlow};

use amplifier_session_core::Result;

use crate::{
    filter::{FilterFields, FilterFieldsBuilder},
    rows::{Rows, VectorRow},
    tail::{RowIdentity, TailBuffer},
};

/// Vectors of texts, or with `TURNS`, of turns, by their keys.
#[derive(Default)]
pub(crate) struct VectorTailBuffer<const TURNS: bool> {
    pub(super) vectors: HashMap<u64, TailVector>,
    filter_fields: FilterFieldsBuilder,
}

/// A vector of the tail.
#[derive(Debug)]
pub(super) struct TailVector {
    pub(super) filter_fields: FilterFields,
    pub(super) generation: u32,
    pub(super) vector: Box<[f32]>,
}

impl<const TURNS: bool> TailBuffer for VectorTailBuffer<TURNS> {
    type Row<'a> = VectorRow<'a>;

    fn rows_after(
        rows: &mut dyn Rows,
        revision: u64,
        each: &mut dyn FnMut(VectorRow<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        rows.vectors_after(TURNS, revision, each)
    }

    fn removed_after(rows: &mut dyn Rows, revision: u64) -> Result<Vec<u64>> {
        rows.removed_vectors_after(TURNS, revision)
    }

    fn identity(row: &VectorRow<'_>) -> RowIdentity {
        let bytes = size_of_val(row.vector);
        RowIdentity { key: row.key, revision: row.revision, bytes, checksum: checksum(row.vector) }
    }

    fn put(&mut self, row: &VectorRow<'_>) {
        let filter_fields = self.filter_fields.of(row.session, row.role, row.ts, row.content_type);
        let vector = TailVector { filter_fields, generation: row.generation, vector: row.vector.into() };
        self.vectors.insert(row.key, vector);
    }

    fn remove(&mut self, key: u64) {
        self.vectors.remove(&key);
    }

    fn retain(&mut self, keep: &dyn Fn(u64) -> bool) {
        self.vectors.retain(|key, _| keep(*key));
    }
}

/// A checksum to distinguish vectors, with a few operations per number.
fn checksum(vector: &[f32]) -> u32 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, x: &f32| (state.rotate_left(5) ^ u64::from(x.to_bits())).wrapping_mul(ODD);
    (vector.iter().fold(0, mix) >> 32) as u32
}
