//! Draws the lists to choose from, and the list of keys.

use ratatui::{
    Frame,
    layout::{Position, Rect},
    style::{Modifier, Style},
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr as _;

use super::{
    draw::{chosen, draw_status, filled, first_fitting, put, rule, split, split_last},
    help::{self, HelpLine},
    picker::{Picker, PickerItem, PickerPurpose},
    state::SearchState,
    text::Look,
};
use crate::render::{
    text::{fitted, fitted_end, one_line},
    wrap::wrapped_words,
};

/// The widest value that is shown in full if there is a description.
const VALUE: usize = 40;

/// Draws a list to choose from, in place of the results.
pub(super) fn draw_picker(frame: &mut Frame<'_>, area: Rect, state: &mut SearchState) {
    let width = usize::from(area.width);
    let Some(picker) = &state.picker else { return };
    let (head, rest) = split(area, 1);
    draw_typed(frame, head, picker, &state.look);
    let (list, footer) = split_last(rest);
    let shown = picker.shown();
    let height = usize::from(list.height).max(1);
    let at = picker.at();
    let top = at.saturating_sub(height - 1);
    let values = shown.iter().map(|item| item.value.width()).max().unwrap_or(0).min(VALUE);
    for (row, (number, item)) in (0..list.height).zip(shown.iter().enumerate().skip(top)) {
        let line = item_line(item, number == at, (values, width), &state.look);
        put(frame, list, row, &line);
    }
    if shown.is_empty() {
        let text = match (picker.is_loading, picker.typed.is_blank()) {
            (true, _) => "   Loading …",
            (false, true) => "   Nothing to choose from yet. Type a value.",
            (false, false) => "   Nothing matches.",
        };
        put(frame, list, 0, &Line::styled(text, state.look.aside()));
    }
    let keys: &[&str] = match picker.purpose {
        PickerPurpose::Filters => &[
            "type to find · Enter change · Delete remove · Esc back",
            "Enter change · Delete remove · Esc back",
            "Esc back",
        ],
        PickerPurpose::Filter(kind) if kind.takes_many() => &[
            "type to find · Enter take · Tab take several · Delete remove · Esc back",
            "Enter take · Tab take several · Delete remove · Esc back",
            "Enter take · Tab several · Esc back",
            "Esc back",
        ],
        PickerPurpose::Filter(_) => &[
            "type to find · Enter take · Delete remove · Esc back",
            "Enter take · Delete remove · Esc back",
            "Esc back",
        ],
        PickerPurpose::Field(_) => &["type to find · Enter take · Esc back", "Esc back"],
    };
    draw_status(frame, footer, &first_fitting(keys, area.width), &state.look);
    state.page = height;
}

/// The title of the list, and the text that narrows it.
fn draw_typed(frame: &mut Frame<'_>, area: Rect, picker: &Picker, look: &Look) {
    let label = match &picker.purpose {
        PickerPurpose::Filters => " Filter: ".to_owned(),
        PickerPurpose::Filter(kind) => format!(" Filter {}: ", kind.name()),
        PickerPurpose::Field(word) => match word.field {
            Some(name) => format!(" {name}:"),
            None => " Field: ".to_owned(),
        },
    };
    let room = usize::from(area.width).saturating_sub(label.width());
    let (text, cursor) = picker.typed.window(room);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let column = area.x.saturating_add((label.width() + cursor) as u16);
    let line = Line::from(vec![Span::styled(label, look.aside()), Span::styled(text, bold)]);
    put(frame, area, 0, &line);
    if area.height > 0 {
        frame.set_cursor_position(Position::new(column.min(area.right().saturating_sub(1)), area.y));
    }
}

/// A value, and its description beside the longest of the values.
fn item_line(
    item: &PickerItem,
    is_selected: bool,
    (values, width): (usize, usize),
    look: &Look,
) -> Line<'static> {
    let plain = chosen(is_selected, Style::new());
    let aside = chosen(is_selected, look.aside());
    let mark = if is_selected { " > " } else { "   " };
    let on = if item.is_on { "✓ " } else { "  " };
    let room = width.saturating_sub(mark.width() + on.width());
    let value = one_line(&item.value);
    let mut line = Line::from(vec![Span::styled(format!("{mark}{on}"), plain)]);
    if item.help.is_empty() {
        line.push_span(Span::styled(fitted_end(&value, room), plain));
        return filled(line, width, plain);
    }
    let value = fitted_end(&value, values.min(room));
    let gap = " ".repeat(values.saturating_sub(value.width()) + 2);
    let help = fitted(&one_line(&item.help), room.saturating_sub(value.width() + gap.width()));
    for (text, style) in [(value, plain), (gap, plain), (help, aside)] {
        line.push_span(Span::styled(text, style));
    }
    filled(line, width, plain)
}

/// Draws the list of keys on the whole screen.
pub(super) fn draw_help(frame: &mut Frame<'_>, area: Rect, state: &mut SearchState) {
    let lines = help_lines(usize::from(area.width), state);
    let (head, rest) = split(area, 1);
    put(frame, head, 0, &rule("Keys", usize::from(area.width), &state.look));
    let (body, footer) = split_last(rest);
    let height = usize::from(body.height);
    let top = state.help.unwrap_or(0).min(lines.len().saturating_sub(height));
    state.help = Some(top);
    state.page = height.max(1);
    for (at, line) in (0..body.height).zip(lines.iter().skip(top)) {
        put(frame, body, at, line);
    }
    let more = if top + height < lines.len() { "↓ more · Esc back" } else { "Esc back" };
    draw_status(frame, footer, more, &state.look);
}

/// The list of keys in `width` columns, with those of the current view first.
fn help_lines(width: usize, state: &SearchState) -> Vec<Line<'static>> {
    const KEY: usize = 23;
    let first = match (&state.picker, &state.conversation) {
        (Some(_), _) => 1,
        (None, Some(_)) => 2,
        (None, None) => 0,
    };
    let keys = KEY.min(width / 2);
    let mut lines = Vec::new();
    for line in help::lines(first) {
        match line {
            HelpLine::Empty => lines.push(Line::default()),
            HelpLine::Title(title) => {
                lines.push(Line::styled(format!(" {title}"), Style::new().add_modifier(Modifier::BOLD)));
            }
            HelpLine::Key(key, effect) => {
                let keys_below = wrapped_words(key, "", "", keys);
                let effects = wrapped_words(effect, "", "", width.saturating_sub(keys + 4));
                for at in 0..keys_below.len().max(effects.len()) {
                    let of = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
                    let key = of(&keys_below);
                    let gap = " ".repeat(keys.saturating_sub(key.width()) + 1);
                    let effect = Span::styled(of(&effects), state.look.aside());
                    lines.push(Line::from(vec![Span::raw(format!("   {key}{gap}")), effect]));
                }
            }
        }
    }
    lines
}
