//! `events`: searches event logs.

use amplifier_session_api::{
    ApiAnswer,
    operations::events::{EventReader, EventsEnd, EventsRequest},
};

use super::superseded;
use crate::{
    app::App,
    args::EventsArgs,
    failure::{Failure, Outcome, report_damage, say},
    render::events,
};

pub(super) async fn run(app: &mut App, args: EventsArgs) -> Result<Outcome, Failure> {
    if args.superseded {
        return superseded::events(app, args).await;
    }
    let request = request(app, args);
    request.check(&app.now)?;
    let reader = app.reader().await?;
    let ApiAnswer { response, notices } = reader.api(app).read_events(&request).await?;
    app.say_notices(&notices);
    let (found, end) = if app.out.is_json() {
        write_json(app, response).await?
    } else {
        write_text(app, response, reader.names_owners()).await?
    };
    app.out.finish()?;
    if let Some(next) = end.next.filter(|_| !app.out.is_json()) {
        say("note", &format!("there are more events; continue with --after {next}"));
    }
    report_damage(&end.damaged)?;
    Ok(Outcome::found(found > 0))
}

fn request(app: &App, args: EventsArgs) -> EventsRequest {
    EventsRequest {
        scope: app.global.scope.into(),
        filter: args.filter.request(&args.narrow),
        session: args.session,
        text: args.text,
        event_type: args.event_type,
        category: args.category,
        tool: args.tool,
        model: args.model,
        provider: args.provider,
        level: args.level,
        error_type: args.error_type,
        limit: args.limit,
        after: args.after,
        full: args.full,
        // Lines in a pipe have whole ids, which need no look-up.
        short_ids: app.out.is_json() || app.out.is_terminal(),
    }
}

/// Writes the events as JSON, each as soon as it is read: together, their lines may be too large for memory. Returns
/// how many there are.
async fn write_json(app: &mut App, mut events: EventReader) -> Result<(usize, EventsEnd), Failure> {
    let mut count = 0;
    app.out.begin_list("events")?;
    while let Some(found) = events.next().await? {
        app.out.item(count == 0, &found)?;
        count += 1;
    }
    let end = events.end();
    app.out.end_list(&end)?;
    Ok((count, end))
}

async fn write_text(
    app: &mut App,
    mut events: EventReader,
    owners: bool,
) -> Result<(usize, EventsEnd), Failure> {
    let mut found = Vec::new();
    while let Some(event) = events.next().await? {
        found.push(event);
    }
    if !found.is_empty() {
        events::found(&mut app.out, &found, owners, &app.now)?;
    }
    Ok((found.len(), events.end()))
}
