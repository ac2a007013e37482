//! The event log of a session.

use amplifier_session_core::{
    model::{DamagedRow, LineKind},
    storage::{Addressed, EventLine, EventLines, Readable},
};
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiAnswer, ApiError,
    addresses::named_event,
    ids::event_address,
    lines::{LineRange, LinesRequest},
    views::{EventView, SessionView},
};

/// A page of the events of a session, or one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEventsRequest {
    /// Which events.
    #[serde(flatten)]
    pub lines: LinesRequest,
    /// Whether events have their lines. The only event that an address names always has it.
    #[serde(default)]
    pub full: bool,
}

/// Events of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionEventsResponse {
    /// The session.
    pub session: SessionView,
    /// The events, in order.
    pub events: Vec<EventView>,
    /// Whether there are events before the first.
    pub has_more_before: bool,
    /// Whether there are events after the last.
    pub has_more_after: bool,
    /// Events that can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
    /// The range of the events, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<LineRange>,
}

impl Api<'_> {
    /// Reads events of a session.
    ///
    /// # Errors
    ///
    /// As [`Api::messages`], with [`NamesMessage`](crate::InvalidRequest::NamesMessage) if the address names a message.
    #[crate::compiled_here]
    pub async fn session_events(
        &self,
        request: &SessionEventsRequest,
    ) -> Result<ApiAnswer<SessionEventsResponse>, ApiError> {
        let address = &request.lines.session;
        let scope = self.caller.scope(request.lines.scope)?;
        let mut notices = Vec::new();
        let Addressed { session, line, .. } = self.find(&scope, address, &mut notices).await?;
        let lines = request.lines.lines(named_event(address, line)?)?;
        let (id, count) = (&session.session_id, session.event_count);
        let wanted = EventLines::default()
            .after(lines.after())
            .with_limit(lines.limit)
            .with_payload(request.full || lines.is_one);
        let Readable { rows, damaged, .. } =
            self.storage.reading().readable_event_lines(&scope, id, wanted).await?;
        let page = lines.page(rows.len() + damaged.len(), count);
        notices.extend(page.no_line(LineKind::Event, count));
        let short_ids = self.storage.sessions().short_ids(&scope, [id]).await?;
        let view = |EventLine { event, raw, .. }: &EventLine| {
            EventView::new(event, raw.as_ref(), event_address(&short_ids, event))
        };
        let response = SessionEventsResponse {
            session: self.session_view(&session).await?,
            events: rows.iter().map(view).collect(),
            has_more_before: page.has_more_before,
            has_more_after: page.has_more_after,
            damaged,
            range: request.lines.range.then_some(page.range),
        };
        Ok(ApiAnswer { response, notices })
    }
}
