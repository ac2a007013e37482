//! `sessions`: lists sessions, newest first.

use amplifier_session_storage::{
    backend::SessionQuery,
    model::{DamagedRow, Session},
    storage::{Origin, SessionTree},
};
use serde::Serialize;

use super::superseded;
use crate::{
    app::{App, StoreReader},
    args::SessionsArgs,
    failure::{Failure, Outcome, say},
    messages::{Estimated, SessionView},
    refresh,
    render::{self, ids::ShortIds, sessions::ListOptions},
};

/// A list of sessions or trees as JSON.
#[derive(Serialize)]
struct SessionListView<T> {
    sessions: Vec<T>,
    has_more: bool,
    /// Sessions that can't be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<DamagedRow>,
}

#[derive(Serialize)]
struct TreeView<'a> {
    #[serde(flatten)]
    session: SessionView<'a>,
    origin: Origin,
    children: Vec<TreeView<'a>>,
}

impl<'a> TreeView<'a> {
    fn new(tree: &'a SessionTree, estimated: &Estimated) -> Self {
        let children = tree.children.iter().map(|child| Self::new(child, estimated)).collect();
        let session = SessionView::with_estimates(&tree.session, estimated);
        Self { session, origin: tree.origin, children }
    }
}

/// A page of sessions.
struct SessionsPage {
    sessions: Vec<Session>,
    estimated: Estimated,
    short_ids: ShortIds,
    has_more: bool,
}

pub(super) async fn run(app: &mut App, args: SessionsArgs) -> Result<Outcome, Failure> {
    if args.limit == 0 {
        return Err(Failure::wrong_use("--limit must be at least 1", "the default is 50"));
    }
    if args.superseded {
        return superseded::sessions(app, args).await;
    }
    let period = args.filter.period(&app.now)?;
    let filter = args.narrow.filter()?;
    let reader = app.reader().await?;
    refresh::before_reading(app, &reader, args.no_refresh).await;
    let project = args.filter.project(app, &reader).await?;
    let query = SessionQuery::new(reader.scope.clone())
        .with_filter(filter.within(&project))
        .with_text(args.text())
        .with_since(period.since)
        .with_until(period.until);
    let page = page(&reader, query, args.limit, app.out.is_terminal()).await?;
    let (found, has_more) = (page.sessions.len(), page.has_more);
    show(app, page, args.tree, reader.names_owners())?;
    app.out.finish()?;
    if found == 0 {
        say("note", "no session matches");
        args.narrow.explain_nothing();
        app.warn_of_unknown_project(&reader, &project).await?;
        app.hint_at_others(&reader).await?;
    } else if has_more && !app.out.is_json() {
        let newest = if found == 1 { "session".to_owned() } else { format!("{found} sessions") };
        say("note", &format!("showing the newest {newest}; use --limit to show more"));
    }
    Ok(Outcome::found(found > 0))
}

/// A page of sessions. `as_table` adds short ids for the terminal.
async fn page(
    reader: &StoreReader,
    query: SessionQuery,
    limit: usize,
    as_table: bool,
) -> Result<SessionsPage, Failure> {
    // One more than needed, to know whether there are more.
    let query = query.with_limit(limit.saturating_add(1));
    let mut sessions = reader.storage.sessions().search_sessions(&query).await?;
    let has_more = sessions.len() > limit;
    sessions.truncate(limit);
    let estimated = Estimated::of(&reader.storage, &sessions).await?;
    let short_ids = if as_table {
        let parents = sessions.iter().filter_map(|session| session.parent_id.as_ref());
        let ids = sessions.iter().map(|session| &session.session_id).chain(parents);
        reader.storage.sessions().short_ids(&reader.scope, ids).await?
    } else {
        ShortIds::new()
    };
    Ok(SessionsPage { sessions, estimated, short_ids, has_more })
}

fn show(app: &mut App, page: SessionsPage, tree: bool, owners: bool) -> Result<(), Failure> {
    let SessionsPage { sessions, estimated, short_ids, has_more } = page;
    let App { out, now, .. } = app;
    let damaged = out.damaged_sessions();
    let options = ListOptions { owners, estimated: &estimated, short_ids: &short_ids, now };
    if tree {
        let forest = SessionTree::forest(sessions);
        if out.is_json() {
            let sessions: Vec<_> = forest.iter().map(|tree| TreeView::new(tree, &estimated)).collect();
            out.json(&SessionListView { sessions, has_more, damaged })?;
        } else if !forest.is_empty() {
            render::sessions::tree(out, &forest, options)?;
        }
    } else if out.is_json() {
        let view = |session| SessionView::with_estimates(session, &estimated);
        let sessions: Vec<_> = sessions.iter().map(view).collect();
        out.json(&SessionListView { sessions, has_more, damaged })?;
    } else if !sessions.is_empty() {
        render::sessions::list(out, &sessions, options)?;
    }
    Ok(())
}
