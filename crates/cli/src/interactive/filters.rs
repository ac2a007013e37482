//! The filters of the interactive search: mode, content types and project.

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
            at: 0,
        }
    }

    /// The projects to choose from.
    pub(super) fn offer(&mut self, projects: Vec<ProjectSlug>) {
        self.projects = projects;
    }

    /// `options` with these filters.
    pub(super) fn apply(&self, mut options: SearchOptions) -> SearchOptions {
        options.filter.sessions.project.clone_from(&self.project);
        let mode = MODES.get(self.mode).map_or(SearchMode::Hybrid, |(mode, _)| *mode);
        options.with_mode(mode).with_content_types(self.content_types)
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
    use super::*;

    fn texts(filters: &Filters) -> Vec<String> {
        filters.shown().into_iter().map(|shown| shown.text).collect()
    }

    fn applied(filters: &Filters) -> SearchOptions {
        filters.apply(SearchOptions::new("x"))
    }

    #[test]
    fn filters_begin_with_those_of_the_command_line() {
        let options = SearchOptions::new("").with_mode(SearchMode::FullText);
        let mut options = options.with_content_types(ContentTypes::parse("tool").unwrap());
        options.filter.sessions.project = ProjectSlug::new("-home-ana-shop").ok();
        let filters = Filters::of(&options);
        let expected = ["mode full-text", "[ ]user", "[ ]assistant", "[ ]thinking", "[x]tools", "[ ]system"];
        assert_eq!(texts(&filters), [&expected[..], &["-home-ana-shop"]].concat());
        options.query = "x".into();
        assert_eq!(applied(&filters), options);
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
        let types = applied(&filters).content_types;
        assert!(!types.contains(ContentType::ToolCall) && !types.contains(ContentType::ToolOutput));
        filters.next();
        assert!(filters.change(true));
        assert!(applied(&filters).content_types.contains(ContentType::System));
        filters.next();
        assert!(!filters.change(true), "no project to choose from");
        filters.offer(["a", "b"].map(|slug| ProjectSlug::new(slug).unwrap()).to_vec());
        let mut projects = Vec::new();
        for _ in 0..3 {
            assert!(filters.change(true));
            projects.push(texts(&filters).pop().unwrap());
        }
        assert_eq!(projects, ["a", "b", "all projects"]);
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
        assert!(applied(&filters).content_types.contains(ContentType::UserQuery));
    }
}
