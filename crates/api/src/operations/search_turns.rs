//! Finds turns: what was asked, with the last answer or its summary.

use std::collections::{HashMap, HashSet};

use amplifier_session_core::{
    Scope,
    model::{DamagedRow, SessionKey},
    search::{SearchMode, SearchOptions, TurnResult, TurnResults},
};
use serde::{Deserialize, Serialize};

use super::search::SearchRequest;
use crate::{
    Api, ApiAnswer, ApiError, FoundKind, Notice,
    groups::{self, FoundSession},
    ids::{address, address_beside},
    incomplete::IncompleteReason,
    names::{ResultNames, names_of},
    query::ResolvedQuery,
};

/// Turns that were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnsResponse {
    /// The mode of the search that was done.
    pub mode: SearchMode,
    /// The kind of results: `turn`.
    pub unit: String,
    /// Remarks in words. They are those of the notices that are about the search, so a face puts them in.
    pub notices: Vec<String>,
    /// The turns, best first. With `groups`, those that the groups contain.
    pub results: Vec<FoundTurn>,
    /// The same turns by session, if that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<FoundSession<FoundTurn>>>,
    /// Messages that would be among the results, but can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
    /// Why something may be missing; empty if nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteReason>,
}

/// A turn that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundTurn {
    /// The address of the user's message.
    pub address: String,
    /// The title of the session, if that can be read.
    pub title: Option<String>,
    /// The turn, and why it was found.
    #[serde(flatten)]
    pub result: TurnResult,
}

impl TurnsResponse {
    /// The number of items that a budget counts: the sessions if results are grouped, otherwise the turns.
    #[must_use]
    pub fn count(&self) -> usize {
        self.groups.as_ref().map_or(self.results.len(), Vec::len)
    }

    /// The response with only the first items.
    #[must_use]
    pub fn first(&self, items: usize) -> Self {
        let mut first = self.clone();
        let Some(groups) = &mut first.groups else {
            first.results.truncate(items);
            return first;
        };
        groups.truncate(items);
        let shown: HashSet<&str> =
            groups.iter().flat_map(|group| &group.results).map(|found| found.address.as_str()).collect();
        first.results.retain(|found| shown.contains(found.address.as_str()));
        first
    }
}

impl FoundTurn {
    fn new(result: TurnResult, names: &ResultNames) -> Self {
        let title = names.title_of(&key_of(&result)).map(str::to_owned);
        Self { address: address(names.short_id_of(&result.session_id), result.sequence), title, result }
    }

    /// The address of the assistant's message, if there is one.
    #[must_use]
    pub fn answer(&self) -> Option<String> {
        let (_, sequence) = self.result.assistant_message_id.as_ref()?.rsplit_once('_')?;
        Some(address_beside(&self.address, sequence.parse().ok()?))
    }
}

impl Api<'_> {
    /// Finds turns. Explanations and complete messages do not apply to them.
    ///
    /// # Errors
    ///
    /// As [`Api::search`].
    #[crate::compiled_here]
    pub async fn search_turns(&self, request: &SearchRequest) -> Result<ApiAnswer<TurnsResponse>, ApiError> {
        let mut notices = Vec::new();
        let query = self.resolved_query(request.read(self.now, &mut notices)?, &mut notices).await?;
        let ResolvedQuery { scope, options, .. } = &query;
        let found = if request.by_session {
            self.turns_of_sessions(scope, options).await?
        } else {
            self.storage.search().search_turns(scope, options).await?
        };
        if request.by_session {
            notices.extend(groups::best_only(&found.results, options.limit));
        }
        let mut incomplete = IncompleteReason::of_search(options, found.mode, None, &found.damaged);
        incomplete.extend(IncompleteReason::of_damage(&self.damaged_within(scope)));
        notices.extend(found.notices.into_iter().map(|text| Notice::Search { text }));
        let names = names_of(self.storage, &query.scope, found.results.iter().map(key_of).collect()).await?;
        notices.extend(self.damaged_sessions(&query.scope));
        let view = |result: &TurnResult| FoundTurn::new(result.clone(), &names);
        let (results, groups) = if request.by_session {
            let (results, groups) =
                self.by_session((&found.results, &HashMap::new()), request, &names, view).await?;
            (results, Some(groups))
        } else {
            (found.results.iter().skip(request.skip).map(view).collect(), None)
        };
        let response = TurnsResponse {
            mode: found.mode,
            unit: "turn".to_owned(),
            notices: Vec::new(),
            results,
            groups,
            damaged: found.damaged,
            incomplete,
        };
        if response.results.is_empty() && response.damaged.is_empty() {
            self.found_nothing(&query, FoundKind::Turn, None, &mut notices).await?;
        }
        Ok(ApiAnswer { response, notices })
    }

    /// The best turns of at least `options.limit` sessions, if they come from that many.
    async fn turns_of_sessions(
        &self,
        scope: &Scope,
        options: &SearchOptions,
    ) -> Result<TurnResults, ApiError> {
        let search = async |number| {
            let options = options.clone().with_limit(number);
            self.storage.search().search_turns(scope, &options).await
        };
        let [few, many] = groups::numbers(options.limit);
        let found = search(few).await?;
        if groups::are_enough(&found.results, few, options.limit) {
            return Ok(found);
        }
        Ok(search(many).await?)
    }
}

fn key_of(result: &TurnResult) -> SessionKey {
    SessionKey::new(result.user_id.clone(), result.session_id.clone())
}
