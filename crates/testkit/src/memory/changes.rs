//! Changes: a list of all of them, which only grows.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicU64, Ordering},
};

use amplifier_session_core::{
    Result, Scope,
    backend::{ChangeCursor, ChangeHints, ChangePage, ChangedFrom, Changes, SessionChanged},
    model::{Session, SessionKey},
};
use async_trait::async_trait;

use super::{MemoryBackend, PAGE_SIZE, rows::Rows};

/// Stores in one process have different ids.
static STORES: AtomicU64 = AtomicU64::new(0);

/// The changes of a store, and its id.
#[derive(Debug)]
pub(super) struct ChangeLog {
    store: String,
    /// The sessions that changed, as they were before.
    changes: Vec<(SessionKey, Option<Session>)>,
}

impl Default for ChangeLog {
    fn default() -> Self {
        Self { store: format!("memory {}", STORES.fetch_add(1, Ordering::Relaxed)), changes: Vec::new() }
    }
}

impl ChangeLog {
    /// Adds a change of a session that was `before`, if it existed.
    pub(super) fn add(&mut self, key: SessionKey, before: Option<Session>) {
        self.changes.push((key, before));
    }
}

impl Rows {
    /// What a change means to a reader in `scope`, by the current state of the session.
    fn changed(&self, scope: &Scope, key: &SessionKey, before: Option<&Session>) -> Option<SessionChanged> {
        match self.stored(key).filter(|stored| scope.allows(&stored.session)) {
            Some(stored) => Some(SessionChanged::Written {
                session: Box::new(stored.session.clone()),
                version: stored.version.clone(),
                from: ChangedFrom::default(),
            }),
            None => {
                before.filter(|session| scope.allows(session)).map(|_| SessionChanged::Removed(key.clone()))
            }
        }
    }
}

#[async_trait]
impl Changes for MemoryBackend {
    async fn changes(&self, scope: &Scope, after: Option<&ChangeCursor>, limit: usize) -> Result<ChangePage> {
        let rows = self.rows();
        let ChangeLog { store, changes } = &rows.log;
        let cursor = |position: usize| ChangeCursor::new(store, scope, &position);
        let Some(after) = after else { return Ok(ChangePage::beginning(cursor(changes.len()))) };
        let position = after.position::<usize>(store, scope);
        let Some((start, later)) = position.and_then(|start| Some((start, changes.get(start..)?))) else {
            return Ok(ChangePage::reset(cursor(changes.len())));
        };
        let (mut found, mut seen, mut end) = (Vec::new(), HashSet::new(), start);
        for (key, before) in later {
            if found.len() == limit.clamp(1, PAGE_SIZE) {
                break;
            }
            end += 1;
            let changed = rows.changed(scope, key, before.as_ref());
            found.extend(changed.filter(|_| seen.insert(key)));
        }
        Ok(ChangePage { changes: found, cursor: cursor(end), reset: false })
    }

    /// Nobody else can write.
    fn change_hints(&self) -> ChangeHints {
        self.shared.signal.hints(None)
    }
}
