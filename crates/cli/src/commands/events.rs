//! `events`: searches event logs.

use amplifier_session_storage::{
    Scope,
    model::{DamagedRow, Event, MessageRef, SessionId, SessionKey, Timestamp, UserId},
    search::{EventCursor, EventFilter, EventSearchOptions, SessionFilter},
    storage::Readable,
};
use serde::Serialize;

use super::superseded;
use crate::{
    app::{App, StoreReader},
    args::EventsArgs,
    failure::{Failure, Outcome, report_damage, say},
    messages::EventView,
    render::{
        events::{self, Beside, Payloads},
        ids::{ShortIds, event_address},
    },
};

/// The result as JSON.
#[derive(Serialize)]
struct EventListView<'a> {
    events: Vec<EventView>,
    has_more: bool,
    /// The cursor for `--after`.
    next: Option<String>,
    /// Events that can't be read.
    #[serde(skip_serializing_if = "<[DamagedRow]>::is_empty")]
    damaged: &'a [DamagedRow],
}

/// The result as JSON without the events.
#[derive(Serialize)]
struct Rest<'a> {
    has_more: bool,
    next: Option<String>,
    #[serde(skip_serializing_if = "<[DamagedRow]>::is_empty")]
    damaged: &'a [DamagedRow],
}

pub(super) async fn run(app: &mut App, args: EventsArgs) -> Result<Outcome, Failure> {
    if args.superseded {
        return superseded::events(app, args).await;
    }
    let after = args.after.as_deref().map(parse_cursor).transpose()?;
    let (filter, sessions) = (filter(app, &args)?, args.narrow.filter()?);
    let reader = app.reader().await?;
    let project = args.filter.project(app, &reader).await?;
    let sessions = of_session(&reader, sessions.within(&project), &args).await?;
    let filter = filter.with_sessions(sessions);
    let options = EventSearchOptions::new(filter).with_limit(args.limit).with_after(after);
    let Readable { rows: mut found, mut damaged, .. } =
        reader.storage.reading().readable_events(&reader.scope, &options).await?;
    let next = next(&reader, options, &found).await?;
    // Lines of all events may be too large for memory; as JSON, they are printed one by one.
    let streams = args.full && app.out.is_json();
    let payloads = if args.full && !streams {
        payloads(&reader, &mut found, &mut damaged).await?
    } else {
        Payloads::default()
    };
    // Lines in a pipe have whole ids, which need no look-up.
    let short_ids = if app.out.is_json() || app.out.is_terminal() {
        let sessions = found.iter().map(|event| &event.session_id);
        reader.storage.sessions().short_ids(&reader.scope, sessions).await?
    } else {
        ShortIds::new()
    };
    if streams {
        write_with_lines(app, &reader, &mut found, (next.as_ref(), &mut damaged), &short_ids).await?;
    } else if app.out.is_json() {
        let view = |event| EventView::new(event, payloads.of(event), event_address(&short_ids, event));
        let events = found.iter().map(view).collect();
        let next_page = next.as_ref().map(write_cursor);
        app.out.json(&EventListView {
            events,
            has_more: next.is_some(),
            next: next_page,
            damaged: &damaged,
        })?;
    } else if !found.is_empty() {
        let beside = Beside { payloads: &payloads, short_ids: &short_ids, owners: reader.names_owners() };
        events::found(&mut app.out, &found, beside, &app.now)?;
    }
    app.out.finish()?;
    if found.is_empty() && damaged.is_empty() {
        say("note", "no event matches");
        explain_nothing(app, &reader, &args, &project).await?;
    } else if let Some(next) = next.filter(|_| !app.out.is_json()) {
        say("note", &format!("there are more events; continue with --after {}", write_cursor(&next)));
    }
    report_damage(&damaged)?;
    Ok(Outcome::found(!found.is_empty()))
}

fn filter(app: &App, args: &EventsArgs) -> Result<EventFilter, Failure> {
    let period = args.filter.period(app)?;
    Ok(EventFilter::default()
        .with_text(args.text.clone())
        .with_event_type(args.event_type.clone())
        .with_category(args.category.as_deref().map(|name| name.trim_end_matches([':', '.']).to_owned()))
        .with_tool(args.tool.clone())
        .with_model(args.model.clone())
        .with_provider(args.provider.clone())
        .with_level(args.level)
        .with_error_type(args.error_type.clone())
        .with_since(period.since)
        .with_until(period.until))
}

async fn of_session(
    reader: &StoreReader,
    filter: SessionFilter,
    args: &EventsArgs,
) -> Result<SessionFilter, Failure> {
    let Some(session) = &args.session else { return Ok(filter) };
    Ok(filter.with_session(reader.find_session(session).await?.session_id))
}

/// The cursor of the page, if more events follow.
async fn next(
    reader: &StoreReader,
    options: EventSearchOptions,
    found: &[Event],
) -> Result<Option<EventCursor>, Failure> {
    let Some(last) = found.last().filter(|_| found.len() == options.limit) else { return Ok(None) };
    let end = EventCursor::from(last);
    let one = options.with_limit(1).with_after(end.clone());
    let more = reader.storage.reading().readable_events(&reader.scope, &one).await?;
    Ok(Some(end).filter(|_| !more.rows.is_empty()))
}

/// Writes the events with their lines as JSON, each as soon as it is read: together, they may be too large for memory.
/// An event whose line can't be read is moved to `damaged`.
async fn write_with_lines(
    app: &mut App,
    reader: &StoreReader,
    found: &mut Vec<Event>,
    (next, damaged): (Option<&EventCursor>, &mut Vec<DamagedRow>),
    short_ids: &ShortIds,
) -> Result<(), Failure> {
    app.out.begin_list("events")?;
    let mut is_first = true;
    for event in std::mem::take(found) {
        let owner = Scope::User(event.user_id.clone());
        match reader.storage.reading().readable_event_payload(&owner, &event).await? {
            Ok(raw) => {
                let address = event_address(short_ids, &event);
                app.out.item(is_first, &EventView::new(&event, raw.as_ref(), address))?;
                is_first = false;
                found.push(event);
            }
            Err(row) => damaged.push(row),
        }
    }
    Ok(app.out.end_list(&Rest { has_more: next.is_some(), next: next.map(write_cursor), damaged })?)
}

/// The lines of the events, if they are stored. An event whose line can't be read is moved to `damaged`.
async fn payloads(
    reader: &StoreReader,
    found: &mut Vec<Event>,
    damaged: &mut Vec<DamagedRow>,
) -> Result<Payloads, Failure> {
    let mut payloads = Payloads::default();
    for event in std::mem::take(found) {
        // Several users may have a session with this id; the event names the owner.
        let owner = Scope::User(event.user_id.clone());
        match reader.storage.reading().readable_event_payload(&owner, &event).await? {
            Ok(raw) => {
                if let Some(raw) = raw {
                    payloads.insert(&event, raw);
                }
                found.push(event);
            }
            Err(row) => damaged.push(row),
        }
    }
    Ok(payloads)
}

/// Prints hints about likely mistakes: an unknown project, or an incomplete name.
async fn explain_nothing(
    app: &App,
    reader: &StoreReader,
    args: &EventsArgs,
    project: &SessionFilter,
) -> Result<(), Failure> {
    if let Some(event_type) = args.event_type.as_deref().filter(|event_type| !event_type.contains([':', '.']))
    {
        let text = "--type must match exactly; for all types of a category, use --category";
        say("hint", &format!("{text} {event_type}"));
    }
    args.narrow.explain_nothing();
    app.warn_of_unknown_project(reader, project).await
}

/// A cursor as text. The owner comes last, because it may contain any character.
fn write_cursor(cursor: &EventCursor) -> String {
    let MessageRef { session, sequence } = &cursor.event;
    format!("{}/{sequence}/{}/{}", cursor.ts, session.session_id, session.user_id)
}

fn parse_cursor(text: &str) -> Result<EventCursor, Failure> {
    read_cursor(text).ok_or_else(|| {
        let hint = "use the `next` cursor that --json prints";
        Failure::wrong_use(format!("--after {text:?} is not a cursor"), hint)
    })
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
            assert!(matches!(parse_cursor(broken), Err(Failure::WrongUse(_))), "{broken:?}");
        }
    }
}
