//! Inner products of a query with numbers of four bits.

use multiversion::multiversion;

/// Bytes of a block, which has twice as many dimensions.
pub(super) const BLOCK_BYTES: usize = 32;

/// A query's components in a block: those that belong to the lower four bits of each byte, and to the upper ones. They
/// are signed bytes from -127 to 127, stored as `u8`.
pub(super) type QueryBlock = [[u8; BLOCK_BYTES]; 2];

/// After this many blocks, the 16-bit sums are added to 32-bit ones. Until then, a sum has 16 products (4 blocks, 2
/// halves, 2 that are added in pairs) of at most 15 · 127, which fit in 16 bits.
const BLOCKS_AT_ONCE: usize = 4;

/// Appends the product of a query with each row of `codes`, which have as many blocks as the query. Products fit in 32
/// bits up to a million dimensions.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn append_products(query: &[QueryBlock], codes: &[u8], products: &mut Vec<i32>) {
    let (blocks, _) = codes.as_chunks::<BLOCK_BYTES>();
    let rows = blocks.chunks_exact(query.len().max(1));
    #[cfg(not(target_feature = "avx2"))]
    multiversion::target::match_target! {
        "x86_64+avx2" => avx2::append_products(query, rows, products),
        _ => products.extend(rows.map(|row| product(query, row))),
    }
    // In a build only for such processors, the call above would need `unsafe`. The loop is fast enough.
    #[cfg(target_feature = "avx2")]
    products.extend(rows.map(|row| product(query, row)));
}

/// The product with one row, on any processor.
fn product(query: &[QueryBlock], row: &[[u8; BLOCK_BYTES]]) -> i32 {
    let mut product = 0;
    for (blocks, query) in row.chunks(BLOCKS_AT_ONCE).zip(query.chunks(BLOCKS_AT_ONCE)) {
        let mut sums = [0_i16; BLOCK_BYTES];
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

/// The same with the instruction that multiplies bytes and adds the products in pairs. LLVM does not use it for the loop
/// above. A scan takes half as long with it.
#[cfg(all(target_arch = "x86_64", not(target_feature = "avx2")))]
mod avx2 {
    use std::{arch::x86_64::*, slice::ChunksExact};

    use super::{BLOCK_BYTES, BLOCKS_AT_ONCE, QueryBlock};

    #[target_feature(enable = "avx2")]
    pub(super) fn append_products(
        query: &[QueryBlock],
        rows: ChunksExact<'_, [u8; BLOCK_BYTES]>,
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
    fn load(bytes: &[u8; BLOCK_BYTES]) -> __m256i {
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
                let mut query = vec![[[component as i8 as u8; BLOCK_BYTES]; 2]; blocks];
                query[0][0][7] = -3_i8 as u8;
                let mut codes = vec![number as u8; 2 * blocks * BLOCK_BYTES];
                codes[BLOCK_BYTES - 1] = 0xA5;
                let dimension = |byte: &u8, [low, high]: [&u8; 2]| {
                    i32::from(byte & 15) * i32::from(*low as i8)
                        + i32::from(byte >> 4) * i32::from(*high as i8)
                };
                let [low, high] = [0, 1].map(|half| query.iter().flat_map(move |block| &block[half]));
                let factors: Vec<[&u8; 2]> = low.zip(high).map(<[&u8; 2]>::from).collect();
                let rows = codes.chunks(blocks * BLOCK_BYTES);
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
