//! Determines which vectors the new store gets: a store has vectors of only one space.

use std::collections::HashMap;

use amplifier_session_core::model::EmbeddingSpace;

/// The name for a model without one.
const UNNAMED: &str = "unknown";

/// The number of vectors of each model and length.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    counts: HashMap<(Option<String>, usize), u64>,
    /// The space whose vectors are written; `None` if there are no vectors.
    pub(crate) chosen: Option<EmbeddingSpace>,
}

impl Spaces {
    /// Counts a vector.
    pub(crate) fn count(&mut self, model: Option<String>, dimensions: usize) {
        *self.counts.entry((model, dimensions)).or_default() += 1;
    }

    /// Chooses the space with the most vectors.
    pub(crate) fn choose(&mut self) {
        let mut counts: HashMap<EmbeddingSpace, u64> = HashMap::new();
        for ((model, dimensions), count) in &self.counts {
            *counts.entry(self.space(model.as_deref(), *dimensions)).or_default() += count;
        }
        let most = counts.into_iter().max_by(|(a, of_a), (b, of_b)| {
            of_a.cmp(of_b).then_with(|| (&b.model, b.dimensions).cmp(&(&a.model, a.dimensions)))
        });
        self.chosen = most.map(|(space, _)| space);
    }

    /// The space of a vector. A vector that a program made itself has no model: it counts as a vector of the only model
    /// with this length.
    pub(crate) fn space(&self, model: Option<&str>, dimensions: usize) -> EmbeddingSpace {
        let named = || {
            let mut named = self.counts.keys().filter(|(_, length)| *length == dimensions);
            let mut models = named.by_ref().filter_map(|(model, _)| model.as_deref());
            models.next().filter(|_| models.next().is_none())
        };
        let model = model.or_else(named).unwrap_or(UNNAMED).to_owned();
        EmbeddingSpace { model, dimensions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(counts: &[(Option<&str>, usize, u64)]) -> Option<EmbeddingSpace> {
        let counts = counts.iter().map(|(model, length, n)| ((model.map(str::to_owned), *length), *n));
        let mut spaces = Spaces { counts: counts.collect(), chosen: None };
        spaces.choose();
        spaces.chosen
    }

    fn space(model: &str, dimensions: usize) -> Option<EmbeddingSpace> {
        Some(EmbeddingSpace { model: model.to_owned(), dimensions })
    }

    #[test]
    fn vectors_without_a_model_are_of_the_only_one() {
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[(None, 64, 3)]), space("unknown", 64));
        assert_eq!(chosen(&[(None, 64, 3), (Some("a"), 64, 2), (Some("b"), 32, 4)]), space("a", 64));
        let two = [(None, 64, 3), (Some("a"), 64, 2), (Some("b"), 64, 2)];
        assert_eq!(chosen(&two), space("unknown", 64));
        assert_eq!(chosen(&two[1..]), space("a", 64));
    }
}
