//! Lists superseded events, which are no longer in their logs.

use amplifier_session_core::{
    backend::SupersededQuery,
    model::{LineKind, UserId},
    storage::SupersededLine,
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::is_zero;
use crate::{Api, ApiAnswer, ApiError, InvalidRequest, Reach, filter::RequestFilter, views};

/// A list of superseded events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SupersededEventsRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// Which sessions. The period is that of the events.
    #[serde(flatten)]
    pub filter: RequestFilter,
    /// Only this session, by its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only events of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Only events with this number in their log or a higher one.
    pub from: u32,
    /// Maximum number of events.
    pub limit: usize,
    /// The number of the first events that an earlier response had, and that this one does not have.
    #[serde(skip_serializing_if = "is_zero")]
    pub skip: usize,
    /// Whether the response has the lines of the event logs.
    pub full: bool,
}

impl Default for SupersededEventsRequest {
    fn default() -> Self {
        Self {
            scope: Reach::default(),
            filter: RequestFilter::default(),
            session: None,
            event_type: None,
            from: 0,
            limit: 50,
            skip: 0,
            full: false,
        }
    }
}

impl SupersededEventsRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        if self.limit == 0 {
            return Err(InvalidRequest::NothingToList.into());
        }
        self.filter.check(now)
    }
}

/// Superseded events.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SupersededEventsResponse {
    /// The events, by session and in the order of the logs.
    pub events: Vec<SupersededEvent>,
    /// Whether there are more.
    pub has_more: bool,
}

/// A superseded event.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SupersededEvent {
    /// The event.
    #[serde(flatten)]
    pub event: SupersededLine,
    /// That it is superseded.
    pub superseded: bool,
    /// Its line, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<Box<RawValue>>,
}

impl SupersededEvent {
    fn new(event: SupersededLine, full: bool) -> Self {
        let line = if full { views::line(&event.raw) } else { None };
        Self { event, superseded: true, line }
    }
}

impl Api<'_> {
    /// Lists superseded events.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn superseded_events(
        &self,
        request: &SupersededEventsRequest,
    ) -> Result<ApiAnswer<SupersededEventsResponse>, ApiError> {
        let scope = self.caller.scope_of_superseded(request.scope)?;
        let mut notices = Vec::new();
        request.check(self.now)?;
        let period = request.filter.period(self.now, &mut notices)?;
        let mut filter = self.filtered(&scope, &request.filter, &mut notices).await?;
        let mut owner: Option<UserId> = None;
        if let Some(address) = &request.session {
            let session = self.find(&scope, address, &mut notices).await?.session;
            filter = filter.with_session(session.session_id);
            owner = Some(session.user_id);
        }
        let query = SupersededQuery::new(scope).with_filter(filter).with_kind(LineKind::Event);
        let matches = |line: &SupersededLine| {
            // Another user may have a session with the same id.
            owner.as_ref().is_none_or(|owner| line.user_id == *owner)
                && line.sequence >= request.from
                && period.contains(line.ts)
                && request.event_type.as_ref().is_none_or(|wanted| line.event_type.as_ref() == Some(wanted))
        };
        let (lines, has_more) = self.first_superseded(query, request.skip, request.limit, matches).await?;
        let events = lines.into_iter().map(|line| SupersededEvent::new(line, request.full)).collect();
        Ok(ApiAnswer { response: SupersededEventsResponse { events, has_more }, notices })
    }
}
