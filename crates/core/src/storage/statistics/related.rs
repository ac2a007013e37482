//! Sessions that contain text of others.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{super::sessions::PAGE, copied::Brief};
use crate::{
    Result, Scope,
    backend::SessionQuery,
    model::{Session, SessionKey},
    storage::{
        sessions::{Origin, parent_of},
        store::StoreStatistics,
    },
};

/// Why a session contains text of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Relation {
    /// It is a sub-agent of the other one, or of one of its sub-agents.
    SubAgent,
    /// It is a fork, and begins with the same messages.
    Fork,
    /// The other one is a fork of it.
    Original,
    /// It begins with the same messages, and does not say why.
    Copy,
}

impl Relation {
    /// Its name for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SubAgent => "sub-agent",
            Self::Fork => "fork",
            Self::Original => "original",
            Self::Copy => "copy",
        }
    }
}

impl StoreStatistics<'_> {
    /// The other sessions in `scope` that contain text of these: their sub-agents, and the sessions that begin with the
    /// same messages.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn sessions_with_text_of(
        self,
        scope: &Scope,
        keys: &BTreeSet<SessionKey>,
    ) -> Result<Vec<(Session, Relation)>> {
        let all = self.store.all_sessions(SessionQuery::new(scope.clone()).with_limit(PAGE)).await?;
        let (chosen, others): (Vec<&Session>, Vec<&Session>) =
            all.iter().partition(|session| keys.contains(&session.key()));
        if chosen.is_empty() || others.is_empty() {
            return Ok(Vec::new());
        }
        let agents = sub_agents(&others, keys);
        let originals: BTreeSet<SessionKey> =
            chosen.iter().filter_map(|session| parent_of(session)).collect();
        let copies = self.with_same_beginning(&chosen, &others, &originals).await?;
        let relation = |session: &Session| {
            let key = session.key();
            Some(match () {
                () if agents.contains(&key) => Relation::SubAgent,
                () if !copies.contains(&key) => return None,
                () if originals.contains(&key) => Relation::Original,
                () if Origin::of(session) == Origin::Fork => Relation::Fork,
                () => Relation::Copy,
            })
        };
        Ok(others.into_iter().filter_map(|session| Some((session.clone(), relation(session)?))).collect())
    }

    /// The sessions among `others` that have messages of `chosen` at their beginning.
    async fn with_same_beginning(
        self,
        chosen: &[&Session],
        others: &[&Session],
        originals: &BTreeSet<SessionKey>,
    ) -> Result<BTreeSet<SessionKey>> {
        let keys: BTreeSet<SessionKey> = chosen.iter().map(|session| session.key()).collect();
        let prompts: BTreeSet<&str> =
            chosen.iter().filter_map(|session| session.first_prompt.as_deref()).collect();
        // Only these can be related, so that the messages of others need not be compared.
        let may_be = |session: &&&Session| {
            session.first_prompt.as_deref().is_some_and(|prompt| prompts.contains(prompt))
                || parent_of(session)
                    .is_some_and(|parent| keys.contains(&parent) || originals.contains(&parent))
                || originals.contains(&session.key())
        };
        let briefs: Vec<Brief> =
            chosen.iter().chain(others.iter().filter(may_be)).map(|session| Brief::of(session)).collect();
        let mut found = BTreeSet::new();
        for family in self.families(&briefs).await? {
            let members = family.members.iter().map(|(brief, _)| &brief.key);
            if members.clone().any(|key| keys.contains(key)) {
                found.extend(members.filter(|key| !keys.contains(*key)).cloned());
            }
        }
        Ok(found)
    }
}

/// The sub-agents of sessions, and their sub-agents.
fn sub_agents(others: &[&Session], of: &BTreeSet<SessionKey>) -> BTreeSet<SessionKey> {
    let mut found = BTreeSet::new();
    loop {
        let is_new = |session: &&&Session| {
            let parent = parent_of(session).filter(|_| Origin::of(session) == Origin::SubAgent);
            parent.is_some_and(|parent| of.contains(&parent) || found.contains(&parent))
                && !found.contains(&session.key())
        };
        let new: Vec<SessionKey> = others.iter().filter(is_new).map(|session| session.key()).collect();
        if new.is_empty() {
            return found;
        }
        found.extend(new);
    }
}
