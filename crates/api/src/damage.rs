//! Sessions that can't be read.

use amplifier_session_core::{Scope, model::DamagedRow};

use crate::{Api, ApiCaller, Notice, Reach};

impl Api<'_> {
    /// The sessions in `scope` that were skipped so far because they can't be read. The storage remembers those of all
    /// requests, also of other callers.
    pub(crate) fn damaged_within(&self, scope: &Scope) -> Vec<DamagedRow> {
        let mut damaged = self.storage.sessions().damaged_sessions();
        damaged.retain(|row| may_know(self.caller, scope, row));
        damaged
    }

    /// A notice about these sessions.
    pub(crate) fn damaged_sessions(&self, scope: &Scope) -> Option<Notice> {
        let damaged = self.damaged_within(scope);
        (!damaged.is_empty()).then_some(Notice::DamagedSessions { damaged })
    }
}

/// Whether the answer to a request in `scope` may name this session. It can't be read with whom it is shared.
fn may_know(caller: &ApiCaller, scope: &Scope, row: &DamagedRow) -> bool {
    match scope {
        Scope::Everyone => true,
        Scope::User(user) => *user == row.user_id,
        Scope::Visible(viewer) => viewer.user_id == row.user_id || caller.scope(Reach::All).is_ok(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use amplifier_session_testkit::user;

    use super::*;

    #[test]
    fn damaged_sessions_of_others_are_named_only_to_those_who_may_read_them() {
        let row = r#"{"kind":"session","user_id":"ben","session_id":"x","sequence":null,"reason":"broken"}"#;
        let row: DamagedRow = serde_json::from_str(row).unwrap();
        let known = |caller: &ApiCaller, reach| may_know(caller, &caller.scope(reach).unwrap(), &row);
        let ben = ApiCaller::new(user("ben"));
        assert!(known(&ben, Reach::Own));
        let viewer = ApiCaller::new(user("ana")).with_reach(Reach::Visible);
        assert!(!known(&viewer, Reach::Own) && !known(&viewer, Reach::Visible));
        let reader = ApiCaller::new(user("ana")).with_reach(Reach::All);
        assert!(!known(&reader, Reach::Own) && known(&reader, Reach::Visible) && known(&reader, Reach::All));
    }
}
