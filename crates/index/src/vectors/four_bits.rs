//! Inner products of a query with numbers of four bits.

use multiversion::{multiversion, target::match_target};

/// Bytes of a block, which has twice as many dimensions.
pub(super) const LANES: usize = 32;

/// A query's components in a block: those that belong to the lower four bits of each byte, and to the upper ones. They
/// are signed bytes from -127 to 127, stored as `u8`.
pub(super) type QueryBlock = [[u8; LANES]; 2];

/// After this many blocks, the 16-bit sums are added to 32-bit ones: 16 products of at most 15 · 127 fit in 16 bits.
const BLOCKS_AT_ONCE: usize = 4;

/// Appends the product of a query with each row of `codes`, which have as many blocks as the query.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn append_products(query: &[QueryBlock], codes: &[u8], products: &mut Vec<i32>) {
    let (blocks, _) = codes.as_chunks::<LANES>();
    let rows = blocks.chunks_exact(query.len().max(1));
    match_target! {
        "x86_64+avx2" => avx2::append_products(query, rows, products),
        _ => products.extend(rows.map(|row| product(query, row))),
    }
}

/// The product with one row, on any processor.
#[cfg_attr(target_feature = "avx2", allow(dead_code, reason = "the other version is always used"))]
fn product(query: &[QueryBlock], row: &[[u8; LANES]]) -> i32 {
    let mut product = 0;
    for (blocks, query) in row.chunks(BLOCKS_AT_ONCE).zip(query.chunks(BLOCKS_AT_ONCE)) {
        let mut sums = [0_i16; LANES];
        for (block, [low, high]) in blocks.iter().zip(query) {
            for (((sum, byte), low), high) in sums.iter_mut().zip(block).zip(low).zip(high) {
                *sum += i16::from(byte & 15) * i16::from(*low as i8);
                *sum += i16::from(byte >> 4) * i16::from(*high as i8);
            }
        }
        product += sums.iter().map(|sum| i32::from(*sum)).sum::<i32>();
    }
    product
}

/// The same with the instruction that multiplies bytes and adds the products in pairs. Compilers do not find it, and
/// without it, a scan takes twice as long.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::{arch::x86_64::*, slice::ChunksExact};

    use super::{BLOCKS_AT_ONCE, LANES, QueryBlock};

    #[target_feature(enable = "avx2")]
    pub(super) fn append_products(
        query: &[QueryBlock],
        rows: ChunksExact<'_, [u8; LANES]>,
        products: &mut Vec<i32>,
    ) {
        let four_bits = _mm256_set1_epi8(15);
        for row in rows {
            let mut sums = _mm256_setzero_si256();
            for (blocks, query) in row.chunks(BLOCKS_AT_ONCE).zip(query.chunks(BLOCKS_AT_ONCE)) {
                let mut small_sums = _mm256_setzero_si256();
                for (block, [low, high]) in blocks.iter().zip(query) {
                    let block = load(block);
                    let of_low = _mm256_and_si256(block, four_bits);
                    let of_high = _mm256_and_si256(_mm256_srli_epi16::<4>(block), four_bits);
                    small_sums = _mm256_add_epi16(small_sums, _mm256_maddubs_epi16(of_low, load(low)));
                    small_sums = _mm256_add_epi16(small_sums, _mm256_maddubs_epi16(of_high, load(high)));
                }
                sums = _mm256_add_epi32(sums, _mm256_madd_epi16(small_sums, _mm256_set1_epi16(1)));
            }
            products.push(total(sums));
        }
    }

    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; LANES]) -> __m256i {
        match bytes.as_chunks().0 {
            [a, b, c, d] => {
                let [a, b, c, d] = [a, b, c, d].map(|word| i64::from_le_bytes(*word));
                _mm256_set_epi64x(d, c, b, a)
            }
            _ => _mm256_setzero_si256(),
        }
    }

    /// The sum of the 32-bit lanes.
    #[target_feature(enable = "avx2")]
    fn total(sums: __m256i) -> i32 {
        let four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b1110>(four));
        _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b01>(two)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_a_plain_loop() {
        for blocks in [1, 3, 4, 5, 12, 48] {
            // The extreme values are those that could exceed a sum of 16 bits.
            for (number, component) in [(0xFF, 127), (0xFF, -127), (0x1F, 101), (0, 5)] {
                let mut query = vec![[[component as i8 as u8; LANES]; 2]; blocks];
                query[0][0][7] = -3_i8 as u8;
                let mut codes = vec![number as u8; 2 * blocks * LANES];
                codes[LANES - 1] = 0xA5;
                let dimension = |byte: &u8, [low, high]: [&u8; 2]| {
                    i32::from(byte & 15) * i32::from(*low as i8)
                        + i32::from(byte >> 4) * i32::from(*high as i8)
                };
                let [low, high] = [0, 1].map(|half| query.iter().flat_map(move |block| &block[half]));
                let factors: Vec<[&u8; 2]> = low.zip(high).map(<[&u8; 2]>::from).collect();
                let rows = codes.chunks(blocks * LANES);
                let expected: Vec<i32> = rows
                    .map(|row| row.iter().zip(&factors).map(|(byte, of)| dimension(byte, *of)).sum())
                    .collect();
                let mut products = Vec::new();
                append_products(&query, &codes, &mut products);
                assert_eq!(products, expected, "{blocks} blocks, {number} times {component}");
                let on_any_processor = codes.as_chunks().0.chunks(blocks).map(|row| product(&query, row));
                assert_eq!(on_any_processor.collect::<Vec<_>>(), expected);
            }
        }
    }
}
