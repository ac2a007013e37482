//! `search`: finds messages.

use amplifier_session_storage::{
    KnownPart,
    search::{SearchOptions, SearchResults},
};

use super::{
    groups::show_groups,
    names::names,
    search_notes::{no_query, nothing_found, say_nothing_found, say_notices},
    search_query::Typed,
    search_turns, superseded,
};
use crate::{
    app::{App, StoreReader},
    args::{GroupArg, LimitArgs, ResultUnitArg, SearchArgs},
    budget::{self, Items},
    cut,
    failure::{Failure, Outcome, damaged_sessions_note, report_damage, say},
    groups, interactive, refresh,
    render::{
        result::ResultNames,
        search::{self as render, FoundView, ResultOptions},
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
        search_turns::check(&args)?;
    }
    if is_interactive
        && (finds_turns || args.superseded || args.query.exact || !interactive::is_possible(app))
    {
        return Err(no_query("search"));
    }
    let typed = Typed::read(app, &args.query)?;
    let options = typed.applied(options(app, &args)?);
    options.validate()?;
    // The mode of an interactive search can be changed.
    let embeds = is_interactive || (args.query.embeds() && !args.superseded);
    let reader = app.silent_reader(embeds).await?;
    refresh::before_reading(app, &reader, args.no_refresh).await;
    let options = typed.resolved(app, &reader, options, &args.query).await?;
    if is_interactive {
        return interactive::run(app, reader, options, args.query.plain).await;
    }
    if args.superseded {
        return superseded::search(app, &reader, &options, &args).await;
    }
    if finds_turns {
        return search_turns::run(app, &reader, &options, &args).await;
    }
    let is_grouped = is_grouped(app, &args);
    let mut found = find(&reader, &options, is_grouped).await?;
    say_notices(app, &reader, &options, &mut found).await?;
    if let Some(explanation) = &found.explanation {
        say("note", &render::searched_for(explanation));
    }
    let shown = found.results.iter().chain(&found.nearest);
    let names = names(&reader.storage, &reader.scope, shown).await?;
    // On stderr, this is printed at the end of every command.
    found.notices.extend(damaged_sessions_note(&reader.storage.sessions().damaged_sessions()));
    if is_grouped {
        show_groups(app, &reader, &found, &names, &args).await?;
    } else {
        show(app, &reader, &found, &names, args.limits)?;
    }
    if found.results.is_empty() && found.damaged.is_empty() {
        say_nothing_found(app, &reader, &options, &args.query, &nothing_found(&found, &names)).await?;
    }
    report_damage(&found.damaged)?;
    Ok(Outcome::found(!found.results.is_empty()))
}

/// Whether to list sessions. An explanation is about messages.
fn is_grouped(app: &App, args: &SearchArgs) -> bool {
    !args.explain && GroupArg::by_session(args.group, &app.out)
}

async fn find(
    reader: &StoreReader,
    options: &SearchOptions,
    is_grouped: bool,
) -> Result<SearchResults, Failure> {
    Ok(if is_grouped {
        groups::find(&reader.storage, &reader.scope, options).await?
    } else {
        reader.storage.search().search_transcripts(&reader.scope, options).await?
    })
}

fn options(app: &App, args: &SearchArgs) -> Result<SearchOptions, Failure> {
    let mut options = args
        .query
        .options(app)?
        .with_limit(args.limit)
        .with_mmr_lambda(args.mmr_lambda)
        .with_message(args.full)
        .with_explain(args.explain);
    if let Some(least) = args.min_similarity {
        options = options.with_min_similarity(least);
    }
    if app.out.is_terminal() && !app.out.is_json() {
        let is_grouped = is_grouped(app, args) && !args.superseded || args.unit == ResultUnitArg::Turn;
        let width = app.out.width;
        let chars =
            if is_grouped { GROUPED_LINES * (width - GROUPED_INDENT) } else { TERMINAL_LINES * width };
        options = options.with_snippet_chars(chars);
    }
    Ok(options)
}

fn show(
    app: &mut App,
    reader: &StoreReader,
    found: &SearchResults,
    names: &ResultNames,
    limits: LimitArgs,
) -> Result<(), Failure> {
    let count = found.results.len();
    let items = Items { count, one: "result", can_be_cut: true };
    let portion = budget::write(app, limits.budget, items, |app, portion| {
        // With a budget, this runs once per portion that is tried, so `found` stays whole.
        let mut shown = found.results.part(..portion.items).to_vec();
        if let Some((chars, last)) = portion.last_chars.zip(shown.last_mut()) {
            cut::snippet(last, chars);
        }
        let shown = shown.as_slice();
        let most = limits.max_chars(&app.out);
        let max_chars = |rank| portion.chars_of(rank, most);
        if app.out.is_json() {
            let left_out = limits.budget.map(|_| count - shown.len());
            app.out.json(&FoundView::new(found, shown, names, max_chars).with_left_out(left_out))?;
            return Ok(());
        }
        let options = ResultOptions { names, owners: reader.names_owners(), max_chars: &max_chars };
        if app.out.is_terminal() {
            render::blocks(&mut app.out, shown, options, &app.now)?;
        } else {
            render::lines(&mut app.out, shown, options, &app.now)?;
        }
        Ok(())
    })?;
    app.out.finish()?;
    budget::say_left_out(limits.budget, items, portion);
    Ok(())
}
