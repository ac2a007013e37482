//! Conditions on sessions: the table `sessions`, under the name `s`.

use std::collections::{BTreeMap, BTreeSet};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope, Viewer,
    backend::{SessionCursor, SessionQuery},
    model::{ProjectSlug, Repository, SessionKey},
    search::SessionFilter,
};

use crate::{Conditions, Dialect};

impl Conditions {
    /// The sessions of `scope` that `filter` admits.
    pub fn of_sessions(dialect: Dialect, scope: &Scope, filter: &SessionFilter) -> Result<Self> {
        let mut conditions = Self::new(dialect);
        conditions.within(scope)?;
        conditions.admitted_by(filter);
        Ok(conditions)
    }

    /// The sessions of a list, after the previous page.
    pub fn of_list(dialect: Dialect, query: &SessionQuery) -> Result<Self> {
        let mut conditions = Self::of_sessions(dialect, &query.scope, &query.filter)?;
        if let Some(keys) = &query.keys {
            // The id of one session and the user of another may match a third one; the caller checks this.
            conditions.one_of("s.user_id", keys.iter().map(|key| key.user_id.as_str()));
            conditions.one_of("s.session_id", keys.iter().map(|key| key.session_id.as_str()));
        }
        if let Some(prefix) = &query.id_prefix {
            conditions.compare("s.session_id >= ?", prefix.clone());
            conditions.compare_if("s.session_id < ?", end_of_prefix(prefix));
        }
        conditions.compare_if("s.parent_id = ?", query.parent.as_ref().map(ToString::to_string));
        if let Some(text) = &query.text {
            conditions.have_words(text, dialect.session_words);
        }
        conditions.compare_if("s.updated >= ?", query.since);
        conditions.compare_if("s.updated < ?", query.until);
        conditions.compare_if("s.created < ?", query.created_until);
        for SessionKey { user_id, session_id } in &query.without {
            let user = conditions.bind(user_id.to_string());
            let session = conditions.bind(session_id.to_string());
            conditions.require(format!("NOT (s.user_id = {user} AND s.session_id = {session})"));
        }
        if let Some(SessionCursor { updated, key }) = &query.after {
            let updated = conditions.bind(*updated);
            let user = conditions.bind(key.user_id.to_string());
            let session = conditions.bind(key.session_id.to_string());
            conditions.require(format!(
                "s.updated <= {updated}
                 AND (s.updated < {updated} OR (s.user_id, s.session_id) > ({user}, {session}))"
            ));
        }
        Ok(conditions)
    }

    fn within(&mut self, scope: &Scope) -> Result<()> {
        match scope {
            Scope::User(user) => self.compare("s.user_id = ?", user.to_string()),
            Scope::Visible(viewer) => self.visible_to(viewer),
            Scope::Everyone => {}
            _ => {
                let message = "this backend does not support the requested scope";
                return Err(Error::new(ErrorKind::Validation, message));
            }
        }
        Ok(())
    }

    /// As `Viewer::may_see`.
    fn visible_to(&mut self, viewer: &Viewer) {
        let user = self.bind(viewer.user_id.to_string());
        let mut shared = vec![format!("s.user_id = {user}"), "s.visibility = 'public'".to_owned()];
        if let Some(org) = &viewer.org_id {
            let org = self.bind(org.clone());
            shared.push(format!("s.visibility = 'org' AND s.org_id = {org}"));
        }
        for team in &viewer.team_ids {
            let team = self.bind(team.clone());
            let holds = (self.dialect.list_holds)("s.team_ids", &team);
            shared.push(format!("s.visibility = 'team' AND {holds}"));
        }
        self.require(format!("({})", shared.join(" OR ")));
        self.compare_if("s.user_id = ?", viewer.owner.as_ref().map(ToString::to_string));
    }

    /// Whether the session is one of these.
    fn any_session(&mut self, keys: &BTreeSet<SessionKey>) -> String {
        let mut of_users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for SessionKey { user_id, session_id } in keys {
            of_users.entry(user_id.as_str()).or_default().push(session_id.as_str());
        }
        let of_users = of_users.into_iter().map(|(user, sessions)| {
            let user = self.bind(user);
            let sessions: Vec<String> = sessions.into_iter().map(|session| self.bind(session)).collect();
            format!("s.user_id = {user} AND s.session_id IN ({})", sessions.join(", "))
        });
        let any: Vec<String> = of_users.collect();
        if any.is_empty() { "FALSE".to_owned() } else { format!("(({}))", any.join(") OR (")) }
    }

    fn admitted_by(&mut self, filter: &SessionFilter) {
        self.compare_if("s.project_slug = ?", filter.project.as_ref().map(ToString::to_string));
        if let Some(projects) = &filter.projects {
            self.one_of("s.project_slug", projects.iter().map(ProjectSlug::as_str));
        }
        if let Some(repositories) = &filter.repositories {
            self.one_of("s.repository", repositories.iter().map(Repository::as_str));
        }
        self.compare_if("s.session_id = ?", filter.session.as_ref().map(ToString::to_string));
        self.compare_if("s.bundle = ?", filter.bundle.clone());
        let source = filter.source.map(|source| source.as_str().to_owned());
        // `NULL` in a DuckDB store that a program of an earlier version writes.
        self.compare_if("coalesce(s.source, 'amplifier') = ?", source);
        for tag in &filter.tags {
            let tag = self.bind(tag.clone());
            self.require((self.dialect.list_holds)("s.tags", &tag));
        }
        self.compare_if("s.turn_count >= ?", filter.min_turns);
        self.compare_if("s.turn_count <= ?", filter.max_turns);
        if let Some(only) = &filter.only {
            let only = self.any_session(only);
            self.require(only);
        }
        if !filter.without.is_empty() {
            let without = self.any_session(&filter.without);
            self.require(format!("NOT {without}"));
        }
    }
}

/// The first text, in order of Unicode characters, after all texts that begin with `prefix`.
fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_character() {
        let end = |prefix: &str| end_of_prefix(prefix);
        assert_eq!(end("ab").as_deref(), Some("ac"));
        assert_eq!(end("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(end("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(end("\u{10ffff}"), None);
    }
}
