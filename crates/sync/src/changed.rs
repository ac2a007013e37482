//! The sessions of a root that may have changed.

use std::{
    collections::BTreeSet,
    path::{Component, Path},
};

use crate::files::is_relevant;

/// With more changed sessions than this, it costs less to list all of them.
const LIMIT: usize = 500;

/// The session folders of a root that may have changed. Names are folder names, valid or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Any session may have changed.
    pub(crate) everything: bool,
    /// Projects of which any session may have changed.
    pub(crate) projects: BTreeSet<String>,
    /// Project and session.
    pub(crate) sessions: BTreeSet<(String, String)>,
}

impl Changed {
    /// Any session of the root may have changed.
    pub(crate) fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// Adds the sessions that a change of `path` may affect. `path` is relative to the folder `projects`. Most files
    /// are irrelevant.
    pub(crate) fn add_path(&mut self, path: &Path) {
        let names: Option<Vec<&str>> = path.components().map(name).collect();
        match names.as_deref() {
            // `projects` itself, or a name that no session has.
            None | Some([]) => {}
            Some([project] | [project, "sessions"]) => {
                self.projects.insert((*project).to_owned());
            }
            Some([project, "sessions", session, rest @ ..]) => {
                let is_relevant = match rest {
                    [] => !is_lock(session),
                    rest => is_relevant(&rest.join("/")),
                };
                if is_relevant {
                    self.sessions.insert(((*project).to_owned(), (*session).to_owned()));
                }
            }
            Some(_) => {}
        }
        self.limit();
    }

    /// Adds everything in `other`.
    pub(crate) fn add(&mut self, other: Self) {
        self.everything |= other.everything;
        self.projects.extend(other.projects);
        self.sessions.extend(other.sessions);
        self.limit();
    }

    /// Whether nothing changed.
    pub(crate) fn is_empty(&self) -> bool {
        !self.everything && self.projects.is_empty() && self.sessions.is_empty()
    }

    /// The number of sessions, if they are known one by one.
    pub(crate) fn count(&self) -> Option<u64> {
        (!self.everything && self.projects.is_empty()).then_some(self.sessions.len() as u64)
    }

    /// Limits the memory, because a store may be down for days.
    fn limit(&mut self) {
        if self.everything || self.sessions.len() + self.projects.len() > LIMIT {
            *self = Self::everything();
        }
    }
}

/// Whether a name is that of a lock beside the folders of sessions, `.<session>.metadata.lock`.
fn is_lock(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".lock")
}

fn name(component: Component<'_>) -> Option<&str> {
    match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_their_session_or_project() {
        let changed = |path: &str| {
            let mut changed = Changed::default();
            changed.add_path(Path::new(path));
            let sessions = changed.sessions.iter().map(|(project, session)| format!("{project}/{session}"));
            changed.projects.iter().cloned().chain(sessions).collect::<Vec<_>>().join(" ")
        };
        for (path, expected) in [
            ("", ""),
            ("p", "p"),
            ("p/sessions", "p"),
            ("p/notes", ""),
            ("p/sessions/s", "p/s"),
            ("p/sessions/s/transcript.jsonl", "p/s"),
            ("p/sessions/s/transcript.jsonl.append-pending", "p/s"),
            ("p/sessions/s/context-intelligence/events.jsonl", "p/s"),
            ("p/sessions/s/transfer-fence.json", "p/s"),
            ("p/sessions/s/.transcript_1.tmp", ""),
            ("p/sessions/s/.unified-append.lock", ""),
            ("p/sessions/s/.lock", ""),
            ("p/sessions/s/live-jobs/1.json", ""),
            ("p/sessions/s/context-intelligence/delivery", ""),
            ("p/sessions/s/context-intelligence/delivery/server.json", ""),
            ("p/sessions/s/context-intelligence/delivery/server.lock", ""),
            ("p/sessions/.s.metadata.lock", ""),
            ("p/sessions/s/artifacts/transcript.jsonl", ""),
        ] {
            assert_eq!(changed(path), expected, "{path}");
        }
    }

    #[test]
    fn too_many_changes_are_a_change_of_everything() {
        let mut changed = Changed::default();
        for n in 0..=LIMIT {
            assert!(!changed.everything);
            changed.add_path(Path::new(&format!("p/sessions/{n}")));
        }
        assert_eq!(changed, Changed::everything());
        changed.add_path(Path::new("p/sessions/s"));
        assert_eq!(changed, Changed::everything());
    }
}
