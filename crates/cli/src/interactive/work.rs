//! The background tasks: searches, and reading messages.

use std::ops::Range;

use amplifier_session_api::names::{ResultNames, names};
use amplifier_session_storage::{
    Scope, SessionStorage,
    backend::SessionQuery,
    model::{Message, SessionId},
    search::SearchOptions,
};
use jiff::Zoned;

use super::state::{FoundGroups, Hit, SessionHits, Work, WorkAnswer};
use crate::{
    dates,
    failure::Failure,
    groups,
    messages::Estimated,
    render::{result::label, text::counted},
};

/// Messages before and after the one in the preview.
const NEIGHBOURS: u32 = 2;

/// The data that all tasks need.
#[derive(Debug, Clone)]
pub(super) struct WorkContext {
    pub(super) storage: SessionStorage,
    pub(super) scope: Scope,
    pub(super) now: Zoned,
}

impl WorkContext {
    pub(super) async fn run(self, work: Work) -> WorkAnswer {
        let text = |failure: Failure| failure.message().to_owned();
        match work {
            Work::Begin => self.begin().await,
            Work::Search { number, options } => {
                WorkAnswer::Found { number, found: self.search(&options).await.map_err(text) }
            }
            Work::Preview { number, session, sequence } => {
                WorkAnswer::Preview { number, found: self.neighbours(&session, sequence).await.map_err(text) }
            }
            Work::Messages { opened, session, range } => {
                let found = self.messages(&session, range.clone()).await.map_err(text);
                WorkAnswer::Messages { opened, range, found }
            }
        }
    }

    async fn begin(&self) -> WorkAnswer {
        let projects = self
            .storage
            .sessions()
            .list_projects(SessionQuery::new(self.scope.clone()))
            .await
            .unwrap_or_default();
        let projects: Vec<_> = projects.into_iter().map(|activity| activity.of).collect();
        let one = SessionQuery::new(self.scope.clone()).with_limit(1);
        let is_empty = projects.is_empty()
            && self.storage.sessions().search_sessions(&one).await.is_ok_and(|sessions| sessions.is_empty());
        WorkAnswer::Began { projects, is_empty }
    }

    async fn search(&self, options: &SearchOptions) -> Result<FoundGroups, Failure> {
        let found = groups::find(&self.storage, &self.scope, options).await?;
        let names = names(&self.storage, &self.scope, &found.results).await?;
        let ranks = groups::by_session(&found.results);
        let sessions: Vec<_> = ranks
            .iter()
            .filter_map(|ranks| names.session(found.results.get(*ranks.first()?)?).cloned())
            .collect();
        let estimated = Estimated::of(&self.storage, &sessions).await?;
        let group = |ranks: &Vec<usize>| {
            let results: Vec<_> = ranks.iter().filter_map(|rank| found.results.get(*rank)).collect();
            let best = *results.first()?;
            // The session may have been deleted since the search.
            let (when, is_estimated) = match names.session(best) {
                Some(session) => (session.updated, estimated.has(session)),
                None => (best.ts, best.ts_estimated),
            };
            Some(SessionHits {
                session: best.session_id.clone(),
                short: names.short_id(best).to_owned(),
                title: names.title(best).unwrap_or(best.project.as_str()).to_owned(),
                project: best.project.to_string(),
                when: dates::about_minute(when, is_estimated, &self.now),
                hits: results.into_iter().map(|result| hit(result, &names)).collect(),
            })
        };
        let groups = ranks.iter().take(options.limit).filter_map(group).collect();
        let mut notices = found.notices;
        if !found.damaged.is_empty() {
            let messages = counted(found.damaged.len() as u64, "message");
            notices.push(format!("{messages} can't be read; `search QUERY` lists the rows"));
        }
        Ok(FoundGroups { groups, notices })
    }

    async fn neighbours(&self, session: &SessionId, sequence: u32) -> Result<Vec<Message>, Failure> {
        let Self { storage, scope, .. } = self;
        let found =
            storage.reading().get_message_context(scope, session, sequence, NEIGHBOURS, NEIGHBOURS).await?;
        Ok(found.messages)
    }

    async fn messages(&self, session: &SessionId, range: Range<u32>) -> Result<(u32, Vec<Message>), Failure> {
        let Self { storage, scope, .. } = self;
        let total =
            storage.sessions().get_session(scope, session).await?.map_or(0, |session| session.message_count);
        let (after, count) = (range.start.checked_sub(1), range.len());
        let found = storage.reading().readable_transcript_lines(scope, session, after, count).await?;
        Ok((total, found.rows))
    }
}

fn hit(result: &amplifier_session_storage::search::SearchResult, names: &ResultNames) -> Hit {
    Hit {
        sequence: result.sequence,
        address: names.address(result),
        kind: label(result.content_type),
        snippet: result.snippet.clone(),
        highlights: result.highlights.clone(),
    }
}
