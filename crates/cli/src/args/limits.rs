//! Limits of the length of an answer.

use clap::Args;

use super::at_least_one;
use crate::out::Out;

/// Limits of the length of an answer.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LimitArgs {
    /// Cut each message after N characters; 0 means no limit [default: 4000 in a pipe, 0 on a terminal]
    #[arg(long, value_name = "N")]
    max_chars: Option<usize>,
    /// Maximum length of the whole answer in tokens (cl100k_base); the rest is cut or left out
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one)]
    pub(crate) budget: Option<usize>,
}

impl LimitArgs {
    /// The maximum number of characters of a message, if there is a limit.
    pub(crate) fn max_chars(self, out: &Out) -> Option<usize> {
        const IN_A_PIPE: usize = 4_000;
        match self.max_chars {
            Some(0) => None,
            Some(most) => Some(most),
            None => (!out.is_terminal()).then_some(IN_A_PIPE),
        }
    }
}
