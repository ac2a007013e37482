//! `sessions`: what there is, newest first.

use amplifier_session_storage::{backend::SessionQuery, model::ProjectSlug, search::SessionFilter};
use serde::Serialize;

use crate::{
    app::App,
    args::SessionsArgs,
    dates::{self, Bound},
    failure::{Failure, Outcome, say},
    messages::SessionView,
    render,
};

/// The list as JSON.
#[derive(Serialize)]
struct View<'a> {
    sessions: Vec<SessionView<'a>>,
    has_more: bool,
}

pub(super) async fn run(app: &mut App, args: SessionsArgs) -> Result<Outcome, Failure> {
    if args.limit == 0 {
        return Err(Failure::wrong_use("--limit must be at least 1", "leave it out for the newest 50"));
    }
    let project = args.filter.project.as_deref().map(ProjectSlug::new).transpose()?;
    let since = dates::parse_optional(args.filter.since.as_deref(), Bound::Since, &app.now)?;
    let until = dates::parse_optional(args.filter.until.as_deref(), Bound::Until, &app.now)?;
    let reader = app.reader(false).await?;
    let query = SessionQuery::new(reader.scope.clone())
        .with_filter(SessionFilter::default().with_project(project.clone()))
        .with_since(since)
        .with_until(until)
        // One more, to know whether there are more.
        .with_limit(args.limit.saturating_add(1));
    let mut sessions = reader.storage.search_sessions(&query).await?;
    let has_more = sessions.len() > args.limit;
    sessions.truncate(args.limit);
    if app.out.is_json() {
        app.out.json(&View { sessions: sessions.iter().map(SessionView::from).collect(), has_more })?;
    } else if !sessions.is_empty() {
        render::sessions::list(&mut app.out, &sessions, &app.now)?;
    }
    app.out.finish()?;
    if sessions.is_empty() {
        say("note", "no session matches");
        app.warn_of_unknown_project(&reader, project.as_ref()).await?;
    } else if has_more && !app.out.is_json() {
        say("note", &format!("shown are the newest {}; --limit shows more", sessions.len()));
    }
    Ok(Outcome::found(!sessions.is_empty()))
}
