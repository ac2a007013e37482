//! The filters of the interactive search: mode, content types and project.

use amplifier_session_api::operations::search::SearchRequest;
use amplifier_session_storage::{
    model::{ContentType, ContentTypes, ProjectSlug},
    search::{SearchMode, SearchOptions},
};

use crate::render::text::one_line;

const MODES: [(SearchMode, &str); 3] =
    [(SearchMode::Hybrid, "hybrid"), (SearchMode::Semantic, "semantic"), (SearchMode::FullText, "full-text")];

/// The switches for content types, and what each one selects.
const SWITCHES: [(&str, &[ContentType]); 5] = [
    ("user", &[ContentType::UserQuery]),
    ("assistant", &[ContentType::AssistantResponse]),
    ("thinking", &[ContentType::AssistantThinking]),
    ("tools", &[ContentType::ToolCall, ContentType::ToolOutput]),
    ("system", &[ContentType::System]),
];

/// The position of the project among the filters: after the mode and the switches.
const PROJECT: usize = 1 + SWITCHES.len();

/// The filters, and the one that the keys change.
#[derive(Debug)]
pub(super) struct Filters {
    mode: usize,
    content_types: ContentTypes,
    projects: Vec<ProjectSlug>,
    project: Option<ProjectSlug>,
    /// The project of the command line.
    given: Option<ProjectSlug>,
    at: usize,
}

/// A filter as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FilterLabel {
    pub(super) text: String,
    /// Whether it excludes something or is switched on.
    pub(super) is_on: bool,
    /// Whether it may be cut at its start.
    pub(super) is_long: bool,
}

impl Filters {
    /// The filters of the command line.
    pub(super) fn of(options: &SearchOptions) -> Self {
        Self {
            mode: MODES.iter().position(|(mode, _)| *mode == options.mode).unwrap_or(0),
            content_types: options.content_types,
            projects: options.filter.sessions.project.iter().cloned().collect(),
            project: options.filter.sessions.project.clone(),
            given: options.filter.sessions.project.clone(),
            at: 0,
        }
    }

    /// The projects to choose from.
    pub(super) fn offer(&mut self, projects: Vec<ProjectSlug>) {
        self.projects = projects;
    }

    /// The request of the command line with these filters.
    pub(super) fn apply(&self, mut request: SearchRequest) -> SearchRequest {
        let query = &mut request.query;
        query.mode = MODES.get(self.mode).map_or(SearchMode::Hybrid, |(mode, _)| *mode);
        query.content_types = self.content_types.iter().map(|one| one.as_str().to_owned()).collect();
        // A typed folder says more than its project: other folders may have the same one.
        if self.project != self.given {
            query.filter.project = self.project.as_ref().map(ToString::to_string);
        }
        request
    }

    /// The number of the filter that the keys change.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn next(&mut self) {
        self.at = (self.at + 1) % (PROJECT + 1);
    }

    pub(super) fn previous(&mut self) {
        self.at = (self.at + PROJECT) % (PROJECT + 1);
    }

    /// Changes the current filter: to the next value, or to the previous one. Returns whether it changed.
    pub(super) fn change(&mut self, is_forward: bool) -> bool {
        match self.at {
            0 => self.mode = stepped(self.mode, MODES.len(), is_forward),
            PROJECT => {
                let now = self.projects.iter().position(|project| Some(project) == self.project.as_ref());
                let next = stepped(now.map_or(0, |at| at + 1), self.projects.len() + 1, is_forward);
                self.project = next.checked_sub(1).and_then(|at| self.projects.get(at)).cloned();
                return !self.projects.is_empty();
            }
            at => {
                let Some((_, types)) = SWITCHES.get(at - 1) else { return false };
                let is_on = types.iter().any(|one| self.content_types.contains(*one));
                let kept = self.content_types.iter().filter(|one| !types.contains(one));
                let changed: ContentTypes =
                    if is_on { kept.collect() } else { kept.chain(types.iter().copied()).collect() };
                // At least one content type must be searched.
                if changed.is_empty() {
                    return false;
                }
                self.content_types = changed;
            }
        }
        true
    }

    /// All filters, in their order.
    pub(super) fn shown(&self) -> Vec<FilterLabel> {
        let mode = MODES.get(self.mode).map_or("", |(_, name)| *name);
        let switch = |(name, types): &(&str, &[ContentType])| {
            let is_on = types.iter().any(|one| self.content_types.contains(*one));
            FilterLabel { text: format!("[{}]{name}", if is_on { 'x' } else { ' ' }), is_on, is_long: false }
        };
        let project = match &self.project {
            Some(project) => FilterLabel { text: one_line(project.as_str()), is_on: true, is_long: true },
            None => FilterLabel { text: "all projects".to_owned(), is_on: true, is_long: false },
        };
        let mode = FilterLabel { text: format!("mode {mode}"), is_on: true, is_long: false };
        std::iter::once(mode).chain(SWITCHES.iter().map(switch)).chain([project]).collect()
    }
}

fn stepped(at: usize, count: usize, is_forward: bool) -> usize {
    if is_forward { (at + 1) % count } else { (at + count - 1) % count }
}

#[cfg(test)]
mod tests {
    use amplifier_session_api::query::QueryRequest;

    use super::*;

    fn types(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn texts(filters: &Filters) -> Vec<String> {
        filters.shown().into_iter().map(|shown| shown.text).collect()
    }

    fn applied(filters: &Filters) -> QueryRequest {
        filters.apply(SearchRequest::new("x")).query
    }

    #[test]
    fn filters_begin_with_those_of_the_command_line() {
        let options = SearchOptions::new("").with_mode(SearchMode::FullText);
        let mut options = options.with_content_types(ContentTypes::parse("tool").unwrap());
        options.filter.sessions.project = ProjectSlug::new("-home-ana-shop").ok();
        let filters = Filters::of(&options);
        let expected = ["mode full-text", "[ ]user", "[ ]assistant", "[ ]thinking", "[x]tools", "[ ]system"];
        assert_eq!(texts(&filters), [&expected[..], &["-home-ana-shop"]].concat());
        let mut request = SearchRequest::new("x");
        request.query.filter.project = Some("~/shop".to_owned());
        let QueryRequest { mode, content_types, filter, .. } = filters.apply(request).query;
        assert_eq!((mode, content_types), (SearchMode::FullText, types(&["tool_output", "tool_call"])));
        assert_eq!(filter.project.as_deref(), Some("~/shop"));
    }

    #[test]
    fn each_filter_changes_the_search() {
        let mut filters = Filters::of(&SearchOptions::new(""));
        assert!(filters.change(true));
        assert_eq!(applied(&filters).mode, SearchMode::Semantic);
        assert!(filters.change(false) && filters.change(false));
        assert_eq!(applied(&filters).mode, SearchMode::FullText);
        for _ in 0..4 {
            filters.next();
        }
        assert!(filters.change(true));
        let expected = types(&["user_query", "assistant_response", "assistant_thinking"]);
        assert_eq!(applied(&filters).content_types, expected);
        filters.next();
        assert!(filters.change(true));
        assert_eq!(applied(&filters).content_types, [&expected[..], &types(&["system"])].concat());
        filters.next();
        assert!(!filters.change(true), "no project to choose from");
        filters.offer(["a", "b"].map(|slug| ProjectSlug::new(slug).unwrap()).to_vec());
        let mut projects = Vec::new();
        for _ in 0..3 {
            assert!(filters.change(true));
            projects.push((texts(&filters).pop().unwrap(), applied(&filters).filter.project));
        }
        let chosen = |slug: &str| (slug.to_owned(), Some(slug.to_owned()));
        assert_eq!(projects, [chosen("a"), chosen("b"), ("all projects".to_owned(), None)]);
        filters.next();
        filters.previous();
        assert_eq!(filters.at(), PROJECT);
    }

    #[test]
    fn the_last_content_type_stays_on() {
        let options = SearchOptions::new("").with_content_types(ContentTypes::parse("user").unwrap());
        let mut filters = Filters::of(&options);
        filters.next();
        assert!(!filters.change(true));
        assert_eq!(applied(&filters).content_types, types(&["user_query"]));
    }
}
