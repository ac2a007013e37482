//! Draws the interactive search.

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::{Position, Rect},
    style::{Modifier, Style},
    text::{Line, Span},
};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{
    conversation::Conversation,
    draw_lists::{draw_help, draw_picker},
    results::{Hit, ListRow, SessionHits},
    state::SearchState,
    text::{Look, marked},
};
use crate::render::{
    groups::more,
    text::{fitted, fitted_end, grouped, one_line},
};

/// From this width on, the preview is beside the list, so that snippets still have room; otherwise, it is below.
const WIDE: u16 = 160;
/// The preview is left out if list and preview have fewer lines than this.
const HIGH: u16 = 8;
/// The width of the number of a result.
const NUMBER: usize = 5;
/// The width of its content type.
const KIND: usize = 11;
/// The most lines of filters.
const FILTER_LINES: usize = 3;

/// Draws everything, and adjusts scroll positions to the size of the screen.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut SearchState) {
    let area = frame.area();
    if state.help.is_some() {
        draw_help(frame, area, state);
    } else if state.conversation.is_some() {
        draw_conversation(frame, area, state);
    } else {
        draw_search(frame, area, state);
    }
    separate(frame.buffer_mut());
}

/// Gives two characters of one column each their own cells where one cell has both, as in Thai and in flags: a terminal
/// may show them side by side, and a part of them would stay when the cell is drawn over.
fn separate(buffer: &mut Buffer) {
    for at in 1..buffer.content.len() {
        let Some([cell, next]) = buffer.content.get_mut(at - 1..=at) else { continue };
        let wide = cell.symbol().char_indices().filter(|(_, c)| c.width() != Some(0));
        let wide: Vec<(usize, Option<usize>)> = wide.map(|(start, c)| (start, c.width())).collect();
        if let [(_, Some(1)), (start, Some(1))] = wide.as_slice()
            && cell.symbol().width() == 2
        {
            let (first, second) = cell.symbol().split_at(*start);
            next.set_style(cell.style()).set_symbol(second);
            let first = first.to_owned();
            cell.set_symbol(&first);
        }
    }
}

/// The first `height` lines of `area`, and the rest.
pub(super) fn split(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let rest = Rect { y: area.y + height, height: area.height - height, ..area };
    (Rect { height, ..area }, rest)
}

/// The area without its last line, and that line.
pub(super) fn split_last(area: Rect) -> (Rect, Rect) {
    split(area, area.height.saturating_sub(1))
}

pub(super) fn put(frame: &mut Frame<'_>, area: Rect, at: u16, line: &Line<'_>) {
    if at < area.height {
        frame.render_widget(line, Rect { y: area.y + at, height: 1, ..area });
    }
}

fn draw_search(frame: &mut Frame<'_>, area: Rect, state: &mut SearchState) {
    let (query, rest) = split(area, 1);
    draw_query(frame, query, state);
    let filters = filter_lines(state, usize::from(area.width));
    let (area, rest) = split(rest, filters.len() as u16);
    for (at, line) in (0..).zip(&filters) {
        put(frame, area, at, line);
    }
    let (rest, footer) = split_last(rest);
    draw_footer(frame, footer, state);
    let (above, rest) = split(rest, 1);
    let title = if state.list.found.are_recent { "recent sessions" } else { "" };
    put(frame, above, 0, &rule(title, usize::from(above.width), &state.look));
    if state.picker.is_some() {
        draw_picker(frame, rest, state);
    } else if state.list.is_empty() {
        state.preview = None;
        draw_explanation(frame, rest, state);
    } else {
        let (list, preview) = list_and_preview(frame, rest, &state.look);
        draw_list(frame, list, state);
        if let Some(area) = preview {
            draw_preview(frame, area, state);
        }
    }
}

/// The areas of the list and of the preview, if there is room for one: beside the list with a divider, or below it.
fn list_and_preview(frame: &mut Frame<'_>, area: Rect, look: &Look) -> (Rect, Option<Rect>) {
    if area.height < HIGH {
        return (area, None);
    }
    if area.width < WIDE {
        let (list, preview) = split(area, area.height / 2);
        return (list, Some(preview));
    }
    let width = area.width / 2;
    let beside = Rect { x: area.x + width + 1, width: area.width - width - 1, ..area };
    let divider = Rect { x: area.x + width, width: 1, ..area };
    for at in 0..divider.height {
        put(frame, divider, at, &Line::styled("│", look.aside()));
    }
    (Rect { width, ..area }, Some(beside))
}

/// The message that replaces an empty list of results.
fn draw_explanation(frame: &mut Frame<'_>, area: Rect, state: &SearchState) {
    let text = if let Some(error) = &state.error {
        error.clone()
    } else if state.is_searching() {
        "Searching …".to_owned()
    } else if let Some(others) = state.others.as_ref().filter(|_| state.list.found.are_recent) {
        others.clone()
    } else if state.is_store_empty() {
        "The store has no sessions yet: `amplifier-sessions sync` reads them.".to_owned()
    } else if state.list.found.are_recent {
        "No session passes the filters. Ctrl-F changes them.".to_owned()
    } else {
        let notices = state.list.found.notices.iter().map(|notice| format!("\n{}", one_line(notice)));
        format!("No message matches. Ctrl-F changes the filters.{}", notices.collect::<String>())
    };
    let (_, area) = split(area, 1);
    let width = usize::from(area.width).saturating_sub(2);
    let lines = text.lines().flat_map(|line| state.look.wrapped_text(&one_line(line), width));
    for (at, line) in (0..).zip(lines) {
        let area = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
        put(frame, area, at, &line);
    }
}

fn draw_query(frame: &mut Frame<'_>, area: Rect, state: &SearchState) {
    const LABEL: &str = " Search: ";
    let width = usize::from(area.width);
    let mut count = if state.is_searching() {
        "searching … ".to_owned()
    } else if state.list.is_empty() {
        String::new()
    } else {
        format!("{} ", state.list.count())
    };
    // The query gets the room first.
    if LABEL.len() + 20 + count.width() > width {
        count.clear();
    }
    let room = width.saturating_sub(LABEL.len() + count.width() + 1);
    let (text, cursor) = state.query.window(room);
    let gap = " ".repeat(room.saturating_sub(text.width()) + 1);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let spans = [
        Span::styled(LABEL, state.look.aside()),
        Span::styled(text, bold),
        Span::raw(gap),
        Span::styled(count, state.look.aside()),
    ];
    put(frame, area, 0, &spans.into_iter().collect());
    if state.picker.is_none() && area.height > 0 {
        let column = area.x.saturating_add((LABEL.len() + cursor) as u16);
        frame.set_cursor_position(Position::new(column.min(area.right().saturating_sub(1)), area.y));
    }
}

/// The filters that exclude something, on as many lines as they need.
fn filter_lines(state: &SearchState, width: usize) -> Vec<Line<'static>> {
    let shown = state.filters.shown();
    if shown.is_empty() {
        return vec![Line::styled(fitted(" no filters", width), state.look.aside())];
    }
    let mut lines = vec![Line::raw(" ")];
    let mut used = 1;
    for (kind, value) in shown {
        let name = kind.name();
        let room = width.saturating_sub(name.width() + 3);
        let value = fitted_end(&one_line(&value), room.min(50));
        let wide = name.width() + value.width() + usize::from(!value.is_empty());
        if used > 1 && used + 3 + wide > width {
            lines.push(Line::raw(" "));
            used = 1;
        }
        let Some(line) = lines.last_mut() else { break };
        if used > 1 {
            line.push_span(Span::styled(" · ", state.look.aside()));
            used += 3;
        }
        line.push_span(Span::styled(name, state.look.aside()));
        line.push_span(Span::raw(if value.is_empty() { value } else { format!(" {value}") }));
        used += wide;
    }
    lines.truncate(FILTER_LINES);
    lines
}

/// A line across the screen, with a title.
pub(super) fn rule(title: &str, width: usize, look: &Look) -> Line<'static> {
    let title = if title.is_empty() { String::new() } else { format!("── {title} ") };
    let title = fitted(&title, width);
    let rest = "─".repeat(width.saturating_sub(title.width()));
    Line::styled(title + &rest, look.aside())
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, state: &mut SearchState) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    state.snippet_width = width.saturating_sub(NUMBER + KIND + 5);
    state.page = height.max(1);
    let rows = state.list.rows();
    let selected = rows.iter().position(|row| state.list.is_selected(*row)).unwrap_or(0);
    // The heading of the session stays in view with its first result.
    let from = match selected.checked_sub(1).and_then(|before| rows.get(before)) {
        Some(ListRow::Session(_)) => selected - 1,
        _ => selected,
    };
    let last_top = rows.len().saturating_sub(height);
    state.list.top =
        state.list.top.min(from).max((selected + 1).saturating_sub(height)).min(last_top.max(from));
    for (at, row) in (0..area.height).zip(rows.iter().skip(state.list.top)) {
        let line = row_line(*row, width, state);
        put(frame, area, at, &line);
    }
}

fn row_line(row: ListRow, width: usize, state: &SearchState) -> Line<'static> {
    let look = &state.look;
    let is_selected = state.list.is_selected(row);
    let found = &state.list.found;
    let line = match row {
        ListRow::Session(at) => found.groups.get(at).map(|group| session_line(group, width, look)),
        ListRow::Hit(at, _) if found.are_recent => {
            found.groups.get(at).map(|group| recent_line(group, is_selected, width, look))
        }
        ListRow::More(_, count) => more(count).map(|text| {
            let style = chosen(is_selected, look.aside());
            let mark = if is_selected { " > " } else { "   " };
            filled(Line::styled(format!("{mark}{text} (Enter shows them)"), style), width, style)
        }),
        ListRow::Hit(group, hit) => {
            let found = found.groups.get(group).and_then(|group| group.hits.get(hit));
            found.map(|found| hit_line(found, is_selected, width, look))
        }
    };
    line.unwrap_or_default()
}

/// The style of a line that may be selected.
pub(super) fn chosen(is_selected: bool, style: Style) -> Style {
    if is_selected { Style::new().add_modifier(Modifier::REVERSED) } else { style }
}

/// The line with spaces up to `width`.
pub(super) fn filled(mut line: Line<'static>, width: usize, style: Style) -> Line<'static> {
    let rest = width.saturating_sub(line.width());
    line.push_span(Span::styled(" ".repeat(rest), style));
    line
}

fn session_line(group: &SessionHits, width: usize, look: &Look) -> Line<'static> {
    let when = if width < 50 { String::new() } else { format!(" {} ", group.when) };
    let room = width.saturating_sub(when.width() + 1);
    let title = fitted(&one_line(&group.title), room);
    let gap = " ".repeat(room.saturating_sub(title.width()));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let spans = [Span::raw(" "), Span::styled(title, bold), Span::raw(gap), Span::styled(when, look.aside())];
    spans.into_iter().collect()
}

/// A recent session: its title, its project if there is room, and its time.
fn recent_line(group: &SessionHits, is_selected: bool, width: usize, look: &Look) -> Line<'static> {
    let plain = chosen(is_selected, Style::new());
    let aside = chosen(is_selected, look.aside());
    let mark = if is_selected { " > " } else { "   " };
    let when = if width < 50 { String::new() } else { format!(" {} ", group.when) };
    let project = if width < 100 { String::new() } else { fitted_end(&one_line(&group.project), width / 4) };
    let room = width.saturating_sub(mark.width() + when.width() + project.width() + 1);
    let title = fitted(&one_line(&group.title), room);
    let gap = " ".repeat(room.saturating_sub(title.width()) + 1);
    let line = Line::from(vec![
        Span::styled(mark, plain),
        Span::styled(title, plain),
        Span::styled(gap, plain),
        Span::styled(project, aside),
        Span::styled(when, aside),
    ]);
    filled(line, width, plain)
}

fn hit_line(found: &Hit, is_selected: bool, width: usize, look: &Look) -> Line<'static> {
    let plain = chosen(is_selected, Style::new());
    let aside = chosen(is_selected, look.aside());
    let mark = if is_selected { " > " } else { "   " };
    let number = format!("#{}", found.sequence);
    let mut line = Line::from(vec![
        Span::styled(format!("{mark}{number:<NUMBER$} "), plain),
        Span::styled(format!("{:<KIND$} ", found.kind), aside),
    ]);
    if let Some(remark) = &found.remark {
        line.push_span(Span::styled(format!("({remark}) "), aside));
    }
    let room = width.saturating_sub(line.width());
    for span in marked(&found.snippet, &found.highlights, room, (plain, look.hit())) {
        line.push_span(span);
    }
    filled(line, width, plain)
}

fn draw_preview(frame: &mut Frame<'_>, area: Rect, state: &mut SearchState) {
    let width = usize::from(area.width);
    let (above, area) = split(area, 1);
    let Some(preview) = &mut state.preview else { return };
    let room = width.saturating_sub(preview.address.width() + 10);
    let title = format!("{} · {}", preview.address, fitted_end(&one_line(&preview.project), room));
    put(frame, above, 0, &rule(&title, width, &state.look));
    preview.resize(width.saturating_sub(1), usize::from(area.height), &state.look);
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area };
    for (at, line) in (0..).zip(preview.lines()) {
        put(frame, area, at, line);
    }
}

fn draw_footer(frame: &mut Frame<'_>, area: Rect, state: &SearchState) {
    let notice = state.list.found.notices.first().filter(|_| !state.list.is_empty());
    let text = match (&state.status, notice) {
        (Some(status), _) => one_line(status),
        _ if state.is_copying => COPY.to_owned(),
        _ if state.picker.is_some() => String::new(),
        (None, Some(notice)) => one_line(notice),
        (None, None) => first_fitting(
            &[
                "Enter open · Tab fields · Ctrl-F filters · Ctrl-Y copy · F1 help · Esc quit",
                "Enter open · Ctrl-F filters · F1 help · Esc quit",
                "F1 help · Esc quit",
            ],
            area.width,
        ),
    };
    draw_status(frame, area, &text, &state.look);
}

const COPY: &str = "Copy: t text · c command · a address · Esc nothing";

/// The first of these texts that fits, or else the last.
pub(super) fn first_fitting(texts: &[&str], width: u16) -> String {
    let fits = texts.iter().find(|text| text.width() + 2 <= usize::from(width));
    fits.or(texts.last()).map(|text| (*text).to_owned()).unwrap_or_default()
}

pub(super) fn draw_status(frame: &mut Frame<'_>, area: Rect, text: &str, look: &Look) {
    let text = fitted(text, usize::from(area.width).saturating_sub(2));
    put(frame, area, 0, &Line::styled(format!(" {text}"), look.aside()));
}

fn draw_conversation(frame: &mut Frame<'_>, area: Rect, state: &mut SearchState) {
    let SearchState { conversation, look, status, is_copying, .. } = state;
    let Some(conversation) = conversation else { return };
    let (head, rest) = split(area, 2);
    let (rest, footer) = split_last(rest);
    let (above, body) = split(rest, 1);
    let width = usize::from(area.width);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = fitted(&one_line(&conversation.title), width.saturating_sub(2));
    put(frame, head, 0, &Line::styled(format!(" {title}"), bold));
    put(frame, head, 1, &Line::styled(about(conversation, width), look.aside()));
    put(frame, above, 0, &rule("", width, look));
    conversation.resize(width.saturating_sub(2), usize::from(body.height), look);
    let body = Rect { x: body.x + 1, width: body.width.saturating_sub(1), ..body };
    if conversation.is_loading() {
        put(frame, body, 0, &Line::raw("Loading …"));
    }
    for (at, line) in (0..).zip(conversation.lines()) {
        put(frame, body, at, line);
    }
    let text = match status {
        Some(status) => one_line(status),
        None if *is_copying => COPY.to_owned(),
        None => first_fitting(
            &[
                "↑↓ Space b scroll · n p hits · → ← messages · f full · y copy · e edit · ? keys · q back",
                "Space b scroll · n p hits · → ← messages · y copy · e edit · ? keys · q back",
                "n p hits · → ← messages · ? keys · q back",
                "? keys · q back",
            ],
            area.width,
        ),
    };
    draw_status(frame, footer, &text, look);
}

/// Details of the session: address of the message, how far it was read, hits, project.
fn about(conversation: &Conversation, width: usize) -> String {
    let mut known = format!(" {}", conversation.address());
    if let Some(total) = conversation.total {
        known = format!("{known} of 0 to {}", grouped(u64::from(total.saturating_sub(1))));
    }
    if let Some((hit, of)) = conversation.hit() {
        known = format!("{known} · hit {hit} of {of}");
    }
    let room = width.saturating_sub(known.width() + 4);
    fitted(&format!("{known} · {}", fitted_end(&one_line(&conversation.project), room)), width)
}
