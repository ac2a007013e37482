//! The layout of a text in a snippet: code keeps its lines, and other text is one line. Left-over colour codes and
//! reminders that programs inserted are left out.

use std::borrow::Cow;

use super::codes::{without_codes, without_escapes};
use crate::model::ContentType;

/// Indentation of more characters is cut.
const LONGEST_INDENTATION: usize = 40;

/// White space of more characters between words of code is cut.
const LONGEST_GAP: usize = 8;

/// Lines that begin so enclose a block of code.
const FENCES: [&str; 2] = ["```", "~~~"];

const REMINDER_BEGINS: &str = "<system-reminder>";
const REMINDER_ENDS: &str = "</system-reminder>";

/// The text without control characters and blank lines. Code keeps its lines and the white space in them; other white
/// space is single spaces.
pub(super) fn laid_out(text: &str, content_type: ContentType) -> String {
    let plain = match content_type {
        // The codes that a command prints are a part of it.
        ContentType::ToolCall => without_escapes(text),
        _ => without_codes(text),
    };
    let is_code = matches!(content_type, ContentType::ToolCall | ContentType::ToolOutput);
    let mut layout = Layout { is_code, shown: String::with_capacity(plain.len()), ..Layout::default() };
    plain.lines().for_each(|line| layout.add(line));
    layout.shown
}

#[derive(Default)]
struct Layout {
    shown: String,
    /// Whether all of the text is code.
    is_code: bool,
    /// Whether the line is in a block of code.
    is_fenced: bool,
    /// Whether the line before was a fence.
    is_after_fence: bool,
}

impl Layout {
    fn add(&mut self, line: &str) {
        let mut words = line.split(is_blank).filter(|word| !word.is_empty());
        let Some(first) = words.next() else { return };
        let is_fence = !self.is_code && FENCES.iter().any(|fence| first.starts_with(fence));
        let is_code = self.is_code || self.is_fenced && !is_fence;
        if !self.shown.is_empty() {
            self.shown.push(if is_code || is_fence || self.is_after_fence { '\n' } else { ' ' });
        }
        if is_code {
            self.add_code(line);
        } else {
            self.shown.push_str(first);
            for word in words {
                self.shown.push(' ');
                self.shown.push_str(word);
            }
        }
        self.is_fenced ^= is_fence;
        self.is_after_fence = is_fence;
    }

    fn add_code(&mut self, line: &str) {
        let (mut gap, mut longest) = (String::new(), LONGEST_INDENTATION);
        for c in line.trim_end_matches(is_blank).chars() {
            match c {
                ' ' | '\t' => gap.push(c),
                c if is_blank(c) => gap.push(' '),
                c => {
                    self.shown.extend(gap.chars().take(longest));
                    self.shown.push(c);
                    gap.clear();
                    longest = LONGEST_GAP;
                }
            }
        }
    }
}

/// Control characters count as blanks, because a terminal would interpret them.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// The text without the reminders that a program inserted into it.
pub(crate) fn without_reminders(text: &str) -> Cow<'_, str> {
    let mut own = String::new();
    let mut rest = text;
    while let Some((before, reminder)) = rest.split_once(REMINDER_BEGINS)
        && let Some((_, after)) = reminder.split_once(REMINDER_ENDS)
    {
        own.push_str(before);
        rest = after;
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    own.push_str(rest);
    Cow::Owned(own)
}
