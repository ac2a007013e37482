//! Trees of sessions: sub-agents and forks.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::PAGE;
use crate::{
    Result, Scope,
    backend::SessionQuery,
    model::{Session, SessionId, SessionKey},
    storage::store::SessionCatalog,
};

/// The relation of a session to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// It has no parent.
    Root,
    /// A sub-agent that does a part of the parent's work.
    SubAgent,
    /// A fork of the parent at a turn, which continues differently.
    Fork,
}

/// A session with its sub-agents and forks, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionTree {
    /// The session.
    pub session: Session,
    /// Its relation to its parent, which may not be in the tree.
    pub origin: Origin,
    /// Its sub-agents and forks.
    pub children: Vec<SessionTree>,
}

impl SessionTree {
    /// Arranges sessions under their parents. Sessions whose parent is not among them are at the top level, as is the
    /// first session of a cycle. The top level has the order of `sessions`; children are ordered oldest first.
    #[must_use]
    pub fn forest(sessions: Vec<Session>) -> Vec<Self> {
        let keys: HashSet<SessionKey> = sessions.iter().map(Session::key).collect();
        let mut tops = Vec::new();
        let mut rest = Vec::new();
        let mut children: BTreeMap<SessionKey, Vec<Session>> = BTreeMap::new();
        for session in sessions {
            match parent_of(&session).filter(|parent| keys.contains(parent)) {
                Some(parent) => {
                    rest.push(session.key());
                    children.entry(parent).or_default().push(session);
                }
                None => tops.push(session),
            }
        }
        let mut forest: Vec<Self> = tops.into_iter().map(|top| Self::grow(top, &mut children)).collect();
        // The remaining sessions are in cycles: cut each at its first session.
        for key in rest {
            if let Some(top) = take(&mut children, &key) {
                forest.push(Self::grow(top, &mut children));
            }
        }
        forest
    }

    /// All sessions of the tree, parents before their children, each with its depth from 0.
    #[must_use]
    pub fn flattened(&self) -> Vec<(usize, &Self)> {
        let mut open = vec![(0, self)];
        let mut all = Vec::new();
        while let Some((depth, tree)) = open.pop() {
            all.push((depth, tree));
            open.extend(tree.children.iter().rev().map(|child| (depth + 1, child)));
        }
        all
    }

    fn grow(session: Session, children: &mut BTreeMap<SessionKey, Vec<Session>>) -> Self {
        let mut own = children.remove(&session.key()).unwrap_or_default();
        own.sort_by(|a, b| (a.created, &a.session_id).cmp(&(b.created, &b.session_id)));
        Self {
            origin: Origin::of(&session),
            children: own.into_iter().map(|child| Self::grow(child, children)).collect(),
            session,
        }
    }
}

impl Origin {
    /// The relation of `session` to its parent.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        match (&session.parent_id, session.forked_from_turn) {
            (None, _) => Self::Root,
            (Some(_), Some(_)) => Self::Fork,
            (Some(_), None) => Self::SubAgent,
        }
    }
}

pub(in crate::storage) fn parent_of(session: &Session) -> Option<SessionKey> {
    Some(SessionKey::new(session.user_id.clone(), session.parent_id.clone()?))
}

/// Removes and returns the session with `key` from the children.
fn take(children: &mut BTreeMap<SessionKey, Vec<Session>>, key: &SessionKey) -> Option<Session> {
    let siblings = children.values_mut().find(|siblings| siblings.iter().any(|one| one.key() == *key))?;
    let position = siblings.iter().position(|one| one.key() == *key)?;
    Some(siblings.remove(position))
}

impl SessionCatalog<'_> {
    /// The tree of a session: from its topmost ancestor in `scope` down to all sub-agents and forks.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; errors of the backend.
    pub async fn session_tree(self, scope: &Scope, session_id: &SessionId) -> Result<SessionTree> {
        let session = self.store.existing_session(scope, session_id).await?;
        let owner = session.user_id.clone();
        let top = self.top_of(scope, session).await?;
        let top_key = top.key();
        let mut seen = HashSet::from([top_key.clone()]);
        let mut sessions = vec![top];
        let mut next = 0;
        while let Some(parent) = sessions.get(next) {
            let query = SessionQuery::new(scope.clone()).with_parent(Some(parent.session_id.clone()));
            let children = self.all_sessions(query.with_limit(PAGE)).await?.into_iter();
            sessions.extend(children.filter(|child| child.user_id == owner && seen.insert(child.key())));
            next += 1;
        }
        let forest = SessionTree::forest(sessions);
        // In a cycle, every session has a parent here. The tree then begins where the search for ancestors ended.
        let tree = forest.into_iter().find(|tree| tree.session.key() == top_key);
        tree.ok_or_else(|| crate::Error::session_not_found(session_id))
    }

    async fn top_of(self, scope: &Scope, mut session: Session) -> Result<Session> {
        let mut seen = HashSet::from([session.key()]);
        while let Some(parent) = parent_of(&session).filter(|parent| seen.insert(parent.clone())) {
            let parent = self.store.backend.get_session(&parent).await?.map(|stored| stored.session);
            match parent.filter(|parent| scope.allows(parent)) {
                Some(parent) => session = parent,
                None => break,
            }
        }
        Ok(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HostId, ProjectSlug, Timestamp, UserId};

    fn session(id: &str, parent: Option<&str>, forked_from_turn: Option<u32>) -> Session {
        let key = SessionKey::new(UserId::new("u").unwrap(), SessionId::new(id).unwrap());
        let (host, project) = (HostId::new("h").unwrap(), ProjectSlug::unnamed());
        let mut session = Session::new(key, host, project, Timestamp::from_micros(0));
        session.parent_id = parent.map(|parent| SessionId::new(parent).unwrap());
        session.forked_from_turn = forked_from_turn;
        session
    }

    fn shown(forest: &[SessionTree]) -> Vec<String> {
        let all = forest.iter().flat_map(SessionTree::flattened);
        all.map(|(depth, tree)| format!("{}{}", "-".repeat(depth), tree.session.session_id)).collect()
    }

    #[test]
    fn children_are_under_their_parents() {
        let sessions = vec![
            session("grandchild", Some("child"), None),
            session("other", None, None),
            session("child", Some("top"), Some(3)),
            session("top", None, None),
            session("orphan", Some("gone"), None),
        ];
        let forest = SessionTree::forest(sessions);
        assert_eq!(shown(&forest), ["other", "top", "-child", "--grandchild", "orphan"]);
        let origins: Vec<Origin> = forest.iter().map(|tree| tree.origin).collect();
        assert_eq!(origins, [Origin::Root, Origin::Root, Origin::SubAgent]);
        assert_eq!(forest[1].children[0].origin, Origin::Fork);
    }

    #[test]
    fn a_cycle_is_cut_without_losing_sessions() {
        let sessions = vec![
            session("a", Some("b"), None),
            session("b", Some("a"), None),
            session("self", Some("self"), None),
        ];
        assert_eq!(shown(&SessionTree::forest(sessions)), ["a", "-b", "self"]);
    }
}
