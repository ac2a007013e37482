//! Lists to choose from: filters, their values, and completions.

use amplifier_session_api::Reach;

use super::{super::keys::Focus, *};

fn shown(state: &SearchState) -> Vec<String> {
    state.filters.shown().into_iter().map(|(kind, value)| format!("{} {value}", kind.name())).collect()
}

#[test]
fn a_filter_is_chosen_by_typing() {
    let mut state = state().with("dough", found());
    state.act(Action::Filters);
    assert_eq!(state.keys_go_to(), Focus::Picker);
    let expected = ["mode", "in", "project", "since", "until", "tag", "tool", "file", "role", "repo"];
    assert_eq!(state.offered(), expected);
    state.typed("pro");
    assert_eq!((state.offered(), state.query.text()), (vec!["project".to_owned()], "dough".to_owned()));
    state.act(Action::Open);
    assert!(state.picker.as_ref().unwrap().is_loading);
    state.values(&[("-home-mira-bakery", "2 sessions"), ("-home-mira-shop", "1 session")]);
    assert_eq!(state.offered(), ["any", "-home-mira-bakery", "-home-mira-shop"]);
    state.typed("SHOP");
    assert_eq!(state.act(Action::Open), Effect::Debounce);
    assert!(state.picker.is_none());
    assert_eq!(shown(&state), ["project -home-mira-shop"]);
    state.debounced();
    let (_, query) = state.search().unwrap();
    assert_eq!((query.query.as_str(), query.filter.project.as_deref()), ("dough", Some("-home-mira-shop")));
    // The values are read once.
    state.act(Action::Filters);
    state.typed("pro");
    state.act(Action::Open);
    assert_eq!(state.offered(), ["any", "-home-mira-bakery", "-home-mira-shop"]);
    state.act(Action::Open);
    assert!(shown(&state).is_empty(), "any");
}

#[test]
fn filters_narrow_the_recent_sessions_too() {
    let mut state = state().with_recent(recent());
    state.act(Action::Filters);
    state.typed("tag");
    state.act(Action::Open);
    state.values(&[("incident", "3 sessions"), ("on call", "1 session")]);
    state.act(Action::Down);
    assert_eq!(state.act(Action::Open), Effect::None);
    assert_eq!(state.recent_work().unwrap().1.filter.tags, ["incident"]);
}

#[test]
fn a_filter_of_messages_searches_without_a_query() {
    let mut state = state().with_recent(recent());
    state.act(Action::Filters);
    state.typed("tool");
    state.act(Action::Open);
    state.values(&[("bash", "12 uses"), ("read_file", "3 uses")]);
    state.typed("ba");
    state.act(Action::Open);
    state.debounced();
    assert_eq!(state.search().unwrap().1.query, "tool:bash");
}

#[test]
fn dates_and_files_are_typed() {
    let mut state = state().with("dough", found());
    for (filter, value) in [("since", "2026-01-01"), ("file", "src/a b.rs")] {
        state.act(Action::Filters);
        state.typed(filter);
        state.act(Action::Open);
        state.typed(value);
        state.act(Action::Open);
    }
    assert_eq!(shown(&state), ["since 2026-01-01", "file src/a b.rs"]);
    state.act(Action::Filters);
    state.typed("until");
    state.act(Action::Open);
    state.typed("hours");
    state.act(Action::Open);
    assert!(state.status.as_ref().is_some_and(|status| status.contains("hours")), "{:?}", state.status);
    assert!(state.picker.is_some(), "the list stays, so that the date can be corrected");
    assert_eq!(shown(&state).len(), 2);
}

#[test]
fn tab_takes_several_values() {
    let mut state = state().with("dough", found());
    state.act(Action::Filters);
    state.typed("in");
    state.act(Action::Open);
    state.typed("sys");
    state.act(Action::Complete);
    state.act(Action::Clear);
    state.typed("think");
    state.act(Action::Complete);
    assert!(state.picker.is_some());
    assert_eq!(shown(&state), ["in user, assistant, tool, system"]);
    // Enter takes only one.
    state.act(Action::Clear);
    state.typed("user");
    state.act(Action::Open);
    assert_eq!(shown(&state), ["in user"]);
}

#[test]
fn the_user_of_the_command_line_stays() {
    let mut state = state();
    state.filters.set_user(Some("ana".to_owned()));
    let mut state = state.with("dough", found());
    state.act(Action::Filters);
    state.typed("user");
    assert_eq!(state.act(Action::Remove), Effect::None);
    assert_eq!(state.status.as_deref(), Some("--user stays as the command line has it"));
    assert_eq!(shown(&state), ["user ana"]);
}

#[test]
fn filters_of_the_command_line_are_removed() {
    let mut request = SearchRequest::new("");
    request.query.scope = Reach::All;
    request.query.filter.since = Some("2w".to_owned());
    request.query.filter.min_turns = Some(3);
    let mut state = state_of(request).with("dough", found());
    assert_eq!(shown(&state), ["since 2w", "min-turns 3", "scope all"]);
    state.act(Action::Filters);
    assert!(state.offered().ends_with(&["min-turns".to_owned(), "scope".to_owned()]));
    state.typed("since");
    assert_eq!(state.act(Action::Delete), Effect::Debounce);
    assert_eq!(shown(&state), ["min-turns 3", "scope all"]);
    state.act(Action::Clear);
    state.typed("scope");
    // A filter without values to choose from is removed by Enter, too.
    assert_eq!(state.act(Action::Open), Effect::Debounce);
    state.act(Action::Back);
    assert_eq!(state.keys_go_to(), Focus::Search);
    state.debounced();
    let (_, query) = state.search().unwrap();
    assert_eq!((query.scope, query.filter.since, query.filter.min_turns), (Reach::Own, None, Some(3)));
}

#[test]
fn fields_complete() {
    let mut state = state().with_recent(recent());
    state.typed("why ro");
    state.act(Action::Complete);
    assert_eq!(state.query.text(), "why role:");
    state.act(Action::Complete);
    assert_eq!(state.offered(), ["user", "assistant", "tool", "system", "developer"]);
    state.typed("us");
    state.act(Action::Open);
    assert_eq!((state.query.text(), state.picker.is_none()), ("why role:user ".to_owned(), true));
    state.debounced();
    assert_eq!(state.search().unwrap().1.query, "why role:user");
    state.typed("project:ba");
    state.act(Action::Complete);
    state.values(&[("-home-mira-bakery", ""), ("-home-mira-shop", "")]);
    assert_eq!(state.offered(), ["-home-mira-bakery"]);
    state.act(Action::Complete);
    state.typed("tag:");
    state.act(Action::Complete);
    state.values(&[("on call", "")]);
    state.act(Action::Open);
    assert_eq!(state.query.text(), "why role:user project:-home-mira-bakery tag:\"on call\" ");
}

#[test]
fn an_ambiguous_or_unknown_beginning_of_a_field_is_said() {
    let mut state = state().with_recent(recent());
    state.act(Action::Complete);
    assert_eq!(state.offered().len(), 9);
    state.act(Action::Back);
    state.typed("t");
    state.act(Action::Complete);
    assert_eq!(state.offered(), ["tool:", "tag:"]);
    state.act(Action::Down);
    state.act(Action::Open);
    assert_eq!(state.query.text(), "tag:");
    state.act(Action::Clear);
    state.typed("dough");
    state.act(Action::Complete);
    assert_eq!(state.status.as_deref(), Some("no field begins with dough"));
    state.typed(" file:");
    state.act(Action::Complete);
    assert!(state.picker.is_none() && state.status.is_some());
}

#[test]
fn values_that_cannot_be_read_are_an_error_and_can_be_typed() {
    let mut state = state().with("dough", found());
    state.act(Action::Filters);
    state.typed("tag");
    state.act(Action::Open);
    while let Some(work) = state.next_work() {
        if let Work::Values { kind, scope } = work {
            state.answer(WorkAnswer::Values { kind, scope, found: Err("damaged".to_owned()) });
        }
    }
    assert_eq!(state.status.as_deref(), Some("damaged"));
    state.typed("incident");
    state.act(Action::Open);
    assert_eq!(shown(&state), ["tag incident"]);
}
