//! `show`: the conversation of a session, or its event log.

use amplifier_session_api::{
    ApiAnswer, ApiError, InvalidRequest, Notice,
    budget::{AnswerLimits, Portion},
    lines::{LineRange, LinesRequest},
    operations::{
        messages::{MessagesRequest, MessagesResponse},
        session_events::{SessionEventsRequest, SessionEventsResponse},
    },
};
use amplifier_session_storage::{KnownPart, model::LineKind};

use super::superseded;
use crate::{
    app::App,
    args::ShowArgs,
    budget,
    failure::{Failure, Outcome, report_damage, say},
    opened::OpenedStore,
    render::{
        conversation::{self, SessionHeader},
        events,
        message::MessageOptions,
        text::counted,
    },
};

pub(super) async fn run(app: &mut App, args: ShowArgs) -> Result<Outcome, Failure> {
    let reader = app.reader().await?;
    if args.superseded {
        return superseded::show(app, &reader, &args).await;
    }
    let lines = LinesRequest {
        scope: app.global.scope.into(),
        session: args.session.clone(),
        from: args.from,
        limit: args.limit,
        range: !app.out.is_json(),
    };
    if !args.events {
        let is_json = app.out.is_json();
        let request = MessagesRequest { lines: lines.clone(), vectors: is_json, short_ids: !is_json };
        match reader.api(app).list(&request).await {
            // It is shown below.
            Err(ApiError::Invalid(InvalidRequest::NamesEvent { .. })) => {}
            answer => return show(app, &reader, answer?, &args),
        }
    }
    let request = SessionEventsRequest { lines, full: args.full };
    let answer = reader.api(app).list(&request).await?;
    show_events(app, answer)
}

fn show(
    app: &mut App,
    reader: &OpenedStore,
    answer: ApiAnswer<MessagesResponse>,
    args: &ShowArgs,
) -> Result<Outcome, Failure> {
    let ApiAnswer { response, notices } = answer;
    say_notices(app, &notices);
    let is_beyond_end = is_beyond_end(&notices);
    let (items, budget) = (response.items(), args.limits.budget);
    let portion = budget::write(app, budget, items, |app, portion| {
        let limits = args.limits.of(&app.out);
        if app.out.is_json() {
            return Ok(app.out.json(&response.portion(portion, limits))?);
        }
        // A page beyond the end prints only a note.
        if is_beyond_end {
            return Ok(());
        }
        let head = SessionHeader {
            session: &response.session,
            short_ids: &response.short_ids,
            names_owner: reader.names_owners(),
            skipped: &response.skipped,
        };
        // A message is cut when it is printed, because not all of it is.
        let whole = message_options(app, args, response.range);
        let options = |rank| MessageOptions { max_chars: portion.chars_of(rank, limits.max_chars), ..whole };
        let shown = response.messages.part(..portion.items);
        conversation::head(&mut app.out, head, &app.now)?;
        conversation::messages(&mut app.out, shown, options, |_| false, &app.now)?;
        Ok(())
    })?;
    app.out.finish()?;
    budget::say_left_out(budget, items, "message", portion);
    let shown = response.portion(Portion::all(portion.items), AnswerLimits::default());
    say_more(
        shown.range.filter(|_| shown.has_more_after),
        LineKind::Message,
        shown.session.session.message_count,
    );
    if !app.out.is_json() && !response.skipped.is_empty() && !is_beyond_end {
        say("hint", &format!("fix the skipped lines in the file, then run `{} sync`", app.program()));
    }
    report_damage(&response.damaged)?;
    Ok(Outcome::found(!is_beyond_end))
}

fn message_options(app: &App, args: &ShowArgs, range: Option<LineRange>) -> MessageOptions {
    MessageOptions {
        full: args.full || range.is_some_and(|range| range.is_one),
        thinking: !args.no_thinking,
        tools: !args.no_tools,
        max_chars: None,
        width: app.out.wrap_at(),
        paint: app.out.paint,
    }
}

fn show_events(app: &mut App, answer: ApiAnswer<SessionEventsResponse>) -> Result<Outcome, Failure> {
    let ApiAnswer { response, notices } = answer;
    say_notices(app, &notices);
    let found = !notices.iter().any(|notice| matches!(notice, Notice::NoLine { .. }));
    if app.out.is_json() {
        app.out.json(&response)?;
    } else if found {
        events::log(&mut app.out, &response.events, &app.now)?;
    }
    app.out.finish()?;
    let range = response.range.filter(|_| response.has_more_after);
    say_more(range, LineKind::Event, response.session.session.event_count);
    report_damage(&response.damaged)?;
    Ok(Outcome::found(found))
}

/// Prints notices. As JSON, an empty page needs none.
fn say_notices(app: &App, notices: &[Notice]) {
    let is_said = |notice: &&Notice| !app.out.is_json() || !matches!(notice, Notice::NoLine { .. });
    app.say_notices(&notices.iter().filter(is_said).cloned().collect::<Vec<_>>());
}

/// Whether the page is beyond the end. An empty session has an empty first page.
fn is_beyond_end(notices: &[Notice]) -> bool {
    notices.iter().any(|notice| matches!(notice, Notice::NoLine { sequence, .. } if *sequence > 0))
}

/// Prints a note about the lines after `range`, of `count` in the session.
fn say_more(range: Option<LineRange>, kind: LineKind, count: u32) {
    let Some(range) = range.filter(|range| range.count() > 0 && !range.is_one) else { return };
    let (shown, next, total) = (range.count(), range.next, counted(count, kind.as_str()));
    say("note", &format!("showing {shown} of {total}; continue with --from {next}"));
}
