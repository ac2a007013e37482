//! Reading an opened session.

use super::{super::keys::Focus, *};

/// A session of `total` messages that is opened at message 100, with further hits.
fn opened(total: u32, hits: Vec<u32>) -> SearchState {
    let mut state = state().with("dough", found());
    state.list.found.groups[0].hits.truncate(1);
    state.list.found.groups[0].hits[0].sequence = 100;
    state.act(Action::Open);
    state.conversation.as_mut().unwrap().resize(60, 20, &super::state().look);
    let mut requested = None;
    while let Some(work) = state.next_work() {
        match work {
            Work::Hits { opened, request } => requested = Some((opened, request)),
            Work::Messages { opened, range, .. } => {
                let messages = range.clone().take_while(|sequence| *sequence < total);
                let messages = messages.map(|n| message(n, &format!("Line {n} of the dough."))).collect();
                state.answer(WorkAnswer::Messages { opened, range, found: Ok((total, messages)) });
            }
            _ => {}
        }
    }
    let (opened, request) = requested.unwrap();
    assert_eq!((request.query.query.as_str(), request.query.session.as_deref()), ("dough", Some("7f3c9a52")));
    assert!(!request.by_session && request.limit > 100);
    state.answer(WorkAnswer::Hits { opened, found: Ok(hits) });
    state.read(total);
    state
}

fn current(state: &SearchState) -> Option<u32> {
    state.conversation.as_ref().unwrap().current()
}

#[test]
fn a_session_opens_at_the_result_and_loads_what_is_read() {
    let mut state = opened(300, Vec::new());
    let conversation = state.conversation.as_ref().unwrap();
    assert_eq!(conversation.current(), Some(100));
    assert_eq!(conversation.lines().next().unwrap().to_string(), "> #100 user · 2026-01-04 17:40");
    state.repeated(3, &Action::PreviousMessage);
    assert_eq!(current(&state), Some(97));
    for _ in 0..20 {
        state.act(Action::PageUp);
        state.read(300);
    }
    assert_eq!(current(&state), Some(0));
    for _ in 0..100 {
        state.act(Action::PageDown);
        state.read(300);
    }
    let lines: Vec<String> = state.conversation.as_ref().unwrap().lines().map(ToString::to_string).collect();
    assert_eq!((lines.len(), lines[18].as_str()), (20, "  Line 299 of the dough."));
    state.act(Action::End);
    assert_eq!(current(&state), Some(299), "not the first one on the last screen");
    state.act(Action::Home);
    state.read(300);
    assert_eq!(current(&state), Some(0));
    assert_eq!(state.act(Action::Back), Effect::None);
    assert!(state.conversation.is_none());
    assert_eq!(state.keys_go_to(), Focus::Search);
}

#[test]
fn hits_follow_each_other_wherever_they_are() {
    let mut state = opened(300, vec![299, 2, 100, 110, 298]);
    let at = |state: &SearchState| state.conversation.as_ref().unwrap().hit();
    assert_eq!(at(&state), Some((2, 5)));
    for expected in [110, 298, 299] {
        state.act(Action::NextHit);
        state.read(300);
        assert_eq!(current(&state), Some(expected));
    }
    // Both are on the last screen, and yet one is the current one.
    assert_eq!(at(&state), Some((5, 5)));
    state.act(Action::Copy);
    let address = "7f3c9a52#299".to_owned();
    assert_eq!(state.typed("y"), Effect::Copy(address.clone(), address));
    state.act(Action::NextHit);
    assert_eq!(state.status.as_deref(), Some("no further hit in this session"));
    for expected in [298, 110, 100, 2] {
        state.act(Action::PreviousHit);
        state.read(300);
        assert_eq!(current(&state), Some(expected));
    }
    state.act(Action::PreviousHit);
    assert_eq!(state.status.as_deref(), Some("no earlier hit in this session"));
    let lines: Vec<String> = state.conversation.as_ref().unwrap().lines().map(ToString::to_string).collect();
    assert!(lines[0].starts_with("> #2 ") && lines[3].starts_with("#3 "), "{lines:?}");
    // From a place between hits.
    state.repeated(3, &Action::NextMessage);
    state.act(Action::PreviousHit);
    assert_eq!(current(&state), Some(2));
}

#[test]
fn by_meaning_the_hits_are_those_of_the_list() {
    let mut state = state().with("dough", found());
    state.act(Action::Mode);
    state.debounced();
    let (number, _) = state.search().unwrap();
    state.list_answer(number, found());
    state.act(Action::Open);
    state.conversation.as_mut().unwrap().resize(60, 20, &super::state().look);
    assert!(state.hits_wanted.is_none());
    state.read(300);
    assert_eq!(state.conversation.as_ref().unwrap().hit(), Some((1, 5)));
}

#[test]
fn a_recent_session_has_no_hits_to_find() {
    let mut state = state().with_recent(recent());
    state.act(Action::Open);
    assert!(matches!(state.next_work(), Some(Work::Messages { .. })));
    assert!(!matches!(state.next_work(), Some(Work::Hits { .. })));
}

#[test]
fn the_end_of_a_long_session_is_near() {
    let mut state = opened(100_000, Vec::new());
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
    state.answer(WorkAnswer::Hits { opened, found: Ok(vec![5]) });
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

#[test]
fn a_slash_goes_back_to_the_query() {
    let mut state = opened(20, Vec::new());
    state.act(Action::Search);
    assert_eq!(state.keys_go_to(), Focus::Search);
    state.typed("s");
    assert_eq!(state.query.text(), "doughs");
}
