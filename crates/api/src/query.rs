//! Queries: their syntax, the meaning of fields, and the options beside them.

use std::collections::BTreeSet;

use amplifier_session_core::{
    Scope,
    model::{ContentTypes, ProjectSlug, Repository, Role, SessionId, SessionKey, Timestamp},
    search::{Field, FieldName, SearchFilter, SearchMode, SearchOptions, TextConditions, TypedQuery},
    text::composed,
};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use crate::{
    Api, ApiError, FoundKind, NearestMessage, Notice, Reach,
    addresses::only_session,
    dates::{self, PeriodEnd},
    fields::{FieldProblem, Misfit, SearchCondition, may_be_text},
    filter::{RequestFilter, check_tags},
};

/// A query with its mode and filters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueryRequest {
    /// Words or a question, with fields.
    pub query: String,
    /// Whether the query is plain text, without syntax.
    pub plain: bool,
    /// Whether to find exactly this text, character by character.
    pub exact: bool,
    /// Which sessions.
    pub scope: Reach,
    /// Only sessions with a tool call on each of these files or folders; without words, finds the calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The addresses of sessions to exclude.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_sessions: Vec<String>,
    /// The id of the session in which the caller works. It is excluded, and so is its parent, unless the request is about
    /// one session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_session: Option<String>,
    /// Whether to leave out messages of the last two minutes that search and read sessions, with their results: an agent
    /// that searches again would find its own search. Only for [`Api::search`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_own_calls: bool,
    /// The mode of the search.
    pub mode: SearchMode,
    /// The types of text to search, as [`ContentTypes::parse`] reads them. By default [`ContentTypes::searched`].
    #[serde(rename = "in", skip_serializing_if = "Vec::is_empty")]
    pub content_types: Vec<String>,
    /// Which sessions and which period.
    #[serde(flatten)]
    pub filter: RequestFilter,
    /// Only this session, by its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only messages with this role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

impl QueryRequest {
    /// The options of the search that need no lookup in the store, without the query.
    fn options(&self, now: &Zoned, notices: &mut Vec<Notice>) -> Result<SearchOptions, ApiError> {
        let period = self.filter.period(now, notices)?;
        let mut filter = SearchFilter::default().with_sessions(self.filter.sessions()?);
        (filter.role, filter.since, filter.until) = (self.role, period.since, period.until);
        let options = SearchOptions::new("").with_mode(self.mode).with_filter(filter);
        let types = self.content_types.iter().map(|word| ContentTypes::parse(word));
        let types = types.collect::<Result<Vec<_>, _>>()?;
        Ok(match types.into_iter().reduce(ContentTypes::union) {
            Some(content_types) => options.with_content_types(content_types),
            None => options,
        })
    }
}

/// A query that was read.
#[derive(Debug)]
pub(crate) struct ReadQuery<'a> {
    request: &'a QueryRequest,
    query: TypedQuery,
    /// The fields that are searched for as text.
    texts: Vec<(Field, FieldProblem)>,
    /// Why no message can match.
    contradictions: Vec<Notice>,
    files: Vec<String>,
    role: Option<Role>,
    since: Option<PeriodBound>,
    until: Option<PeriodBound>,
}

impl<'a> ReadQuery<'a> {
    /// Reads the query, and the fields that need no store.
    pub(crate) fn read(request: &'a QueryRequest, now: &Zoned) -> Result<Self, ApiError> {
        let now = request.filter.now(now)?;
        let mut read = Self {
            request,
            query: TypedQuery::plain(request.query.clone()),
            texts: Vec::new(),
            contradictions: Vec::new(),
            files: request.files.clone(),
            role: request.role,
            since: None,
            until: None,
        };
        if request.exact || request.plain {
            return Ok(read);
        }
        for field in TypedQuery::parse(&request.query).fields {
            let taken = read.take(&field, &now);
            read.settle(field, taken, &mut Vec::new())?;
        }
        read.parse();
        Ok(read)
    }

    /// Splits the query into its parts, without the fields that are text.
    fn parse(&mut self) {
        let is_text = |field: &Field| self.texts.iter().any(|(text, _)| text == field);
        self.query = TypedQuery::parse_with(&self.request.query, |field| !is_text(field));
    }

    fn take(&mut self, field: &Field, now: &Zoned) -> Result<(), Misfit> {
        if field.is_excluded && field.name != FieldName::Session {
            return Err(Misfit::Text(FieldProblem::CannotBeExcluded));
        }
        // Unlike the request's `until`, `before:` does not include the day itself.
        let date = || {
            let date = dates::parse(&field.value, PeriodEnd::Since, now);
            date.map_err(|_| Misfit::Text(FieldProblem::NotADate { text: field.value.clone() }))
        };
        match field.name {
            FieldName::Role => {
                let role: Role = field.value.parse().map_err(|_| Misfit::Text(FieldProblem::UnknownRole))?;
                if let Some(other) = self.role.filter(|other| *other != role) {
                    return Err(Misfit::contradiction(field, self.request.role.is_some(), other.as_str()));
                }
                self.role = Some(role);
            }
            FieldName::After => {
                let begins = date()?;
                self.since = later(self.since.take(), Some((begins, field.into())));
            }
            FieldName::Before => {
                let ends = date()?;
                self.until = earlier(self.until.take(), Some((ends, field.into())));
            }
            FieldName::File => self.files.push(field.value.clone()),
            FieldName::Project => {
                ProjectSlug::new(&field.value).map_err(|error| Misfit::of_name(&error))?;
            }
            FieldName::Repo => {
                Repository::new(&field.value).map_err(|error| Misfit::of_name(&error))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes how a field fails to narrow the search, if it does.
    fn settle(
        &mut self,
        field: Field,
        taken: Result<(), Misfit>,
        notices: &mut Vec<Notice>,
    ) -> Result<(), ApiError> {
        match taken {
            Ok(()) => {}
            Err(Misfit::Text(problem)) => {
                let text = (field, problem);
                if !self.texts.contains(&text) {
                    self.texts.push(text);
                }
            }
            // A session that does not exist need not be excluded.
            Err(Misfit::Unmet(notice)) if field.is_excluded => notices.push(notice),
            Err(Misfit::Unmet(notice)) => self.contradictions.push(notice),
            Err(Misfit::Failed(error)) => return Err(error),
        }
        Ok(())
    }

    /// The options of the search that need no lookup in the store.
    pub(crate) fn options(
        &mut self,
        now: &Zoned,
        notices: &mut Vec<Notice>,
    ) -> Result<SearchOptions, ApiError> {
        let mut options = self.request.options(now, notices)?;
        self.narrow_period(&mut options.filter);
        options.filter.role = self.role;
        let tags = self.values(FieldName::Tag).map(|tag| composed(tag.trim()).into_owned());
        options.filter.sessions.tags.extend(tags);
        check_tags(options.filter.sessions.tags.len())?;
        Ok(self.with_text(options))
    }

    /// Adds `after:` and `before:`, unless the period ends before it begins.
    fn narrow_period(&mut self, filter: &mut SearchFilter) {
        let requested = |time: Option<Timestamp>, field: &str, typed: &Option<String>| {
            Some((time?, SearchCondition::of_request(field, typed.as_deref().unwrap_or_default())))
        };
        let RequestFilter { since, until, .. } = &self.request.filter;
        let since = later(requested(filter.since, "since", since), self.since.clone());
        let until = earlier(requested(filter.until, "until", until), self.until.clone());
        if let (Some((begins, one)), Some((ends, other))) = (&since, &until)
            && ends <= begins
        {
            let (one, other) = (one.clone(), other.clone());
            self.contradictions.push(Notice::NothingMatchesBoth { one, other });
            return;
        }
        filter.since = since.map(|(begins, _)| begins);
        filter.until = until.map(|(ends, _)| ends);
    }

    /// The options with the words of the query, and the conditions that they are.
    fn with_text(&self, mut options: SearchOptions) -> SearchOptions {
        let tools = self.values(FieldName::Tool);
        let exact = self.request.exact.then(|| self.request.query.clone());
        options.query.clone_from(&self.query.text);
        options.conditions = TextConditions::from(&self.query).with_exact(exact).with_tools(tools);
        let has_words = !self.query.text.trim().is_empty();
        if !has_words {
            options.conditions.files.clone_from(&self.files);
        }
        options.newest_without_words =
            !has_words && (!self.files.is_empty() || !self.query.fields.is_empty());
        options
    }

    /// The options with everything that is looked up in the store.
    async fn resolved(
        &mut self,
        api: &Api<'_>,
        scope: &Scope,
        options: SearchOptions,
        notices: &mut Vec<Notice>,
    ) -> Result<SearchOptions, ApiError> {
        let mut filter = self.narrowed(api, scope, &options, notices).await?;
        for field in self.query.fields.clone() {
            let taken = match field.name {
                FieldName::Project => self.within_project(api, scope, &field, &mut filter, notices).await,
                FieldName::Repo => self.within_repository(api, scope, &field, &mut filter).await,
                FieldName::Session => self.within_session(api, scope, &field, &mut filter, notices).await,
                _ => Ok(()),
            };
            self.settle(field, taken, notices)?;
        }
        if !self.texts.is_empty() {
            self.parse();
        }
        let as_text = self.texts.iter().map(|(field, problem)| Notice::SearchedAsText {
            text: field.to_string(),
            problem: problem.clone(),
        });
        notices.extend(as_text);
        let options = self.with_text(options);
        for address in &self.request.not_sessions {
            filter.sessions.without.insert(api.find(scope, address, notices).await?.session.key());
        }
        if filter.sessions.session.is_none() {
            filter.sessions.without.extend(self.current_session(api, notices).await?);
        }
        if !self.contradictions.is_empty() {
            notices.extend(self.contradictions.iter().cloned());
            filter.sessions.only = Some(BTreeSet::new());
            return Ok(options.with_filter(filter));
        }
        for file in &self.files {
            // Only within the sessions of the files before, so that a session must have all of them.
            let found = api.storage.search().sessions_that_touched(scope, &filter.sessions, file).await?;
            if found.sessions.is_empty() {
                notices.push(Notice::NoCallOnFile { file: file.clone() });
            }
            let text = found.notice;
            notices.extend(text.map(|text| Notice::CallsOnFile { file: file.clone(), text }));
            filter.sessions.only = Some(found.sessions);
        }
        Ok(options.with_filter(filter))
    }

    /// The filter with the requested project and session.
    async fn narrowed(
        &self,
        api: &Api<'_>,
        scope: &Scope,
        options: &SearchOptions,
        notices: &mut Vec<Notice>,
    ) -> Result<SearchFilter, ApiError> {
        let mut filter = options.filter.clone();
        let sessions = api.named_sessions(scope, &self.request.filter, notices).await?;
        filter.sessions = filter.sessions.within(&sessions);
        if let Some(address) = &self.request.session {
            let session = api.find(scope, address, notices).await?.session;
            filter.sessions = only_session(filter.sessions, scope, &session);
        }
        Ok(filter)
    }

    /// Adds `project:`.
    async fn within_project(
        &self,
        api: &Api<'_>,
        scope: &Scope,
        field: &Field,
        filter: &mut SearchFilter,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Misfit> {
        let found = api.named_projects(scope, &field.value, notices).await;
        let project = found.map_err(|error| Misfit::of_lookup(field, error))?;
        if let (Some(others), Some(named)) = (filter.sessions.named_projects(), project.named_projects())
            && others.is_disjoint(&named)
        {
            let other = others.first().map_or("", |other| other.as_str());
            let is_in_request = self.request.filter.names_project();
            return Err(Misfit::contradiction(field, is_in_request, other));
        }
        filter.sessions = std::mem::take(&mut filter.sessions).within(&project);
        Ok(())
    }

    /// Adds `repo:`.
    async fn within_repository(
        &self,
        api: &Api<'_>,
        scope: &Scope,
        field: &Field,
        filter: &mut SearchFilter,
    ) -> Result<(), Misfit> {
        let found =
            api.repositories(scope, &field.value).await.map_err(|error| Misfit::of_lookup(field, error))?;
        let other = filter.sessions.repositories.replace(found.clone());
        if let Some(other) = other.filter(|other| *other != found) {
            let is_in_request = self.request.filter.repo.is_some();
            return Err(Misfit::contradiction(field, is_in_request, Repository::most_telling(&other)));
        }
        Ok(())
    }

    /// Adds `session:` or `-session:`.
    async fn within_session(
        &self,
        api: &Api<'_>,
        scope: &Scope,
        field: &Field,
        filter: &mut SearchFilter,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Misfit> {
        let found = api.find(scope, &field.value, notices).await;
        let session = found.map_err(|error| Misfit::of_lookup(field, error))?.session;
        if field.is_excluded {
            filter.sessions.without.insert(session.key());
            return Ok(());
        }
        if let Some(other) = filter.sessions.session.as_ref().filter(|other| **other != session.session_id) {
            return Err(Misfit::contradiction(field, self.request.session.is_some(), other.as_str()));
        }
        filter.sessions = only_session(std::mem::take(&mut filter.sessions), scope, &session);
        Ok(())
    }

    /// The session in which the caller works, and its parent.
    async fn current_session(
        &self,
        api: &Api<'_>,
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<SessionKey>, ApiError> {
        let id = self.request.current_session.clone().and_then(|id| SessionId::new(id).ok());
        let Some(id) = id else { return Ok(Vec::new()) };
        let own = api.caller.scope(Reach::Own)?;
        // It may not be stored yet.
        let Some(session) = api.storage.sessions().get_session(&own, &id).await? else {
            return Ok(Vec::new());
        };
        let parent = session.parent_id.clone();
        notices.push(Notice::CurrentSessionLeftOut { session: id.clone(), parent: parent.clone() });
        let key = |id| SessionKey::new(api.caller.user().clone(), id);
        Ok([Some(id), parent].into_iter().flatten().map(key).collect())
    }

    /// A hint that a part of the query may be meant as text, which may be why nothing is found.
    fn meant_as_text(&self) -> Option<Notice> {
        if let Some(text) = self.query.excluded.first() {
            return Some(Notice::LeavesOut { text: text.clone() });
        }
        let field = self.query.fields.iter().find(|field| may_be_text(field))?;
        Some(Notice::MeantAsText { text: field.to_string() })
    }

    fn values(&self, name: FieldName) -> impl Iterator<Item = String> + '_ {
        let fields = self.query.fields.iter().filter(move |field| field.name == name);
        fields.map(|field| field.value.clone())
    }
}

/// A query with everything that is looked up in the store.
#[derive(Debug)]
pub(crate) struct ResolvedQuery<'a> {
    read: ReadQuery<'a>,
    /// The scope of the request.
    pub(crate) scope: Scope,
    /// The options of the search.
    pub(crate) options: SearchOptions,
}

impl Api<'_> {
    /// Looks up in the store what a query and its options need.
    pub(crate) async fn resolved_query<'a>(
        &self,
        (mut read, options): (ReadQuery<'a>, SearchOptions),
        notices: &mut Vec<Notice>,
    ) -> Result<ResolvedQuery<'a>, ApiError> {
        let scope = self.caller.scope(read.request.scope)?;
        let options = read.resolved(self, &scope, options, notices).await?;
        Ok(ResolvedQuery { read, scope, options })
    }

    /// Adds the notices about a query that finds nothing: that it is so, and likely reasons.
    pub(crate) async fn found_nothing(
        &self,
        query: &ResolvedQuery<'_>,
        what: FoundKind,
        nearest: Option<NearestMessage>,
        notices: &mut Vec<Notice>,
    ) -> Result<(), ApiError> {
        notices.push(Notice::NothingFound { what, nearest });
        notices.extend(query.read.meant_as_text());
        let filter = &query.read.request.filter;
        self.why_nothing(&query.scope, filter, &query.options.filter.sessions, notices).await
    }
}

/// A bound of a period, and what sets it.
type PeriodBound = (Timestamp, SearchCondition);

fn later(one: Option<PeriodBound>, other: Option<PeriodBound>) -> Option<PeriodBound> {
    one.into_iter().chain(other).max_by_key(|(time, _)| *time)
}

fn earlier(one: Option<PeriodBound>, other: Option<PeriodBound>) -> Option<PeriodBound> {
    one.into_iter().chain(other).min_by_key(|(time, _)| *time)
}
