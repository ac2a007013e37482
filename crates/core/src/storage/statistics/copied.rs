//! Which messages of a session are copies of the beginning of another.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use crate::{
    ErrorKind, KnownPart, Result,
    model::{Digest, MessageState, Session, SessionKey, Timestamp, UserId},
    storage::store::StoreStatistics,
};

/// What must be known of a session to find copies.
#[derive(Debug)]
pub(super) struct Brief {
    pub(super) key: SessionKey,
    pub(super) messages: u32,
    pub(super) events: u32,
    created: Timestamp,
    /// The session of which it is a fork, according to its metadata, and the last turn that was copied.
    fork_of: Option<(SessionKey, u32)>,
    /// The first prompt.
    prompt: Option<Digest>,
}

/// What a session has of sessions that are counted before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Copied {
    /// Its first messages.
    pub(super) messages: u32,
    /// The turns of these messages.
    pub(super) turns: u32,
    /// Events, wherever they are in the log.
    pub(super) events: u64,
}

/// Sessions that are related by copies, and what each of them has of those before it.
#[derive(Debug)]
pub(super) struct Family<'a> {
    pub(super) members: Vec<(&'a Brief, Copied)>,
}

impl Brief {
    pub(super) fn of(session: &Session) -> Self {
        let parent = session.parent_id.clone().zip(session.forked_from_turn);
        let prompt = session.first_prompt.as_deref().filter(|_| session.message_count > 0);
        Self {
            key: session.key(),
            messages: session.message_count,
            events: session.event_count,
            created: session.created,
            fork_of: parent.map(|(id, turn)| (SessionKey::new(session.user_id.clone(), id), turn)),
            prompt: prompt.map(|prompt| Digest::of(prompt.as_bytes())),
        }
    }
}

impl StoreStatistics<'_> {
    /// The families among these sessions, originals before their copies.
    ///
    /// A fork may say which session it is a copy of. Otherwise, a session is a copy if it has the first messages of an
    /// older one, see [`is_certain`]. Only the messages of sessions with the same first prompt are compared.
    pub(super) async fn families<'a>(self, briefs: &'a [Brief]) -> Result<Vec<Family<'a>>> {
        let mut families = Vec::new();
        for candidates in candidates(briefs) {
            let mut compared = Beginnings::default();
            for brief in candidates {
                let states = match self.store.backend.message_states(&brief.key).await {
                    // It has no known messages.
                    Err(error) if error.kind() == ErrorKind::Damaged => Vec::new(),
                    states => states?,
                };
                compared.add(brief, &states);
            }
            families.extend(compared.into_families());
        }
        Ok(families)
    }
}

/// Groups of sessions that may be related, each in the order in which its sessions are counted.
fn candidates(briefs: &[Brief]) -> Vec<Vec<&Brief>> {
    let places: HashMap<&SessionKey, usize> =
        briefs.iter().enumerate().map(|(at, brief)| (&brief.key, at)).collect();
    let mut groups = Groups::new(briefs.len());
    let mut prompts: HashMap<(&UserId, Digest), usize> = HashMap::new();
    for (at, brief) in briefs.iter().enumerate() {
        if let Some(prompt) = brief.prompt {
            groups.join(at, *prompts.entry((&brief.key.user_id, prompt)).or_insert(at));
        }
        if let Some(parent) = brief.fork_of.as_ref().and_then(|(parent, _)| places.get(parent)) {
            groups.join(at, *parent);
        }
    }
    let parent_of = |at: usize| {
        let (parent, _) = briefs.get(at)?.fork_of.as_ref()?;
        places.get(parent).copied()
    };
    // A cycle has no more members than there are sessions.
    let depth = |at: usize| std::iter::successors(Some(at), |at| parent_of(*at)).take(briefs.len()).count();
    let of_group = |mut members: Vec<usize>| {
        let order = |at: &usize| (depth(*at), briefs.get(*at).map(|brief| (brief.created, &brief.key)));
        members.sort_by_cached_key(order);
        members.into_iter().filter_map(|at| briefs.get(at)).collect()
    };
    groups.of_several().into_iter().map(of_group).collect()
}

/// The beginnings of sessions that were compared so far.
#[derive(Default)]
struct Beginnings<'a> {
    members: Vec<(&'a Brief, Copied)>,
    /// For each member, another one that it is related to.
    related: Vec<Option<usize>>,
    /// The turns of the messages of each member.
    turns: Vec<Vec<Option<u32>>>,
    /// The first member with each beginning, by a hash of the digests of its messages.
    first: HashMap<u64, usize>,
}

impl<'a> Beginnings<'a> {
    fn add(&mut self, brief: &'a Brief, states: &[MessageState]) {
        let at = self.members.len();
        let beginnings = hashes(states);
        let equal = beginnings.iter().take_while(|hash| self.first.contains_key(hash)).count();
        let owner = equal.checked_sub(1).and_then(|last| self.first.get(beginnings.get(last)?)).copied();
        let declared = brief.fork_of.as_ref().and_then(|(parent, turn)| {
            Some((self.members.iter().position(|(brief, _)| brief.key == *parent)?, *turn))
        });
        let turns: Vec<Option<u32>> = states.iter().map(|state| state.turn).collect();
        let (of, copies) = match (owner, declared) {
            (Some(owner), _) if declared.is_some() || is_certain(states.part(..equal)) => {
                (Some(owner), equal)
            }
            // The host wrote the lines of the copy in another form.
            (_, Some((parent, turn))) => {
                let of_parent = self.turns.get(parent).map_or(0, |turns| up_to(turns, turn));
                (Some(parent), up_to(&turns, turn).min(of_parent))
            }
            _ => (None, 0),
        };
        for hash in beginnings {
            self.first.entry(hash).or_insert(at);
        }
        let distinct: BTreeSet<u32> = turns.iter().take(copies).flatten().copied().collect();
        let copied = Copied { messages: copies as u32, turns: distinct.len() as u32, events: 0 };
        self.members.push((brief, copied));
        self.related.push(of);
        self.turns.push(turns);
    }

    fn into_families(self) -> Vec<Family<'a>> {
        let mut groups = Groups::new(self.members.len());
        for (at, of) in self.related.iter().enumerate() {
            groups.join(at, of.unwrap_or(at));
        }
        let family = |members: Vec<usize>| Family {
            members: members.into_iter().filter_map(|at| self.members.get(at).copied()).collect(),
        };
        groups.of_several().into_iter().map(family).collect()
    }
}

/// For each message, a hash of it and all before it.
fn hashes(states: &[MessageState]) -> Vec<u64> {
    let mut hasher = DefaultHasher::new();
    let hash = |state: &MessageState| {
        state.digest.hash(&mut hasher);
        hasher.finish()
    };
    states.iter().map(hash).collect()
}

/// Whether two sessions that both begin with these messages have them from each other. People often begin sessions with
/// the same words, so there must be an answer, and a known time or a second turn.
fn is_certain(beginning: &[MessageState]) -> bool {
    let turns: BTreeSet<u32> = beginning.iter().filter_map(|state| state.turn).collect();
    let has_answer = beginning.windows(2).any(|pair| {
        matches!(pair, [MessageState { turn: Some(a), .. }, MessageState { turn: Some(b), .. }] if a == b)
    });
    has_answer && (turns.len() > 1 || beginning.iter().any(|state| !state.ts_source.is_estimated()))
}

/// The number of messages up to the end of a turn.
fn up_to(turns: &[Option<u32>], last: u32) -> usize {
    turns.iter().take_while(|turn| turn.is_none_or(|turn| turn <= last)).count()
}

/// Disjoint groups of numbers.
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// The smallest number of a group.
    fn first(&self, mut of: usize) -> usize {
        while let Some(next) = self.0.get(of).copied().filter(|next| *next != of) {
            of = next;
        }
        of
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        if let Some(of) = self.0.get_mut(a.max(b)) {
            *of = a.min(b);
        }
    }

    /// The groups with more than one member, each in ascending order.
    fn of_several(&self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in 0..self.0.len() {
            groups.entry(self.first(at)).or_default().push(at);
        }
        groups.into_values().filter(|group| group.len() > 1).collect()
    }
}
