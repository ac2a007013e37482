//! Conditions on messages: `transcripts` under the name `t`, and their sessions `s`.

use amplifier_session_core::{Result, Scope, backend::PendingQuery, search::SearchFilter};

use crate::{
    Conditions, Dialect,
    rows::{has_something_to_embed, is_pending},
};

impl Conditions {
    /// The messages of `scope` that `filter` admits.
    ///
    /// # Errors
    ///
    /// As [`Conditions::of_sessions`].
    pub fn of_messages(dialect: Dialect, scope: &Scope, filter: &SearchFilter) -> Result<Self> {
        let mut conditions = Self::of_sessions(dialect, scope, &filter.sessions)?;
        conditions.compare_if("t.role = ?", filter.role.map(|role| role.as_str().to_owned()));
        conditions.compare_if("t.ts >= ?", filter.since);
        conditions.compare_if("t.ts < ?", filter.until);
        Ok(conditions)
    }

    /// The messages whose vectors of the current generation are pending, or of the next one.
    #[must_use]
    pub fn of_pending(dialect: Dialect, query: &PendingQuery, is_current: bool) -> Self {
        let mut conditions = Self::new(dialect);
        if is_current {
            conditions.require(is_pending("t.vectors"));
        } else {
            conditions.require(has_something_to_embed("t.vectors"));
            conditions.compare("t.generation <> ?", query.generation);
        }
        conditions.compare("t.user_id = ?", query.user.to_string());
        conditions.compare_if("t.session_id = ?", query.session.as_ref().map(ToString::to_string));
        if let Some(after) = &query.after {
            let session = conditions.bind(after.session.session_id.to_string());
            let sequence = conditions.bind(after.sequence);
            conditions.require(format!("(t.session_id, t.sequence) > ({session}, {sequence})"));
        }
        conditions
    }
}
