//! `show --context`.

use super::LimitArgs;

/// A turn or a message to show with its context.
#[derive(Debug)]
pub(crate) struct ContextArgs {
    /// The session or the message.
    pub(crate) session: String,
    pub(crate) position: PositionArgs,
    /// Number of turns (or messages) before it.
    pub(crate) before: Option<u32>,
    /// Number of turns (or messages) after it.
    pub(crate) after: Option<u32>,
    /// Whether to show complete tool output.
    pub(crate) full: bool,
    pub(crate) no_thinking: bool,
    pub(crate) no_tools: bool,
    pub(crate) limits: LimitArgs,
}

/// One of the two is needed, unless the address names a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PositionArgs {
    /// The turn, counted from 1.
    pub(crate) turn: Option<u32>,
    /// The message, counted from 0.
    pub(crate) message: Option<u32>,
}
