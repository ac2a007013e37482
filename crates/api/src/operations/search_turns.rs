//! Finds turns: what was asked, with the last answer or its summary.

use amplifier_session_core::{
    model::{DamagedRow, SessionKey},
    search::{SearchMode, TurnResult},
};
use serde::{Deserialize, Serialize};

use super::search::SearchRequest;
use crate::{
    Api, ApiAnswer, ApiError, FoundKind, Notice,
    ids::{address, address_beside},
    names::{ResultNames, names_of},
};

/// Turns that were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnsResponse {
    /// The mode of the search that was done.
    pub mode: SearchMode,
    /// The kind of results: `turn`.
    pub unit: String,
    /// Remarks in words. They are those of the notices that are about the search, so a face puts them in.
    pub notices: Vec<String>,
    /// The turns, best first.
    pub results: Vec<FoundTurn>,
    /// Messages that would be among the results, but can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
}

/// A turn that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundTurn {
    /// The address of the user's message.
    pub address: String,
    /// The title of the session, if that can be read.
    pub title: Option<String>,
    /// The turn, and why it was found.
    #[serde(flatten)]
    pub result: TurnResult,
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
    /// Finds turns. Grouping, explanations and complete messages do not apply to them.
    ///
    /// # Errors
    ///
    /// As [`Api::search`].
    pub async fn search_turns(&self, request: &SearchRequest) -> Result<ApiAnswer<TurnsResponse>, ApiError> {
        let mut notices = Vec::new();
        let query = self.resolved_query(request.read(self.now, &mut notices)?, &mut notices).await?;
        let found = self.storage.search().search_turns(&query.scope, &query.options).await?;
        notices.extend(found.notices.into_iter().map(|text| Notice::Search { text }));
        let names = names_of(self.storage, &query.scope, found.results.iter().map(key_of).collect()).await?;
        notices.extend(self.damaged_sessions(&query.scope));
        let results = found.results.into_iter().map(|result| FoundTurn::new(result, &names)).collect();
        let response = TurnsResponse {
            mode: found.mode,
            unit: "turn".to_owned(),
            notices: Vec::new(),
            results,
            damaged: found.damaged,
        };
        if response.results.is_empty() && response.damaged.is_empty() {
            self.found_nothing(&query, FoundKind::Turn, None, &mut notices).await?;
        }
        Ok(ApiAnswer { response, notices })
    }
}

fn key_of(result: &TurnResult) -> SessionKey {
    SessionKey::new(result.user_id.clone(), result.session_id.clone())
}
