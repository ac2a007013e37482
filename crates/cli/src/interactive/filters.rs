//! The filters of the interactive search: those of the command line, and those that are chosen.

use amplifier_session_api::{
    Reach,
    operations::{search::SearchRequest, sessions::SessionsRequest},
};
use amplifier_session_storage::{
    model::{ContentType, ContentTypes},
    search::{FieldName, SearchMode},
};

use super::values::{KnownValue, ValueKind, ValueSource};

const MODES: [(SearchMode, &str, &str); 3] = [
    (SearchMode::Hybrid, "hybrid", "by words and by meaning"),
    (SearchMode::Semantic, "semantic", "by meaning"),
    (SearchMode::FullText, "full-text", "by words"),
];

/// The switches for content types, and what each one selects.
const SWITCHES: [(&str, &[ContentType]); 5] = [
    ("user", &[ContentType::UserQuery]),
    ("assistant", &[ContentType::AssistantResponse]),
    ("thinking", &[ContentType::AssistantThinking]),
    ("tool", &[ContentType::ToolCall, ContentType::ToolOutput]),
    ("system", &[ContentType::System]),
];

/// A filter. It has the name of its option of the command line, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilterKind {
    Mode,
    In,
    Project,
    Since,
    Until,
    Tag,
    Tool,
    File,
    Role,
    Repo,
    Session,
    NotSession,
    Bundle,
    Source,
    MinTurns,
    MaxTurns,
    MinSimilarity,
    Scope,
    User,
    Plain,
}

impl FilterKind {
    pub(super) const ALL: [Self; 20] = [
        Self::Mode,
        Self::In,
        Self::Project,
        Self::Since,
        Self::Until,
        Self::Tag,
        Self::Tool,
        Self::File,
        Self::Role,
        Self::Repo,
        Self::Session,
        Self::NotSession,
        Self::Bundle,
        Self::Source,
        Self::MinTurns,
        Self::MaxTurns,
        Self::MinSimilarity,
        Self::Scope,
        Self::User,
        Self::Plain,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::In => "in",
            Self::Project => "project",
            Self::Since => "since",
            Self::Until => "until",
            Self::Tag => "tag",
            Self::Tool => "tool",
            Self::File => "file",
            Self::Role => "role",
            Self::Repo => "repo",
            Self::Session => "session",
            Self::NotSession => "not-session",
            Self::Bundle => "bundle",
            Self::Source => "source",
            Self::MinTurns => "min-turns",
            Self::MaxTurns => "max-turns",
            Self::MinSimilarity => "min-similarity",
            Self::Scope => "scope",
            Self::User => "user",
            Self::Plain => "plain",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The values to choose from, besides none. A filter without values can only be removed.
    pub(super) fn values(self) -> Option<ValueSource> {
        let known = |values: &[(&str, &str)]| {
            ValueSource::Known(values.iter().map(|(value, help)| KnownValue::new(*value, *help)).collect())
        };
        match self {
            Self::Mode => Some(known(&MODES.map(|(_, name, help)| (name, help)))),
            Self::In => Some(known(&SWITCHES.map(|(name, _)| (name, "")))),
            Self::Project => Some(ValueSource::Stored(ValueKind::Projects)),
            Self::Repo => Some(ValueSource::Stored(ValueKind::Repositories)),
            Self::Since | Self::Until => Some(ValueSource::dates()),
            Self::Tag => Some(ValueSource::Stored(ValueKind::Tags)),
            Self::Tool => Some(ValueSource::Stored(ValueKind::Tools)),
            Self::File => Some(ValueSource::Text),
            Self::Role => Some(ValueSource::roles()),
            _ => None,
        }
    }

    /// Whether text that is not among the values can be chosen.
    pub(super) const fn accepts_text(self) -> bool {
        matches!(
            self,
            Self::Project | Self::Repo | Self::Since | Self::Until | Self::Tag | Self::Tool | Self::File
        )
    }

    /// Whether several values can be chosen.
    pub(super) const fn takes_many(self) -> bool {
        matches!(self, Self::In | Self::Project | Self::Tag | Self::Tool | Self::File)
    }
}

/// The filters.
#[derive(Debug, Clone)]
pub(super) struct Filters {
    /// The request of the command line with the filters that were chosen since.
    request: SearchRequest,
    /// A request has no tools, so they become fields of its query.
    tools: Vec<String>,
    /// Whose sessions are searched, if the command line names a user.
    user: Option<String>,
}

impl Filters {
    /// The filters of the command line.
    pub(super) fn new(request: SearchRequest) -> Self {
        Self { request, tools: Vec::new(), user: None }
    }

    /// Shows that the sessions of this user are searched. This filter can't be removed.
    pub(super) fn set_user(&mut self, user: Option<String>) {
        self.user = user;
    }

    pub(super) fn scope(&self) -> Reach {
        self.request.query.scope
    }

    pub(super) fn is_plain(&self) -> bool {
        self.request.query.plain
    }

    /// The number of sessions to show at first.
    pub(super) fn limit(&self) -> usize {
        self.request.limit
    }

    /// The values of a filter; empty if it excludes nothing.
    pub(super) fn of(&self, kind: FilterKind) -> Vec<String> {
        let SearchRequest { query, min_similarity, .. } = &self.request;
        let filter = &query.filter;
        let text = |value: &Option<String>| value.iter().cloned().collect();
        let number = |value: Option<u32>| value.iter().map(ToString::to_string).collect();
        match kind {
            FilterKind::Mode => MODES
                .iter()
                .filter(|(mode, ..)| *mode == query.mode && *mode != SearchMode::Hybrid)
                .map(|(_, name, _)| (*name).to_owned())
                .collect(),
            FilterKind::In => self.switches(),
            FilterKind::Project => filter.project.iter().chain(&filter.projects).cloned().collect(),
            FilterKind::Since => text(&filter.since),
            FilterKind::Until => text(&filter.until),
            FilterKind::Tag => filter.tags.clone(),
            FilterKind::Tool => self.tools.clone(),
            FilterKind::File => query.files.clone(),
            FilterKind::Role => query.role.iter().map(ToString::to_string).collect(),
            FilterKind::Repo => text(&filter.repo),
            FilterKind::Session => text(&query.session),
            FilterKind::NotSession => query.not_sessions.clone(),
            FilterKind::Bundle => text(&filter.bundle),
            FilterKind::Source => filter.source.iter().map(ToString::to_string).collect(),
            FilterKind::MinTurns => number(filter.min_turns),
            FilterKind::MaxTurns => number(filter.max_turns),
            FilterKind::MinSimilarity => min_similarity.iter().map(ToString::to_string).collect(),
            FilterKind::Scope => match query.scope {
                Reach::Own => Vec::new(),
                scope => vec![scope.as_str().to_owned()],
            },
            FilterKind::User => text(&self.user),
            FilterKind::Plain => query.plain.then(String::new).into_iter().collect(),
        }
    }

    /// Whether a value of a filter is chosen. Where nothing is excluded, all content types are.
    pub(super) fn has(&self, kind: FilterKind, value: &str) -> bool {
        match kind {
            FilterKind::In => {
                SWITCHES.iter().any(|(name, types)| *name == value && self.searches(self.types(), types))
            }
            FilterKind::Mode => {
                MODES.iter().any(|(mode, name, _)| *name == value && *mode == self.request.query.mode)
            }
            kind => self.of(kind).iter().any(|known| known == value),
        }
    }

    /// Adds a value of a filter that takes several, or removes it. Sets the value of any other filter.
    pub(super) fn choose(&mut self, kind: FilterKind, value: &str) {
        let mut projects = self.of(FilterKind::Project);
        let query = &mut self.request.query;
        let some = Some(value.to_owned());
        match kind {
            FilterKind::Mode => {
                let found = MODES.iter().find(|(_, name, _)| *name == value);
                query.mode = found.map_or(SearchMode::Hybrid, |(mode, ..)| *mode);
            }
            FilterKind::In => self.switch(value),
            FilterKind::Project => {
                toggle(&mut projects, value);
                self.set_projects(projects);
            }
            FilterKind::Repo => query.filter.repo = some,
            FilterKind::Since => query.filter.since = some,
            FilterKind::Until => query.filter.until = some,
            FilterKind::Role => query.role = value.parse().ok(),
            FilterKind::Tag => toggle(&mut query.filter.tags, value),
            FilterKind::File => toggle(&mut query.files, value),
            FilterKind::Tool => {
                toggle(&mut self.tools, value);
                // Without syntax, a query has no fields.
                query.plain = false;
            }
            _ => {}
        }
    }

    /// Chooses a value as [`Filters::choose`] does, but as the only content type or project.
    pub(super) fn choose_only(&mut self, kind: FilterKind, value: &str) {
        match kind {
            FilterKind::In => {
                if let Some((_, types)) = SWITCHES.iter().find(|(known, _)| *known == value) {
                    self.set_types(types.iter().copied().collect());
                }
            }
            FilterKind::Project => self.set_projects(vec![value.to_owned()]),
            kind => self.choose(kind, value),
        }
    }

    fn set_projects(&mut self, projects: Vec<String>) {
        let mut projects = projects.into_iter();
        let filter = &mut self.request.query.filter;
        filter.project = projects.next();
        filter.projects = projects.collect();
    }

    /// Changes to the next mode.
    pub(super) fn next_mode(&mut self) {
        let at = MODES.iter().position(|(mode, ..)| *mode == self.request.query.mode).unwrap_or(0);
        let next = MODES.get((at + 1) % MODES.len());
        self.request.query.mode = next.map_or(SearchMode::Hybrid, |(mode, ..)| *mode);
    }

    /// Removes a filter. Returns whether it excluded anything.
    pub(super) fn remove(&mut self, kind: FilterKind) -> bool {
        let was_on = !self.of(kind).is_empty();
        let query = &mut self.request.query;
        match kind {
            FilterKind::Mode => query.mode = SearchMode::Hybrid,
            FilterKind::In => query.content_types.clear(),
            FilterKind::Project => self.set_projects(Vec::new()),
            FilterKind::Since => query.filter.since = None,
            FilterKind::Until => query.filter.until = None,
            FilterKind::Tag => query.filter.tags.clear(),
            FilterKind::Tool => self.tools.clear(),
            FilterKind::File => query.files.clear(),
            FilterKind::Role => query.role = None,
            FilterKind::Repo => query.filter.repo = None,
            FilterKind::Session => query.session = None,
            FilterKind::NotSession => query.not_sessions.clear(),
            FilterKind::Bundle => query.filter.bundle = None,
            FilterKind::Source => query.filter.source = None,
            FilterKind::MinTurns => query.filter.min_turns = None,
            FilterKind::MaxTurns => query.filter.max_turns = None,
            FilterKind::MinSimilarity => self.request.min_similarity = None,
            FilterKind::Scope => query.scope = Reach::Own,
            FilterKind::User => return false,
            FilterKind::Plain => query.plain = false,
        }
        was_on
    }

    /// The filters that exclude something, with their values.
    pub(super) fn shown(&self) -> Vec<(FilterKind, String)> {
        let shown = FilterKind::ALL.into_iter().map(|kind| (kind, self.of(kind)));
        shown
            .filter(|(_, values)| !values.is_empty())
            .map(|(kind, values)| (kind, values.join(", ")))
            .collect()
    }

    /// Whether the filters select messages, not only sessions.
    pub(super) fn select_messages(&self) -> bool {
        let query = &self.request.query;
        !self.tools.is_empty() || !query.files.is_empty() || query.role.is_some() || query.session.is_some()
    }

    /// A search for `typed` with these filters.
    pub(super) fn search(&self, typed: &str) -> SearchRequest {
        let mut request = SearchRequest { explain: false, full: false, ..self.request.clone() };
        let field = |name: FieldName, value: &str| {
            let quote = if value.contains(char::is_whitespace) { "\"" } else { "" };
            format!("{name}:{quote}{value}{quote}")
        };
        let mut parts: Vec<String> = self.tools.iter().map(|tool| field(FieldName::Tool, tool)).collect();
        // Only with fields, a query without words finds messages.
        if typed.trim().is_empty() && !request.query.plain {
            parts.extend(request.query.role.take().map(|role| field(FieldName::Role, role.as_str())));
            parts.extend(request.query.session.take().map(|id| field(FieldName::Session, &id)));
        }
        parts.push(typed.to_owned());
        request.query.query = parts.join(" ").trim_end().to_owned();
        request
    }

    /// The newest sessions with these filters.
    pub(super) fn recent(&self, limit: usize) -> SessionsRequest {
        let query = &self.request.query;
        SessionsRequest {
            scope: query.scope,
            filter: query.filter.clone(),
            limit,
            short_ids: true,
            ..SessionsRequest::default()
        }
    }

    fn types(&self) -> ContentTypes {
        let types = self.request.query.content_types.iter();
        let types = types.filter_map(|word| ContentTypes::parse(word).ok());
        types.reduce(ContentTypes::union).unwrap_or_else(ContentTypes::searched)
    }

    fn set_types(&mut self, types: ContentTypes) {
        // Without a filter, these are searched.
        let is_default = types == ContentTypes::searched();
        let names = types.iter().filter(|_| !is_default).map(|one| one.as_str().to_owned());
        self.request.query.content_types = names.collect();
    }

    fn searches(&self, types: ContentTypes, wanted: &[ContentType]) -> bool {
        wanted.iter().any(|one| types.contains(*one))
    }

    /// The names of the content types, unless they are those that are searched by default.
    fn switches(&self) -> Vec<String> {
        let types = self.types();
        if types == ContentTypes::searched() {
            return Vec::new();
        }
        let names = SWITCHES.iter().flat_map(|(name, switched)| {
            let on = switched.iter().filter(|one| types.contains(**one)).map(|one| one.as_str());
            if switched.iter().all(|one| types.contains(*one)) { vec![*name] } else { on.collect() }
        });
        names.map(str::to_owned).collect()
    }

    /// Searches a content type, or does not search it any more. The last one stays.
    fn switch(&mut self, name: &str) {
        let Some((_, switched)) = SWITCHES.iter().find(|(known, _)| *known == name) else { return };
        let types = self.types();
        let kept = types.iter().filter(|one| !switched.contains(one));
        let changed: ContentTypes = if self.searches(types, switched) {
            kept.collect()
        } else {
            kept.chain(switched.iter().copied()).collect()
        };
        if !changed.is_empty() {
            self.set_types(changed);
        }
    }
}

fn toggle(values: &mut Vec<String>, value: &str) {
    let count = values.len();
    values.retain(|known| known != value);
    if values.len() == count {
        values.push(value.to_owned());
    }
}
