//! Finds superseded messages, which are no longer in their files.

use amplifier_session_core::{search::SearchResult, storage::SupersededMatch};
use serde::{Deserialize, Serialize};

use super::search::{FoundMessage, SearchRequest};
use crate::{Api, ApiAnswer, ApiError, FoundKind, incomplete::IncompleteReason, names::names};

/// Superseded messages that were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SupersededResponse {
    /// The messages, best first.
    pub results: Vec<FoundSuperseded>,
    /// Why something may be missing; empty if nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteReason>,
}

/// A superseded message that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundSuperseded {
    /// The title of its session, if that can be read.
    pub title: Option<String>,
    /// The message, and why it was found.
    #[serde(flatten)]
    pub result: SupersededMatch,
    /// Its former address: another message may have it now.
    #[serde(default, rename = "former_address")]
    pub address: String,
}

impl From<&FoundSuperseded> for FoundMessage {
    fn from(found: &FoundSuperseded) -> Self {
        let FoundSuperseded { title, result, address } = found.clone();
        Self { address, title, result: result.result, truncated: None }
    }
}

impl Api<'_> {
    /// Finds superseded messages by words.
    ///
    /// # Errors
    ///
    /// As [`Api::search`].
    #[crate::compiled_here]
    pub async fn search_superseded(
        &self,
        request: &SearchRequest,
    ) -> Result<ApiAnswer<SupersededResponse>, ApiError> {
        let mut notices = Vec::new();
        let query = self.resolved_query(request.read(self.now, &mut notices)?, &mut notices).await?;
        let own = self.caller.scope_of_superseded(request.query.scope)?;
        let found = self.storage.superseded().search_superseded(&own, &query.options).await?;
        let results: Vec<&SearchResult> = found.iter().map(|found| &found.result).collect();
        let names = names(self.storage, &query.scope, results).await?;
        let view = |result: SupersededMatch| FoundSuperseded {
            title: names.title(&result.result).map(str::to_owned),
            address: names.address(&result.result),
            result,
        };
        let results: Vec<FoundSuperseded> = found.into_iter().map(view).collect();
        if results.is_empty() {
            self.found_nothing(&query, FoundKind::SupersededMessage, None, &mut notices).await?;
        }
        let incomplete = IncompleteReason::of_damage(&self.damaged_within(&query.scope));
        Ok(ApiAnswer { response: SupersededResponse { results, incomplete }, notices })
    }
}
