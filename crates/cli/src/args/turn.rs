//! `show --turn`, and whether turns are embedded.

use clap::Args;

/// Whether turns are embedded.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct TurnsArgs {
    /// Also embed turns, for `search --unit turn` [default: if the model is on this machine]
    #[arg(long, overrides_with = "no_turns")]
    turns: bool,
    /// Do not embed turns
    #[arg(long, overrides_with = "turns")]
    no_turns: bool,
}

impl TurnsArgs {
    /// The choice, if there is one.
    pub(crate) fn choice(self) -> Option<bool> {
        (self.turns || self.no_turns).then_some(self.turns)
    }
}

/// A turn to show.
#[derive(Debug)]
pub(crate) struct TurnArgs {
    /// The session, or a message of the turn.
    pub(crate) session: String,
    /// The turn, counted from 1.
    pub(crate) turn: Option<u32>,
}
