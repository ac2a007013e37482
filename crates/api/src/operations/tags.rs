//! Lists the tags in use.

use std::{cmp::Reverse, collections::BTreeMap};

use amplifier_session_core::backend::SessionQuery;
use serde::{Deserialize, Serialize};

use crate::{Api, ApiAnswer, ApiError, Reach};

/// Number of sessions read at a time.
const PAGE: usize = 500;

/// A list of the tags in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TagsRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
}

/// The tags in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TagsResponse {
    /// The tags, the most frequent first.
    pub tags: Vec<TagCount>,
}

/// A tag, and the number of sessions that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TagCount {
    /// The tag.
    pub tag: String,
    /// The number of sessions.
    pub sessions: u64,
}

impl Api<'_> {
    /// Lists the tags in use.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn tags(&self, request: &TagsRequest) -> Result<ApiAnswer<TagsResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let query = SessionQuery::new(scope.clone()).with_limit(PAGE);
        for session in self.storage.sessions().all_sessions(query).await? {
            for tag in session.tags {
                *counts.entry(tag).or_default() += 1;
            }
        }
        let mut tags: Vec<TagCount> =
            counts.into_iter().map(|(tag, sessions)| TagCount { tag, sessions }).collect();
        tags.sort_by_key(|of| Reverse(of.sessions));
        let notices = self.damaged_sessions(&scope).into_iter().collect();
        Ok(ApiAnswer { response: TagsResponse { tags }, notices })
    }
}
