//! Superseded lines in `sessions`, `show`, `events` and `search`.

use amplifier_session_api::{
    ApiAnswer,
    operations::search::{FoundMessage, SearchRequest},
};
use amplifier_session_storage::{
    backend::SupersededQuery,
    content::MessageLine,
    model::{Digest, LineKind, Message, Role, Session, SupersededReason, TimeSource, Timestamp, VectorState},
    search::SessionFilter,
    storage::{SupersededLine, SupersededSession},
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    app::{App, StoreReader},
    args::{EventsArgs, LimitArgs, SessionsArgs, ShowArgs},
    failure::{Failure, Outcome, say},
    messages::{MessageView, SessionView, line},
    render::{
        conversation,
        message::MessageOptions,
        search::{self as render_search, ResultOptions},
        superseded as render,
        text::counted,
    },
};

/// Lists of sessions as JSON.
#[derive(Serialize)]
struct SessionsView<'a> {
    sessions: &'a [SupersededSession],
}

/// A superseded message as JSON.
#[derive(Serialize)]
struct SupersededMessageView {
    #[serde(flatten)]
    message: MessageView,
    superseded: bool,
    superseded_at: Timestamp,
    reason: &'static str,
    /// The text of a line that can't be read. Its `sequence` is its line number in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<String>,
}

#[derive(Serialize)]
struct SupersededConversationView {
    session: SessionView,
    messages: Vec<SupersededMessageView>,
    has_more_after: bool,
}

/// A superseded event as JSON.
#[derive(Serialize)]
struct SupersededEventView<'a> {
    #[serde(flatten)]
    event: &'a SupersededLine,
    superseded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct SupersededEventsView<'a> {
    events: Vec<SupersededEventView<'a>>,
    has_more: bool,
}

/// `sessions --superseded`.
pub(super) async fn sessions(app: &mut App, args: SessionsArgs) -> Result<Outcome, Failure> {
    let reader = app.reader().await?;
    let project = args.filter.project(app, &reader).await?;
    let filter = args.narrow.filter()?.within(&project);
    let period = args.filter.period(app)?;
    let query = SupersededQuery::new(reader.scope.clone()).with_filter(filter);
    let mut found = reader.storage.superseded().superseded_sessions(&query).await?;
    // The period of a query is that of its messages; here it is the time when lines were superseded.
    found.retain(|session| {
        period.since.is_none_or(|since| session.last_superseded_at >= since)
            && period.until.is_none_or(|until| session.last_superseded_at < until)
    });
    found.sort_by_key(|session| std::cmp::Reverse(session.last_superseded_at));
    let count = found.len();
    found.truncate(args.limit);
    if app.out.is_json() {
        app.out.json(&SessionsView { sessions: &found })?;
    } else if !found.is_empty() {
        render::sessions(&mut app.out, &found, reader.names_owners(), &app.now)?;
    }
    app.out.finish()?;
    if found.is_empty() {
        say("note", "no session has superseded lines");
    } else if count > found.len() && !app.out.is_json() {
        let shown = found.len();
        say(
            "note",
            &format!("showing {shown} of {}; use --limit to show more", counted(count as u64, "session")),
        );
    }
    Ok(Outcome::found(!found.is_empty()))
}

/// `show SESSION --superseded`.
pub(super) async fn show(
    app: &mut App,
    reader: &StoreReader,
    session: &Session,
    args: &ShowArgs,
) -> Result<Outcome, Failure> {
    const LIMIT: usize = 100;
    let (from, limit) = (args.from.unwrap_or_default(), args.limit.unwrap_or(LIMIT));
    let kind = if args.events { LineKind::Event } else { LineKind::Message };
    let query = SupersededQuery::new(reader.scope.clone())
        .with_filter(SessionFilter::default().with_session(session.session_id.clone()))
        .with_kind(kind);
    // Another user may have a session with the same id.
    let of_owner = |line: &SupersededLine| line.user_id == session.user_id && line.sequence >= from;
    let (lines, has_more) = first_lines(reader, query, limit, of_owner).await?;
    if args.events {
        return events_found(app, reader, &lines, has_more, args.full);
    }
    if app.out.is_json() {
        let name = reader.short_id(&session.session_id).await?;
        let max_chars = args.limits.max_chars(&app.out);
        let view = |line: &SupersededLine| SupersededMessageView {
            message: MessageView::new(&message(line, session), &name, max_chars),
            superseded: true,
            superseded_at: line.superseded_at,
            reason: line.reason.as_str(),
            raw: is_unreadable(line).then(|| line.raw.to_text().into_owned()),
        };
        app.out.json(&SupersededConversationView {
            session: SessionView::from(session),
            messages: lines.iter().map(view).collect(),
            has_more_after: has_more,
        })?;
    } else {
        let options = MessageOptions {
            full: args.full,
            thinking: !args.no_thinking,
            tools: !args.no_tools,
            max_chars: args.limits.max_chars(&app.out),
            width: app.out.wrap_at(),
            paint: app.out.paint,
        };
        let together = |a: &SupersededLine, b: &SupersededLine| {
            (a.superseded_at, a.reason) == (b.superseded_at, b.reason)
        };
        for lines in lines.chunk_by(together) {
            let Some(first) = lines.first() else { continue };
            app.out.line(&app.out.paint.title(&render::heading(first, &app.now)))?;
            if is_unreadable(first) {
                lines.iter().try_for_each(|line| app.out.line(&render::unreadable(line)))?;
                app.out.line("")?;
                continue;
            }
            let messages: Vec<Message> = lines.iter().map(|line| message(line, session)).collect();
            conversation::messages(&mut app.out, &messages, |_| options, |_| false, &app.now)?;
            app.out.line("")?;
        }
    }
    app.out.finish()?;
    note(&lines, has_more, "message", app.out.is_json());
    Ok(Outcome::found(!lines.is_empty()))
}

/// `events --superseded`.
pub(super) async fn events(app: &mut App, args: EventsArgs) -> Result<Outcome, Failure> {
    let reader = app.reader().await?;
    let project = args.filter.project(app, &reader).await?;
    let period = args.filter.period(app)?;
    let mut filter = args.narrow.filter()?.within(&project);
    if let Some(session) = &args.session {
        filter = filter.with_session(reader.find_session(session).await?.session_id);
    }
    let query = SupersededQuery::new(reader.scope.clone()).with_filter(filter).with_kind(LineKind::Event);
    let matches = |line: &SupersededLine| {
        period.since.is_none_or(|since| line.ts >= since)
            && period.until.is_none_or(|until| line.ts < until)
            && args.event_type.as_ref().is_none_or(|wanted| line.event_type.as_ref() == Some(wanted))
    };
    let (lines, has_more) = first_lines(&reader, query, args.limit, matches).await?;
    events_found(app, &reader, &lines, has_more, args.full)
}

fn events_found(
    app: &mut App,
    reader: &StoreReader,
    lines: &[SupersededLine],
    has_more: bool,
    full: bool,
) -> Result<Outcome, Failure> {
    if app.out.is_json() {
        let view = |event| {
            let line = Some(event).filter(|_| full).and_then(|event: &SupersededLine| line(&event.raw));
            SupersededEventView { event, superseded: true, line }
        };
        app.out.json(&SupersededEventsView { events: lines.iter().map(view).collect(), has_more })?;
    } else {
        for event in lines {
            app.out.line(&render::event(event, reader.names_owners(), full, &app.now))?;
        }
    }
    app.out.finish()?;
    note(lines, has_more, "event", app.out.is_json());
    Ok(Outcome::found(!lines.is_empty()))
}

/// The first matching lines, and whether there are more.
async fn first_lines(
    reader: &StoreReader,
    query: SupersededQuery,
    limit: usize,
    matches: impl Fn(&SupersededLine) -> bool,
) -> Result<(Vec<SupersededLine>, bool), Failure> {
    let mut all = reader.storage.superseded().superseded_lines(query);
    let mut found = Vec::new();
    while let Some(lines) = all.next().await? {
        found.extend(lines.into_iter().filter(|line| matches(line)));
        if found.len() > limit {
            found.truncate(limit);
            return Ok((found, true));
        }
    }
    Ok((found, false))
}

fn note(lines: &[SupersededLine], has_more: bool, what: &str, is_json: bool) {
    if lines.is_empty() {
        say("note", &format!("there is no superseded {what}"));
    } else if has_more && !is_json {
        let shown = counted(lines.len() as u64, &format!("superseded {what}"));
        say("note", &format!("showing the first {shown}; use --limit to show more"));
    }
}

/// The message that a superseded line was.
fn message(line: &SupersededLine, session: &Session) -> Message {
    let read = MessageLine::parse(&line.raw, line.session_id.source());
    Message {
        user_id: line.user_id.clone(),
        host_id: session.host_id.clone(),
        project_slug: session.project_slug.clone(),
        session_id: line.session_id.clone(),
        sequence: line.sequence,
        role: read.map_or(Role::User, |read| read.role()),
        turn: line.turn,
        ts: line.ts,
        ts_source: line.ts_source.unwrap_or(TimeSource::File),
        synced_at: line.superseded_at,
        vectors: VectorState::Nothing,
        digest: Digest::default(),
        raw: line.raw.clone(),
    }
}

/// Whether the line was never a message or an event.
fn is_unreadable(line: &SupersededLine) -> bool {
    line.reason == SupersededReason::Unreadable
}

/// `search --superseded`.
pub(super) async fn search(
    app: &mut App,
    reader: &StoreReader,
    request: &SearchRequest,
    limits: LimitArgs,
) -> Result<Outcome, Failure> {
    let ApiAnswer { response, notices } = reader.api(app).search_superseded(request).await?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        let results: Vec<FoundMessage> = response.results.iter().map(FoundMessage::from).collect();
        let most = limits.max_chars(&app.out);
        let max_chars = |_: usize| most;
        let options = ResultOptions { owners: reader.names_owners(), max_chars: &max_chars };
        if app.out.is_terminal() {
            render_search::blocks(&mut app.out, &results, options, &app.now)?
        } else {
            render_search::lines(&mut app.out, &results, options, &app.now)?
        }
    }
    app.out.finish()?;
    if !response.results.is_empty() && !app.out.is_json() {
        let hint = format!(
            "`{} show SESSION --superseded` shows them; other messages may have their numbers now",
            app.program()
        );
        say("hint", &hint);
    }
    Ok(Outcome::found(!response.results.is_empty()))
}
