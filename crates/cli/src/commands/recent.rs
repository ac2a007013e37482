//! `recent`: recently active projects and sessions.

use amplifier_session_storage::{
    backend::SessionQuery,
    model::{DamagedRow, ProjectSlug, Session, Timestamp, UserId},
    search::SessionFilter,
    storage::Activity,
};
use serde::Serialize;

use crate::{
    app::{App, StoreReader},
    args::RecentArgs,
    dates::DatePeriod,
    failure::{Failure, Outcome, say},
    messages::{Estimated, SessionView},
    render::{
        ids::ShortIds,
        recent::{self, Project, Recent},
        text::counted,
    },
};

/// The result as JSON.
#[derive(Serialize)]
struct RecentView<'a> {
    since: Timestamp,
    projects: Vec<ProjectView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<Vec<UserView<'a>>>,
    /// Sessions that can't be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<DamagedRow>,
}

#[derive(Serialize)]
struct ProjectView<'a> {
    project: &'a ProjectSlug,
    #[serde(flatten)]
    counts: RecentCounts,
    users: u64,
    newest: Vec<SessionView<'a>>,
}

#[derive(Serialize)]
struct UserView<'a> {
    user_id: &'a UserId,
    #[serde(flatten)]
    counts: RecentCounts,
    projects: u64,
}

#[derive(Serialize)]
struct RecentCounts {
    sessions: u64,
    messages: u64,
    events: u64,
    first: Timestamp,
    last: Timestamp,
}

impl<T> From<&Activity<T>> for RecentCounts {
    fn from(activity: &Activity<T>) -> Self {
        let Activity { sessions, messages, events, first, last, .. } = *activity;
        Self { sessions, messages, events, first, last }
    }
}

pub(super) async fn run(app: &mut App, args: RecentArgs) -> Result<Outcome, Failure> {
    let typed = args.since();
    let since = DatePeriod::parse(Some(&typed), None, &app.now)?.since;
    let reader = app.reader().await?;
    let since = since.unwrap_or(Timestamp::from_micros(0));
    let repository = args.repo.within(app, &reader, SessionFilter::default()).await?;
    let found = find(&reader, &repository, since, args.limit, app.out.is_terminal()).await?;
    if app.out.is_json() {
        let damaged = app.out.damaged_sessions();
        app.out.json(&RecentView { damaged, ..RecentView::from(&found) })?;
    } else {
        recent::recent(&mut app.out, &found, &app.now)?;
    }
    app.out.finish()?;
    if found.projects.is_empty() {
        say("note", &no_sessions_since(&typed));
        say("hint", &format!("`{} sessions` lists the newest sessions, regardless of date", app.program()));
        app.warn_of_unknown_project(&reader, &repository).await?;
    }
    Ok(Outcome::found(!found.projects.is_empty()))
}

/// `no sessions in the last 7 days`, or with the date as it was typed.
fn no_sessions_since(typed: &str) -> String {
    match typed.strip_suffix('d').and_then(|days| days.parse().ok()) {
        Some(1_u64) => "no sessions in the last day".to_owned(),
        Some(days) => format!("no sessions in the last {}", counted(days, "day")),
        None => format!("no sessions since {typed}"),
    }
}

/// Finds the projects and sessions. `as_blocks` adds short ids for the terminal.
async fn find(
    reader: &StoreReader,
    repository: &SessionFilter,
    since: Timestamp,
    limit: usize,
    as_blocks: bool,
) -> Result<Recent, Failure> {
    let StoreReader { storage, scope } = reader;
    let mut projects = Vec::new();
    let active =
        SessionQuery::new(scope.clone()).with_filter(repository.clone()).active_in(Some(since), None);
    for activity in storage.sessions().list_projects(active.clone()).await? {
        let query = active.clone().with_filter(repository.clone().with_project(activity.of.clone()));
        let newest = storage.sessions().search_sessions(&query.with_limit(limit)).await?;
        projects.push(Project { activity, newest });
    }
    let users = if reader.names_owners() { Some(storage.sessions().list_users(active).await?) } else { None };
    let shown: Vec<Session> =
        projects.iter().flat_map(|project: &Project| project.newest.iter().cloned()).collect();
    let estimated = Estimated::of(storage, &shown).await?;
    let short_ids = if as_blocks {
        storage.sessions().short_ids(scope, shown.iter().map(|session| &session.session_id)).await?
    } else {
        ShortIds::new()
    };
    Ok(Recent { since, projects, users, estimated, short_ids })
}

impl<'a> From<&'a Recent> for RecentView<'a> {
    fn from(recent: &'a Recent) -> Self {
        let project = |Project { activity, newest }: &'a Project| ProjectView {
            project: &activity.of,
            counts: RecentCounts::from(activity),
            users: activity.across,
            newest: newest
                .iter()
                .map(|session| SessionView::with_estimates(session, &recent.estimated))
                .collect(),
        };
        let user = |activity: &'a Activity<UserId>| UserView {
            user_id: &activity.of,
            counts: RecentCounts::from(activity),
            projects: activity.across,
        };
        Self {
            since: recent.since,
            projects: recent.projects.iter().map(project).collect(),
            users: recent.users.as_ref().map(|users| users.iter().map(user).collect()),
            damaged: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::no_sessions_since;

    #[test]
    fn an_empty_result_names_the_period() {
        assert_eq!(no_sessions_since("7d"), "no sessions in the last 7 days");
        assert_eq!(no_sessions_since("1d"), "no sessions in the last day");
        assert_eq!(no_sessions_since("monday"), "no sessions since monday");
    }
}
