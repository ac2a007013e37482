//! Pseudorandom numbers, the same in every run.

/// A pseudorandom number generator (SplitMix64).
#[derive(Debug, Clone, Default)]
pub struct Random(pub u64);

impl Random {
    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number of at least 0 and less than 1.
    pub fn part(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number of at least 0 and less than `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    /// Returns one of `items`, which must not be empty.
    pub fn one<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Returns a length from an approximately log-normal distribution around `middle`.
    pub fn length(&mut self, middle: f64, spread: f64, most: usize) -> usize {
        let normal = (0..12).map(|_| self.part()).sum::<f64>() - 6.0;
        ((middle * (spread * normal).exp()) as usize).clamp(2, most)
    }

    /// Returns `count` words of a vocabulary of `size` words.
    pub fn words(&mut self, count: usize, size: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| format!("word{}", self.below(size))).collect();
        words.join(" ")
    }
}
