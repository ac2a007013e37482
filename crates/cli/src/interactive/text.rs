//! Messages as styled lines.

use amplifier_session_api::views::MessageView;
use amplifier_session_storage::{
    KnownPart,
    text::{Analyzer, query_terms},
};
use jiff::Zoned;
use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use unicode_width::UnicodeWidthChar as _;

use crate::{
    dates,
    paint::Paint,
    render::{
        message::{self, MessageOptions},
        note,
        text::visible,
        wrap,
    },
};

/// The common properties of all texts.
#[derive(Debug)]
pub(super) struct Look {
    /// Whether there are colours.
    pub(super) is_coloured: bool,
    pub(super) now: Zoned,
    /// The words to highlight.
    terms: Vec<String>,
}

/// How to show one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    pub(super) width: usize,
    /// Whether to show tool calls and their output completely.
    pub(super) full: bool,
    /// The maximum number of characters.
    pub(super) max_chars: usize,
    /// Whether this is the requested message.
    pub(super) is_marked: bool,
    /// The instruction for showing text that was cut off, which replaces the option of the command line.
    pub(super) rest: &'static str,
}

/// A message as lines: a heading, the text, and an empty line.
#[derive(Debug, Default)]
pub(super) struct MessageLines {
    pub(super) lines: Vec<Line<'static>>,
    /// The first line with a highlighted word.
    pub(super) first_match: Option<usize>,
}

impl Look {
    pub(super) fn new(is_coloured: bool, now: Zoned) -> Self {
        Self { is_coloured, now, terms: Vec::new() }
    }

    /// Highlights the words of `query` from now on.
    pub(super) fn highlight(&mut self, query: &str) {
        self.terms = query_terms(query);
    }

    /// A style of the palette, without its colour if there are no colours.
    pub(super) fn style(&self, style: Style) -> Style {
        if self.is_coloured { style } else { Style { fg: None, ..style } }
    }

    /// Less important text.
    pub(super) fn aside(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// A matched word. It is underlined, too, where there are no colours.
    pub(super) fn hit(&self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.is_coloured { style.fg(Color::Yellow) } else { style.add_modifier(Modifier::UNDERLINED) }
    }

    /// The message as lines.
    pub(super) fn message(&self, message: &MessageView, how: How) -> MessageLines {
        let line = message.line();
        let paint = Paint::new(true);
        let options = MessageOptions {
            full: how.full,
            max_chars: Some(how.max_chars),
            width: Some(how.width),
            ..MessageOptions::whole(paint)
        };
        let mark = if how.is_marked { "> " } else { "" };
        let place = paint.title(&format!("#{}", message.sequence));
        let role = paint.speaker(message.role, &message::speaker(&line));
        let when = dates::about_minute(message.ts, message.ts_estimated, &self.now);
        let heading = format!("{mark}{place} {role}{}", paint.aside(&format!(" · {when}")));
        let mut shown = MessageLines { lines: wrapped(&self.chars(&heading), how.width), first_match: None };
        let mut analyzer = Analyzer::looking_for(&self.terms);
        for text in message::body(&line, options, "  ") {
            let text = text.replace("(--full)", how.rest).replace("(--max-chars 0)", "");
            let chars = self.chars(&text);
            let (lines, first_match) = self.highlighted(chars, how.width, &mut analyzer);
            shown.first_match = shown.first_match.or(first_match.map(|at| shown.lines.len() + at));
            shown.lines.extend(lines);
        }
        shown.lines.push(Line::default());
        shown
    }

    /// Plain text as lines.
    pub(super) fn wrapped_text(&self, text: &str, width: usize) -> Vec<Line<'static>> {
        let lines = note::wrapped_line(text, "", "", width);
        lines.iter().flat_map(|line| wrapped(&self.chars(line), width)).collect()
    }

    /// The characters as lines, and the first line with a match.
    fn highlighted(
        &self,
        mut chars: Vec<(char, Style)>,
        width: usize,
        analyzer: &mut Analyzer,
    ) -> (Vec<Line<'static>>, Option<usize>) {
        let plain: String = chars.iter().map(|(c, _)| *c).collect();
        let mut has_match = false;
        let mut tokens = analyzer.tokens(&plain);
        // The character index of a byte offset. Both only increase.
        let (mut byte, mut at) = (0, 0);
        while tokens.advance() {
            if !self.terms.iter().any(|term| term == tokens.term()) {
                continue;
            }
            let range = tokens.range();
            at += plain.part(byte..range.start).chars().count();
            let length = plain.part(range.clone()).chars().count();
            byte = range.start;
            for (_, style) in chars.iter_mut().skip(at).take(length) {
                *style = style.patch(self.hit());
            }
            has_match = true;
        }
        let lines = wrapped(&chars, width);
        let is_hit = |span: &Span<'_>| span.style.patch(self.hit()) == span.style;
        let first_match = lines.iter().position(|line| line.spans.iter().any(is_hit));
        (lines, first_match.filter(|_| has_match))
    }

    /// The characters of painted text. All escape sequences in it come from [`Paint`].
    fn chars(&self, painted: &str) -> Vec<(char, Style)> {
        let mut chars = Vec::with_capacity(painted.len());
        let mut style = Style::new();
        let mut rest = painted;
        while let Some((before, after)) = rest.split_once("\x1b[") {
            chars.extend(before.chars().map(|c| (c, style)));
            let (codes, after) = after.split_once('m').unwrap_or((after, ""));
            style = self.style(codes.split(';').fold(style, with_code));
            rest = after;
        }
        chars.extend(rest.chars().map(|c| (c, style)));
        chars
    }
}

/// `style` with the effect of a code of an escape sequence.
fn with_code(style: Style, code: &str) -> Style {
    match code {
        "1" => style.add_modifier(Modifier::BOLD),
        "2" => style.add_modifier(Modifier::DIM),
        "31" => style.fg(Color::Red),
        "32" => style.fg(Color::Green),
        "33" => style.fg(Color::Yellow),
        "35" => style.fg(Color::Magenta),
        "36" => style.fg(Color::Cyan),
        _ => Style::new(),
    }
}

/// Characters as lines of at most `width` columns, which break between words. A word that is wider than a line is cut.
/// Further lines are indented as the first one is, and by at least two columns.
fn wrapped(chars: &[(char, Style)], width: usize) -> Vec<Line<'static>> {
    const INDENT: usize = 2;
    let width = width.max(INDENT + 2);
    let text: String = chars.iter().map(|(c, _)| *c).collect();
    let spaces = chars.iter().take_while(|(c, _)| c.is_whitespace()).count();
    let indent = chars.iter().take(spaces).map(|(c, _)| columns(*c)).sum::<usize>();
    let indent = indent.min(width / 2).max(INDENT);
    let mut beginnings = wrap::beginnings(&text, width - indent).into_iter().peekable();
    let mut lines = Vec::new();
    // The beginning of this line, and the last place at which the next one may begin, with the columns up to there.
    let (mut start, mut next) = (0, None);
    let mut used = 0;
    for (at, (c, _)) in chars.iter().enumerate() {
        if beginnings.next_if_eq(&at).is_some() && at > spaces {
            next = Some((at, used));
        }
        // White space at the end of a line takes no room.
        while used + columns(*c) > width && !c.is_whitespace() && at > start {
            let (end, up_to) = next.filter(|(end, _)| *end > start).unwrap_or((at, used));
            lines.push(line_of(chars.part(start..end), lines.len(), indent));
            (start, next, used) = (end, None, indent + used - up_to);
        }
        used += columns(*c);
    }
    lines.push(line_of(chars.part(start..), lines.len(), indent));
    lines
}

/// A tab is shown as this many spaces.
const TAB: usize = 4;

fn columns(c: char) -> usize {
    if c == '\t' { TAB } else { c.width().unwrap_or(0) }
}

/// The characters as line number `at` of those that are indented by `indent` columns, except for the first.
fn line_of(chars: &[(char, Style)], at: usize, indent: usize) -> Line<'static> {
    let mut runs: Vec<(String, Style)> = Vec::new();
    runs.extend((at > 0).then(|| (" ".repeat(indent), Style::new())));
    for (c, style) in chars {
        if runs.last().is_none_or(|(_, last)| last != style) {
            runs.push((String::new(), *style));
        }
        if let Some((run, _)) = runs.last_mut() {
            match c {
                '\t' => run.push_str(&" ".repeat(TAB)),
                c => run.push(*c),
            }
        }
    }
    runs.into_iter().map(|(run, style)| Span::styled(run, style)).collect()
}

/// `text` in one line of at most `width` columns, with the characters in `ranges` highlighted. The first of them are in
/// view.
pub(super) fn marked(
    text: &str,
    ranges: &[(u32, u32)],
    width: usize,
    (plain, hit): (Style, Style),
) -> Vec<Span<'static>> {
    let mut chars: Vec<(char, bool)> = Vec::new();
    let mut is_after_space = true;
    for (at, c) in (0_u32..).zip(text.chars()) {
        let was_after_space = std::mem::replace(&mut is_after_space, c.is_whitespace());
        if is_after_space && was_after_space {
            continue;
        }
        let Some(c) = (if is_after_space { Some(' ') } else { visible(c) }) else { continue };
        chars.push((c, ranges.iter().any(|(start, end)| (*start..*end).contains(&at))));
    }
    let chars = in_view(&chars, width);
    let mut runs: Vec<(String, bool)> = Vec::new();
    for (c, is_hit) in chars {
        match runs.last_mut() {
            Some((run, same)) if *same == is_hit => run.push(c),
            _ => runs.push((String::from(c), is_hit)),
        }
    }
    let style = |is_hit| if is_hit { plain.patch(hit) } else { plain };
    runs.into_iter().map(|(run, is_hit)| Span::styled(run, style(is_hit))).collect()
}

/// The part of a line that fits into `width` columns, with ellipses for what is cut off: its beginning, or a later part if
/// the first hit would not be in view.
fn in_view(chars: &[(char, bool)], width: usize) -> Vec<(char, bool)> {
    const ELLIPSIS: (char, bool) = ('…', false);
    let wide = |chars: &[(char, bool)]| chars.iter().map(|(c, _)| columns(*c)).sum::<usize>();
    if wide(chars) <= width {
        return chars.to_vec();
    }
    let first = chars.iter().position(|(_, is_hit)| *is_hit).unwrap_or(0);
    let hit = chars.part(first..).iter().take_while(|(_, is_hit)| *is_hit).count();
    let mut shown = Vec::new();
    let mut start = 0;
    if wide(chars.part(..first + hit)) + 1 > width {
        // The hit is in the middle then.
        let mut left = (width / 2).saturating_sub(1);
        start = first;
        while let Some((c, _)) = start.checked_sub(1).and_then(|before| chars.get(before)) {
            let Some(rest) = left.checked_sub(columns(*c)) else { break };
            (start, left) = (start - 1, rest);
        }
        shown.push(ELLIPSIS);
    }
    let rest = chars.part(start..);
    let room = width.saturating_sub(shown.len());
    if wide(rest) <= room {
        shown.extend_from_slice(rest);
        return shown;
    }
    let mut used = 1;
    for (c, is_hit) in rest {
        used += columns(*c);
        if used > room {
            break;
        }
        shown.push((*c, *is_hit));
    }
    shown.push(ELLIPSIS);
    shown
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn look(is_coloured: bool) -> Look {
        let now = "2026-01-05T08:00:00Z".parse::<jiff::Timestamp>().unwrap().to_zoned(TimeZone::UTC);
        let mut look = Look::new(is_coloured, now);
        look.highlight("cafés wörld");
        look
    }

    fn plain(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paint_becomes_styles() {
        let paint = Paint::new(true);
        let text = format!("a {} {}", paint.tool("b"), paint.title("c"));
        let lines = wrapped(&look(true).chars(&text), 80);
        let spans = &lines[0].spans;
        assert_eq!(plain(&lines), ["a b c"]);
        assert_eq!(spans[1].style, Style::new().fg(Color::Magenta));
        assert_eq!(spans[3].style, Style::new().add_modifier(Modifier::BOLD));
        let lines = wrapped(&look(false).chars(&text), 80);
        assert!(lines[0].spans.iter().all(|span| span.style.fg.is_none()));
    }

    #[test]
    fn words_are_highlighted_in_any_form() {
        let look = look(false);
        let highlighted =
            |text: &str| look.highlighted(look.chars(text), 20, &mut Analyzer::looking_for(&look.terms));
        let (lines, first_match) = highlighted("the Café, 日 worlds");
        let hits: Vec<_> = lines[0]
            .spans
            .iter()
            .filter(|span| span.style == look.hit())
            .map(|span| span.content.clone().into_owned())
            .collect();
        assert_eq!((hits, first_match), (vec!["Café".to_owned(), "worlds".to_owned()], Some(0)));
        assert_eq!(highlighted("nothing in the first line, café").1, Some(1));
        assert_eq!(highlighted("nothing").1, None);
    }

    #[test]
    fn lines_break_between_words() {
        let shown = |text: &str, width| plain(&wrapped(&look(true).chars(text), width));
        assert_eq!(shown("one two three", 9), ["one two ", "  three"]);
        assert_eq!(shown("one two   ", 7), ["one two   "]);
        assert_eq!(shown("ab\tcdef日本語x", 8), ["ab    ", "  cdef日", "  本語x"]);
        assert_eq!(shown("烤箱太冷了。请修理", 8), ["烤箱太冷", "  了。请", "  修理"]);
        assert_eq!(shown("    - one two three", 13), ["    - one two ", "    three"]);
    }

    #[test]
    fn a_word_that_is_wider_than_a_line_is_cut() {
        let shown = |text: &str| plain(&wrapped(&look(true).chars(text), 8));
        assert_eq!(shown("a averyverylongword b"), ["a ", "  averyv", "  erylon", "  gword ", "  b"]);
        assert_eq!(shown("    abcdefghij"), ["    abcd", "    efgh", "    ij"]);
        assert_eq!(shown(&"e\u{301}".repeat(9)).len(), 2);
    }

    #[test]
    fn snippets_are_marked_by_characters() {
        let styles = (Style::new(), look(true).hit());
        let spans = marked("das Café\u{1b}", &[(4, 8)], 80, styles);
        assert_eq!(spans.len(), 3);
        assert_eq!((&*spans[1].content, &*spans[2].content), ("Café", "\u{241b}"));
        let spans = marked("fn main() {\n    dough();\n}", &[(16, 21)], 80, styles);
        let texts: Vec<_> = spans.iter().map(|span| &*span.content).collect();
        assert_eq!(texts, ["fn main() { ", "dough", "(); }"]);
    }

    #[test]
    fn the_first_match_of_a_snippet_is_in_view() {
        let shown = |text: &str, hit| {
            let spans = marked(text, &[hit], 12, (Style::new(), look(true).hit()));
            spans.iter().map(|span| &*span.content).collect::<Vec<_>>().join("|")
        };
        assert_eq!(shown("one two 34567", (0, 3)), "one| two 345…");
        assert_eq!(shown("twelve chars", (0, 6)), "twelve| chars");
        assert_eq!(shown("烤箱太冷了请修理好", (0, 2)), "烤箱|太冷了…");
        assert_eq!(shown("烤箱太冷了请修理好", (6, 8)), "…了请|修理|好");
        assert_eq!(shown("烤箱太冷了请修理好吧再见", (6, 8)), "…了请|修理|好…");
    }
}
