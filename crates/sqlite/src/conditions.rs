//! From scopes and filters to SQL: the one room that says which sessions a read may look at.
//!
//! All conditions are on the table `sessions` under the name `s`. Every value is bound: names are plain text,
//! whatever characters they have.

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope, Viewer, backend::SessionQuery, search::SessionFilter,
};
use rusqlite::{ParamsFromIter, params_from_iter, types::Value};

/// Conditions that must all hold, with the values that they compare with.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    conditions: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// The sessions of `scope` that `filter` admits.
    pub(crate) fn of_sessions(scope: &Scope, filter: &SessionFilter) -> Result<Self> {
        let mut conditions = Self::default();
        conditions.within(scope)?;
        conditions.admitted_by(filter);
        Ok(conditions)
    }

    /// The sessions that a list asks for: all but the page.
    pub(crate) fn of_list(query: &SessionQuery) -> Result<Self> {
        let mut conditions = Self::of_sessions(&query.scope, &query.filter)?;
        if let Some(prefix) = &query.id_prefix {
            // No character of an id is above `z`, and `{` follows it.
            conditions.compare("s.session_id >= ? AND s.session_id < ? || '{'", prefix.clone());
        }
        if let Some(parent) = &query.parent {
            conditions.compare("s.parent_id = ?", parent.to_string());
        }
        if let Some(text) = &query.text {
            let titled = "holds_words(?, s.name, s.first_prompt, s.session_id, s.description)";
            conditions.compare(titled, text.clone());
        }
        let times = [
            ("s.updated >= ?", query.since),
            ("s.updated < ?", query.until),
            ("s.created < ?", query.created_until),
        ];
        for (condition, time) in times {
            if let Some(time) = time {
                conditions.compare(condition, time.to_string());
            }
        }
        Ok(conditions)
    }

    fn within(&mut self, scope: &Scope) -> Result<()> {
        match scope {
            Scope::User(user) => self.compare("s.user_id = ?", user.to_string()),
            Scope::Visible(viewer) => self.visible_to(viewer),
            Scope::Everyone => {}
            _ => {
                let message = "this backend does not know the scope that was asked for";
                return Err(Error::new(ErrorKind::Validation, message));
            }
        }
        Ok(())
    }

    /// As `Viewer::may_see`.
    fn visible_to(&mut self, viewer: &Viewer) {
        let user = self.bind(viewer.user_id.to_string());
        let org = self.bind(viewer.org_id.clone().map_or(Value::Null, Value::from));
        let teams = self.bind(json(&viewer.team_ids));
        self.require(format!(
            "(s.user_id = {user} OR s.visibility = 'public'
                OR s.visibility = 'org' AND s.org_id = {org}
                OR s.visibility = 'team' AND EXISTS (SELECT 1 FROM json_each(s.team_ids) team
                    WHERE team.value IN (SELECT value FROM json_each({teams}))))"
        ));
    }

    fn admitted_by(&mut self, filter: &SessionFilter) {
        if let Some(project) = &filter.project {
            self.compare("s.project_slug = ?", project.to_string());
        }
        if let Some(session) = &filter.session {
            self.compare("s.session_id = ?", session.to_string());
        }
        if let Some(bundle) = &filter.bundle {
            self.compare("s.bundle = ?", bundle.clone());
        }
        for tag in &filter.tags {
            self.compare("EXISTS (SELECT 1 FROM json_each(s.tags) tag WHERE tag.value = ?)", tag.clone());
        }
        if let Some(least) = filter.min_turns {
            self.compare("s.turn_count >= ?", least);
        }
        if let Some(most) = filter.max_turns {
            self.compare("s.turn_count <= ?", most);
        }
    }

    /// Adds a condition in which every `?` stands for `value`.
    pub(crate) fn compare(&mut self, condition: &str, value: impl Into<Value>) {
        let place = self.bind(value);
        self.require(condition.replace('?', &place));
    }

    /// Adds a condition.
    pub(crate) fn require(&mut self, condition: impl Into<String>) {
        self.conditions.push(condition.into());
    }

    /// Binds a value; returns what stands for it.
    pub(crate) fn bind(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    /// What stands behind `WHERE`.
    pub(crate) fn sql(&self) -> String {
        if self.conditions.is_empty() { "TRUE".to_owned() } else { self.conditions.join(" AND ") }
    }

    /// The values of a statement with these conditions.
    pub(crate) fn values(&self) -> ParamsFromIter<&[Value]> {
        params_from_iter(self.values.as_slice())
    }
}

/// A list as it is stored.
pub(crate) fn json(list: &[String]) -> String {
    serde_json::to_string(list).unwrap_or_default()
}
