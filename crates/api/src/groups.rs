//! Results grouped by session.

use std::collections::{BTreeSet, HashMap};

use amplifier_session_core::{
    model::{ProjectSlug, Session, SessionId, SessionKey, Timestamp, UserId},
    search::{SearchResult, TurnResult},
};
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiError, Notice,
    names::{ResultNames, key_of},
    operations::search::{FoundMessage, SearchRequest},
    views::Estimated,
};

/// The number of results of a session that are shown.
pub const HITS: usize = 3;
/// The number of results to request per session: if the first number yields too few sessions, the second one is used.
const RESULTS_A_SESSION: [usize; 2] = [5, 20];
/// The most results of a search.
const MOST: usize = 1_000;

/// A result of a search, which belongs to a session.
pub(crate) trait GroupedResult {
    /// The session.
    fn session(&self) -> SessionKey;
    /// The project of the session.
    fn project(&self) -> &ProjectSlug;
}

impl GroupedResult for SearchResult {
    fn session(&self) -> SessionKey {
        key_of(self)
    }

    fn project(&self) -> &ProjectSlug {
        &self.project
    }
}

impl GroupedResult for TurnResult {
    fn session(&self) -> SessionKey {
        SessionKey::new(self.user_id.clone(), self.session_id.clone())
    }

    fn project(&self) -> &ProjectSlug {
        &self.project
    }
}

/// A session with its best results: messages or turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundSession<Found = FoundMessage> {
    /// The short id of the session.
    pub session: String,
    /// Its id.
    pub session_id: SessionId,
    /// Its owner.
    pub user_id: UserId,
    /// Its title, if it can be read.
    pub title: Option<String>,
    /// Its project.
    pub project: ProjectSlug,
    /// The time of its last change, if it can be read.
    pub updated: Option<Timestamp>,
    /// Whether `updated` is an estimate.
    pub dates_estimated: Option<bool>,
    /// Its best results.
    pub results: Vec<Found>,
    /// The number of further results that were found in it.
    pub more: usize,
}

/// The numbers of results to request for `sessions` sessions: first the smaller one.
pub(crate) fn numbers(sessions: usize) -> [usize; 2] {
    RESULTS_A_SESSION.map(|results| sessions.saturating_mul(results).min(MOST))
}

/// The results of a search without words to request for `sessions` sessions, and how many of each session: no search has
/// more than [`MOST`] results.
pub(crate) fn newest_numbers(sessions: usize, per_session: usize) -> (usize, usize) {
    let of_each = (MOST / sessions.max(1)).clamp(1, per_session.max(1));
    (sessions.saturating_mul(of_each).clamp(1, MOST), of_each)
}

/// Whether the best results, of which `requested` were requested, are all, or come from `sessions` sessions.
pub(crate) fn are_enough<T: GroupedResult>(results: &[T], requested: usize, sessions: usize) -> bool {
    results.len() < requested || requested == MOST || by_session(results).len() >= sessions
}

/// The remark that sessions are missing, because more results match than the most that are requested.
pub(crate) fn best_only<T: GroupedResult>(results: &[T], sessions: usize) -> Option<Notice> {
    let [_, most] = numbers(sessions);
    let are_all = results.len() < most || by_session(results).len() >= sessions;
    (!are_all).then_some(Notice::OnlyTheBestGrouped { results: results.len() })
}

/// The ranks of the results of each session, best first. Sessions are in the order of their best results.
fn by_session<T: GroupedResult>(results: &[T]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut places = HashMap::new();
    for (rank, result) in results.iter().enumerate() {
        let place = *places.entry(result.session()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    groups
}

impl Api<'_> {
    /// The best results of the first sessions: in order of rank, and by session. `counts` has the numbers of results of
    /// sessions, as far as more were counted than `results` has.
    pub(crate) async fn by_session<T: GroupedResult, Found>(
        &self,
        (results, counts): (&[T], &HashMap<SessionKey, usize>),
        request: &SearchRequest,
        names: &ResultNames,
        view: impl Fn(&T) -> Found,
    ) -> Result<(Vec<Found>, Vec<FoundSession<Found>>), ApiError> {
        let ranks: Vec<_> = by_session(results).into_iter().skip(request.skip).take(request.limit).collect();
        let most = request.per_session;
        let best = |ranks: &Vec<usize>| results.get(*ranks.first()?);
        let sessions: Vec<Session> =
            ranks.iter().filter_map(|ranks| names.session_of(&best(ranks)?.session()).cloned()).collect();
        let estimated = Estimated::of(self.storage, &sessions).await?;
        let of_session = |ranks: &Vec<usize>| {
            let shown = ranks.iter().take(most).filter_map(|rank| results.get(*rank)).map(&view).collect();
            let best = best(ranks)?;
            let all = counts.get(&best.session()).copied().unwrap_or(0).max(ranks.len());
            let more = all.saturating_sub(most.min(ranks.len()));
            Some(FoundSession::new(best, (shown, more), names, &estimated))
        };
        let groups = ranks.iter().filter_map(of_session).collect();
        let shown: BTreeSet<usize> =
            ranks.iter().flat_map(|ranks| ranks.iter().take(most)).copied().collect();
        Ok((shown.into_iter().filter_map(|rank| results.get(rank)).map(&view).collect(), groups))
    }
}

impl<Found> FoundSession<Found> {
    /// The session of `best`, with results and the number of further ones.
    fn new(
        best: &impl GroupedResult,
        (results, more): (Vec<Found>, usize),
        names: &ResultNames,
        estimated: &Estimated,
    ) -> Self {
        let key = best.session();
        let session = names.session_of(&key);
        Self {
            session: names.short_id_of(&key.session_id).to_owned(),
            title: names.title_of(&key).map(str::to_owned),
            project: best.project().clone(),
            updated: session.map(|session| session.updated),
            dates_estimated: session.map(|session| estimated.has(session)),
            results,
            more,
            session_id: key.session_id,
            user_id: key.user_id,
        }
    }
}
