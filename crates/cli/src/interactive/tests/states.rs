//! The effects of keys and answers on the query and the results.

use amplifier_session_storage::search::SearchMode;

use super::{super::keys::Focus, *};

#[test]
fn recent_sessions_are_listed_at_once() {
    let mut state = state();
    let (number, request) = state.recent_work().unwrap();
    assert_eq!((request.limit, request.short_ids), (30, true));
    state.list_answer(number, recent());
    assert_eq!(state.selected_address(), Some("7f3c9a52"));
    assert!(!state.is_searching() && !state.is_store_empty());
    state.act(Action::Down);
    state.act(Action::Open);
    assert_eq!(state.conversation.as_ref().unwrap().short, "38e6d1f5");
}

#[test]
fn a_search_starts_when_nothing_more_is_typed() {
    let mut state = state().with_recent(recent());
    assert_eq!(state.typed("dough"), Effect::Debounce);
    assert!(state.is_searching() && state.search().is_none());
    state.debounced();
    let (_, query) = state.search().unwrap();
    assert_eq!(query.query, "dough");
    assert!(state.search().is_none());
}

#[test]
fn a_query_is_searched_for_with_its_syntax() {
    let typed = "role:user tool:bash file:x after:2026-01-01 \"a phrase\" -word";
    let mut state = state().with(typed, FoundGroups::default());
    state.typed(" s");
    state.debounced();
    let (_, query) = state.search().unwrap();
    assert_eq!((query.query, query.plain), (format!("{typed} s"), false));
    let mut plain = SearchRequest::new("");
    plain.query.plain = true;
    let mut state = state_of(plain).with_recent(recent());
    state.typed("role:user");
    state.debounced();
    assert!(state.search().unwrap().1.plain);
}

#[test]
fn typing_goes_to_the_query_whatever_is_selected() {
    let mut state = state().with("dough", found());
    state.repeated(2, &Action::Down);
    assert_eq!(state.keys_go_to(), Focus::Search);
    assert_eq!(state.typed("/yq"), Effect::Debounce);
    assert_eq!(state.query.text(), "dough/yq");
}

#[test]
fn an_older_answer_never_replaces_a_newer_one() {
    let mut state = state().with_recent(recent());
    state.typed("d");
    state.debounced();
    let (first, _) = state.search().unwrap();
    state.typed("ough");
    state.debounced();
    assert!(state.search().is_none(), "one search at a time");
    state.list_answer(first, FoundGroups::default());
    assert!(state.is_searching());
    let (second, query) = state.search().unwrap();
    assert_eq!(query.query, "dough");
    state.list_answer(second, found());
    assert!(!state.is_searching());
    state.list_answer(first, FoundGroups::default());
    assert_eq!(state.selected_address(), Some("7f3c9a52#0"));
}

#[test]
fn without_a_query_the_recent_sessions_come_back() {
    let mut state = state().with("dough", found());
    assert_eq!(state.act(Action::Clear), Effect::None);
    let (number, _) = state.recent_work().unwrap();
    state.list_answer(number, recent());
    assert_eq!(state.selected_address(), Some("7f3c9a52"));
    assert_eq!(state.act(Action::Clear), Effect::None);
    assert!(state.recent_work().is_none(), "nothing was typed");
}

#[test]
fn an_error_is_shown_and_the_next_search_runs() {
    let mut state = state().with("dough", found());
    state.typed("s");
    state.debounced();
    let (number, _) = state.search().unwrap();
    state.answer(WorkAnswer::List { number, found: Err("the store is gone".to_owned()) });
    assert_eq!(state.error.as_deref(), Some("the store is gone"));
    assert!(state.list.is_empty());
    assert_eq!(state.typed("y"), Effect::Debounce);
    state.debounced();
    let (number, _) = state.search().unwrap();
    state.list_answer(number, found());
    assert_eq!(state.error, None);
}

#[test]
fn arrows_choose_results_across_sessions() {
    let mut state = state().with("dough", found());
    for expected in [Some("7f3c9a52#3"), Some("7f3c9a52#6"), None, Some("38e6d1f5#14"), Some("38e6d1f5#14")] {
        state.act(Action::Down);
        assert_eq!(state.selected_address(), expected);
    }
    state.act(Action::First);
    assert_eq!(state.selected_address(), Some("7f3c9a52#0"));
    state.act(Action::PageDown);
    assert_eq!(state.selected_address(), Some("38e6d1f5#14"));
    state.act(Action::PageUp);
    state.act(Action::Last);
    assert_eq!(state.selected_address(), Some("38e6d1f5#14"));
}

#[test]
fn enter_shows_the_further_results_of_a_session() {
    let mut state = state().with("dough", found());
    assert_eq!(state.list.rows().len(), 7);
    state.repeated(3, &Action::Down);
    state.act(Action::Open);
    assert_eq!((state.list.rows().len(), state.selected_address()), (8, Some("7f3c9a52#9")));
    assert!(state.conversation.is_none());
    state.act(Action::Down);
    assert_eq!(state.selected_address(), Some("7f3c9a52#12"));
}

#[test]
fn the_end_of_the_list_brings_more_sessions() {
    let mut state = state().with("dough", FoundGroups { has_more: true, ..found() });
    state.act(Action::Down);
    assert!(state.search().is_none());
    state.act(Action::Last);
    let (number, request) = state.search_work().unwrap();
    assert_eq!((request.limit, request.by_session), (60, true));
    // The best sessions may have another order now, but the list does not move.
    let mut further = found();
    further.groups.reverse();
    further.groups.push(group("55aa55aa", "Third", vec![hit("55aa55aa", 1, "user", "dough")]));
    state.list_answer(number, further);
    let listed: Vec<&str> = state.list.found.groups.iter().map(|group| group.short.as_str()).collect();
    assert_eq!(listed, ["7f3c9a52", "38e6d1f5", "55aa55aa"]);
    assert_eq!(state.selected_address(), Some("38e6d1f5#14"));
    state.act(Action::Last);
    assert_eq!(state.selected_address(), Some("55aa55aa#1"));
    assert!(state.search().is_none(), "there are no more");
    // The next query begins with few sessions.
    state.typed("s");
    state.debounced();
    assert_eq!(state.search_work().unwrap().1.limit, 30);
}

#[test]
fn recent_sessions_go_on_too() {
    let mut state = state().with_recent(FoundGroups { has_more: true, ..recent() });
    state.act(Action::Last);
    assert_eq!(state.recent_work().unwrap().1.limit, 60);
}

#[test]
fn the_chosen_address_is_printed_at_the_end() {
    let quit = |address: &str| Effect::Quit(Some(address.to_owned()));
    // Nothing was chosen or searched for.
    assert_eq!(state().with_recent(recent()).act(Action::Back), Effect::Quit(None));
    let mut state = super::state().with_recent(recent());
    state.act(Action::Down);
    assert_eq!(state.act(Action::Back), quit("38e6d1f5"));
    let mut state = super::state().with("dough", found());
    assert_eq!(state.act(Action::Back), quit("7f3c9a52#0"));
    state.act(Action::Down);
    assert_eq!(state.act(Action::Back), quit("7f3c9a52#3"));
    state.act(Action::Open);
    state.conversation.as_mut().unwrap().resize(60, 20, &super::state().look);
    state.read(100);
    state.repeated(2, &Action::NextMessage);
    assert_eq!(state.act(Action::Back), Effect::None);
    assert_eq!(state.act(Action::Back), quit("7f3c9a52#5"));
    assert_eq!(state.act(Action::Quit), Effect::Quit(None));
}

#[test]
fn the_mode_changes_and_searches_again() {
    let mut state = state().with("dough", found());
    assert_eq!(state.act(Action::Mode), Effect::Debounce);
    state.debounced();
    let (_, query) = state.search().unwrap();
    assert_eq!((query.query.as_str(), query.mode), ("dough", SearchMode::Semantic));
}

#[test]
fn the_preview_is_that_of_the_selected_result() {
    let mut state = state().with("dough", found());
    let Some(Work::Preview { number, sequence, .. }) = state.next_work() else { panic!("no preview") };
    assert_eq!(sequence, 0);
    state.repeated(2, &Action::Down);
    state.answer(WorkAnswer::Preview { number, found: Ok(vec![message(0, "old")]) });
    let Some(Work::Preview { number, sequence, .. }) = state.next_work() else { panic!("no preview") };
    assert_eq!(sequence, 6);
    state.answer(WorkAnswer::Preview { number, found: Err("gone".to_owned()) });
    assert!(state.preview.is_none() && state.status.is_some());
}

#[test]
fn text_address_and_commands_are_copied() {
    let mut state = state().with("dough", found());
    state.act(Action::Copy);
    assert_eq!(state.keys_go_to(), Focus::Copying);
    state.typed("t");
    assert_eq!(state.status.as_deref(), Some("the message is not read yet"));
    let mut state = state.with_preview(vec![message(0, "Too  wet.\n\n  Add flour."), message(1, "no")]);
    state.act(Action::Copy);
    let copied = Effect::Copy("Too  wet.\n\n  Add flour.".to_owned(), "the text of 7f3c9a52#0".to_owned());
    assert_eq!(state.typed("t"), copied);
    state.act(Action::Copy);
    let address = "7f3c9a52#0".to_owned();
    assert_eq!(state.typed("a"), Effect::Copy(address.clone(), address));
    state.act(Action::Copy);
    assert_eq!(state.typed("c"), Effect::None);
    assert_eq!(state.status.as_deref(), Some("7f3c9a52#0 runs no command"));
    state.act(Action::Copy);
    assert_eq!((state.act(Action::Back), state.keys_go_to()), (Effect::None, Focus::Search));
    let calls = serde_json::json!([{"id": "1", "tool": "bash", "arguments": {"command": "ls -l \\\n  a"}}]);
    let mut state = state.with("s", found()).with_preview(vec![message_with_calls(0, calls)]);
    state.act(Action::Copy);
    let copied = Effect::Copy("ls -l \\\n  a".to_owned(), "the command of 7f3c9a52#0".to_owned());
    assert_eq!(state.typed("c"), copied);
}

#[test]
fn without_a_message_nothing_is_copied_or_edited() {
    let mut state = state().with("xyzzy", FoundGroups::default());
    for action in [Action::Copy, Action::Edit] {
        assert_eq!(state.act(action), Effect::None);
        assert_eq!(state.status.as_deref(), Some("no message is chosen"));
    }
    assert_eq!(state.keys_go_to(), Focus::Search);
}

#[test]
fn a_message_opens_in_an_editor() {
    let mut state = state().with("dough", found());
    assert_eq!(state.act(Action::Edit), Effect::None);
    let mut state = state.with_preview(vec![message(0, "Too  wet.")]);
    let edit = Effect::Edit { address: "7f3c9a52#0".to_owned(), text: "Too  wet.".to_owned() };
    assert_eq!(state.act(Action::Edit), edit);
    // The preview of another message is not the selected one.
    state.act(Action::Down);
    assert_eq!(state.act(Action::Edit), Effect::None);
}

#[test]
fn help_is_a_question_mark_without_a_query_and_f1_always() {
    let mut state = state().with_recent(recent());
    state.typed("?");
    assert_eq!((state.keys_go_to(), state.query.text()), (Focus::Help, String::new()));
    state.act(Action::Back);
    assert_eq!(state.keys_go_to(), Focus::Search);
    state.typed("why?");
    assert_eq!((state.help, state.query.text()), (None, "why?".to_owned()));
    state.act(Action::Help);
    state.act(Action::Down);
    assert_eq!(state.help, Some(1));
    // Typing goes on.
    state.typed("x");
    assert_eq!((state.help, state.query.text()), (None, "why?x".to_owned()));
}
