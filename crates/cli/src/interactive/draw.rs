//! Draws the interactive search.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    style::{Modifier, Style},
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr as _;

use super::{
    conversation::Conversation,
    keys::Focus,
    state::{Hit, ListRow, SearchState, SessionHits},
    text::{Look, marked},
};
use crate::render::{
    groups::more,
    text::{fitted, fitted_end, grouped, one_line},
};

/// From this width on, the preview is beside the list; otherwise, it is below.
const WIDE: u16 = 100;
/// The preview is left out if list and preview have fewer lines than this.
const HIGH: u16 = 8;
/// The width of the number and the content type of a result.
const NUMBER: usize = 5;
const KIND: usize = 11;

/// Draws everything, and adjusts scroll positions to the size of the screen.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut SearchState) {
    let area = frame.area();
    if state.conversation.is_some() {
        draw_conversation(frame, area, state);
    } else {
        draw_search(frame, area, state);
    }
}

/// The first `height` lines of `area`, and the rest.
fn split(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let rest = Rect { y: area.y + height, height: area.height - height, ..area };
    (Rect { height, ..area }, rest)
}

/// The area without its last line, and that line.
fn split_last(area: Rect) -> (Rect, Rect) {
    split(area, area.height.saturating_sub(1))
}

fn put(frame: &mut Frame<'_>, area: Rect, at: u16, line: &Line<'_>) {
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
    put(frame, above, 0, &rule("", usize::from(above.width), &state.look));
    if state.found.groups.is_empty() {
        state.preview = None;
        put(frame, rest, 1, &Line::from(explanation(state)));
        return;
    }
    let (list, preview) = list_and_preview(frame, rest, &state.look);
    draw_list(frame, list, state);
    if let Some(area) = preview {
        draw_preview(frame, area, state);
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
    let width = area.width * 9 / 20;
    let beside = Rect { x: area.x + width + 1, width: area.width - width - 1, ..area };
    let divider = Rect { x: area.x + width, width: 1, ..area };
    for at in 0..divider.height {
        put(frame, divider, at, &Line::styled("│", look.aside()));
    }
    (Rect { width, ..area }, Some(beside))
}

/// The message that replaces an empty list of results.
fn explanation(state: &SearchState) -> String {
    let text = if state.is_empty {
        "The store has no sessions yet: `amplifier-sessions sync` reads them."
    } else if state.query.is_blank() {
        "Type words or a question."
    } else if state.is_searching() {
        "Searching …"
    } else {
        "No message matches. Tab changes the filters."
    };
    format!(" {text}")
}

fn draw_query(frame: &mut Frame<'_>, area: Rect, state: &SearchState) {
    const LABEL: &str = " Search: ";
    let width = usize::from(area.width);
    let mut count = if state.is_searching() {
        "searching … ".to_owned()
    } else if state.found.groups.is_empty() {
        String::new()
    } else {
        format!("{} ", state.count())
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
    if state.focus == Focus::Query && area.height > 0 {
        let column = area.x.saturating_add((LABEL.len() + cursor) as u16);
        frame.set_cursor_position(Position::new(column.min(area.right().saturating_sub(1)), area.y));
    }
}

/// The filters, on as many lines as they need.
fn filter_lines(state: &SearchState, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::raw(" ")];
    let mut used = 1;
    for (at, filter) in state.filters.shown().into_iter().enumerate() {
        let room = width.saturating_sub(2);
        let text =
            if filter.is_long { fitted_end(&filter.text, room.min(40)) } else { fitted(&filter.text, room) };
        let wide = text.width();
        if used > 1 && used + 1 + wide > width {
            lines.push(Line::raw(" "));
            used = 1;
        }
        let mut style = if filter.is_on { Style::new() } else { state.look.aside() };
        if state.focus == Focus::Filters && at == state.filters.at() {
            style = style.add_modifier(Modifier::REVERSED);
        }
        if let Some(line) = lines.last_mut() {
            if used > 1 {
                line.push_span(Span::raw(" "));
                used += 1;
            }
            line.push_span(Span::styled(text, style));
            used += wide;
        }
    }
    lines
}

/// A line across the screen, with a title.
fn rule(title: &str, width: usize, look: &Look) -> Line<'static> {
    let title = if title.is_empty() { String::new() } else { format!("── {title} ") };
    let title = fitted(&title, width);
    let rest = "─".repeat(width.saturating_sub(title.width()));
    Line::styled(title + &rest, look.aside())
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, state: &mut SearchState) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    state.snippet_width = width.saturating_sub(NUMBER + KIND + 5);
    let rows = state.rows();
    let selected = rows.iter().position(|row| state.is_selected(*row)).unwrap_or(0);
    // The heading of the session stays in view with its first result.
    let from = match selected.checked_sub(1).and_then(|before| rows.get(before)) {
        Some(ListRow::Session(_)) => selected - 1,
        _ => selected,
    };
    state.list_top = state.list_top.min(from).max((selected + 1).saturating_sub(height));
    for (at, row) in (0..area.height).zip(rows.iter().skip(state.list_top)) {
        let line = row_line(*row, width, state);
        put(frame, area, at, &line);
    }
}

fn row_line(row: ListRow, width: usize, state: &SearchState) -> Line<'static> {
    let look = &state.look;
    let line = match row {
        ListRow::Session(at) => state.found.groups.get(at).map(|group| session_line(group, width, look)),
        ListRow::More(count) => {
            more(count).map(|text| Line::styled(format!("   {text} (→ shows them)"), look.aside()))
        }
        ListRow::Hit(group, hit) => {
            let found = state.found.groups.get(group).and_then(|group| group.hits.get(hit));
            found.map(|found| hit_line(found, state.is_selected(row), width, look))
        }
    };
    line.unwrap_or_default()
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

fn hit_line(found: &Hit, is_selected: bool, width: usize, look: &Look) -> Line<'static> {
    let plain = if is_selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
    let mark = if is_selected { " > " } else { "   " };
    let number = format!("#{}", found.sequence);
    let aside = if is_selected { plain } else { look.aside() };
    let mut line = Line::from(vec![
        Span::styled(format!("{mark}{number:<NUMBER$} "), plain),
        Span::styled(format!("{:<KIND$} ", found.kind), aside),
    ]);
    for span in marked(&found.snippet, &found.highlights, plain, look.hit()) {
        line.push_span(span);
    }
    let rest = width.saturating_sub(line.width());
    line.push_span(Span::styled(" ".repeat(rest), plain));
    line
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
    let notice = state.found.notices.first();
    let text = match (&state.status, state.focus, notice) {
        (Some(status), ..) => one_line(status),
        (None, Focus::Filters, _) => "←→ choose · Space or ↑↓ change · Tab search · Esc back".to_owned(),
        (None, _, Some(notice)) => one_line(notice),
        (None, Focus::Results, None) => {
            "↑↓ choose · Enter open · y copy address · → more · / search · Esc quit".to_owned()
        }
        (None, _, None) => "↑↓ choose · Enter open · Tab results, filters · Esc quit".to_owned(),
    };
    draw_status(frame, area, &text, &state.look);
}

fn draw_status(frame: &mut Frame<'_>, area: Rect, text: &str, look: &Look) {
    let text = fitted(text, usize::from(area.width).saturating_sub(2));
    put(frame, area, 0, &Line::styled(format!(" {text}"), look.aside()));
}

fn draw_conversation(frame: &mut Frame<'_>, area: Rect, state: &mut SearchState) {
    let SearchState { conversation, look, status, .. } = state;
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
        None => {
            let address = conversation.address();
            format!("↑↓ Space b scroll · n p messages · f full · y copy {address} · q back")
        }
    };
    draw_status(frame, footer, &text, look);
}

/// Details of the session: short id, how far it was read, project.
fn about(conversation: &Conversation, width: usize) -> String {
    let mut known = format!(" {}", conversation.short);
    if let (Some(total), Some(current)) = (conversation.total, conversation.current()) {
        let last = grouped(u64::from(total.saturating_sub(1)));
        known = format!("{known} · message {} of 0 to {last}", grouped(current.into()));
    }
    let room = width.saturating_sub(known.width() + 4);
    format!("{known} · {}", fitted_end(&one_line(&conversation.project), room))
}
