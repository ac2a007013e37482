//! The background tasks: searches, and reading sessions, messages and values.

use std::{collections::BTreeMap, ops::Range, path::PathBuf, sync::Arc};

use amplifier_session_api::{
    ApiAnswer, Reach, ids,
    lines::LinesRequest,
    operations::{
        context::ContextRequest,
        messages::{MessagesRequest, MessagesResponse},
        projects::ProjectsRequest,
        search::{FoundMessage, FoundSession, SearchRequest},
        sessions::{ListedSession, SessionsRequest, SessionsResponse},
        statistics::StatisticsRequest,
        tags::TagsRequest,
    },
    remote::AnyApi,
    views::MessageView,
};
use amplifier_session_storage::{
    model::SessionId,
    search::{MatchKind, SearchResult},
};
use jiff::Zoned;

use super::{
    results::{FoundGroups, Hit, SessionHits},
    state::{ListRequest, Work, WorkAnswer},
    values::{KnownValue, ValueKind},
};
use crate::{
    app::App,
    dates,
    failure::Failure,
    opened::OpenedStore,
    program::TypedProgram,
    render::{result::label, text::counted},
    words,
};

/// Messages before and after the one in the preview.
const NEIGHBOURS: u32 = 2;
/// The most sessions to offer as values of a field.
const SESSIONS: usize = 500;

/// The data that all tasks need.
#[derive(Debug, Clone)]
pub(super) struct WorkContext {
    reader: Arc<OpenedStore>,
    program: Arc<TypedProgram>,
    reach: Reach,
    now: Zoned,
    home: Option<PathBuf>,
}

impl WorkContext {
    pub(super) fn new(app: &App, reader: OpenedStore) -> Self {
        let (reader, reach) = (Arc::new(reader), app.global.scope.into());
        let program = Arc::new(app.typed_program());
        Self { reader, program, reach, now: app.now.clone(), home: app.home.clone() }
    }

    fn api(&self) -> AnyApi<'_> {
        self.reader.api_at(&self.now, self.home.as_deref())
    }

    pub(super) async fn run(self, work: Work) -> WorkAnswer {
        let text = |failure: Failure| failure.message().to_owned();
        match work {
            Work::List { number, request } => {
                let found = match request {
                    ListRequest::Search(request) => self.search(&request).await,
                    ListRequest::Recent(request) => self.recent(&request).await,
                };
                WorkAnswer::List { number, found: found.map_err(text) }
            }
            Work::Preview { number, session, sequence } => {
                WorkAnswer::Preview { number, found: self.neighbours(&session, sequence).await.map_err(text) }
            }
            Work::Messages { opened, session, range } => {
                let found = self.messages(&session, range.clone()).await.map_err(text);
                WorkAnswer::Messages { opened, range, found }
            }
            Work::Hits { opened, request } => {
                WorkAnswer::Hits { opened, found: self.hits_of_session(&request).await.map_err(text) }
            }
            Work::Values { kind, scope } => {
                let found = self.values(kind, scope).await.map_err(text);
                WorkAnswer::Values { kind, scope, found }
            }
        }
    }

    async fn recent(&self, request: &SessionsRequest) -> Result<FoundGroups, Failure> {
        let ApiAnswer { response, notices } = self.api().sessions(request).await?;
        let SessionsResponse { sessions, has_more, short_ids, .. } = response;
        let group = |ListedSession { session: view, .. }: ListedSession| {
            let when = dates::about_minute(view.session.updated, view.is_estimated(), &self.now);
            let short = ids::short(&short_ids, &view.session.session_id).to_owned();
            SessionHits {
                hits: vec![Hit::of_session(&short)],
                short,
                title: view.title,
                project: view.session.project_slug.to_string(),
                when,
                session: view.session.session_id,
            }
        };
        Ok(FoundGroups {
            groups: sessions.into_iter().map(group).collect(),
            notices: words::in_response(&self.program, &notices),
            are_recent: true,
            has_more,
        })
    }

    async fn search(&self, request: &SearchRequest) -> Result<FoundGroups, Failure> {
        let ApiAnswer { response, notices } = self.api().search(request).await?;
        let groups = response.groups.unwrap_or_default();
        let has_more = groups.len() >= request.limit;
        let groups = groups.into_iter().filter_map(|group| self.hits(group)).collect();
        let mut notices = words::in_response(&self.program, &notices);
        if !response.damaged.is_empty() {
            let messages = counted(response.damaged.len() as u64, "message");
            notices.push(format!("{messages} can't be read; `search QUERY` lists the rows"));
        }
        Ok(FoundGroups { groups, notices, are_recent: false, has_more })
    }

    /// The numbers of the messages of a session that have words of the query.
    async fn hits_of_session(&self, request: &SearchRequest) -> Result<Vec<u32>, Failure> {
        let found = self.api().search(request).await?.response.results;
        let of_words = found.into_iter().filter(|found| found.result.match_kind != MatchKind::Similar);
        Ok(of_words.map(|found| found.result.sequence).collect())
    }

    async fn values(&self, kind: ValueKind, scope: Reach) -> Result<Vec<KnownValue>, Failure> {
        match kind {
            ValueKind::Projects => self.projects(scope).await,
            ValueKind::Tags => self.tags(scope).await,
            ValueKind::Tools => self.tools(scope).await,
            ValueKind::Sessions => {
                let SessionsResponse { sessions, short_ids, .. } = self.sessions(scope).await?;
                let session = |listed: ListedSession| {
                    let short = ids::short(&short_ids, &listed.session.session.session_id);
                    KnownValue::new(short, listed.session.title)
                };
                Ok(sessions.into_iter().map(session).collect())
            }
            ValueKind::Repositories => {
                let mut counts: BTreeMap<String, u64> = BTreeMap::new();
                for ListedSession { session, .. } in self.sessions(scope).await?.sessions {
                    if let Some(repository) = session.session.repository {
                        *counts.entry(repository.to_string()).or_default() += 1;
                    }
                }
                Ok(counts.into_iter().map(|(name, count)| in_sessions(name, count)).collect())
            }
        }
    }

    async fn projects(&self, scope: Reach) -> Result<Vec<KnownValue>, Failure> {
        let request = ProjectsRequest { scope, ..ProjectsRequest::default() };
        let projects = self.api().projects(&request).await?.response.projects;
        Ok(projects.into_iter().map(|listed| in_sessions(listed.project, listed.counts.sessions)).collect())
    }

    async fn tags(&self, scope: Reach) -> Result<Vec<KnownValue>, Failure> {
        let tags = self.api().tags(&TagsRequest { scope }).await?.response.tags;
        Ok(tags.into_iter().map(|count| in_sessions(count.tag, count.sessions)).collect())
    }

    async fn tools(&self, scope: Reach) -> Result<Vec<KnownValue>, Failure> {
        let request = StatisticsRequest { scope, ..StatisticsRequest::default() };
        let tools = self.api().statistics(&request).await?.response.statistics.tools;
        Ok(tools.into_iter().map(|tool| KnownValue::new(tool.tool, counted(tool.uses, "use"))).collect())
    }

    /// The newest sessions.
    async fn sessions(&self, scope: Reach) -> Result<SessionsResponse, Failure> {
        let request =
            SessionsRequest { scope, limit: SESSIONS, short_ids: true, ..SessionsRequest::default() };
        Ok(self.api().sessions(&request).await?.response)
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
        let MessagesResponse { session, messages, .. } = self.api().list(&request).await?.response;
        Ok((session.session.message_count, messages))
    }
}

/// A value with the number of its sessions.
fn in_sessions(value: impl ToString, sessions: u64) -> KnownValue {
    KnownValue::new(value.to_string(), counted(sessions, "session"))
}

/// Why a message was found that may have no word of the query.
fn remark(result: &SearchResult) -> Option<String> {
    if result.by_title {
        return Some("by its title".to_owned());
    }
    (result.match_kind == MatchKind::Similar).then(|| "similar".to_owned())
}

impl Hit {
    /// The beginning of the session with this short id.
    fn of_session(short: &str) -> Self {
        Self {
            sequence: 0,
            address: short.to_owned(),
            kind: "",
            remark: None,
            snippet: String::new(),
            highlights: Vec::new(),
        }
    }
}

impl From<FoundMessage> for Hit {
    fn from(FoundMessage { address, result, .. }: FoundMessage) -> Self {
        Self {
            sequence: result.sequence,
            address,
            kind: label(result.content_type),
            remark: remark(&result),
            snippet: result.snippet,
            highlights: result.highlights,
        }
    }
}
