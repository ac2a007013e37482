//! Numbers that look random and are the same in every run.

/// A generator of numbers (SplitMix64).
#[derive(Debug, Clone, Default)]
pub struct Random(pub u64);

impl Random {
    /// A number of 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// At least 0, less than 1.
    pub fn part(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// At least 0, less than `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    /// One of `items`, which must not be empty.
    pub fn one<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A length whose logarithm is distributed about normally around that of `middle`.
    pub fn length(&mut self, middle: f64, spread: f64, most: usize) -> usize {
        let normal = (0..12).map(|_| self.part()).sum::<f64>() - 6.0;
        ((middle * (spread * normal).exp()) as usize).clamp(2, most)
    }

    /// `count` words of a vocabulary of `size`.
    pub fn words(&mut self, count: usize, size: usize) -> String {
        let words: Vec<String> = (0..count).map(|_| format!("word{}", self.below(size))).collect();
        words.join(" ")
    }
}
