//! The effects of keys and answers on the state.

use amplifier_session_storage::search::SearchMode;

use super::{super::keys::Focus, *};

#[test]
fn a_search_starts_when_nothing_more_is_typed() {
    let mut state = state();
    assert!(matches!(state.next_work(), Some(Work::Begin)) && state.next_work().is_none());
    assert_eq!(state.typed("dough"), Effect::Debounce);
    assert!(state.is_searching() && state.next_work().is_none());
    state.debounced();
    let (_, query) = state.search().unwrap();
    assert_eq!(query.query, "dough");
    assert!(state.search().is_none());
}

#[test]
fn a_query_with_a_field_is_plain_text() {
    for (typed, is_plain) in [("dough -wet", false), ("role:user dough", true), ("a:b", false)] {
        let mut state = state();
        state.typed(typed);
        state.debounced();
        let (_, query) = state.search().unwrap();
        assert_eq!((query.query.as_str(), query.plain), (typed, is_plain));
    }
}

#[test]
fn an_older_answer_never_replaces_a_newer_one() {
    let mut state = state();
    state.typed("d");
    state.debounced();
    let (first, _) = state.search().unwrap();
    state.typed("ough");
    state.debounced();
    assert!(state.search().is_none(), "one search at a time");
    state.answer(WorkAnswer::Found { number: first, found: Ok(FoundGroups::default()) });
    assert!(state.is_searching());
    let (second, query) = state.search().unwrap();
    assert_eq!(query.query, "dough");
    state.answer(WorkAnswer::Found { number: second, found: Ok(found()) });
    assert!(!state.is_searching());
    state.answer(WorkAnswer::Found { number: first, found: Ok(FoundGroups::default()) });
    assert_eq!(state.selected(), Some("7f3c9a52#0"));
}

#[test]
fn without_a_query_there_are_no_results() {
    let mut state = state().with("dough", found());
    assert_eq!(state.act(Action::Clear), Effect::None);
    assert!(state.selected().is_none() && !state.is_searching() && state.search().is_none());
    state.typed("x");
    state.debounced();
    let (number, _) = state.search().unwrap();
    assert_eq!(state.act(Action::Backspace), Effect::None);
    state.answer(WorkAnswer::Found { number, found: Ok(found()) });
    assert!(state.selected().is_none());
}

#[test]
fn an_error_is_shown_and_the_next_search_runs() {
    let mut state = state().with("dough", found());
    state.typed("s");
    state.debounced();
    let (number, _) = state.search().unwrap();
    state.answer(WorkAnswer::Found { number, found: Err("the store is gone".to_owned()) });
    assert_eq!(state.status.as_deref(), Some("the store is gone"));
    assert_eq!(state.typed("y"), Effect::Debounce);
    assert_eq!(state.status, None);
    state.debounced();
    assert!(state.search().is_some());
}

#[test]
fn arrows_choose_results_across_sessions() {
    let mut state = state().with("dough", found());
    for expected in ["7f3c9a52#3", "7f3c9a52#6", "38e6d1f5#14", "38e6d1f5#14"] {
        state.act(Action::Down);
        assert_eq!(state.selected(), Some(expected));
    }
    assert_eq!(state.focus, Focus::Results);
    state.act(Action::Home);
    assert_eq!(state.selected(), Some("7f3c9a52#0"));
    state.act(Action::Up);
    assert_eq!(state.focus, Focus::Query);
    assert_eq!(state.act(Action::Copy), Effect::Copy("7f3c9a52#0".to_owned()));
}

#[test]
fn a_session_unfolds() {
    let mut state = state().with("dough", found());
    assert_eq!(state.rows().len(), 7);
    state.act(Action::Down);
    state.act(Action::Right);
    assert_eq!(state.rows().len(), 8);
    (0..3).for_each(|_| _ = state.act(Action::Down));
    assert_eq!(state.selected(), Some("7f3c9a52#12"));
    state.act(Action::Left);
    assert_eq!((state.rows().len(), state.selected()), (7, Some("7f3c9a52#6")));
    state.act(Action::End);
    assert_eq!(state.selected(), Some("38e6d1f5#14"));
}

#[test]
fn tab_goes_through_query_results_and_filters() {
    let mut state = state().with("dough", found());
    for expected in [Focus::Results, Focus::Filters, Focus::Query] {
        state.act(Action::Next);
        assert_eq!(state.focus, expected);
    }
    for expected in [Focus::Filters, Focus::Results, Focus::Query] {
        state.act(Action::Previous);
        assert_eq!(state.focus, expected);
    }
    state.act(Action::Clear);
    state.act(Action::Next);
    assert_eq!(state.focus, Focus::Filters);
    assert_eq!(state.act(Action::Back), Effect::None);
    assert_eq!((state.focus, state.act(Action::Back)), (Focus::Query, Effect::Quit));
}

#[test]
fn a_changed_filter_searches_again() {
    let mut state = state().with("dough", found());
    state.act(Action::Previous);
    assert_eq!(state.act(Action::Down), Effect::Debounce);
    state.debounced();
    let (_, query) = state.search().unwrap();
    assert_eq!((query.query.as_str(), query.mode), ("dough", SearchMode::Semantic));
}

#[test]
fn the_preview_is_that_of_the_selected_result() {
    let mut state = state().with("dough", found());
    let Some(Work::Preview { number, sequence, .. }) = state.next_work() else { panic!("no preview") };
    assert_eq!(sequence, 0);
    state.act(Action::Down);
    state.act(Action::Down);
    state.answer(WorkAnswer::Preview { number, found: Ok(vec![message(0, "old")]) });
    let Some(Work::Preview { number, sequence, .. }) = state.next_work() else { panic!("no preview") };
    assert_eq!(sequence, 6);
    state.answer(WorkAnswer::Preview { number, found: Err("gone".to_owned()) });
    assert!(state.preview.is_none() && state.status.is_some());
}

#[test]
fn a_session_opens_at_the_result_and_loads_what_is_read() {
    let look = &state().look;
    let mut state = state().with("dough", found());
    state.found.groups[0].hits[0].sequence = 100;
    state.act(Action::Open);
    state.conversation.as_mut().unwrap().resize(60, 20, look);
    state.read(300);
    let conversation = state.conversation.as_ref().unwrap();
    assert_eq!(conversation.current(), Some(100));
    assert_eq!(conversation.lines().next().unwrap().to_string(), "> #100 user · 2026-01-04 17:40");
    (0..3).for_each(|_| _ = state.act(Action::PreviousMessage));
    assert_eq!(state.act(Action::Copy), Effect::Copy("7f3c9a52#97".to_owned()));
    for _ in 0..20 {
        state.act(Action::PageUp);
        state.read(300);
    }
    assert_eq!(state.conversation.as_ref().unwrap().current(), Some(0));
    for _ in 0..100 {
        state.act(Action::PageDown);
        state.read(300);
    }
    let lines: Vec<String> = state.conversation.as_ref().unwrap().lines().map(ToString::to_string).collect();
    assert_eq!((lines.len(), lines[18].as_str()), (20, "  Line 299 of the dough."));
    state.act(Action::Home);
    state.read(300);
    assert_eq!(state.conversation.as_ref().unwrap().current(), Some(0));
    assert_eq!(state.act(Action::Back), Effect::None);
    assert!(state.conversation.is_none());
    assert_eq!(state.keys_go_to(), Focus::Query);
}

#[test]
fn the_end_of_a_long_session_is_near() {
    let look = &state().look;
    let mut state = state().with("dough", found());
    state.act(Action::Open);
    state.conversation.as_mut().unwrap().resize(60, 20, look);
    state.read(100_000);
    state.act(Action::End);
    state.read(100_000);
    let conversation = state.conversation.as_ref().unwrap();
    assert!(conversation.current().is_some_and(|current| current > 99_990));
    assert_eq!(conversation.lines().count(), 20);
}

#[test]
fn messages_of_a_session_that_was_left_are_ignored() {
    let mut state = state().with("dough", found());
    state.act(Action::Open);
    let Some(Work::Messages { opened, range, .. }) = state.next_work() else { panic!("no messages") };
    state.act(Action::Back);
    state.act(Action::Open);
    state.answer(WorkAnswer::Messages { opened, range, found: Ok((1, vec![message(0, "x")])) });
    assert!(state.conversation.as_ref().unwrap().is_loading());
}

#[test]
fn a_session_that_cannot_be_read_says_so() {
    let mut state = state().with("dough", found());
    state.act(Action::Open);
    let Some(Work::Messages { opened, range, .. }) = state.next_work() else { panic!("no messages") };
    state.answer(WorkAnswer::Messages { opened, range, found: Err("damaged".to_owned()) });
    assert_eq!(state.status.as_deref(), Some("damaged"));
    assert!(!matches!(state.next_work(), Some(Work::Messages { .. })), "not again and again");
}
