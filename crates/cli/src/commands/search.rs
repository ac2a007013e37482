//! `search`: finds messages and turns.

use amplifier_session_api::{
    ApiAnswer,
    operations::search::{SearchRequest, SearchResponse},
};

use super::superseded;
use crate::{
    app::{App, OpenedStore},
    args::{GroupArg, ResultUnitArg, SearchArgs},
    budget,
    failure::{Failure, Outcome, report_damage},
    interactive,
    problems::USAGE_HINT,
    program, refresh,
    render::{
        groups::{self, GroupOptions},
        search::{self as render, ResultOptions},
        turn,
    },
};

/// The length of a snippet on a terminal; in a pipe and in JSON, the library's default applies.
const TERMINAL_LINES: usize = 3;
/// As [`TERMINAL_LINES`], for one of several snippets of a session.
const GROUPED_LINES: usize = 2;
/// The average number of columns that line breaks leave unused at the ends of these lines.
const GROUPED_INDENT: usize = 10;

pub(super) async fn run(app: &mut App, args: SearchArgs) -> Result<Outcome, Failure> {
    let is_interactive = !args.query.is_given();
    let finds_turns = args.unit == ResultUnitArg::Turn;
    if finds_turns {
        check_for_turns(&args)?;
    }
    if is_interactive
        && (finds_turns || args.superseded || args.list || args.query.exact || !interactive::is_possible(app))
    {
        return Err(no_query("search"));
    }
    let request = request(app, &args);
    request.check(&app.now)?;
    // The mode of an interactive search can be changed.
    let embeds = is_interactive || (args.query.embeds() && !args.superseded);
    let reader = app.silent_reader(embeds).await?;
    refresh::before_reading(app, &reader, args.no_refresh).await;
    if is_interactive {
        let ApiAnswer { response: options, notices } = reader.api(app).search_options(&request).await?;
        app.say_notices(&notices);
        return interactive::run(app, reader, request, &options).await;
    }
    if args.superseded {
        return superseded::search(app, &reader, &request, args.limits).await;
    }
    if finds_turns {
        return find_turns(app, &reader, &request).await;
    }
    let ApiAnswer { mut response, notices } = reader.api(app).search(&request).await?;
    response.notices = app.in_response(&notices);
    app.say_notices(&notices);
    show(app, &reader, &response, &args)?;
    report_damage(&response.damaged)?;
    Ok(Outcome::found(!response.results.is_empty()))
}

/// The usage error of `command` without a query, where there is no interactive search.
pub(super) fn no_query(command: &str) -> Failure {
    let usage = format!("Usage: {} {command} <QUERY>", program::name());
    let message = format!("the following required arguments were not provided:\n  <QUERY>\n\n{usage}");
    Failure::wrong_use(message, USAGE_HINT)
}

fn request(app: &App, args: &SearchArgs) -> SearchRequest {
    // An explanation is about messages.
    let by_session = args.list || !args.explain && GroupArg::by_session(args.group, &app.out);
    let is_short = by_session && !args.superseded || args.unit == ResultUnitArg::Turn;
    let chars = if is_short {
        GROUPED_LINES * (app.out.width - GROUPED_INDENT)
    } else {
        TERMINAL_LINES * app.out.width
    };
    SearchRequest {
        query: args.query.request(app),
        limit: args.limit,
        by_session,
        mmr_lambda: args.mmr_lambda,
        min_similarity: args.min_similarity,
        explain: args.explain,
        full: args.full,
        snippet_chars: (app.out.is_terminal() && !app.out.is_json()).then_some(chars),
        ..SearchRequest::default()
    }
}

/// Prints as much of the response as fits into the budget.
fn show(
    app: &mut App,
    reader: &OpenedStore,
    response: &SearchResponse,
    args: &SearchArgs,
) -> Result<(), Failure> {
    let SearchArgs { limits, list, .. } = *args;
    let items = response.items();
    let owners = reader.names_owners();
    let portion = budget::write(app, limits.budget, items, |app, portion| {
        let limits = limits.of(&app.out);
        if app.out.is_json() {
            return Ok(app.out.json(&response.portion(portion, limits))?);
        }
        // A message is cut when it is printed, because not all of it is.
        let shown = response.portion(portion, limits.without_max_chars());
        let max_chars = |rank| portion.chars_of(rank, limits.max_chars);
        let max_chars = &max_chars;
        let (out, now) = (&mut app.out, &app.now);
        match (&shown.groups, out.is_terminal()) {
            (Some(found), _) if list => groups::list(out, found, owners, now)?,
            (Some(found), true) => groups::blocks(out, found, GroupOptions { owners, max_chars }, now)?,
            (Some(found), false) => groups::lines(out, found, GroupOptions { owners, max_chars }, now)?,
            (None, true) => render::blocks(out, &shown.results, ResultOptions { owners, max_chars }, now)?,
            (None, false) => render::lines(out, &shown.results, ResultOptions { owners, max_chars }, now)?,
        }
        Ok(())
    })?;
    app.out.finish()?;
    let one = if response.groups.is_some() { "session" } else { "result" };
    budget::say_left_out(limits.budget, items, one, portion);
    Ok(())
}

/// Rejects options of `search` that apply only to messages.
fn check_for_turns(args: &SearchArgs) -> Result<(), Failure> {
    let given = [
        (args.group.is_some(), "--group"),
        (args.list, "--list"),
        (args.explain, "--explain"),
        (args.full, "--full"),
        (args.superseded, "--superseded"),
        (args.limits.budget.is_some(), "--budget"),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => {
            let message = format!("{option} applies to messages, and can't be used with --unit turn");
            Err(Failure::wrong_use(
                message,
                format!("omit {option}; `show ADDRESS --turn` shows a turn in full"),
            ))
        }
        None => Ok(()),
    }
}

async fn find_turns(
    app: &mut App,
    reader: &OpenedStore,
    request: &SearchRequest,
) -> Result<Outcome, Failure> {
    let ApiAnswer { mut response, notices } = reader.api(app).search_turns(request).await?;
    response.notices = app.in_response(&notices);
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else if app.out.is_terminal() {
        turn::blocks(&mut app.out, &response.results, reader.names_owners(), &app.now)?;
    } else {
        turn::lines(&mut app.out, &response.results, reader.names_owners(), &app.now)?;
    }
    app.out.finish()?;
    report_damage(&response.damaged)?;
    Ok(Outcome::found(!response.results.is_empty()))
}
