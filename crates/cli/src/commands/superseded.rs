//! Superseded lines in `sessions`, `show`, `events` and `search`.

use amplifier_session_api::{
    ApiAnswer,
    incomplete::IncompleteReason,
    operations::{
        search::{FoundMessage, SearchRequest},
        superseded_events::SupersededEventsRequest,
        superseded_messages::{SupersededMessage, SupersededMessagesRequest},
        superseded_sessions::SupersededSessionsRequest,
    },
    views::MessageView,
};
use amplifier_session_storage::model::SupersededReason;

use crate::{
    app::App,
    args::{EventsArgs, LimitArgs, SessionsArgs, ShowArgs},
    failure::{Failure, Outcome, say},
    opened::OpenedStore,
    render::{
        conversation,
        message::MessageOptions,
        search::{self as render_search, ResultOptions},
        superseded as render,
        text::counted,
    },
};

/// `sessions --superseded`.
pub(super) async fn sessions(app: &mut App, args: SessionsArgs) -> Result<Outcome, Failure> {
    let request = SupersededSessionsRequest {
        scope: app.global.scope.into(),
        filter: args.filter.request(&args.narrow),
        limit: args.limit,
        short_ids: app.out.is_terminal() && !app.out.is_json(),
        ..SupersededSessionsRequest::default()
    };
    request.check(&app.now)?;
    let reader = app.reader().await?;
    let ApiAnswer { response, notices } = reader.api(app).list(&request).await?;
    app.say_notices(&notices);
    let found = &response.sessions;
    if app.out.is_json() {
        app.out.json(&response)?;
    } else if !found.is_empty() {
        render::sessions(&mut app.out, found, &response.short_ids, reader.names_owners(), &app.now)?;
    }
    app.out.finish()?;
    if response.count > found.len() && !app.out.is_json() {
        let (shown, all) = (found.len(), counted(response.count as u64, "session"));
        say("note", &format!("showing {shown} of {all}; use --limit to show more"));
    }
    Ok(Outcome::found(!found.is_empty()))
}

/// `show SESSION --superseded`.
pub(super) async fn show(app: &mut App, reader: &OpenedStore, args: &ShowArgs) -> Result<Outcome, Failure> {
    let new = SupersededMessagesRequest::new(args.session.clone());
    let (scope, from, limit) =
        (app.global.scope.into(), args.from.unwrap_or_default(), args.limit.unwrap_or(new.limit));
    if args.events {
        let (session, full) = (Some(args.session.clone()), args.full);
        let request = SupersededEventsRequest {
            scope,
            session,
            from,
            limit,
            full,
            ..SupersededEventsRequest::default()
        };
        return list_events(app, reader, &request).await;
    }
    // A message is cut when it is printed, because not all of it is.
    let max_chars = args.limits.max_chars(&app.out).filter(|_| app.out.is_json());
    let request = SupersededMessagesRequest { scope, from, limit, max_chars, ..new };
    let ApiAnswer { response, notices } = reader.api(app).list(&request).await?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        show_messages(app, &response.messages, args)?;
    }
    app.out.finish()?;
    note(response.messages.len(), response.has_more_after, "message", app.out.is_json());
    Ok(Outcome::found(!response.messages.is_empty()))
}

/// Prints messages, with a heading before those that were superseded together.
fn show_messages(app: &mut App, messages: &[SupersededMessage], args: &ShowArgs) -> Result<(), Failure> {
    let options = MessageOptions {
        full: args.full,
        thinking: !args.no_thinking,
        tools: !args.no_tools,
        max_chars: args.limits.max_chars(&app.out),
        width: app.out.wrap_at(),
        paint: app.out.paint,
    };
    let together = |a: &SupersededMessage, b: &SupersededMessage| {
        (a.how.superseded_at, a.how.reason) == (b.how.superseded_at, b.how.reason)
    };
    for lines in messages.chunk_by(together) {
        let Some(SupersededMessage { how, .. }) = lines.first() else { continue };
        app.out.line(&app.out.paint.title(&render::heading(how, &app.now)))?;
        if how.reason == SupersededReason::Unreadable {
            lines.iter().try_for_each(|line| app.out.line(&render::unreadable(line)))?;
        } else {
            let shown: Vec<MessageView> = lines.iter().map(|line| line.message.clone()).collect();
            conversation::messages(&mut app.out, &shown, |_| options, |_| false, &app.now)?;
        }
        app.out.line("")?;
    }
    Ok(())
}

/// `events --superseded`.
pub(super) async fn events(app: &mut App, args: EventsArgs) -> Result<Outcome, Failure> {
    let request = SupersededEventsRequest {
        scope: app.global.scope.into(),
        filter: args.filter.request(&args.narrow),
        session: args.session,
        event_type: args.event_type,
        from: 0,
        limit: args.limit,
        full: args.full,
        ..SupersededEventsRequest::default()
    };
    request.check(&app.now)?;
    let reader = app.reader().await?;
    list_events(app, &reader, &request).await
}

async fn list_events(
    app: &mut App,
    reader: &OpenedStore,
    request: &SupersededEventsRequest,
) -> Result<Outcome, Failure> {
    let ApiAnswer { response, notices } = reader.api(app).list(request).await?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        for found in &response.events {
            let line = render::event(found, reader.names_owners(), request.full, &app.now);
            app.out.line(&line)?;
        }
    }
    app.out.finish()?;
    note(response.events.len(), response.has_more, "event", app.out.is_json());
    Ok(Outcome::found(!response.events.is_empty()))
}

fn note(shown: usize, has_more: bool, what: &str, is_json: bool) {
    if shown == 0 {
        say("note", &format!("there is no superseded {what}"));
    } else if has_more && !is_json {
        let shown = counted(shown as u64, &format!("superseded {what}"));
        say("note", &format!("showing the first {shown}; use --limit to show more"));
    }
}

/// `search --superseded`.
pub(super) async fn search(
    app: &mut App,
    reader: &OpenedStore,
    request: &SearchRequest,
    limits: LimitArgs,
    unread: Option<IncompleteReason>,
) -> Result<Outcome, Failure> {
    let ApiAnswer { mut response, notices } = reader.api(app).search_superseded(request).await?;
    response.incomplete.extend(unread);
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
