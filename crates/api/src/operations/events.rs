//! Finds events of any sessions, newest first.

use std::vec;

use amplifier_session_core::{
    Scope, SessionStorage,
    model::{DamagedRow, Event, Level, MessageRef, SessionId, SessionKey, Timestamp, UserId},
    search::{EventCursor, EventFilter, EventSearchOptions},
    storage::Readable,
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiAnswer, ApiError, FoundKind, InvalidRequest, Notice, Reach,
    addresses::only_session,
    filter::RequestFilter,
    ids::{ShortIds, event_address},
    incomplete::IncompleteReason,
    views::{EventView, LineView},
};

/// A search for events, which must match all fields. Names must match exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventsRequest {
    /// The users whose sessions are read.
    pub scope: Reach,
    /// Which sessions. The period is that of the events.
    #[serde(flatten)]
    pub filter: RequestFilter,
    /// Only this session, by its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only events whose error or summary contains all these words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Only events of this type, for example `llm:request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Only events of this category, the part of the type before the first colon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Only events about this tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Only events about this model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Only events about this provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Only events of this level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Only events with this kind of error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// Maximum number of events, 1 to 10000.
    pub limit: usize,
    /// Continue after a page, given its cursor [`next`](EventsEnd::next).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether to read the lines of the event logs.
    pub full: bool,
    /// Whether addresses have the short ids of sessions, which must be looked up, or else the whole ids.
    pub short_ids: bool,
}

impl Default for EventsRequest {
    fn default() -> Self {
        Self {
            scope: Reach::default(),
            filter: RequestFilter::default(),
            session: None,
            text: None,
            event_type: None,
            category: None,
            tool: None,
            model: None,
            provider: None,
            level: None,
            error_type: None,
            limit: 50,
            after: None,
            full: false,
            short_ids: true,
        }
    }
}

impl EventsRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`], or `Validation` for a value that is out of range.
    pub fn check(&self, now: &Zoned) -> Result<(), ApiError> {
        self.options(now, &mut Vec::new()).map(|_| ())
    }

    /// The options of the search that need no lookup in the store.
    fn options(&self, now: &Zoned, notices: &mut Vec<Notice>) -> Result<EventSearchOptions, ApiError> {
        let after = self.after.as_deref().map(parse_cursor).transpose()?;
        let period = self.filter.period(now, notices)?;
        let category = self.category.as_deref().map(|name| name.trim_end_matches([':', '.']).to_owned());
        let filter = EventFilter::default()
            .with_sessions(self.filter.sessions()?)
            .with_text(self.text.clone())
            .with_event_type(self.event_type.clone())
            .with_category(category)
            .with_tool(self.tool.clone())
            .with_model(self.model.clone())
            .with_provider(self.provider.clone())
            .with_level(self.level)
            .with_error_type(self.error_type.clone())
            .with_since(period.since)
            .with_until(period.until);
        let options = EventSearchOptions::new(filter).with_limit(self.limit).with_after(after);
        options.validate()?;
        Ok(options)
    }
}

/// Events that were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventsResponse {
    /// The events, newest first.
    pub events: Vec<EventView>,
    /// The fields after the events.
    #[serde(flatten)]
    pub end: EventsEnd,
}

impl EventsResponse {
    /// The response with only the first events.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        let mut first = self.clone();
        if count < first.events.len() {
            first.events.truncate(count);
            first.end.follows(&first.events);
        }
        first
    }
}

/// The fields of a response after the events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventsEnd {
    /// Whether there are more.
    pub has_more: bool,
    /// If there are more: the cursor for the next request.
    pub next: Option<String>,
    /// Events that can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRow>,
    /// Why something may be missing; empty if nothing is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteReason>,
}

impl EventsEnd {
    /// There are more events after these.
    fn follows(&mut self, events: &[EventView]) {
        self.has_more = true;
        self.next = events.last().map(|last| write_cursor(&EventCursor::from(&last.event)));
    }
}

/// The events of a response, one by one: their lines may be too large for memory together.
#[derive(Debug)]
pub struct EventReader {
    events: UnreadEvents,
    end: EventsEnd,
}

/// The events that were not read yet.
#[derive(Debug)]
enum UnreadEvents {
    /// They are in a store.
    Stored {
        storage: Box<SessionStorage>,
        events: vec::IntoIter<Event>,
        short_ids: ShortIds,
        with_lines: bool,
    },
    /// They are in an answer.
    Answered(vec::IntoIter<EventView>),
}

impl EventReader {
    /// The events of an answer.
    pub(crate) fn of_answer(EventsResponse { events, end }: EventsResponse) -> Self {
        Self { events: UnreadEvents::Answered(events.into_iter()), end }
    }

    /// The next event; `None` at the end. Skips an event whose line was requested and can't be read.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    #[crate::compiled_here]
    pub async fn next(&mut self) -> Result<Option<EventView>, ApiError> {
        let (storage, events, short_ids, with_lines) = match &mut self.events {
            UnreadEvents::Answered(events) => return Ok(events.next()),
            UnreadEvents::Stored { storage, events, short_ids, with_lines } => {
                (storage, events, short_ids, *with_lines)
            }
        };
        for event in events {
            let address = event_address(short_ids, &event);
            if !with_lines {
                return Ok(Some(EventView { event, address, line: None }));
            }
            // Several users may have a session with this id; the event names the owner.
            let owner = Scope::User(event.user_id.clone());
            match storage.reading().readable_event_payload(&owner, &event).await? {
                Ok(raw) => return Ok(Some(EventView { event, address, line: raw.map(LineView) })),
                Err(row) => self.end.damaged.push(row),
            }
        }
        Ok(None)
    }

    /// The size of the next event's line, if it is read.
    fn next_bytes(&self) -> Option<usize> {
        match &self.events {
            UnreadEvents::Stored { events, with_lines, .. } => {
                let bytes = events.as_slice().first()?.data_size_bytes;
                Some(if *with_lines { usize::try_from(bytes).unwrap_or(usize::MAX) } else { 0 })
            }
            UnreadEvents::Answered(events) => events.as_slice().first().map(|_| 0),
        }
    }

    /// The fields after the events, once all events are read.
    #[must_use]
    pub fn end(self) -> EventsEnd {
        let mut end = self.end;
        end.incomplete = IncompleteReason::of_damage(&end.damaged);
        end
    }
}

impl Api<'_> {
    /// Finds events. There may be fewer than the limit before the end if their lines are long and the storage
    /// [counts them](SessionStorage::with_read_meter).
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; errors of the store.
    #[crate::compiled_here]
    pub async fn events(&self, request: &EventsRequest) -> Result<ApiAnswer<EventsResponse>, ApiError> {
        let ApiAnswer { response: mut reader, notices } = self.read_events(request).await?;
        let (mut events, mut page): (Vec<EventView>, _) = (Vec::new(), self.page());
        let mut is_cut = false;
        while let Some(bytes) = reader.next_bytes() {
            if !page.has_room(bytes) {
                is_cut = true;
                break;
            }
            let Some(found) = reader.next().await? else { break };
            page.add_counted(found.line.as_ref().map_or(0, |line| line.0.as_bytes().len()));
            events.push(found);
        }
        let mut end = reader.end();
        if is_cut {
            end.follows(&events);
        }
        Ok(ApiAnswer { response: EventsResponse { events, end }, notices })
    }

    /// As [`Api::events`], for a face that writes each event as soon as its line is read.
    ///
    /// # Errors
    ///
    /// As [`Api::events`].
    #[crate::compiled_here]
    pub async fn read_events(&self, request: &EventsRequest) -> Result<ApiAnswer<EventReader>, ApiError> {
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let mut options = request.options(self.now, &mut notices)?;
        let filter = self.filtered(&scope, &request.filter, &mut notices).await?;
        let mut sessions = filter.clone();
        if let Some(address) = &request.session {
            let session = self.find(&scope, address, &mut notices).await?.session;
            sessions = only_session(sessions, &scope, &session);
        }
        options.filter.sessions = sessions;
        let Readable { rows: events, damaged, .. } =
            self.storage.reading().readable_events(&scope, &options).await?;
        if events.is_empty() && damaged.is_empty() {
            notices.push(Notice::NothingFound { what: FoundKind::Event, nearest: None });
            notices.extend(incomplete_type(request));
            self.why_nothing(&scope, &request.filter, &filter, &mut notices).await?;
        }
        let next = self.next_events(&scope, options, &events).await?;
        let short_ids = if request.short_ids {
            let sessions = events.iter().map(|event| &event.session_id);
            self.storage.sessions().short_ids(&scope, sessions).await?
        } else {
            ShortIds::new()
        };
        let end = EventsEnd {
            has_more: next.is_some(),
            next: next.as_ref().map(write_cursor),
            damaged,
            incomplete: Vec::new(),
        };
        let (storage, events, with_lines) =
            (Box::new(self.storage.clone()), events.into_iter(), request.full);
        let events = UnreadEvents::Stored { storage, events, short_ids, with_lines };
        Ok(ApiAnswer { response: EventReader { events, end }, notices })
    }

    /// The cursor of the page, if more events follow.
    async fn next_events(
        &self,
        scope: &Scope,
        options: EventSearchOptions,
        found: &[Event],
    ) -> Result<Option<EventCursor>, ApiError> {
        let Some(last) = found.last().filter(|_| found.len() == options.limit) else { return Ok(None) };
        let end = EventCursor::from(last);
        let one = options.with_limit(1).with_after(end.clone());
        let more = self.storage.reading().readable_events(scope, &one).await?;
        Ok(Some(end).filter(|_| !more.rows.is_empty()))
    }
}

fn incomplete_type(request: &EventsRequest) -> Option<Notice> {
    let event_type = request.event_type.as_ref().filter(|event_type| !event_type.contains([':', '.']))?;
    Some(Notice::IncompleteEventType { event_type: event_type.clone() })
}

/// A cursor as text. The owner comes last, because it may contain any character.
fn write_cursor(cursor: &EventCursor) -> String {
    let MessageRef { session, sequence } = &cursor.event;
    format!("{}/{sequence}/{}/{}", cursor.ts, session.session_id, session.user_id)
}

fn parse_cursor(text: &str) -> Result<EventCursor, InvalidRequest> {
    read_cursor(text).ok_or_else(|| InvalidRequest::NotACursor { text: text.to_owned() })
}

fn read_cursor(text: &str) -> Option<EventCursor> {
    let mut parts = text.splitn(4, '/');
    let ts = Timestamp::parse(parts.next()?).ok()?;
    let sequence = parts.next()?.parse().ok()?;
    let session_id = SessionId::new(parts.next()?).ok()?;
    let user_id = UserId::new(parts.next()?).ok()?;
    Some(EventCursor { ts, event: MessageRef::new(SessionKey::new(user_id, session_id), sequence) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_can_be_written_and_read() {
        let text = "2026-01-31T09:30:00.123456Z/12/3a7c1e90-1f4b/corp/ana";
        let cursor = read_cursor(text).unwrap();
        assert_eq!((cursor.event.sequence, cursor.event.session.user_id.as_str()), (12, "corp/ana"));
        assert_eq!(write_cursor(&cursor), text);
        for broken in ["", "2026-01-31T09:30:00Z", "x/1/s/u", "2026-01-31T09:30:00Z/-1/s/u"] {
            assert!(matches!(parse_cursor(broken), Err(InvalidRequest::NotACursor { .. })), "{broken:?}");
        }
    }
}
