//! The meaning of each key.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The part of the screen that receives keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    /// The query, which is being typed.
    Query,
    /// The results, one of which is selected.
    Results,
    /// The filters.
    Filters,
    /// The session that is shown.
    Conversation,
}

/// The action that a key requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    /// Go back to the previous view, or quit.
    Back,
    /// Go to the next part, or to the previous one.
    Next,
    Previous,
    /// Go to the query.
    Search,
    Open,
    Copy,
    Type(char),
    Paste(String),
    Backspace,
    Delete,
    DeleteWord,
    Clear,
    Left,
    Right,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Change a filter.
    Toggle,
    /// Switch complete tool output on or off.
    Full,
    /// Go to the next message, or to the previous one.
    NextMessage,
    PreviousMessage,
}

/// The action of a key in the current view; `None` if it has none.
pub(super) fn action(key: KeyEvent, focus: Focus) -> Option<Action> {
    // On Windows, terminals also report when a key is released.
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return with_control(key.code, focus);
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    Some(match (key.code, focus) {
        (KeyCode::Esc, _) => Action::Back,
        (KeyCode::Up, _) => Action::Up,
        (KeyCode::Down, _) => Action::Down,
        (KeyCode::Left, _) => Action::Left,
        (KeyCode::Right, _) => Action::Right,
        (KeyCode::Home, _) => Action::Home,
        (KeyCode::End, _) => Action::End,
        (KeyCode::PageUp, _) => Action::PageUp,
        (KeyCode::PageDown, _) => Action::PageDown,
        // The keys above do the same in every view.
        (code, Focus::Conversation) => return in_conversation(code),
        (KeyCode::Tab, _) => Action::Next,
        (KeyCode::BackTab, _) => Action::Previous,
        (KeyCode::Enter | KeyCode::Char(' '), Focus::Filters) => Action::Toggle,
        (KeyCode::Enter, _) => Action::Open,
        (KeyCode::Char(c), Focus::Query) => Action::Type(c),
        (KeyCode::Backspace, Focus::Query) => Action::Backspace,
        (KeyCode::Delete, Focus::Query) => Action::Delete,
        (KeyCode::Char('/') | KeyCode::Backspace, _) => Action::Search,
        (KeyCode::Char('y'), Focus::Results) => Action::Copy,
        (KeyCode::Char('j'), Focus::Results) => Action::Down,
        (KeyCode::Char('k'), Focus::Results) => Action::Up,
        (KeyCode::Char('h'), Focus::Filters) => Action::Left,
        (KeyCode::Char('l'), Focus::Filters) => Action::Right,
        _ => return None,
    })
}

fn in_conversation(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Char('q') | KeyCode::Backspace => Action::Back,
        KeyCode::Char('y') => Action::Copy,
        KeyCode::Char('f') => Action::Full,
        KeyCode::Char('j') | KeyCode::Enter => Action::Down,
        KeyCode::Char('k') => Action::Up,
        KeyCode::Char(' ') => Action::PageDown,
        KeyCode::Char('b') => Action::PageUp,
        KeyCode::Char('g') => Action::Home,
        KeyCode::Char('G') => Action::End,
        KeyCode::Char('n') => Action::NextMessage,
        KeyCode::Char('p') => Action::PreviousMessage,
        _ => return None,
    })
}

fn with_control(code: KeyCode, focus: Focus) -> Option<Action> {
    let KeyCode::Char(c) = code else { return None };
    Some(match (c, focus) {
        ('c', _) => Action::Quit,
        ('y', _) => Action::Copy,
        ('d', Focus::Conversation) => Action::PageDown,
        ('u', Focus::Conversation) => Action::PageUp,
        ('n', _) => Action::Down,
        ('p', _) => Action::Up,
        ('a', Focus::Query) => Action::Home,
        ('e', Focus::Query) => Action::End,
        ('u', Focus::Query) => Action::Clear,
        ('w' | 'h', Focus::Query) => Action::DeleteWord,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: KeyCode, focus: Focus) -> Option<Action> {
        action(KeyEvent::new(code, KeyModifiers::NONE), focus)
    }

    #[test]
    fn letters_are_typed_only_into_the_query() {
        assert_eq!(pressed(KeyCode::Char('y'), Focus::Query), Some(Action::Type('y')));
        assert_eq!(pressed(KeyCode::Char('Y'), Focus::Query), Some(Action::Type('Y')));
        assert_eq!(pressed(KeyCode::Char('y'), Focus::Results), Some(Action::Copy));
        assert_eq!(pressed(KeyCode::Char('y'), Focus::Conversation), Some(Action::Copy));
        assert_eq!(pressed(KeyCode::Char('q'), Focus::Results), None);
        assert_eq!(pressed(KeyCode::Char('q'), Focus::Conversation), Some(Action::Back));
        assert_eq!(pressed(KeyCode::Char(' '), Focus::Filters), Some(Action::Toggle));
        assert_eq!(pressed(KeyCode::Char(' '), Focus::Query), Some(Action::Type(' ')));
    }

    #[test]
    fn control_c_quits_everywhere_and_escape_goes_back() {
        for focus in [Focus::Query, Focus::Results, Focus::Filters, Focus::Conversation] {
            let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
            assert_eq!(action(key, focus), Some(Action::Quit));
            assert_eq!(pressed(KeyCode::Esc, focus), Some(Action::Back));
        }
    }

    #[test]
    fn releasing_a_key_does_nothing() {
        let mut key = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert_eq!(action(key, Focus::Query), None);
        assert_eq!(action(KeyEvent::new(KeyCode::Char('x'), KeyModifiers::ALT), Focus::Query), None);
    }
}
