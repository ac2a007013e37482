//! The background tasks: searches, and reading messages.

use std::{ops::Range, path::PathBuf, sync::Arc};

use amplifier_session_api::{
    Api, ApiAnswer, CallerPlace, Notice, Reach,
    lines::LinesRequest,
    operations::{
        context::ContextRequest,
        messages::{MessagesRequest, MessagesResponse},
        projects::ProjectsRequest,
        search::{FoundMessage, FoundSession, SearchRequest},
        sessions::SessionsRequest,
    },
    views::MessageView,
};
use amplifier_session_storage::model::{ProjectSlug, SessionId};
use jiff::Zoned;

use super::state::{FoundGroups, Hit, SessionHits, Work, WorkAnswer};
use crate::{
    app::{App, OpenedStore},
    dates,
    failure::Failure,
    render::{result::label, text::counted},
};

/// Messages before and after the one in the preview.
const NEIGHBOURS: u32 = 2;

/// The data that all tasks need.
#[derive(Debug, Clone)]
pub(super) struct WorkContext {
    reader: Arc<OpenedStore>,
    reach: Reach,
    now: Zoned,
    home: Option<PathBuf>,
}

impl WorkContext {
    pub(super) fn new(app: &App, reader: OpenedStore) -> Self {
        let (reader, reach) = (Arc::new(reader), app.global.scope.into());
        Self { reader, reach, now: app.now.clone(), home: app.home.clone() }
    }

    fn api(&self) -> Api<'_> {
        let OpenedStore { storage, caller, .. } = &*self.reader;
        Api { storage, caller, now: &self.now, place: CallerPlace::Here { home: self.home.as_deref() } }
    }

    pub(super) async fn run(self, work: Work) -> WorkAnswer {
        let text = |failure: Failure| failure.message().to_owned();
        match work {
            Work::Begin => self.begin().await,
            Work::Search { number, request } => {
                WorkAnswer::Found { number, found: self.search(&request).await.map_err(text) }
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
        let projects = self.projects().await.unwrap_or_default();
        let one = SessionsRequest { scope: self.reach, limit: 1, ..SessionsRequest::default() };
        let is_empty = projects.is_empty()
            && self.api().sessions(&one).await.is_ok_and(|answer| answer.response.sessions.is_empty());
        WorkAnswer::Began { projects, is_empty }
    }

    async fn projects(&self) -> Result<Vec<ProjectSlug>, Failure> {
        let request = ProjectsRequest { scope: self.reach, ..ProjectsRequest::default() };
        let ApiAnswer { response, .. } = self.api().projects(&request).await?;
        Ok(response.projects.into_iter().map(|listed| listed.project).collect())
    }

    async fn search(&self, request: &SearchRequest) -> Result<FoundGroups, Failure> {
        let ApiAnswer { response, notices } = self.api().search(request).await?;
        let groups = response.groups.into_iter().flatten();
        let groups = groups.filter_map(|group| self.hits(group)).collect();
        let about_search = notices.into_iter().filter_map(|notice| match notice {
            Notice::Search { text } => Some(text),
            _ => None,
        });
        let mut notices: Vec<String> = about_search.collect();
        if !response.damaged.is_empty() {
            let messages = counted(response.damaged.len() as u64, "message");
            notices.push(format!("{messages} can't be read; `search QUERY` lists the rows"));
        }
        Ok(FoundGroups { groups, notices })
    }

    fn hits(&self, group: FoundSession) -> Option<SessionHits> {
        let best = &group.results.first()?.result;
        // The session may have been deleted since the search.
        let (when, is_estimated) = match (group.updated, group.dates_estimated) {
            (Some(updated), Some(is_estimated)) => (updated, is_estimated),
            _ => (best.ts, best.ts_estimated),
        };
        let project = group.project.to_string();
        Some(SessionHits {
            session: group.session_id,
            short: group.session,
            title: group.title.unwrap_or_else(|| project.clone()),
            project,
            when: dates::about_minute(when, is_estimated, &self.now),
            hits: group.results.into_iter().map(Hit::from).collect(),
        })
    }

    async fn neighbours(&self, session: &SessionId, sequence: u32) -> Result<Vec<MessageView>, Failure> {
        let request = ContextRequest {
            scope: self.reach,
            session: session.to_string(),
            turn: None,
            message: Some(sequence),
            before: Some(NEIGHBOURS),
            after: Some(NEIGHBOURS),
            short_ids: false,
        };
        Ok(self.api().context(&request).await?.response.messages)
    }

    /// The number of messages of a session, and those of `range`.
    async fn messages(
        &self,
        session: &SessionId,
        range: Range<u32>,
    ) -> Result<(u32, Vec<MessageView>), Failure> {
        let lines = LinesRequest {
            scope: self.reach,
            session: session.to_string(),
            from: Some(range.start),
            limit: Some(range.len()),
            range: false,
        };
        let request = MessagesRequest { lines, vectors: false, short_ids: false };
        let MessagesResponse { session, messages, .. } = self.api().messages(&request).await?.response;
        Ok((session.session.message_count, messages))
    }
}

impl From<FoundMessage> for Hit {
    fn from(FoundMessage { address, result, .. }: FoundMessage) -> Self {
        Self {
            sequence: result.sequence,
            address,
            kind: label(result.content_type),
            snippet: result.snippet,
            highlights: result.highlights,
        }
    }
}
