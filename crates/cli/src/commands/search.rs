//! `search`: messages that answer a question.

use amplifier_session_storage::{
    Scope, SessionStorage,
    model::{ContentTypes, SessionKey},
    search::{SearchFilter, SearchMode, SearchOptions, SearchResults},
};

use crate::{
    app::{App, Reader},
    args::SearchArgs,
    failure::{Failure, Outcome, report_damage, say},
    refresh,
    render::{search as render, search::Titles},
};

/// A snippet in a pipe, and in JSON, has the library's length; on a terminal it is three lines.
const TERMINAL_LINES: usize = 3;

pub(super) async fn run(app: &mut App, args: SearchArgs) -> Result<Outcome, Failure> {
    let mode = SearchMode::from(args.mode);
    let options = options(app, &args)?;
    options.validate()?;
    if mode != SearchMode::FullText {
        app.warm_up();
    }
    let reader = app.silent_reader(mode != SearchMode::FullText).await?;
    refresh::before_reading(app, &reader, args.no_refresh).await;
    let options = narrowed_to_session(&reader, options, args.session.as_deref()).await?;
    let found = reader.storage.search_transcripts(&reader.scope, &options).await?;
    for notice in &found.notices {
        say("note", notice);
    }
    show(app, &reader, &found).await?;
    if found.results.is_empty() && found.damaged.is_empty() {
        say("note", "nothing was found");
        args.narrow.explain_nothing();
        app.warn_of_unknown_project(&reader, options.filter.sessions.project.as_ref()).await?;
    }
    report_damage(&found.damaged)?;
    Ok(Outcome::found(!found.results.is_empty()))
}

fn options(app: &App, args: &SearchArgs) -> Result<SearchOptions, Failure> {
    let mut options = SearchOptions::new(args.query())
        .with_mode(args.mode.into())
        .with_filter(filter(app, args)?)
        .with_limit(args.limit)
        .with_mmr_lambda(args.mmr_lambda)
        .with_message(args.full);
    if let Some(content_types) = args.content_types.iter().copied().reduce(ContentTypes::union) {
        options = options.with_content_types(content_types);
    }
    if let Some(least) = args.min_similarity {
        options = options.with_min_similarity(least);
    }
    if app.out.is_terminal() && !app.out.is_json() {
        options = options.with_snippet_chars(TERMINAL_LINES * app.out.width);
    }
    Ok(options)
}

fn filter(app: &App, args: &SearchArgs) -> Result<SearchFilter, Failure> {
    let period = args.filter.period(&app.now)?;
    let sessions = args.narrow.filter(args.filter.project()?)?;
    let mut filter = SearchFilter::default().with_sessions(sessions);
    (filter.role, filter.since, filter.until) = (args.role, period.since, period.until);
    Ok(filter)
}

async fn narrowed_to_session(
    reader: &Reader,
    options: SearchOptions,
    session: Option<&str>,
) -> Result<SearchOptions, Failure> {
    let Some(session) = session else { return Ok(options) };
    let session = reader.storage.find_session(&reader.scope, session).await?.session_id;
    let filter = options.filter.clone().with_session(session);
    Ok(options.with_filter(filter))
}

async fn show(app: &mut App, reader: &Reader, found: &SearchResults) -> Result<(), Failure> {
    if app.out.is_json() {
        app.out.json(found)?;
    } else if app.out.is_terminal() {
        let titles = titles(&reader.storage, found).await?;
        render::blocks(&mut app.out, found, &titles, reader.names_owners(), &app.now)?;
    } else {
        render::lines(&mut app.out, found, reader.names_owners(), &app.now)?;
    }
    Ok(())
}

/// The titles of the sessions that the results are from.
pub(super) async fn titles(storage: &SessionStorage, found: &SearchResults) -> Result<Titles, Failure> {
    let mut titles = Titles::new();
    for result in &found.results {
        let key = SessionKey::new(result.user_id.clone(), result.session_id.clone());
        if titles.contains_key(&key) {
            continue;
        }
        // Several users may have a session of this id; the result says whose it is.
        let owner = Scope::User(result.user_id.clone());
        if let Some(session) = storage.get_session(&owner, &result.session_id).await? {
            titles.insert(key, session.title().to_owned());
        }
    }
    Ok(titles)
}
