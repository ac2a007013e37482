//! The sessions that a read examines.

use std::collections::BTreeMap;

use amplifier_session_core::{Result, Scope, model::Session, search::SessionFilter};

use crate::{
    documents::{SessionDocument, kind},
    ids,
    query::Select,
    store::Store,
};

/// The documents of sessions in `scope`. The caller checks further conditions of the filter.
pub(crate) fn select(scope: &Scope, filter: &SessionFilter) -> Select {
    let mut select = Select::of(kind::SESSION).and("c.committed = true");
    match scope {
        Scope::User(user) => select = select.within(user.as_str()).with("c.user_id = @", user),
        Scope::Visible(viewer) => {
            let user = select.parameter(&viewer.user_id);
            let mut visible = vec![format!("c.user_id = {user}"), "c.visibility = 'public'".to_owned()];
            if let Some(org) = &viewer.org_id {
                let org = select.parameter(org);
                visible.push(format!("(c.visibility = 'org' AND c.org_id = {org})"));
            }
            for team in &viewer.team_ids {
                let team = select.parameter(team);
                visible.push(format!("(c.visibility = 'team' AND ARRAY_CONTAINS(c.team_ids, {team}))"));
            }
            select = select.and(format!("({})", visible.join(" OR ")));
            select = select.with_some("c.user_id = @", viewer.owner.as_ref());
        }
        _ => {}
    }
    select = select
        .with_some("c.project_slug = @", filter.project.as_ref())
        .with_some("ARRAY_CONTAINS(@, c.project_slug)", filter.projects.as_ref())
        .with_some("c.session_id = @", filter.session.as_ref())
        .with_some("ARRAY_CONTAINS(@, c.repository)", filter.repositories.as_ref())
        .with_some("c.bundle = @", filter.bundle.as_ref());
    filter.tags.iter().fold(select, |select, tag| select.with("ARRAY_CONTAINS(c.tags, @)", tag))
}

/// The sessions of `scope` that `filter` admits, by partition. They are read for each search, because rows do not
/// contain sharing and labels of their session.
pub(crate) async fn sessions(
    store: &Store,
    scope: &Scope,
    filter: &SessionFilter,
) -> Result<BTreeMap<String, Session>> {
    let documents: Vec<SessionDocument> = store.sessions.all(select(scope, filter).documents()).await?;
    let sessions = documents.into_iter().map(|document| document.fields.session);
    let admitted = sessions.filter(|session| scope.allows(session) && filter.admits(session));
    Ok(admitted.map(|session| (ids::partition(&session.key()), session)).collect())
}
