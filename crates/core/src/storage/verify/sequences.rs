//! The sequences of rows that are read in order.

/// The sequences so far, and the gaps between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sequences {
    /// The sequence after the last row.
    pub(super) next: u32,
    /// The first and the last sequence of each gap.
    pub(super) gaps: Vec<(u32, u32)>,
}

impl Sequences {
    /// Adds the next row. Returns whether it follows the one before it.
    pub(super) fn add(&mut self, sequence: u32) -> bool {
        let follows = sequence <= self.next;
        if !follows {
            self.gaps.push((self.next, sequence - 1));
        }
        self.next = self.next.max(sequence.saturating_add(1));
        follows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_a_first_and_a_last_sequence() {
        let mut sequences = Sequences::default();
        let follow: Vec<bool> = [0, 1, 4, 5, 7].into_iter().map(|sequence| sequences.add(sequence)).collect();
        assert_eq!(follow, [true, true, false, true, false]);
        assert_eq!(sequences, Sequences { next: 8, gaps: vec![(2, 3), (6, 6)] });
    }
}
