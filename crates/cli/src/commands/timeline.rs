//! `timeline`: when matching messages were written.

use std::path::Path;

use amplifier_session_storage::search::{SearchOptions, SearchResults, Timeline};

use super::{
    names::names,
    search_notes::{no_query, nothing_found, say_nothing_found, say_notices},
    search_query::Typed,
};
use crate::{
    app::{App, StoreReader},
    args::TimelineArgs,
    failure::{Failure, Outcome, damaged_sessions_note, report_damage, say},
    file::{check_picture, is_stdout, write_private},
    refresh,
    render::timeline::{self as render, TimelineView},
};

/// How many of the best messages are counted.
const MOST: usize = 100;

pub(super) async fn run(app: &mut App, args: TimelineArgs) -> Result<Outcome, Failure> {
    if !args.query.is_given() {
        return Err(no_query("timeline"));
    }
    if let Some(file) = &args.plot {
        app.check_out(file)?;
        check_picture(file)?;
    }
    let typed = Typed::read(app, &args.query)?;
    // One more message, to know whether there are more.
    let options = typed.applied(args.query.options(app)?.with_limit(MOST + 1));
    options.validate()?;
    let reader = app.silent_reader(args.query.embeds()).await?;
    refresh::before_reading(app, &reader, args.no_refresh).await;
    let options = typed.resolved(app, &reader, options, &args.query).await?;
    let mut found = reader.storage.search().search_transcripts(&reader.scope, &options).await?;
    say_notices(app, &reader, &options, &mut found).await?;
    found.notices.extend(damaged_sessions_note(&reader.storage.sessions().damaged_sessions()));
    show(app, &found, &args)?;
    if found.results.is_empty() && found.damaged.is_empty() {
        explain_nothing(app, &reader, &options, &found, &args).await?;
    }
    report_damage(&found.damaged)?;
    Ok(Outcome::found(!found.results.is_empty()))
}

/// Prints the timeline, or draws it to stdout, and writes the picture if one is requested.
fn show(app: &mut App, found: &SearchResults, args: &TimelineArgs) -> Result<(), Failure> {
    let has_more = found.results.len() > MOST;
    let timeline = Timeline::of_results(found.results.iter().take(MOST), args.by.map(Into::into));
    let query = args.query.text();
    let plot = args.plot.as_deref().filter(|_| timeline.matches > 0);
    if let Some(file) = plot {
        write_private(file, &render::svg(&timeline, &args.query.title()))?;
    }
    // The picture is the only output on stdout.
    if !plot.is_some_and(is_stdout) {
        let view = TimelineView::new(&query, found, &timeline, has_more);
        print(app, &view)?;
    }
    app.out.finish()?;
    say_more(plot, has_more);
    Ok(())
}

fn print(app: &mut App, view: &TimelineView<'_>) -> Result<(), Failure> {
    if app.out.is_json() {
        return Ok(app.out.json(view)?);
    }
    let lines = if app.out.is_terminal() {
        render::blocks(view.timeline, app.out.width, app.out.paint)
    } else {
        render::lines(view.timeline)
    };
    Ok(app.out.lines(&lines)?)
}

fn say_more(plot: Option<&Path>, has_more: bool) {
    if let Some(file) = plot.filter(|file| !is_stdout(file)) {
        say("note", &format!("the picture was written to {}", file.display()));
    }
    if has_more {
        say("note", &format!("more messages match; only the best {MOST} are counted"));
    }
}

async fn explain_nothing(
    app: &App,
    reader: &StoreReader,
    options: &SearchOptions,
    found: &SearchResults,
    args: &TimelineArgs,
) -> Result<(), Failure> {
    let names = names(&reader.storage, &reader.scope, &found.nearest).await?;
    say_nothing_found(app, reader, options, &args.query, &nothing_found(found, &names)).await
}
