//! `timeline`: when matching messages were written.

use std::path::Path;

use amplifier_session_api::{
    ApiAnswer,
    operations::timeline::{MOST_COUNTED, TimelineRequest, TimelineResponse},
    pictures,
};

use super::search::no_query;
use crate::{
    app::App,
    args::TimelineArgs,
    failure::{Failure, Outcome, report_damage, say},
    file::{check_picture, is_stdout, write_private},
    refresh,
    render::timeline as render,
};

pub(super) async fn run(app: &mut App, args: TimelineArgs) -> Result<Outcome, Failure> {
    if !args.query.is_given() {
        return Err(no_query("timeline"));
    }
    if let Some(file) = &args.plot {
        app.check_out(file)?;
        check_picture(file)?;
    }
    let request = TimelineRequest { query: args.query.request(app), by: args.by.map(Into::into) };
    request.check(&app.now)?;
    let reader = app.silent_reader(args.query.embeds()).await?;
    let unread = refresh::before_reading(app, &reader, args.no_refresh).await;
    let ApiAnswer { mut response, notices } = reader.api(app).timeline(&request).await?;
    response.notices = app.in_response(&notices);
    response.incomplete.extend(unread);
    app.say_notices(&notices);
    show(app, &response, &args)?;
    report_damage(&response.damaged)?;
    Ok(Outcome::found(response.timeline.matches > 0))
}

/// Prints the timeline, or draws it to stdout, and writes the picture if one is requested.
fn show(app: &mut App, response: &TimelineResponse, args: &TimelineArgs) -> Result<(), Failure> {
    let timeline = &response.timeline;
    let plot = args.plot.as_deref().filter(|_| timeline.matches > 0);
    if let Some(file) = plot {
        write_private(file, &pictures::timeline(timeline, &args.query.title(), &response.tz))?;
    }
    // The picture is the only output on stdout.
    if !plot.is_some_and(is_stdout) {
        print(app, response)?;
    }
    app.out.finish()?;
    say_more(plot, response.has_more);
    Ok(())
}

fn print(app: &mut App, response: &TimelineResponse) -> Result<(), Failure> {
    if app.out.is_json() {
        return Ok(app.out.json(response)?);
    }
    let lines = if app.out.is_terminal() {
        render::blocks(&response.timeline, &response.tz, app.out.width, app.out.paint)
    } else {
        render::lines(&response.timeline)
    };
    Ok(app.out.lines(&lines)?)
}

fn say_more(plot: Option<&Path>, has_more: bool) {
    if let Some(file) = plot.filter(|file| !is_stdout(file)) {
        say("note", &format!("the picture was written to {}", file.display()));
    }
    if has_more {
        say("note", &format!("more messages match; only the best {MOST_COUNTED} are counted"));
    }
}
