//! Checks whether a store can be used as it is.

use amplifier_session_core::{
    Scope,
    backend::{
        SessionQuery,
        meta::{SCHEMA_VERSION, VERSION},
    },
    model::{EmbeddingSpace, SessionId, Timestamp},
};
use serde::{Deserialize, Serialize};

use crate::{Api, ApiAnswer, ApiError, Reach};

/// A check of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckStoreRequest {
    /// The users whose sessions are looked at.
    pub scope: Reach,
}

/// The findings of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckStoreResponse {
    /// The findings.
    pub findings: Vec<StoreFinding>,
}

/// A finding about a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum StoreFinding {
    /// The store can be written.
    Writable,
    /// The store can't be written.
    ReadOnly {
        /// The reason, for a person on its machine to read.
        reason: Option<String>,
    },
    /// The version of the store's tables.
    Schema {
        /// The version, as the store has it.
        version: String,
        /// The version that this program knows.
        known: u32,
    },
    /// The model of the storage.
    Model {
        /// The model.
        space: EmbeddingSpace,
        /// The model that made the vectors of the store, if it has vectors.
        stored: Option<EmbeddingSpace>,
    },
    /// The newest session is from the future.
    FromFuture {
        /// The session.
        session_id: SessionId,
        /// The time of its last change.
        updated: Timestamp,
    },
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingLevel {
    /// All is well.
    Ok,
    /// Something may be wrong.
    Warning,
    /// The store can't be used in this way.
    Failed,
}

impl StoreFinding {
    /// Its severity.
    #[must_use]
    pub fn level(&self) -> FindingLevel {
        match self {
            Self::Writable => FindingLevel::Ok,
            Self::ReadOnly { .. } | Self::FromFuture { .. } => FindingLevel::Warning,
            Self::Schema { version, known } if *version == known.to_string() => FindingLevel::Ok,
            Self::Model { space, stored } if stored.as_ref().is_none_or(|stored| stored == space) => {
                FindingLevel::Ok
            }
            Self::Schema { .. } | Self::Model { .. } => FindingLevel::Failed,
        }
    }
}

impl Api<'_> {
    /// Checks whether the store can be written, is of this version, and has vectors of the storage's model, and whether
    /// its newest session is from the future.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn check_store(
        &self,
        request: &CheckStoreRequest,
    ) -> Result<ApiAnswer<CheckStoreResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let backend = self.storage.backend();
        let mut findings = vec![match backend.info().read_only {
            None => StoreFinding::Writable,
            Some(reason) => StoreFinding::ReadOnly { reason: self.place.reason(reason) },
        }];
        let version = backend.meta().await?.remove(VERSION).unwrap_or_default();
        findings.push(StoreFinding::Schema { version, known: SCHEMA_VERSION });
        if let Some(provider) = self.storage.embedding() {
            let stored = self.storage.vectors().embedding_space().await?;
            findings.push(StoreFinding::Model { space: provider.space().clone(), stored });
        }
        findings.extend(self.times_in_future(scope).await);
        Ok(CheckStoreResponse { findings }.into())
    }

    /// The newest session, if it is from the future. If sessions can't be read, the other findings still count.
    async fn times_in_future(&self, scope: Scope) -> Option<StoreFinding> {
        let now = Timestamp::from_micros(self.now.timestamp().as_microsecond());
        let newest = SessionQuery::new(scope).with_limit(1);
        let newest = self.storage.sessions().search_sessions(&newest).await.ok()?.into_iter().next()?;
        newest
            .is_from_future(now)
            .then_some(StoreFinding::FromFuture { session_id: newest.session_id, updated: newest.updated })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_and_another_model_are_failures() {
        let level = |finding: StoreFinding| finding.level();
        let schema = |version: &str| StoreFinding::Schema { version: version.to_owned(), known: 4 };
        assert_eq!([level(schema("4")), level(schema("5"))], [FindingLevel::Ok, FindingLevel::Failed]);
        let space = |model: &str| EmbeddingSpace { model: model.to_owned(), dimensions: 3 };
        let model = |stored| StoreFinding::Model { space: space("a"), stored };
        let levels = [None, Some(space("a")), Some(space("b"))].map(|stored| level(model(stored)));
        assert_eq!(levels, [FindingLevel::Ok, FindingLevel::Ok, FindingLevel::Failed]);
    }
}
