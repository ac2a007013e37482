//! The preview: a message with its neighbours.

use amplifier_session_api::views::MessageView;
use ratatui::text::Line;

use super::text::{How, Look};

/// Longer messages are cut: this is only a preview.
const MAX_CHARS: usize = 50_000;
/// As [`MAX_CHARS`], for the neighbours.
const NEIGHBOUR_CHARS: usize = 600;

/// A message with its neighbours.
#[derive(Debug)]
pub(super) struct Preview {
    /// The address of the message.
    pub(super) address: String,
    pub(super) project: String,
    sequence: u32,
    messages: Vec<MessageView>,
    lines: Vec<Line<'static>>,
    top: usize,
    /// The size for which the lines were made.
    size: (usize, usize),
}

impl Preview {
    /// The message `sequence` among `messages`.
    pub(super) fn new(address: String, project: String, sequence: u32, messages: Vec<MessageView>) -> Self {
        Self { address, project, sequence, messages, lines: Vec::new(), top: 0, size: (0, 0) }
    }

    /// The message.
    pub(super) fn message(&self) -> Option<&MessageView> {
        self.messages.iter().find(|message| message.sequence == self.sequence)
    }

    /// Fits the lines to the size, so that the first matched word is visible.
    pub(super) fn resize(&mut self, width: usize, height: usize, look: &Look) {
        /// Lines above the first match or the beginning of the message.
        const ABOVE: usize = 2;
        if self.size == (width, height) {
            return;
        }
        self.size = (width, height);
        self.lines.clear();
        let (mut start, mut first_match) = (0, None);
        for message in &self.messages {
            let is_marked = message.sequence == self.sequence;
            let how = How {
                width,
                full: is_marked,
                max_chars: if is_marked { MAX_CHARS } else { NEIGHBOUR_CHARS },
                is_marked,
                rest: "(Enter opens)",
            };
            let shown = look.message(message, how);
            if is_marked {
                start = self.lines.len();
                first_match = shown.first_match.map(|line| start + line);
            }
            self.lines.extend(shown.lines);
        }
        // The message begins at the top, unless its first match would then be below the screen.
        let place = match first_match {
            Some(found) if found >= start + height.saturating_sub(ABOVE) => found,
            _ => start,
        };
        self.top = place.saturating_sub(ABOVE).min(self.lines.len().saturating_sub(height));
    }

    /// Scrolls by half its height.
    pub(super) fn scroll(&mut self, is_down: bool) {
        let lines = (self.size.1 / 2).max(1);
        let last = self.lines.len().saturating_sub(self.size.1);
        self.top = if is_down { (self.top + lines).min(last) } else { self.top.saturating_sub(lines) };
    }

    /// The lines that are shown.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line<'static>> {
        self.lines.iter().skip(self.top).take(self.size.1)
    }
}
