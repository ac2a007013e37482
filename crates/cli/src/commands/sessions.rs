//! `sessions`: what there is, newest first.

use amplifier_session_storage::{
    backend::SessionQuery,
    model::Session,
    storage::{Origin, SessionTree},
};
use serde::Serialize;

use crate::{
    app::{App, Reader},
    args::SessionsArgs,
    failure::{Failure, Outcome, say},
    messages::SessionView,
    refresh, render,
};

/// The list as JSON.
#[derive(Serialize)]
struct View<'a> {
    sessions: Vec<SessionView<'a>>,
    has_more: bool,
}

/// The list as JSON, with sessions below those that they came from.
#[derive(Serialize)]
struct ForestView<'a> {
    sessions: Vec<TreeView<'a>>,
    has_more: bool,
}

#[derive(Serialize)]
struct TreeView<'a> {
    #[serde(flatten)]
    session: SessionView<'a>,
    origin: Origin,
    children: Vec<TreeView<'a>>,
}

impl<'a> From<&'a SessionTree> for TreeView<'a> {
    fn from(tree: &'a SessionTree) -> Self {
        let children = tree.children.iter().map(Self::from).collect();
        Self { session: SessionView::from(&tree.session), origin: tree.origin, children }
    }
}

/// A page of sessions.
struct Page {
    sessions: Vec<Session>,
    has_more: bool,
}

pub(super) async fn run(app: &mut App, args: SessionsArgs) -> Result<Outcome, Failure> {
    if args.limit == 0 {
        return Err(Failure::wrong_use("--limit must be at least 1", "leave it out for the newest 50"));
    }
    let period = args.filter.period(&app.now)?;
    let filter = args.narrow.filter()?;
    let reader = app.reader(false).await?;
    refresh::before_reading(app, &reader, args.no_refresh).await;
    let project = args.filter.project(app, &reader).await?;
    let query = SessionQuery::new(reader.scope.clone())
        .with_filter(filter.with_project(project.clone()))
        .with_text(args.text())
        .with_since(period.since)
        .with_until(period.until);
    let page = page(&reader, query, args.limit).await?;
    let (found, has_more) = (page.sessions.len(), page.has_more);
    show(app, page, args.tree, reader.names_owners())?;
    app.out.finish()?;
    if found == 0 {
        say("note", "no session matches");
        args.narrow.explain_nothing();
        app.warn_of_unknown_project(&reader, project.as_ref()).await?;
        app.hint_at_others(&reader).await?;
    } else if has_more && !app.out.is_json() {
        say("note", &format!("shown are the newest {found}; --limit shows more"));
    }
    Ok(Outcome::found(found > 0))
}

async fn page(reader: &Reader, query: SessionQuery, limit: usize) -> Result<Page, Failure> {
    // One more, to know whether there are more.
    let query = query.with_limit(limit.saturating_add(1));
    let mut sessions = reader.storage.search_sessions(&query).await?;
    let has_more = sessions.len() > limit;
    sessions.truncate(limit);
    Ok(Page { sessions, has_more })
}

fn show(app: &mut App, page: Page, tree: bool, owners: bool) -> Result<(), Failure> {
    let Page { sessions, has_more } = page;
    let App { out, now, .. } = app;
    if tree {
        let forest = SessionTree::forest(sessions);
        if out.is_json() {
            out.json(&ForestView { sessions: forest.iter().map(TreeView::from).collect(), has_more })?;
        } else if !forest.is_empty() {
            render::sessions::tree(out, &forest, owners, now)?;
        }
    } else if out.is_json() {
        out.json(&View { sessions: sessions.iter().map(SessionView::from).collect(), has_more })?;
    } else if !sessions.is_empty() {
        render::sessions::list(out, &sessions, owners, now)?;
    }
    Ok(())
}
