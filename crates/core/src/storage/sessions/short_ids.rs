//! Short, unique forms of session ids.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::{
    KnownPart, Result, Scope, backend::SessionName, model::SessionId, storage::store::SessionCatalog,
};

/// The minimum length of a short id.
const SHORTEST: usize = 8;

/// A beginning up to this length is used even if a part of the id is shorter.
const READABLE: usize = 16;

impl SessionCatalog<'_> {
    /// The shortest addresses of at least 8 characters with which [`Self::find_address`] finds the sessions `ids` in
    /// `scope`: beginnings of the ids or, if these are long, parts of them.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn short_ids<'a>(
        self,
        scope: &Scope,
        ids: impl IntoIterator<Item = &'a SessionId>,
    ) -> Result<BTreeMap<SessionId, String>> {
        let ids: BTreeSet<&SessionId> = ids.into_iter().collect();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names = self.store.backend.session_names(scope).await?;
        let mut names = Names::new(&names, &ids);
        Ok(ids.into_iter().map(|id| (id.clone(), names.shortest(id))).collect())
    }
}

/// The parts of an id with which an address may begin: after each `-` and `_`.
pub(super) fn parts(id: &str) -> impl Iterator<Item = &str> {
    id.match_indices(['-', '_']).filter_map(|(at, _)| id.get(at + 1..)).filter(|part| !part.is_empty())
}

/// The only session of `family` without an ancestor in it: the one that started the sub-agents.
pub(super) fn top_of<'a>(
    family: impl Iterator<Item = (&'a SessionId, Option<&'a SessionId>)>,
) -> Option<&'a str> {
    let family: BTreeMap<&str, Option<&str>> =
        family.map(|(id, parent)| (id.as_str(), parent.map(SessionId::as_str))).collect();
    let is_below_another = |id: &str, parent: Option<&str>| {
        parent.is_some_and(|parent| parent != id && family.contains_key(parent))
            || id
                .match_indices(['-', '_'])
                .any(|(at, _)| id.get(..at).is_some_and(|id| family.contains_key(id)))
    };
    let mut tops = family.iter().filter(|(id, parent)| !is_below_another(id, **parent));
    let (top, _) = tops.next()?;
    tops.next().is_none().then_some(*top)
}

/// The ids of all sessions in scope.
struct Names<'a> {
    stored: &'a [SessionName],
    /// The ids that begin like a requested one, with their parents, in order.
    ids: Vec<(&'a SessionId, Option<&'a SessionId>)>,
    /// All ids and all their parts, each with its id, in order. Built when first needed.
    parts: Vec<(&'a str, &'a str)>,
}

impl<'a> Names<'a> {
    /// `shown` are the requested ids, which need not be in the store.
    fn new(stored: &'a [SessionName], shown: &BTreeSet<&'a SessionId>) -> Self {
        let beginning = |id: &'a SessionId| id.native().get(..SHORTEST);
        let beginnings: HashSet<Option<&str>> = shown.iter().map(|id| beginning(id)).collect();
        let mut ids: BTreeMap<&SessionId, Option<&SessionId>> = shown.iter().map(|id| (*id, None)).collect();
        let similar = stored.iter().filter(|name| beginnings.contains(&beginning(&name.session_id)));
        ids.extend(similar.map(|name| (&name.session_id, name.parent_id.as_ref())));
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort_by_key(|(id, _)| id.native());
        Self { stored, ids, parts: Vec::new() }
    }

    fn shortest(&mut self, id: &SessionId) -> String {
        let beginning = self.shortest_beginning(id);
        if beginning.len() <= READABLE {
            return beginning.to_owned();
        }
        // Parts that begin with a word, such as the name of an agent, would not stay unique.
        let is_number = |part: &&str| {
            part.get(..SHORTEST).is_some_and(|part| part.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-'))
        };
        let own = parts(id.native()).filter(is_number);
        let part = own.filter_map(|part| self.shortest_of_part(id.as_str(), part));
        let part = part.min_by_key(|part| part.len()).filter(|part| part.len() < beginning.len());
        part.unwrap_or(beginning).to_owned()
    }

    /// The shortest beginning of `id` that finds it.
    fn shortest_beginning<'b>(&self, id: &'b SessionId) -> &'b str {
        /// Larger families are not searched for their root.
        const FAMILY: usize = 1_000;
        let (mut like, native) = (&self.ids[..], id.native());
        for length in SHORTEST..native.len() {
            // Only whole characters.
            let Some(beginning) = native.get(..length) else { continue };
            let from = like.partition_point(|(other, _)| other.native() < beginning);
            let like_from = like.part(from..);
            let to = like_from.partition_point(|(other, _)| other.native().starts_with(beginning));
            like = like_from.part(..to);
            if like.len() <= 1 || like.len() <= FAMILY && top_of(like.iter().copied()) == Some(id.as_str()) {
                return beginning;
            }
        }
        // Programs may use the same id.
        let is_shared = like.iter().any(|(other, _)| *other != id && other.native() == native);
        if is_shared { id.as_str() } else { native }
    }

    /// The shortest beginning of `part`, a part of `id`, that is in no other id, if there is one.
    fn shortest_of_part<'b>(&mut self, id: &str, part: &'b str) -> Option<&'b str> {
        if self.parts.is_empty() {
            let of = |id: &'a SessionId| {
                let native = id.native();
                std::iter::once(native).chain(parts(native)).map(move |part| (part, id.as_str()))
            };
            let ids = self.ids.iter().map(|(id, _)| *id);
            let ids: BTreeSet<&SessionId> =
                ids.chain(self.stored.iter().map(|name| &name.session_id)).collect();
            self.parts = ids.into_iter().flat_map(of).collect();
            self.parts.sort_unstable();
        }
        let at = self.parts.partition_point(|(other, _)| *other < part);
        let (before, after) = self.parts.split_at_checked(at)?;
        let is_of_another = |(_, of): &&(&str, &str)| *of != id;
        let neighbours = [before.iter().rev().find(is_of_another), after.iter().find(is_of_another)];
        let shared = neighbours.into_iter().flatten().map(|(other, _)| shared_length(part, other)).max();
        part.get(..(shared.unwrap_or(0) + 1).max(SHORTEST))
    }
}

fn shared_length(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short forms of `ids`, which are given with their parents.
    fn shortened(ids: &[(&str, Option<&str>)]) -> Vec<String> {
        let id = |id: &str| SessionId::new(id).unwrap();
        let stored: Vec<SessionName> =
            ids.iter().map(|(own, parent)| SessionName::new(id(own), parent.map(id))).collect();
        let shown: BTreeSet<&SessionId> = stored.iter().map(|name| &name.session_id).collect();
        let mut names = Names::new(&stored, &shown);
        stored.iter().map(|name| names.shortest(&name.session_id)).collect()
    }

    fn alone(ids: &[&str]) -> Vec<String> {
        shortened(&ids.iter().map(|id| (*id, None)).collect::<Vec<_>>())
    }

    #[test]
    fn each_short_id_has_its_own_length() {
        assert_eq!(alone(&["3a7c1e90-1f4b", "5b8d2f10-77aa"]), ["3a7c1e90", "5b8d2f10"]);
        assert_eq!(
            alone(&["abcdefghij-1", "abcdefghix-2", "3a7c1e90-1f4b", "a"]),
            ["abcdefghij", "abcdefghix", "3a7c1e90", "a"]
        );
        // With another digit, it is another session and not a sub-agent.
        assert_eq!(
            alone(&["conv-26-session_1", "conv-26-session_12"]),
            ["conv-26-session_1", "conv-26-session_12"]
        );
    }

    #[test]
    fn sub_agents_use_their_own_part_of_the_id() {
        let parent = "6513270e-269e-4aa1-8bcd-e03c5f1d7a92";
        let spawned = |n| format!("6513270e-269e-4aa1-8bcd-00000000000{n}_explorer");
        let (one, two) = (spawned(1), spawned(2));
        let other = "6f000000-269e-4aa1-9bcd-000000000001_explorer";
        let family =
            [(parent, None), (one.as_str(), Some(parent)), (two.as_str(), Some(parent)), (other, None)];
        assert_eq!(shortened(&family), ["6513270e", "8bcd-000000000001", "000000000002", "6f000000"]);

        let spans = [
            "0000000000000000-7fb8cdf1b2b24a2e_foundation-explorer",
            "0000000000000000-7fb8cdf2b2b24a2e_foundation-explorer",
            "0000000000000000-11f1e3a9b2b24a2e_explorer",
            // A sub-agent of the first.
            "7fb8cdf1b2b24a2e-22f1e3a9b2b24a2e_explorer",
        ];
        assert_eq!(alone(&spans), ["7fb8cdf1b2b24a2e_", "7fb8cdf2", "11f1e3a9", "7fb8cdf1"]);
        // An id that continues that of its parent.
        let longer = format!("{parent}-000000000001_explorer");
        assert_eq!(alone(&[parent, &longer]), ["6513270e", "00000000"]);
    }

    #[test]
    fn ids_of_other_programs_are_shortened_without_its_name() {
        let agent = "amplifier-agent:3a7c1e90-1f4b";
        assert_eq!(alone(&[agent, "amplifier-x-1"]), ["3a7c1e90", "amplifie"]);
        assert_eq!(alone(&[agent, "3a7c1e90-77aa"]), ["3a7c1e90-1", "3a7c1e90-7"]);
        // The same id of two programs, and a name that is not known.
        assert_eq!(alone(&[agent, "3a7c1e90-1f4b"]), [agent, "3a7c1e90-1f4b"]);
        assert_eq!(alone(&["locomo:conv-26", "locomo:conv-27"]), ["locomo:conv-26", "locomo:conv-27"]);
    }

    #[test]
    fn the_root_of_a_family_has_no_ancestor_in_it() {
        let top = |ids: &[(&str, Option<&str>)]| {
            let ids: Vec<(SessionId, Option<SessionId>)> = ids
                .iter()
                .map(|(id, parent)| {
                    (SessionId::new(id).unwrap(), parent.map(|parent| SessionId::new(parent).unwrap()))
                })
                .collect();
            top_of(ids.iter().map(|(id, parent)| (id, parent.as_ref()))).map(str::to_owned)
        };
        assert_eq!(top(&[("a", None), ("b", Some("a")), ("c", Some("b"))]).as_deref(), Some("a"));
        assert_eq!(top(&[("a", None), ("a-1", None), ("a_2", None)]).as_deref(), Some("a"));
        assert_eq!(top(&[("a", None), ("ab", None)]), None);
        assert_eq!(top(&[("b", Some("gone")), ("c", Some("gone"))]), None);
        assert_eq!(top(&[("a", Some("b")), ("b", Some("a"))]), None);
        assert_eq!(top(&[("a", Some("a"))]).as_deref(), Some("a"));
    }
}
