//! The conversation of a session on the whole screen.

use std::{collections::VecDeque, ops::Range};

use amplifier_session_api::{ids::address, views::MessageView};
use amplifier_session_storage::model::SessionId;
use ratatui::text::Line;

use super::{
    results::SessionHits,
    text::{How, Look, MessageLines},
};

/// Messages to read at once.
const PAGE: u32 = 60;
/// Messages before the requested one that are read with it.
const BEFORE: u32 = 20;
/// Longer messages are cut.
const MAX_CHARS: usize = 200_000;

/// A session that is being read. Messages are loaded when they are about to be seen.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) session: SessionId,
    /// The short id of the session.
    pub(super) short: String,
    pub(super) title: String,
    pub(super) project: String,
    /// The number of messages, once it is known.
    pub(super) total: Option<u32>,
    /// The messages that were found, in order. They are marked.
    hits: Vec<u32>,
    /// The message to begin with.
    start: u32,
    /// The message that was gone to. It may be below the top of the screen, if that is the last one.
    gone_to: Option<u32>,
    entries: VecDeque<ConversationEntry>,
    /// The numbers of the messages that were read.
    read: Range<u32>,
    /// The first line that is shown: an entry, and a line of it.
    top: (usize, usize),
    size: (usize, usize),
    /// Whether tool output is shown completely.
    full: bool,
    is_loading: bool,
    has_failed: bool,
}

#[derive(Debug)]
struct ConversationEntry {
    message: MessageView,
    lines: Vec<Line<'static>>,
    /// The first line with a word of the query.
    first_match: Option<usize>,
}

impl Conversation {
    /// A session with these results, which begins at message `asked`.
    pub(super) fn new(found: SessionHits, asked: u32) -> Self {
        let start = asked.saturating_sub(BEFORE);
        let SessionHits { session, short, title, project, hits, .. } = found;
        let mut hits: Vec<u32> = hits.into_iter().map(|hit| hit.sequence).collect();
        hits.sort_unstable();
        Self {
            session,
            short,
            title,
            project,
            total: None,
            hits,
            start: asked,
            gone_to: Some(asked),
            entries: VecDeque::new(),
            read: start..start,
            top: (0, 0),
            size: (0, 0),
            full: false,
            is_loading: false,
            has_failed: false,
        }
    }

    /// The messages to read now, if any.
    pub(super) fn wanted(&mut self) -> Option<Range<u32>> {
        let range = self.missing().filter(|_| !self.is_loading && !self.has_failed)?;
        self.is_loading = true;
        Some(range)
    }

    fn missing(&self) -> Option<Range<u32>> {
        let Range { start, end } = self.read;
        let Some(total) = self.total else { return Some(start..start + PAGE) };
        // Two screens are kept ready on both sides.
        let ready = 2 * self.size.1;
        if end < total && self.below(ready) < ready {
            return Some(end..end.saturating_add(PAGE).min(total));
        }
        (start > 0 && self.above(ready) < ready).then(|| start.saturating_sub(PAGE)..start)
    }

    /// Adds messages that were read. Unreadable messages are missing.
    pub(super) fn add(&mut self, range: Range<u32>, total: u32, messages: Vec<MessageView>, look: &Look) {
        let is_first = self.total.is_none();
        self.is_loading = false;
        self.total = Some(total);
        let messages = messages.into_iter().filter(|message| range.contains(&message.sequence));
        let entries: Vec<ConversationEntry> = messages.map(|message| self.entry(message, look)).collect();
        if range.end <= self.read.start && !is_first {
            self.read.start = range.start;
            self.top.0 += entries.len();
            entries.into_iter().rev().for_each(|entry| self.entries.push_front(entry));
        } else {
            self.read.end = range.end.min(total).max(self.read.end);
            self.entries.extend(entries);
        }
        if is_first {
            let entry = self.entries.iter().position(|entry| entry.message.sequence >= self.start);
            let entry = entry.unwrap_or(0);
            self.top = (entry, self.first_line(entry));
        }
        self.clamp();
    }

    /// The line of an entry to begin with: its first one, unless the match would be below the screen.
    fn first_line(&self, entry: usize) -> usize {
        /// Lines above the match.
        const ABOVE: usize = 3;
        let found = self.entries.get(entry).and_then(|entry| entry.first_match).unwrap_or(0);
        if found + ABOVE < self.size.1 { 0 } else { found.saturating_sub(ABOVE) }
    }

    /// Records that messages could not be read.
    pub(super) fn failed(&mut self) {
        (self.is_loading, self.has_failed) = (false, true);
    }

    /// Whether nothing is shown yet.
    pub(super) fn is_loading(&self) -> bool {
        self.total.is_none() && !self.has_failed
    }

    fn entry(&self, message: MessageView, look: &Look) -> ConversationEntry {
        let is_marked = self.hits.contains(&message.sequence);
        let how = How {
            width: self.size.0,
            full: self.full || is_marked,
            max_chars: MAX_CHARS,
            is_marked,
            rest: "(f shows them)",
        };
        let MessageLines { lines, first_match } = look.message(&message, how);
        ConversationEntry { message, lines, first_match }
    }

    fn redo(&mut self, look: &Look) {
        let entries = std::mem::take(&mut self.entries);
        self.entries = entries.into_iter().map(|entry| self.entry(entry.message, look)).collect();
        let lines = self.entries.get(self.top.0).map_or(0, |entry| entry.lines.len());
        self.top.1 = self.top.1.min(lines.saturating_sub(1));
    }

    /// Fits the lines to the size of the screen.
    pub(super) fn resize(&mut self, width: usize, height: usize, look: &Look) {
        let is_wider = self.size.0 != width;
        self.size = (width, height);
        if is_wider {
            self.redo(look);
        }
        self.clamp();
    }

    /// Shows or hides complete tool output.
    pub(super) fn toggle_full(&mut self, look: &Look) {
        self.full = !self.full;
        self.redo(look);
        self.clamp();
    }

    /// The lines on the screen.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line<'static>> {
        let lines = self.entries.iter().skip(self.top.0).flat_map(|entry| entry.lines.iter());
        lines.skip(self.top.1).take(self.size.1)
    }

    /// The number of the message that was gone to, or else of the one at the top of the screen.
    pub(super) fn current(&self) -> Option<u32> {
        let top = self.entries.get(self.top.0).map(|entry| entry.message.sequence)?;
        Some(self.gone_to.unwrap_or(top))
    }

    /// Its address, or the address of the requested message if no message is shown.
    pub(super) fn address(&self) -> String {
        address(&self.short, self.current().unwrap_or(self.start))
    }

    /// The current message.
    pub(super) fn message(&self) -> Option<&MessageView> {
        let current = self.current()?;
        self.entries.iter().map(|entry| &entry.message).find(|message| message.sequence == current)
    }

    /// The position of the current message among the hits, counted from 1, and their number.
    pub(super) fn hit(&self) -> Option<(usize, usize)> {
        let current = self.current()?;
        let at = self.hits.iter().position(|hit| *hit == current)?;
        Some((at + 1, self.hits.len()))
    }

    /// Marks further messages that were found.
    pub(super) fn mark(&mut self, hits: Vec<u32>, look: &Look) {
        self.hits.extend(hits);
        self.hits.sort_unstable();
        self.hits.dedup();
        self.redo(look);
        self.clamp();
    }

    /// Goes to the next hit, or to the one before. Returns whether there is one.
    pub(super) fn go_to_hit(&mut self, is_down: bool) -> bool {
        let Some(current) = self.current() else { return false };
        let found = if is_down {
            self.hits.iter().find(|hit| **hit > current)
        } else {
            self.hits.iter().rev().find(|hit| **hit < current)
        };
        let Some(hit) = found.copied() else { return false };
        self.go_to(hit);
        true
    }

    /// Goes to a message, which may have to be read first.
    fn go_to(&mut self, sequence: u32) {
        if let Some(entry) = self.entries.iter().position(|entry| entry.message.sequence >= sequence)
            && self.read.contains(&sequence)
        {
            self.top = (entry, self.first_line(entry));
            self.gone_to = Some(sequence);
        } else if !self.is_loading {
            self.restart(sequence);
        }
        self.clamp();
    }

    /// Reads the session again, from a message on.
    fn restart(&mut self, sequence: u32) {
        self.start = sequence;
        self.gone_to = Some(sequence);
        let start = sequence.saturating_sub(BEFORE);
        (self.total, self.read) = (None, start..start);
        self.entries.clear();
        self.top = (0, 0);
    }

    /// Scrolls by screens, minus two lines.
    pub(super) fn page(&mut self, is_down: bool) {
        let lines = self.size.1.saturating_sub(2).max(1);
        self.scroll(lines, is_down);
    }

    /// Scrolls by lines.
    pub(super) fn scroll(&mut self, lines: usize, is_down: bool) {
        self.gone_to = None;
        for _ in 0..lines {
            let (entry, line) = self.top;
            let count = self.entries.get(entry).map_or(0, |entry| entry.lines.len());
            self.top = if is_down && line + 1 < count {
                (entry, line + 1)
            } else if is_down && entry + 1 < self.entries.len() {
                (entry + 1, 0)
            } else if !is_down && line > 0 {
                (entry, line - 1)
            } else if !is_down && entry > 0 {
                let before = self.entries.get(entry - 1).map_or(0, |entry| entry.lines.len());
                (entry - 1, before.saturating_sub(1))
            } else {
                break;
            };
        }
        self.clamp();
    }

    /// Goes to the beginning of the next message. In the other direction, goes to the beginning of this message or the
    /// previous one.
    pub(super) fn step(&mut self, is_down: bool) {
        let Some(current) = self.current() else { return };
        let Some(at) = self.entries.iter().position(|entry| entry.message.sequence == current) else {
            return;
        };
        let is_inside = self.top.0 == at && self.top.1 > 0;
        let next = if is_down {
            at + 1
        } else if is_inside {
            at
        } else {
            at.saturating_sub(1)
        };
        let next = next.min(self.entries.len().saturating_sub(1));
        self.top = (next, 0);
        self.gone_to = self.entries.get(next).map(|entry| entry.message.sequence);
        self.clamp();
    }

    /// Goes to the first or the last message. They may have to be read first.
    pub(super) fn go(&mut self, is_end: bool) {
        let Some(total) = self.total else { return };
        let is_read = if is_end { self.read.end == total } else { self.read.start == 0 };
        if is_read {
            let entry = if is_end { self.entries.len().saturating_sub(1) } else { 0 };
            self.top = (entry, 0);
            self.gone_to = self.entries.get(entry).map(|entry| entry.message.sequence);
        } else if !self.is_loading {
            self.restart(if is_end { total.saturating_sub(1) } else { 0 });
        }
        self.clamp();
    }

    /// Leaves no empty lines at the end of the screen if there are messages to fill them.
    fn clamp(&mut self) {
        let is_at_end = self.total.is_some_and(|total| self.read.end >= total);
        if !is_at_end {
            return;
        }
        let mut missing = self.size.1.saturating_sub(self.below(self.size.1));
        while missing > 0 && self.top != (0, 0) {
            let (entry, line) = self.top;
            let up = line.min(missing);
            missing -= up;
            self.top.1 -= up;
            if missing > 0 && entry > 0 {
                let before = self.entries.get(entry - 1).map_or(0, |entry| entry.lines.len());
                self.top = (entry - 1, before);
            }
        }
    }

    /// The number of lines from the top of the screen on, counted up to `enough`.
    fn below(&self, enough: usize) -> usize {
        let mut count = 0;
        for entry in self.entries.iter().skip(self.top.0) {
            count += entry.lines.len();
            if count >= enough + self.top.1 {
                break;
            }
        }
        count.saturating_sub(self.top.1)
    }

    /// The number of lines above the screen, counted up to `enough`.
    fn above(&self, enough: usize) -> usize {
        let mut count = self.top.1;
        for entry in self.entries.iter().take(self.top.0).rev() {
            if count >= enough {
                break;
            }
            count += entry.lines.len();
        }
        count
    }
}
