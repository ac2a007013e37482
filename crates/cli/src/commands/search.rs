//! `search`: finds messages and turns.

use amplifier_session_api::{
    ApiAnswer,
    incomplete::IncompleteReason,
    operations::search::{FoundSession, SearchRequest, SearchResponse},
    remote::AnyApi,
};

use super::superseded;
use crate::{
    app::App,
    args::{GroupArg, ResultUnitArg, SearchArgs, quoted},
    budget,
    failure::{Failure, Outcome, report_damage, say},
    interactive,
    opened::OpenedStore,
    out::Out,
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
    let unread = refresh::before_reading(app, &reader, args.no_refresh).await;
    if is_interactive {
        // The filters are looked up before the terminal is taken over.
        if let AnyApi::Here(api) = reader.api(app) {
            let ApiAnswer { notices, .. } = api.search_options(&request).await?;
            app.say_notices(&notices);
        }
        return interactive::run(app, reader, request).await;
    }
    if args.superseded {
        return superseded::search(app, &reader, &request, args.limits, unread).await;
    }
    if finds_turns {
        return find_turns(app, &reader, &request, &args, unread).await;
    }
    let ApiAnswer { mut response, notices } = reader.api(app).search(&request).await?;
    response.notices = app.in_response(&notices);
    response.incomplete.extend(unread);
    app.say_notices(&notices);
    show(app, &reader, &response, &args)?;
    say_more(app, &args, response.groups.iter().flatten());
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
    let by_session = args.list || is_grouped_by(args, &app.out);
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

/// Whether results are grouped by session. An explanation is about messages, and a search in one session shows more of it
/// than its best messages.
fn is_grouped_by(args: &SearchArgs, out: &Out) -> bool {
    let is_of_one = args.group.is_none() && args.query.session.is_some();
    !args.explain && !is_of_one && GroupArg::by_session(args.group, out)
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

/// Says on a terminal how to see the results of a session that are only counted.
fn say_more<'a, Found: 'a>(
    app: &App,
    args: &SearchArgs,
    groups: impl IntoIterator<Item = &'a FoundSession<Found>>,
) {
    let is_shown = app.out.is_terminal() && !app.out.is_json() && !args.list;
    let Some(group) = groups.into_iter().find(|group| is_shown && group.more > 0) else { return };
    let query = quoted(&args.query.title());
    let unit = if args.unit == ResultUnitArg::Turn { " --unit turn" } else { "" };
    let command = format!("{} search {query}{unit} --session {}", app.program(), group.session);
    say("hint", &format!("--session shows more of one session: `{command}`"));
}

/// Rejects options of `search` that apply only to messages.
fn check_for_turns(args: &SearchArgs) -> Result<(), Failure> {
    let given = [
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
    args: &SearchArgs,
    unread: Option<IncompleteReason>,
) -> Result<Outcome, Failure> {
    let ApiAnswer { mut response, notices } = reader.api(app).search_turns(request).await?;
    response.notices = app.in_response(&notices);
    response.incomplete.extend(unread);
    app.say_notices(&notices);
    let owners = reader.names_owners();
    let grouped = GroupOptions { owners, max_chars: &|_| None };
    let (out, now) = (&mut app.out, &app.now);
    match &response.groups {
        _ if out.is_json() => out.json(&response)?,
        Some(found) if args.list => groups::list(out, found, owners, now)?,
        Some(found) if out.is_terminal() => groups::blocks(out, found, grouped, now)?,
        Some(found) => groups::lines(out, found, grouped, now)?,
        None if out.is_terminal() => turn::blocks(out, &response.results, owners, now)?,
        None => turn::lines(out, &response.results, owners, now)?,
    }
    app.out.finish()?;
    say_more(app, args, response.groups.iter().flatten());
    report_damage(&response.damaged)?;
    Ok(Outcome::found(!response.results.is_empty()))
}
