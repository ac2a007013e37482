//! The appearance of the interactive search.

use ratatui::{Terminal, backend::TestBackend};
use unicode_width::UnicodeWidthStr as _;

use super::{super::draw::draw, *};

/// Draws until everything that drawing asks for is there.
fn drawn(state: &mut SearchState, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    for _ in 0..2 {
        terminal.draw(|frame| draw(frame, state)).unwrap();
        if state.conversation.is_some() {
            state.read(40);
        }
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

fn state_with_recent() -> SearchState {
    state().with_recent(recent())
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
    let notices = vec!["role:admin is searched for as text: roles are system, user".to_owned()];
    let nothing = FoundGroups { notices, ..FoundGroups::default() };
    check("no_match", &mut state().with("xyzzy role:admin", nothing), 60, 10);
    let empty = FoundGroups { groups: Vec::new(), ..recent() };
    check("empty_store", &mut state().with_recent(empty.clone()), 80, 8);
    let mut of_others = state().with_recent(empty);
    of_others.others = Some("mira has no sessions in this store; ana has some: --user ana".to_owned());
    check("sessions_of_others", &mut of_others, 60, 8);
    let mut searching = state();
    check("searching", &mut searching, 60, 8);
    let mut failed = state().with_recent(recent());
    failed.typed("x");
    failed.debounced();
    let (number, _) = failed.search().unwrap();
    let error =
        "the embedding service answered 401, which means that the key is wrong or has expired".to_owned();
    failed.answer(WorkAnswer::List { number, found: Err(error) });
    check("failed_search", &mut failed, 60, 10);
}

#[test]
fn recent_sessions() {
    let mut state = state().with_recent(recent());
    check("recent_80", &mut state, 80, 14);
    check("recent_40", &mut state, 40, 10);
}

#[test]
fn similar_messages_are_marked() {
    let mut found = found();
    found.groups[0].hits[1].remark = Some("similar".to_owned());
    found.groups[1].hits[0].remark = Some("by its title".to_owned());
    check("similar", &mut state().with("dough", found), 80, 16);
}

#[test]
fn keys() {
    let mut state = with_results();
    state.act(Action::Help);
    check("keys_80", &mut state, 80, 24);
    state.act(Action::PageDown);
    check("keys_60", &mut state, 60, 12);
    let mut opened = with_results();
    opened.act(Action::Open);
    opened.act(Action::Help);
    check("keys_of_a_session_40", &mut opened, 40, 12);
    let widest = super::super::help::lines(0).into_iter().filter_map(|line| match line {
        super::super::help::HelpLine::Key(key, effect) => Some((key.width(), 3 + 23 + 1 + effect.width())),
        _ => None,
    });
    assert!(widest.into_iter().all(|(key, line)| key <= 23 && line <= 80));
}

#[test]
fn what_to_copy() {
    let mut state = with_results();
    state.act(Action::Copy);
    check("copying", &mut state, 60, 12);
}

#[test]
fn filters() {
    let mut request = SearchRequest::new("");
    request.query.scope = amplifier_session_api::Reach::All;
    request.query.plain = true;
    request.query.filter.project =
        Some("-home-mira-a-very-long-name-of-a-project-in-a-very-deep-folder".to_owned());
    request.query.filter.tags = vec!["on call".to_owned(), "incident".to_owned()];
    request.query.filter.since = Some("2w".to_owned());
    let mut state = state_of(request).with("dough", found());
    check("filters_60", &mut state, 60, 16);
    state.act(Action::Filters);
    check("filter_list_80", &mut state, 80, 20);
    state.act(Action::Mode);
    state.typed("pro");
    state.act(Action::Open);
    check("values_loading", &mut state, 60, 12);
    state.values(&[("-home-mira-bakery", "12 sessions"), ("-home-mira-shop\u{1b}", "1 session")]);
    state.act(Action::Down);
    check("values_60", &mut state, 60, 12);
}

#[test]
fn completion() {
    let mut state = state().with("dough", found());
    state.typed(" t");
    state.act(Action::Complete);
    check("fields_80", &mut state, 80, 12);
}

#[test]
fn a_conversation() {
    let mut state = with_results();
    state.act(Action::Down);
    state.act(Action::Open);
    state.answer(WorkAnswer::Hits { opened: 1, found: Ok(vec![3, 30]) });
    check("conversation_80", &mut state, 80, 20);
    state.status = Some("copied 7f3c9a52#3".to_owned());
    check("conversation_60", &mut state, 60, 12);
}

#[test]
fn wide_characters_break_between_words_and_snippets_show_the_match() {
    let text = "烤箱今天早上又出现了温度不足的问题，我们检查了加热元件和温控器。请尽快联系供应商更换零件。";
    let mut found = found();
    found.groups.truncate(1);
    found.groups[0].hits.truncate(2);
    for found in &mut found.groups[0].hits {
        (found.snippet, found.highlights) = (text.to_owned(), vec![(28, 31)]);
    }
    found.groups[0].hits[1].remark = Some("by its title".to_owned());
    let long = format!("```\n{text}\n    cargo run --release --package bakery --bin oven -- --watch\n```");
    let mut state = state().with("温控器", found).with_preview(vec![message(0, &long)]);
    check("wide_characters_60", &mut state, 60, 20);
}

#[test]
fn two_characters_of_one_column_have_a_cell_each() {
    let mut found = found();
    found.groups.truncate(1);
    found.groups[0].title = "จำ 🇩🇪 e\u{301} 日".to_owned();
    let terminal = drawn(&mut state().with("dough", found), 60, 12);
    let cells = terminal.backend().buffer().content().iter().skip(3 * 60 + 1).take(11);
    let symbols: Vec<&str> = cells.map(ratatui::buffer::Cell::symbol).collect();
    let expected = ["จ", "ำ", " ", "\u{1f1e9}", "\u{1f1ea}", " ", "e\u{301}", " ", "日", " ", " "];
    assert_eq!(symbols, expected);
}

#[test]
fn words_are_highlighted() {
    let mut state = with_results();
    state.list.found.groups[0].hits[1].highlights = vec![(26, 31)];
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
    let mut with_help = with_results();
    with_help.act(Action::Help);
    let mut with_filters = with_results();
    with_filters.act(Action::Filters);
    let mut recent = state_with_recent();
    for width in [1, 2, 7, 20, 39, 60, 100, 101, 200] {
        for height in 1..14 {
            for state in [&mut state, &mut opened, &mut with_help, &mut with_filters, &mut recent] {
                let terminal = drawn(state, width, height);
                let cells = terminal.backend().buffer().content();
                assert!(cells.iter().all(|cell| !cell.symbol().chars().any(char::is_control)));
            }
        }
    }
}
