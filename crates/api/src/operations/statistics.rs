//! Counts of sessions, messages, events, tools and models.

use amplifier_session_core::{
    Scope,
    backend::{PendingQuery, StorePlace, meta::Generations},
    model::{DamagedRow, EmbeddingSpace},
    storage::{Statistics, StatisticsOptions},
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiAnswer, ApiError, CallerPlace, FoundKind, Notice, Reach, addresses::only_session,
    filter::RequestFilter, incomplete::IncompleteReason, zone::zone_name,
};

/// Messages with pending vectors are counted one by one up to this number.
const MOST_PENDING: usize = 1_000;

/// Statistics of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatisticsRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// Which sessions. The period is that of their activity.
    #[serde(flatten)]
    pub filter: RequestFilter,
    /// Only this session, by its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl StatisticsRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        self.filter.check(now)
    }
}

/// Statistics of sessions, and of the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatisticsResponse {
    /// The statistics.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// The time zone of the days: an IANA name such as `Europe/Berlin`, or `UTC`.
    pub tz: String,
    /// The files of the store and its index, for callers on this machine.
    pub places: Vec<PlaceSize>,
    /// The vectors of the store.
    pub vectors: StoreVectors,
    /// Sessions that can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
    /// Why something may be missing; empty if nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteReason>,
}

/// A place where the store keeps data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlaceSize {
    /// The kind of data: `store` or `index`.
    pub what: String,
    /// A path, or an address without secrets.
    pub location: String,
    /// The size of its files in bytes; `None` for a service.
    pub bytes: Option<u64>,
}

impl From<&StorePlace> for PlaceSize {
    fn from(place: &StorePlace) -> Self {
        Self { what: place.what.to_owned(), location: place.location.clone(), bytes: place.bytes() }
    }
}

/// The vectors of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoreVectors {
    /// Their model; `None` if there are no vectors.
    pub space: Option<EmbeddingSpace>,
    /// The number of messages with pending vectors; `None` if the scope includes more than one user.
    #[serde(rename = "owing_messages")]
    pub pending_messages: Option<usize>,
    /// Whether there are more of these than were counted.
    #[serde(rename = "owing_more")]
    pub pending_more: bool,
}

impl Api<'_> {
    /// Counts sessions, messages, events, uses of tools, and calls and costs of models.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn statistics(
        &self,
        request: &StatisticsRequest,
    ) -> Result<ApiAnswer<StatisticsResponse>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let now = request.filter.now(self.now)?;
        let period = request.filter.period(self.now, &mut notices)?;
        let filter = self.filtered(&scope, &request.filter, &mut notices).await?;
        let mut sessions = filter.clone();
        if let Some(address) = &request.session {
            let found = self.find(&scope, address, &mut notices).await?;
            sessions = only_session(sessions, &scope, &found.session);
        }
        let options = StatisticsOptions::default()
            .with_sessions(sessions)
            .with_period(period.since, period.until)
            .with_zone(now.time_zone().clone());
        let response = StatisticsResponse {
            statistics: self.storage.statistics().get_statistics(&scope, &options).await?,
            tz: zone_name(&now),
            places: self.places(),
            vectors: self.store_vectors(&scope).await?,
            incomplete: IncompleteReason::of_damage(&self.damaged_within(&scope)),
            damaged: self.damaged_within(&scope),
        };
        if response.statistics.totals.sessions == 0 {
            notices.push(Notice::NothingFound { what: FoundKind::Session, nearest: None });
            self.why_nothing(&scope, &request.filter, &filter, &mut notices).await?;
        }
        Ok(ApiAnswer { response, notices })
    }

    fn places(&self) -> Vec<PlaceSize> {
        match self.place {
            CallerPlace::Here { .. } => {
                self.storage.backend().info().places.iter().map(PlaceSize::from).collect()
            }
            CallerPlace::Elsewhere => Vec::new(),
        }
    }

    /// The state of the store's vectors, without counting all of them.
    pub(crate) async fn store_vectors(&self, scope: &Scope) -> Result<StoreVectors, ApiError> {
        let space = self.storage.vectors().embedding_space().await?;
        let Scope::User(user) = scope else {
            return Ok(StoreVectors { space, pending_messages: None, pending_more: false });
        };
        let backend = self.storage.backend();
        let generation = Generations::of(&backend.meta().await?).current_number();
        let mut query = PendingQuery {
            user: user.clone(),
            session: None,
            generation,
            turns: false,
            after: None,
            limit: 0,
        };
        let mut pending = 0;
        while pending <= MOST_PENDING {
            query.limit = MOST_PENDING - pending + 1;
            let page = backend.messages_pending_vectors(&query).await?;
            let Some(last) = page.last() else { break };
            pending += page.len();
            query.after = Some(last.message_ref());
        }
        Ok(StoreVectors {
            space,
            pending_messages: Some(pending.min(MOST_PENDING)),
            pending_more: pending > MOST_PENDING,
        })
    }
}
