//! Codes: vectors with one byte per dimension.

use multiversion::multiversion;

/// The largest code. The range is symmetric, so that a vector and its opposite have opposite codes.
const LARGEST: f32 = 127.0;

/// Appends the codes of `vector` to `codes` and returns their scale: `vector ≈ codes · scale`.
///
/// Codes are signed bytes, stored as `u8` as in files.
pub(super) fn quantise(vector: &[f32], codes: &mut Vec<u8>) -> f32 {
    let largest = vector.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        codes.extend(vector.iter().map(|_| 0));
        return 0.0;
    }
    let factor = LARGEST / largest;
    codes.extend(vector.iter().map(|x| (x * factor).round() as i8 as u8));
    largest / LARGEST
}

/// The inner product of two vectors of codes.
#[multiversion(targets = "simd")]
pub(super) fn code_product(a: &[u8], b: &[u8]) -> i32 {
    // A product of two codes fits in 16 bits; the sum fits in 32 bits up to 133,000 dimensions.
    a.iter().zip(b).map(|(a, b)| i32::from(*a as i8) * i32::from(*b as i8)).sum()
}

/// The inner product of two vectors.
#[multiversion(targets = "simd")]
pub(crate) fn product(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
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

    #[test]
    fn codes_approximate_the_vector() {
        let vector: Vec<f32> = (0..100).map(|n| ((n * 37 % 101) as f32 - 50.0) / 400.0).collect();
        let mut codes = Vec::new();
        let scale = quantise(&vector, &mut codes);
        for (x, code) in vector.iter().zip(&codes) {
            assert!((x - f32::from(*code as i8) * scale).abs() <= scale * 0.5001);
        }
        let square = code_product(&codes, &codes) as f32 * scale * scale;
        assert!((square - product(&vector, &vector)).abs() < 1e-3);
    }

    #[test]
    fn a_zero_vector_has_no_scale() {
        let mut codes = Vec::new();
        assert_eq!(quantise(&[0.0; 5], &mut codes), 0.0);
        assert_eq!(codes, [0; 5]);
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
