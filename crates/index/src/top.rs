//! Keeps the best of many scores.

use std::{cmp::Ordering, collections::BinaryHeap};

/// A key with its score.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranked<T> {
    pub(crate) score: f32,
    pub(crate) key: u64,
    pub(crate) item: T,
}

/// Better first: by score descending, then by key ascending.
impl<T> Ord for Ranked<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.key.cmp(&other.key))
    }
}

impl<T> PartialOrd for Ranked<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Ranked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Ranked<T> {}

/// Keeps the best `limit` of the added values.
#[derive(Debug)]
pub(crate) struct Top<T> {
    limit: usize,
    /// The worst on top.
    kept: BinaryHeap<Ranked<T>>,
}

impl<T> Top<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, kept: BinaryHeap::with_capacity(limit.min(1024)) }
    }

    /// The minimum score of a value that would be kept.
    pub(crate) fn least(&self) -> f32 {
        if self.kept.len() < self.limit {
            return f32::NEG_INFINITY;
        }
        self.kept.peek().map_or(f32::INFINITY, |worst| worst.score)
    }

    pub(crate) fn put(&mut self, score: f32, key: u64, item: T) {
        let new = Ranked { score, key, item };
        if self.kept.len() < self.limit {
            self.kept.push(new);
        } else if let Some(mut worst) = self.kept.peek_mut()
            && new < *worst
        {
            *worst = new;
        }
    }

    /// Adds the values that another one has kept.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        for Ranked { score, key, item } in other.kept {
            self.put(score, key, item);
        }
        self
    }

    /// In any order.
    pub(crate) fn into_vec(self) -> Vec<Ranked<T>> {
        self.kept.into_vec()
    }

    /// Best first.
    pub(crate) fn into_sorted(self) -> Vec<Ranked<T>> {
        self.kept.into_sorted_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_and_ties_are_broken_by_key() {
        let mut top = Top::new(3);
        for (score, key) in [(0.5, 9), (0.9, 4), (0.5, 2), (0.1, 1), (0.9, 3)] {
            top.put(score, key, ());
        }
        assert_eq!(top.least(), 0.5);
        let kept: Vec<_> = top.into_sorted().iter().map(|ranked| (ranked.score, ranked.key)).collect();
        assert_eq!(kept, [(0.9, 3), (0.9, 4), (0.5, 2)]);
        // A limit of 0 keeps nothing.
        let mut top = Top::new(0);
        top.put(1.0, 1, ());
        assert!(top.into_sorted().is_empty());
    }
}
