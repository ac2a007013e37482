//! Summaries of turns.

use crate::{
    model::{MessageRef, TurnSummary},
    scope::Scope,
    search::SessionFilter,
};

/// Which summaries to list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SummaryQuery {
    /// The scope of their sessions.
    pub scope: Scope,
    /// The filter of their sessions.
    pub filter: SessionFilter,
    /// Continue after this user's message, the last one of the previous page.
    pub after: Option<MessageRef>,
    /// Maximum number of summaries. Default: 1,000.
    pub limit: usize,
}

impl SummaryQuery {
    /// The first 1,000 summaries of `scope`.
    #[must_use]
    pub fn new(scope: impl Into<Scope>) -> Self {
        Self { scope: scope.into(), filter: SessionFilter::default(), after: None, limit: 1_000 }
    }

    setters! {
        /// Sets the filter of the sessions.
        with_filter(filter: SessionFilter);
        /// Continues after a message.
        with_after(after: Option<MessageRef>);
        /// Sets the maximum number of summaries.
        with_limit(limit: usize);
    }
}

impl TurnSummary {
    /// The user's message.
    #[must_use]
    pub fn message_ref(&self) -> MessageRef {
        MessageRef::new(self.session.clone(), self.user_sequence)
    }
}
