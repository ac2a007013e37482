//! Tests of the filters.

use amplifier_session_api::{Reach, operations::search::SearchRequest, query::QueryRequest};
use amplifier_session_storage::{model::Role, search::SearchMode};

use super::super::filters::{FilterKind, Filters};

fn shown(filters: &Filters) -> Vec<String> {
    filters.shown().into_iter().map(|(kind, value)| format!("{} {value}", kind.name())).collect()
}

#[test]
fn filters_of_the_command_line_are_shown_and_can_be_removed() {
    let mut request = SearchRequest::new("");
    request.query.mode = SearchMode::FullText;
    request.query.scope = Reach::All;
    request.query.content_types = vec!["tool_output".to_owned(), "tool_call".to_owned()];
    request.query.filter.project = Some("~/shop".to_owned());
    request.query.filter.projects = vec!["bakery".to_owned()];
    request.query.filter.since = Some("2w".to_owned());
    request.query.filter.tags = vec!["incident".to_owned(), "done".to_owned()];
    request.query.plain = true;
    let mut filters = Filters::new(request.clone());
    let expected = [
        "mode full-text",
        "in tool",
        "project ~/shop, bakery",
        "since 2w",
        "tag incident, done",
        "scope all",
        "plain ",
    ];
    assert_eq!(shown(&filters), expected);
    request.query.query = "x".to_owned();
    assert_eq!(filters.search("x"), request);
    for kind in FilterKind::ALL {
        assert_eq!(FilterKind::named(kind.name()), Some(kind));
        filters.remove(kind);
        assert!(!filters.remove(kind));
    }
    assert_eq!((shown(&filters), filters.search("x")), (Vec::new(), SearchRequest::new("x")));
}

#[test]
fn each_filter_changes_the_search() {
    let mut filters = Filters::new(SearchRequest::new(""));
    for (kind, value) in [
        (FilterKind::Mode, "semantic"),
        (FilterKind::Project, "shop"),
        (FilterKind::Since, "7d"),
        (FilterKind::Until, "today"),
        (FilterKind::Tag, "on call"),
        (FilterKind::Tool, "bash"),
        (FilterKind::File, "src/a.rs"),
        (FilterKind::Role, "user"),
        (FilterKind::Repo, "example.org/shop"),
    ] {
        assert!(!filters.has(kind, value));
        filters.choose(kind, value);
        assert!(filters.has(kind, value), "{}", kind.name());
    }
    let QueryRequest { query, mode, filter, files, role, .. } = filters.search("\"a b\" -c").query;
    assert_eq!(
        (query.as_str(), mode, role),
        ("tool:bash \"a b\" -c", SearchMode::Semantic, Some(Role::User))
    );
    assert_eq!((filter.since.as_deref(), filter.until.as_deref()), (Some("7d"), Some("today")));
    assert_eq!((filter.tags, files), (vec!["on call".to_owned()], vec!["src/a.rs".to_owned()]));
    assert_eq!(filters.recent(30).filter.project.as_deref(), Some("shop"));
    filters.choose(FilterKind::Tag, "on call");
    assert!(!filters.has(FilterKind::Tag, "on call"));
}

#[test]
fn without_words_roles_and_sessions_become_fields() {
    let mut filters = Filters::new(SearchRequest::new(""));
    assert!(!filters.select_messages());
    filters.choose(FilterKind::Role, "user");
    let query = filters.search(" ").query;
    assert_eq!((query.query.as_str(), query.role), ("role:user", None));
    assert!(filters.select_messages());
}

#[test]
fn content_types_are_switched_and_the_last_one_stays() {
    let mut filters = Filters::new(SearchRequest::new(""));
    let types = |filters: &Filters| filters.search("x").query.content_types;
    assert!(filters.has(FilterKind::In, "thinking") && !filters.has(FilterKind::In, "system"));
    filters.choose(FilterKind::In, "thinking");
    assert_eq!(types(&filters), ["user_query", "assistant_response", "tool_output", "tool_call"]);
    filters.choose(FilterKind::In, "thinking");
    assert!(types(&filters).is_empty(), "all that are searched by default");
    filters.choose_only(FilterKind::In, "system");
    assert_eq!((types(&filters), shown(&filters)), (vec!["system".to_owned()], vec!["in system".to_owned()]));
    filters.choose(FilterKind::In, "system");
    assert_eq!(types(&filters), ["system"]);
}

#[test]
fn modes_follow_each_other() {
    let mut filters = Filters::new(SearchRequest::new(""));
    for expected in ["mode semantic", "mode full-text"] {
        filters.next_mode();
        assert_eq!(shown(&filters), [expected]);
    }
    filters.next_mode();
    assert!(shown(&filters).is_empty());
}

#[test]
fn a_part_of_the_tool_content_types_has_its_own_name() {
    let mut request = SearchRequest::new("");
    request.query.content_types = vec!["tool_call".to_owned(), "user".to_owned()];
    assert_eq!(shown(&Filters::new(request)), ["in user, tool_call"]);
}

#[test]
fn several_projects_can_be_chosen_or_only_one() {
    let mut filters = Filters::new(SearchRequest::new(""));
    for project in ["shop", "bakery", "garden", "shop"] {
        filters.choose(FilterKind::Project, project);
    }
    assert_eq!(shown(&filters), ["project bakery, garden"]);
    let filter = filters.recent(30).filter;
    assert_eq!((filter.project.as_deref(), filter.projects), (Some("bakery"), vec!["garden".to_owned()]));
    filters.choose_only(FilterKind::Project, "shop");
    assert_eq!(shown(&filters), ["project shop"]);
    assert!(filters.remove(FilterKind::Project) && shown(&filters).is_empty());
}

#[test]
fn the_user_is_shown_and_stays() {
    let mut filters = Filters::new(SearchRequest::new(""));
    filters.set_user(Some("ana".to_owned()));
    assert!(!filters.remove(FilterKind::User));
    assert_eq!(shown(&filters), ["user ana"]);
}
