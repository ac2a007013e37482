//! A line of text that is being typed.

use amplifier_session_storage::KnownPart;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::keys::Action;
use crate::render::text::{one_line, visible};

/// Typed text with a cursor. It contains neither control characters nor invisible characters.
#[derive(Debug, Default, Clone)]
pub(super) struct Input {
    chars: Vec<char>,
    /// The cursor is before the character with this number.
    cursor: usize,
}

impl Input {
    pub(super) fn text(&self) -> String {
        self.chars.iter().collect()
    }

    pub(super) fn is_blank(&self) -> bool {
        self.chars.iter().all(|c| c.is_whitespace())
    }

    /// Performs an action of a key, if it is about the text. Returns whether the text changed.
    pub(super) fn edit(&mut self, action: &Action) -> bool {
        match action {
            Action::Type(c) => self.insert(*c),
            Action::Paste(text) => self.paste(text),
            // Keys that leave the text as it is change nothing.
            Action::Backspace => return self.backspace(),
            Action::Delete => return self.delete(),
            Action::DeleteWord => return self.delete_word(),
            Action::Clear => {
                let was_empty = self.chars.is_empty();
                self.clear();
                return !was_empty;
            }
            action => {
                match action {
                    Action::Left => self.left(),
                    Action::Right => self.right(),
                    Action::WordLeft => self.word_left(),
                    Action::WordRight => self.word_right(),
                    Action::Home => self.home(),
                    Action::End => self.end(),
                    _ => {}
                }
                return false;
            }
        }
        true
    }

    pub(super) fn insert(&mut self, c: char) {
        if let Some(c) = visible(c).filter(|shown| *shown == c) {
            self.chars.insert(self.cursor, c);
            self.cursor += 1;
        }
    }

    /// Inserts pasted text, on one line.
    pub(super) fn paste(&mut self, text: &str) {
        one_line(text).chars().for_each(|c| self.insert(c));
    }

    /// Removes the character before the cursor. Returns whether there was one.
    pub(super) fn backspace(&mut self) -> bool {
        let is_after = self.cursor > 0;
        if is_after {
            self.cursor -= 1;
            self.chars.remove(self.cursor);
        }
        is_after
    }

    /// Removes the character after the cursor. Returns whether there was one.
    pub(super) fn delete(&mut self) -> bool {
        let is_before = self.cursor < self.chars.len();
        if is_before {
            self.chars.remove(self.cursor);
        }
        is_before
    }

    /// Removes the word before the cursor. Returns whether there was one.
    pub(super) fn delete_word(&mut self) -> bool {
        let end = self.cursor;
        self.word_left();
        self.chars.drain(self.cursor..end);
        self.cursor < end
    }

    /// Moves the cursor to the beginning of the word before it.
    pub(super) fn word_left(&mut self) {
        let before = self.chars.part(..self.cursor);
        self.cursor -= word_after_spaces(before.iter().rev());
    }

    /// Moves the cursor to the end of the word after it.
    pub(super) fn word_right(&mut self) {
        let after = self.chars.part(self.cursor..);
        self.cursor += word_after_spaces(after.iter());
    }

    /// The text before the cursor.
    pub(super) fn before_cursor(&self) -> &[char] {
        self.chars.part(..self.cursor)
    }

    /// Whether the cursor is after the text.
    pub(super) fn is_at_end(&self) -> bool {
        self.cursor == self.chars.len()
    }

    /// Replaces the characters from `start` to the cursor.
    pub(super) fn complete(&mut self, start: usize, text: &str) {
        self.chars.drain(start.min(self.cursor)..self.cursor);
        self.cursor = start.min(self.cursor);
        text.chars().for_each(|c| self.insert(c));
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn left(&mut self) {
        self.cursor = self.cursor.saturating_sub(1);
    }

    pub(super) fn right(&mut self) {
        self.cursor = (self.cursor + 1).min(self.chars.len());
    }

    pub(super) fn home(&mut self) {
        self.cursor = 0;
    }

    pub(super) fn end(&mut self) {
        self.cursor = self.chars.len();
    }

    /// The part of the text around the cursor that fits into `columns`, and the column of the cursor in it.
    pub(super) fn window(&self, columns: usize) -> (String, usize) {
        let mut before: Vec<char> = Vec::new();
        // The cursor needs a column after the text.
        let mut left = columns.saturating_sub(1);
        for c in self.chars.iter().take(self.cursor).rev() {
            let wide = c.width().unwrap_or(0);
            if wide > left {
                break;
            }
            left -= wide;
            before.push(*c);
        }
        let mut shown: String = before.iter().rev().collect();
        let column = shown.width();
        for c in self.chars.iter().skip(self.cursor) {
            let wide = c.width().unwrap_or(0);
            if shown.width() + wide > columns {
                break;
            }
            shown.push(*c);
        }
        (shown, column)
    }
}

/// The number of characters of the first word, with the spaces before it.
fn word_after_spaces<'a>(chars: impl Iterator<Item = &'a char> + Clone) -> usize {
    let spaces = chars.clone().take_while(|c| c.is_whitespace()).count();
    spaces + chars.skip(spaces).take_while(|c| !c.is_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Input {
        let mut input = Input::default();
        text.chars().for_each(|c| input.insert(c));
        input
    }

    #[test]
    fn text_is_edited_at_the_cursor() {
        let mut input = typed("one three");
        (0..5).for_each(|_| input.left());
        "two ".chars().for_each(|c| input.insert(c));
        assert_eq!(input.text(), "one two three");
        assert!(input.backspace() && input.delete());
        assert_eq!(input.text(), "one twohree");
        input.end();
        assert!(input.delete_word());
        assert_eq!(input.text(), "one ");
        assert!(input.delete_word() && !input.delete_word());
        assert!(input.is_blank() && !input.backspace() && !input.delete());
        input.home();
        input.right();
        assert_eq!(input.text(), "");
    }

    #[test]
    fn the_cursor_moves_by_words() {
        let mut input = typed("one  two three");
        input.word_left();
        input.word_left();
        input.insert('x');
        assert_eq!(input.text(), "one  xtwo three");
        input.word_right();
        input.word_right();
        assert!(input.is_at_end());
        input.word_right();
        assert!(input.is_at_end());
    }

    #[test]
    fn a_completion_replaces_the_text_before_the_cursor() {
        let mut input = typed("why ro late");
        (0..5).for_each(|_| input.left());
        input.complete(4, "role:");
        assert_eq!(input.text(), "why role: late");
        assert_eq!(input.before_cursor().iter().collect::<String>(), "why role:");
    }

    #[test]
    fn control_characters_are_not_typed() {
        assert_eq!(typed("a\u{1b}[31m\u{202e}b\u{7}").text(), "a[31mb");
        let mut input = Input::default();
        input.paste("two\nlines\u{1b}\t日本");
        assert_eq!(input.text(), "two lines\u{241b} 日本");
    }

    #[test]
    fn the_window_follows_the_cursor() {
        let mut input = typed("日本語の検索");
        assert_eq!(input.window(20), ("日本語の検索".to_owned(), 12));
        assert_eq!(input.window(6), ("検索".to_owned(), 4));
        input.home();
        assert_eq!(input.window(6), ("日本語".to_owned(), 0));
        assert_eq!(input.window(0), (String::new(), 0));
    }
}
