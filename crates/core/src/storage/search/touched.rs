//! Sessions that touched a file.

use std::collections::{BTreeMap, BTreeSet};

use super::{checked::Checked, newest::newest_query};
use crate::{
    Result, Scope,
    model::{ContentType, MessageRef, SessionKey},
    search::{SearchFilter, SearchMode, SearchOptions, SessionFilter, TextConditions},
    storage::store::TranscriptSearch,
};

/// Factor by which more calls of a session are read if none of the calls before has the path.
const GROWTH: usize = 4;

/// Sessions that touched a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TouchedSessions {
    /// The sessions.
    pub sessions: BTreeSet<SessionKey>,
    /// Why the search was slow, or why some sessions may be missing, as a note for users.
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
        let options = SearchOptions::new("")
            .with_mode(SearchMode::FullText)
            .with_content_types([ContentType::ToolCall].into_iter().collect())
            .with_filter(SearchFilter::default().with_sessions(filter.clone()))
            .with_conditions(TextConditions::default().with_files([file]));
        let found = self.newest_first(&newest_query(scope, &options, usize::MAX)).await?;
        let mut of_sessions: BTreeMap<SessionKey, Vec<MessageRef>> = BTreeMap::new();
        for message in found.items {
            of_sessions.entry(message.message_ref.session.clone()).or_default().push(message.message_ref);
        }
        let mut touched = TouchedSessions { sessions: BTreeSet::new(), notice: found.notice };
        let mut checked = Checked::new(self.store, &options);
        // One call that has the path is enough, so that few of them are read.
        let mut read = 1;
        while !of_sessions.is_empty() {
            let last = |calls: &mut Vec<MessageRef>| calls.split_off(calls.len().saturating_sub(read));
            let next = of_sessions.values_mut().flat_map(last);
            let mut next: Vec<MessageRef> = next.collect();
            checked.keep(&mut next, |message_ref| message_ref).await?;
            touched.sessions.extend(next.into_iter().map(|message_ref| message_ref.session));
            of_sessions.retain(|session, calls| !calls.is_empty() && !touched.sessions.contains(session));
            read *= GROWTH;
        }
        Ok(touched)
    }
}
