//! The lines of turns, to tell whether the vector of a turn is made from all of them.

use std::collections::{BTreeMap, HashMap};

use crate::model::{Digest, Role};

/// A message as far as turns are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLine {
    /// Its sequence.
    pub sequence: u32,
    /// Its turn.
    pub turn: Option<u32>,
    /// Its role.
    pub role: Role,
    /// The digest of its line.
    pub digest: Digest,
}

/// The digests of the lines of turns, by the first message of the user in each. The vector of a turn belongs to that
/// message. The lines are those that follow it without a gap and have the number of its turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnLines(BTreeMap<u32, Digest>);

impl TurnLines {
    /// The turns of these messages of one session, in order of sequence. They must include all messages of these turns.
    #[must_use]
    pub fn of(messages: impl IntoIterator<Item = TurnLine>) -> Self {
        /// The first message of the user, the last line that follows it, and the digests of all.
        type Run = (u32, u32, Vec<u8>);
        let mut runs: HashMap<u32, Run> = HashMap::new();
        for TurnLine { sequence, turn, role, digest } in messages {
            let Some(turn) = turn else { continue };
            match runs.get_mut(&turn) {
                Some((_, last, digests)) if sequence == *last + 1 => {
                    *last = sequence;
                    digests.extend(digest.0);
                }
                None if role == Role::User => {
                    drop(runs.insert(turn, (sequence, sequence, digest.0.to_vec())))
                }
                _ => {}
            }
        }
        Self(runs.into_values().map(|(first, _, digests)| (first, Digest::of(&digests))).collect())
    }

    /// The digest of the lines of the turn that a message begins; `None` if it begins none.
    #[must_use]
    pub fn begun_by(&self, sequence: u32) -> Option<Digest> {
        self.0.get(&sequence).copied()
    }

    /// The messages that begin turns.
    pub fn firsts(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(roles: &[(Role, Option<u32>)]) -> Vec<TurnLine> {
        let line = |(sequence, (role, turn)): (u32, &(Role, Option<u32>))| {
            let digest = Digest::of(&sequence.to_le_bytes());
            TurnLine { sequence, turn: *turn, role: *role, digest }
        };
        (0..).zip(roles).map(line).collect()
    }

    #[test]
    fn a_turn_is_begun_by_the_first_message_of_the_user_in_it() {
        let (user, assistant) = (Role::User, Role::Assistant);
        let all = lines(&[
            (Role::System, None),
            (assistant, Some(1)),
            (user, Some(1)),
            (user, Some(1)),
            (user, Some(2)),
            (assistant, Some(2)),
            (user, Some(1)),
        ]);
        let turns = TurnLines::of(all.clone());
        assert_eq!(turns.firsts().collect::<Vec<_>>(), [2, 4]);
        assert_eq!(turns.begun_by(3), None);
        // Another line of a turn changes its digest; a line of another turn, or of the same number later on, does not.
        let without =
            |left_out: u32| TurnLines::of(all.iter().copied().filter(|line| line.sequence != left_out));
        assert_eq!(without(6), turns);
        assert_eq!(without(5).begun_by(2), turns.begun_by(2));
        assert_ne!(without(5).begun_by(4), turns.begun_by(4));
        assert_ne!(without(3).begun_by(2), turns.begun_by(2));
    }
}
