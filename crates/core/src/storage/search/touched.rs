//! Sessions that touched a file.

use std::collections::BTreeSet;

use super::{checked::ConditionCheck, text_plan::TextPlan};
use crate::{
    Result, Scope,
    model::{ContentType, SessionKey},
    search::{SearchFilter, SearchMode, SearchOptions, SessionFilter, TextConditions},
    storage::store::TranscriptSearch,
};

/// At most this many tool calls are compared with the path.
const MOST_CALLS: usize = 10_000;

/// Sessions that touched a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TouchedSessions {
    /// The sessions.
    pub sessions: BTreeSet<SessionKey>,
    /// Why some sessions may be missing, as a note for users.
    pub notice: Option<String>,
}

impl TranscriptSearch<'_> {
    /// The sessions in `scope` that `filter` admits with a tool call whose arguments contain the path `file`, a longer
    /// path that ends with it, or a path inside that folder.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn sessions_that_touched(
        self,
        scope: &Scope,
        filter: &SessionFilter,
        file: &str,
    ) -> Result<TouchedSessions> {
        let plan = TextPlan::of_all_words(file);
        let options = SearchOptions::new("")
            .with_mode(SearchMode::FullText)
            .with_content_types([ContentType::ToolCall].into_iter().collect())
            .with_filter(SearchFilter::default().with_sessions(filter.clone()))
            .with_conditions(TextConditions::default().with_files([file]));
        let found = self.planned_texts(scope, &options, &plan, MOST_CALLS, ConditionCheck::First).await?;
        let sessions = found.items.into_iter().map(|candidate| candidate.message_ref.session).collect();
        Ok(TouchedSessions { sessions, notice: found.notice })
    }
}
