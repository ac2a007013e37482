//! Codes: vectors with one byte per dimension.
//!
//! Vectors are rotated first. That multiplies all products by the same factor, and spreads a few large components over
//! many dimensions, where they would make the codes of all others inexact. The upper and the lower four bits of the bytes
//! are kept apart, as coarse and fine codes: a scan reads only the coarse codes, half of the bytes, and compares the best
//! rows again with both.
//!
//! Coarse and fine codes are blocks of 64 dimensions: each of 32 bytes has one of the first 32 dimensions in its lower
//! four bits, and one of the others in its upper four bits. The last block of a vector is filled up with zeros.

use multiversion::multiversion;

use super::four_bits::{BLOCK_BYTES, QueryBlock, append_products};

/// The largest code. The range is symmetric, so that a vector and its opposite have opposite codes.
const LARGEST: f32 = 127.0;

/// Bytes of the coarse codes of a vector, and also of its fine codes.
pub(super) const fn bytes_per_row(dimensions: usize) -> usize {
    dimensions.div_ceil(2 * BLOCK_BYTES) * BLOCK_BYTES
}

/// The codes of several vectors, one after another.
#[derive(Debug, Default)]
pub(super) struct Codes {
    pub(super) coarse: Vec<u8>,
    pub(super) fine: Vec<u8>,
}

/// Factors for products with the codes of a vector.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Scales {
    /// For coarse codes.
    pub(super) coarse: f32,
    /// For coarse and fine codes together.
    pub(super) fine: f32,
}

impl Codes {
    /// Appends the codes of `vector`.
    pub(super) fn push(&mut self, vector: &[f32]) -> Scales {
        let rotated = rotate(vector);
        let largest = largest_of(&rotated);
        let factor = if largest == 0.0 { 0.0 } else { LARGEST / largest };
        // Plus 128, so that both halves of a byte are unsigned.
        let mut codes: Vec<u8> = rotated.iter().map(|x| ((x * factor).round() as i8 as u8) ^ 0x80).collect();
        let coarse_scale = coarse_scale(&rotated, &codes);
        codes.resize(2 * bytes_per_row(codes.len()), 0);
        for block in codes.as_chunks::<{ 2 * BLOCK_BYTES }>().0 {
            let (low, high) = block.split_at(BLOCK_BYTES);
            self.coarse.extend(low.iter().zip(high).map(|(low, high)| low >> 4 | high & 0xF0));
            self.fine.extend(low.iter().zip(high).map(|(low, high)| low & 0x0F | high << 4));
        }
        Scales { coarse: coarse_scale, fine: largest / LARGEST }
    }
}

/// The scale with which the product of a vector and its own coarse codes is exact. With that of the fine codes, vectors
/// with a few large components would seem nearer than others.
fn coarse_scale(rotated: &[f32], codes: &[u8]) -> f32 {
    let squares: f32 = rotated.iter().map(|x| x * x).sum();
    let products: f32 = rotated.iter().zip(codes).map(|(x, code)| x * (f32::from(code >> 4) - 7.5)).sum();
    if squares.is_finite() && products > 0.0 { squares / products } else { 0.0 }
}

/// The largest absolute value; 0 if one is not finite.
fn largest_of(vector: &[f32]) -> f32 {
    let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    if vector.iter().all(|x| x.is_finite()) { largest } else { 0.0 }
}

/// Changes the signs of half of the components, and multiplies parts of the vector with a Hadamard matrix: an orthogonal
/// transformation, except for a factor that is the same for all vectors of this length. A part is as long as the largest
/// power of two that divides the length.
fn rotate(vector: &[f32]) -> Vec<f32> {
    let sign = |number: usize| if mixed(number as u64) >> 63 == 0 { 1.0 } else { -1.0 };
    let mut rotated: Vec<f32> = vector.iter().enumerate().map(|(number, x)| x * sign(number)).collect();
    let part = vector.len() & vector.len().wrapping_neg();
    let mut half = 1;
    while half < part {
        for pair in rotated.chunks_exact_mut(2 * half) {
            let (first, second) = pair.split_at_mut(half);
            for (a, b) in first.iter_mut().zip(second) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    rotated
}

/// The finaliser of SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// A query's vector, to be compared with codes. Similarities are without the query's scale, which is the same for all
/// rows.
pub(super) struct QueryCodes {
    blocks: Vec<QueryBlock>,
    sum: i64,
}

impl QueryCodes {
    pub(super) fn new(vector: &[f32]) -> Self {
        let rotated = rotate(vector);
        let largest = largest_of(&rotated);
        let factor = if largest == 0.0 { 0.0 } else { LARGEST / largest };
        let mut codes: Vec<u8> = rotated.iter().map(|x| (x * factor).round() as i8 as u8).collect();
        codes.resize(2 * bytes_per_row(codes.len()), 0);
        let (halves, _) = codes.as_chunks::<BLOCK_BYTES>();
        let blocks = halves.as_chunks::<2>().0.to_vec();
        Self { blocks, sum: codes.iter().map(|code| i64::from(*code as i8)).sum() }
    }

    /// The products with the coarse or the fine codes of several rows.
    pub(super) fn products(&self, codes: &[u8], products: &mut Vec<i32>) {
        products.clear();
        append_products(&self.blocks, codes, products);
    }

    /// The similarity by the product with coarse codes. They are numbers from 0 to 15, and 7.5 is 0; the result is twice
    /// as large, as it is for all rows.
    pub(super) fn coarse_similarity(&self, coarse_product: i32, scale: f32) -> f32 {
        (2 * i64::from(coarse_product) - 15 * self.sum) as f32 * scale
    }

    /// The similarity by the products with coarse and fine codes. Together they are numbers from 1 to 255, and 128 is 0.
    pub(super) fn similarity(&self, coarse_product: i32, fine_product: i32, scale: f32) -> f32 {
        let product = 16 * i64::from(coarse_product) + i64::from(fine_product) - 128 * self.sum;
        product as f32 * scale
    }
}

/// The inner product of two vectors.
#[multiversion(targets = "simd")]
pub(crate) fn product(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 32;
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    // Independent sums, so that the compiler can vectorise them.
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between -0.125 and 0.125, and one that is far larger.
    fn vector(dimensions: usize, seed: usize) -> Vec<f32> {
        let number = |n| (mixed((seed * 10_000 + n) as u64) >> 40) as f32 / (1 << 26) as f32 - 0.125;
        (0..dimensions).map(|n| if n == 3 { 0.9 } else { number(n) }).collect()
    }

    #[test]
    fn products_with_codes_are_nearly_those_with_the_vector() {
        for dimensions in [1, 2, 7, 64, 100, 256, 384] {
            let (a, b) = (vector(dimensions, 1), vector(dimensions, 2));
            let mut codes = Codes::default();
            let scales = codes.push(&b);
            let bytes = bytes_per_row(dimensions);
            assert_eq!((codes.coarse.len(), codes.fine.len()), (bytes, bytes));
            let query = QueryCodes::new(&a);
            // The scale of the query is not known, so that similarities are compared with its similarity to itself.
            let mut codes_of_query = Codes::default();
            let scales_of_query = codes_of_query.push(&a);
            let similarities = |codes: &Codes, scales: Scales| {
                let product = |codes: &[u8]| {
                    let mut products = Vec::new();
                    query.products(codes, &mut products);
                    products[0]
                };
                let (coarse, fine) = (product(&codes.coarse), product(&codes.fine));
                (query.coarse_similarity(coarse, scales.coarse), query.similarity(coarse, fine, scales.fine))
            };
            let (coarse, fine) = similarities(&codes, scales);
            let (coarse_of_query, fine_of_query) = similarities(&codes_of_query, scales_of_query);
            let (coarse, fine) = (coarse / coarse_of_query, fine / fine_of_query);
            let expected = product(&a, &b) / product(&a, &a);
            assert!((coarse - expected).abs() < 0.1, "{dimensions}: {coarse}, {expected}");
            assert!((fine - expected).abs() < 0.01, "{dimensions}: {fine}, {expected}");
        }
    }

    #[test]
    fn a_rotation_changes_no_product() {
        for (dimensions, block) in [(1, 1), (5, 1), (8, 8), (12, 4), (256, 256), (384, 128)] {
            let (a, b) = (vector(dimensions, 3), vector(dimensions, 4));
            let rotated = product(&rotate(&a), &rotate(&b)) / block as f32;
            assert!((rotated - product(&a, &b)).abs() < 1e-4, "{dimensions}");
        }
    }

    #[test]
    fn a_vector_without_a_direction_is_similar_to_nothing() {
        let one_is_not_a_number = [1.0, 2.0, f32::NAN, 4.0, 5.0];
        for vector in [[0.0; 5], [f32::NAN; 5], [f32::INFINITY; 5], one_is_not_a_number] {
            let mut codes = Codes::default();
            let scales = codes.push(&vector);
            assert_eq!((codes.coarse.len(), scales), (BLOCK_BYTES, Scales::default()), "{vector:?}");
            assert_eq!(QueryCodes::new(&vector).sum, 0);
        }
    }

    #[test]
    fn products_of_any_length_equal_those_of_a_plain_loop() {
        for length in [0, 1, 15, 16, 17, 64, 100] {
            let a: Vec<f32> = (0..length).map(|n| n as f32 * 0.5 - 3.0).collect();
            let b: Vec<f32> = (0..length).map(|n| 2.0 - n as f32 * 0.25).collect();
            let plain: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert!((product(&a, &b) - plain).abs() <= plain.abs() * 1e-5 + 1e-5, "{length}");
        }
    }
}
