//! The token vectors of the compiled-in model, read in place from the program.

use super::{
    DIMENSIONS,
    wordpiece::{UNKNOWN, tokenize},
};

/// `model.safetensors`: the length of its header, the header, and three tensors with a row for each token: its scale
/// (`f32`), the number of its vector (`i32`; it is the token itself), and its vector (`i8`).
static FILE: &[u8] = include_bytes!(concat!(env!("MODEL_FOLDER"), "/model.safetensors"));

static TENSORS: &[u8] = match FILE.split_first_chunk() {
    Some((header_length, rest)) => rest.split_at(u64::from_le_bytes(*header_length) as usize).1,
    None => FILE,
};
const SCALE_BYTES: usize = size_of::<f32>();
const NUMBER_BYTES: usize = size_of::<i32>();
const TOKENS: usize = TENSORS.len() / (SCALE_BYTES + NUMBER_BYTES + DIMENSIONS);
static SCALES: &[[u8; SCALE_BYTES]] = TENSORS.split_at(TOKENS * SCALE_BYTES).0.as_chunks().0;
static VECTORS: &[[u8; DIMENSIONS]] = TENSORS.split_at(TOKENS * (SCALE_BYTES + NUMBER_BYTES)).1.as_chunks().0;

/// How many vectors are added at a time. Adding them one by one would read and write the sum each time.
const BLOCK: usize = 8;

/// The vector of `text`: the weighted mean of the vectors of its tokens, of unit length; zeros without known tokens.
pub(super) fn vector_of(text: &str) -> Vec<f32> {
    let mut tokens = Vec::new();
    tokenize(text, &mut tokens);
    tokens.retain(|token| *token != UNKNOWN);
    let mut vector = sum_of(&tokens);
    normalize(&mut vector, tokens.len());
    vector.to_vec()
}

/// A token's vector and its scale.
type Row = (&'static [u8; DIMENSIONS], f32);

/// The sum of the tokens' vectors, added in order, because another order would round differently.
fn sum_of(tokens: &[u16]) -> [f32; DIMENSIONS] {
    let mut sum = [0.0; DIMENSIONS];
    let (blocks, rest) = tokens.as_chunks::<BLOCK>();
    for block in blocks {
        add(&mut sum, &block.map(row));
    }
    for token in rest {
        add(&mut sum, &[row(*token)]);
    }
    sum
}

fn row(token: u16) -> Row {
    const NOTHING: Row = (&[0; DIMENSIONS], 0.0);
    let token = usize::from(token);
    match (VECTORS.get(token), SCALES.get(token)) {
        (Some(vector), Some(scale)) => (vector, f32::from_le_bytes(*scale)),
        _ => NOTHING,
    }
}

fn add<const ROWS: usize>(sum: &mut [f32; DIMENSIONS], rows: &[Row; ROWS]) {
    for (index, sum) in sum.iter_mut().enumerate() {
        for (vector, scale) in rows {
            *sum += f32::from(vector[index].cast_signed()) * scale;
        }
    }
}

/// Divides the sum of `count` vectors by their number, and brings it to unit length.
fn normalize(sum: &mut [f32; DIMENSIONS], count: usize) {
    let count = count.max(1) as f32;
    let mut squares = 0.0_f32;
    for x in sum.iter_mut() {
        *x /= count;
        squares += *x * *x;
    }
    let length = squares.sqrt().max(1e-12);
    for x in sum {
        *x /= length;
    }
}

#[cfg(test)]
mod tests;
