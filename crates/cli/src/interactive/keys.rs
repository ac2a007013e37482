//! The meaning of each key.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The part of the screen that receives keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    /// The query and the results: letters go to the query, other keys choose a result.
    Search,
    /// A list to choose from: letters narrow it.
    Picker,
    /// The question of what to copy.
    Copying,
    /// The session that is shown.
    Conversation,
    /// The list of keys.
    Help,
}

/// The action that a key requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    /// Go back to the previous view, or quit.
    Back,
    Open,
    /// Complete the field at the cursor.
    Complete,
    /// List the filters.
    Filters,
    /// Change the mode of the search.
    Mode,
    Copy,
    /// Open the message in an editor.
    Edit,
    Help,
    /// Draw everything again.
    Redraw,
    Type(char),
    Paste(String),
    Backspace,
    Delete,
    DeleteWord,
    Clear,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    PreviewUp,
    PreviewDown,
    /// Remove the chosen filter.
    Remove,
    /// Go back to the query.
    Search,
    /// Switch complete tool output on or off.
    Full,
    NextMessage,
    PreviousMessage,
    NextHit,
    PreviousHit,
}

/// The action of a key in the current view; `None` if it has none.
pub(super) fn action(key: KeyEvent, focus: Focus) -> Option<Action> {
    // On Windows, terminals also report when a key is released.
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_with = |modifier| key.modifiers.contains(modifier);
    match (is_with(KeyModifiers::CONTROL), is_with(KeyModifiers::ALT)) {
        // Some keyboards type characters such as @ with both.
        (true, true) => return typed(key.code, focus),
        (true, false) => return with_control(key.code, focus),
        (false, true) => return with_alt(key.code),
        (false, false) => {}
    }
    let is_with_shift = is_with(KeyModifiers::SHIFT);
    Some(match key.code {
        KeyCode::Esc => Action::Back,
        KeyCode::F(1) => Action::Help,
        KeyCode::Up if is_with_shift => Action::PreviewUp,
        KeyCode::Down if is_with_shift => Action::PreviewDown,
        KeyCode::Up => Action::Up,
        KeyCode::Down => Action::Down,
        KeyCode::Left => Action::Left,
        KeyCode::Right => Action::Right,
        KeyCode::Home => Action::Home,
        KeyCode::End => Action::End,
        KeyCode::PageUp => Action::PageUp,
        KeyCode::PageDown => Action::PageDown,
        code if focus == Focus::Conversation => return in_conversation(code),
        KeyCode::Enter => Action::Open,
        KeyCode::Tab => Action::Complete,
        KeyCode::Backspace => Action::Backspace,
        KeyCode::Delete => Action::Delete,
        code => return typed(code, focus),
    })
}

/// A character is always typed, except in an opened session, where letters are commands.
fn typed(code: KeyCode, focus: Focus) -> Option<Action> {
    match code {
        KeyCode::Char(c) if focus != Focus::Conversation => Some(Action::Type(c)),
        _ => None,
    }
}

fn in_conversation(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Char('q') | KeyCode::Backspace => Action::Back,
        KeyCode::Char('/') => Action::Search,
        KeyCode::Char('?') => Action::Help,
        KeyCode::Char('y') => Action::Copy,
        KeyCode::Char('e') => Action::Edit,
        KeyCode::Char('f') => Action::Full,
        KeyCode::Char('j') | KeyCode::Enter => Action::Down,
        KeyCode::Char('k') => Action::Up,
        KeyCode::Char(' ') => Action::PageDown,
        KeyCode::Char('b') => Action::PageUp,
        KeyCode::Char('g') => Action::Home,
        KeyCode::Char('G') => Action::End,
        KeyCode::Char('n') => Action::NextHit,
        KeyCode::Char('p' | 'N') => Action::PreviousHit,
        KeyCode::Char('l') => Action::NextMessage,
        KeyCode::Char('h') => Action::PreviousMessage,
        _ => return None,
    })
}

fn with_control(code: KeyCode, focus: Focus) -> Option<Action> {
    let is_session = focus == Focus::Conversation;
    Some(match code {
        KeyCode::Char('c') => Action::Quit,
        KeyCode::Char('y') => Action::Copy,
        KeyCode::Char('o') => Action::Edit,
        KeyCode::Char('l') => Action::Redraw,
        KeyCode::Home => Action::First,
        KeyCode::End => Action::Last,
        KeyCode::Char('d') if is_session => Action::PageDown,
        KeyCode::Char('u') if is_session => Action::PageUp,
        KeyCode::Char('n') if is_session => Action::NextHit,
        KeyCode::Char('p') if is_session => Action::PreviousHit,
        KeyCode::Char('n' | 'j') => Action::Down,
        KeyCode::Char('p' | 'k') => Action::Up,
        _ if is_session => return None,
        KeyCode::Char('f') => Action::Filters,
        KeyCode::Char('r') => Action::Mode,
        KeyCode::Char('x') => Action::Remove,
        KeyCode::Char('a') => Action::Home,
        KeyCode::Char('e') => Action::End,
        KeyCode::Char('d') => Action::Delete,
        KeyCode::Char('u') => Action::Clear,
        // Many terminals send Ctrl-H for Ctrl-Backspace.
        KeyCode::Char('w' | 'h') | KeyCode::Backspace => Action::DeleteWord,
        KeyCode::Left => Action::WordLeft,
        KeyCode::Right => Action::WordRight,
        _ => return None,
    })
}

fn with_alt(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Up => Action::PreviewUp,
        KeyCode::Down => Action::PreviewDown,
        KeyCode::Left | KeyCode::Char('b') => Action::WordLeft,
        KeyCode::Right | KeyCode::Char('f') => Action::WordRight,
        KeyCode::Backspace => Action::DeleteWord,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Focus; 5] = [Focus::Search, Focus::Picker, Focus::Copying, Focus::Conversation, Focus::Help];

    fn pressed(code: KeyCode, focus: Focus) -> Option<Action> {
        action(KeyEvent::new(code, KeyModifiers::NONE), focus)
    }

    fn pressed_with(modifiers: KeyModifiers, code: KeyCode, focus: Focus) -> Option<Action> {
        action(KeyEvent::new(code, modifiers), focus)
    }

    #[test]
    fn characters_are_typed_everywhere_except_in_a_session() {
        for c in ['a', 'Y', 'j', 'q', '/', '?', ' ', '日', '-'] {
            for focus in [Focus::Search, Focus::Picker, Focus::Copying, Focus::Help] {
                assert_eq!(pressed(KeyCode::Char(c), focus), Some(Action::Type(c)));
                let shifted = pressed_with(KeyModifiers::SHIFT, KeyCode::Char(c), focus);
                assert_eq!(shifted, Some(Action::Type(c)));
            }
        }
        assert_eq!(pressed(KeyCode::Char('y'), Focus::Conversation), Some(Action::Copy));
        assert_eq!(pressed(KeyCode::Char('x'), Focus::Conversation), None);
        let alt_gr = KeyModifiers::CONTROL | KeyModifiers::ALT;
        assert_eq!(pressed_with(alt_gr, KeyCode::Char('@'), Focus::Search), Some(Action::Type('@')));
    }

    #[test]
    fn control_c_quits_everywhere_and_escape_goes_back() {
        for focus in ALL {
            let quits = pressed_with(KeyModifiers::CONTROL, KeyCode::Char('c'), focus);
            assert_eq!(quits, Some(Action::Quit));
            assert_eq!(pressed(KeyCode::Esc, focus), Some(Action::Back));
            assert_eq!(pressed(KeyCode::F(1), focus), Some(Action::Help));
            let redraws = pressed_with(KeyModifiers::CONTROL, KeyCode::Char('l'), focus);
            assert_eq!(redraws, Some(Action::Redraw));
        }
    }

    #[test]
    fn control_n_and_p_choose_results_or_hits() {
        let control = |c, focus| pressed_with(KeyModifiers::CONTROL, KeyCode::Char(c), focus);
        assert_eq!(control('n', Focus::Search), Some(Action::Down));
        assert_eq!(control('p', Focus::Picker), Some(Action::Up));
        assert_eq!(control('n', Focus::Conversation), Some(Action::NextHit));
        assert_eq!(control('p', Focus::Conversation), Some(Action::PreviousHit));
        assert_eq!(control('f', Focus::Conversation), None);
    }

    #[test]
    fn releasing_a_key_does_nothing() {
        let mut key = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert_eq!(action(key, Focus::Search), None);
        assert_eq!(pressed_with(KeyModifiers::ALT, KeyCode::Char('x'), Focus::Search), None);
    }
}
