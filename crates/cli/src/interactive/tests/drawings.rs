//! The appearance of the interactive search.

use ratatui::{Terminal, backend::TestBackend, style::Modifier};
use unicode_width::UnicodeWidthStr as _;

use super::{super::draw::draw, *};

/// Draws until everything that drawing asks for is there.
fn drawn(state: &mut SearchState, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    for _ in 0..2 {
        terminal.draw(|frame| draw(frame, state)).unwrap();
        state.read(40);
    }
    terminal.draw(|frame| draw(frame, state)).unwrap();
    terminal
}

/// The text on the screen, without the spaces at the ends of lines.
fn text(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(buffer.area.width.into()).map(|row| {
        let (mut line, mut hidden) = (String::new(), 0);
        for cell in row {
            if hidden == 0 {
                line.push_str(cell.symbol());
                hidden = cell.symbol().width().max(1);
            }
            hidden -= 1;
        }
        line.trim_end().to_owned()
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn check(name: &str, state: &mut SearchState, width: u16, height: u16) {
    let terminal = drawn(state, width, height);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, text(&terminal));
    });
}

fn neighbours() -> Vec<MessageView> {
    let long = "The crumb was dense, the crust pale, and nobody in the bakery knew why. ".repeat(3);
    vec![
        message(0, "Why does the dough stick to everything? The flour is the same as last week."),
        message(
            1,
            &format!("{long}\n\n```\nhydration = 0.82  # wet\n```\nSo the *dough* is too wet: 日本語."),
        ),
        message(2, "Thanks\u{1b}[31m!\u{202e}"),
    ]
}

fn with_results() -> SearchState {
    state().with("dough", found()).with_preview(neighbours())
}

#[test]
fn results() {
    check("results_80", &mut with_results(), 80, 24);
    check("results_60", &mut with_results(), 60, 20);
    check("results_120", &mut with_results(), 120, 20);
}

#[test]
fn a_chosen_result_with_its_match_far_below() {
    let mut state = state().with("dough wet", found());
    state.act(Action::Down);
    let text = format!("{}\nThe dough is wet.", "Nothing here.\n".repeat(60));
    let mut state = state.with_preview(vec![message(2, "Before."), message(3, &text), message(4, "After.")]);
    check("match_far_below", &mut state, 80, 20);
}

#[test]
fn nothing_to_show() {
    check("empty_query", &mut state(), 60, 8);
    check("no_match", &mut state().with("xyzzy", FoundGroups::default()), 60, 8);
    let mut empty = state();
    empty.answer(WorkAnswer::Began { projects: Vec::new(), is_empty: true });
    check("empty_store", &mut empty, 80, 8);
    let mut searching = state();
    searching.typed("xyz");
    check("searching", &mut searching, 60, 8);
}

#[test]
fn filters() {
    let mut state = with_results();
    let projects = ["-home-mira-bakery", "-home-mira-a-very-long-name-of-a-project-in-a-deep-folder"];
    let projects = projects.map(|slug| amplifier_session_storage::model::ProjectSlug::new(slug).unwrap());
    state.answer(WorkAnswer::Began { projects: projects.to_vec(), is_empty: false });
    state.act(Action::Previous);
    state.act(Action::Left);
    state.act(Action::Up);
    check("filters_60", &mut state, 60, 16);
    let terminal = drawn(&mut state, 60, 16);
    let buffer = terminal.backend().buffer();
    let reversed: String = buffer
        .content()
        .iter()
        .filter(|cell| cell.modifier.contains(Modifier::REVERSED))
        .map(|cell| cell.symbol())
        .collect();
    assert!(reversed.starts_with("…long-name-of-a-project-in-a-deep-folder"), "{reversed}");
}

#[test]
fn a_conversation() {
    let mut state = with_results();
    state.act(Action::Down);
    state.act(Action::Open);
    check("conversation_80", &mut state, 80, 20);
    state.status = Some("copied 7f3c9a52#3".to_owned());
    check("conversation_60", &mut state, 60, 12);
}

#[test]
fn words_are_highlighted() {
    let mut state = with_results();
    state.found.groups[0].hits[1].highlights = vec![(26, 31)];
    let terminal = drawn(&mut state, 80, 24);
    let yellow: String = terminal
        .backend()
        .buffer()
        .content()
        .iter()
        .filter(|cell| cell.fg == ratatui::style::Color::Yellow)
        .map(|cell| cell.symbol())
        .collect();
    assert!(yellow.starts_with("doughdough"), "{yellow}");
}

#[test]
fn every_size_can_be_drawn_and_no_control_character_is() {
    let mut state = with_results();
    let mut opened = with_results();
    opened.act(Action::Open);
    for width in [1, 2, 7, 20, 39, 60, 100, 101, 200] {
        for height in 1..14 {
            for state in [&mut state, &mut opened] {
                let terminal = drawn(state, width, height);
                let cells = terminal.backend().buffer().content();
                assert!(cells.iter().all(|cell| !cell.symbol().chars().any(char::is_control)));
            }
        }
    }
}
