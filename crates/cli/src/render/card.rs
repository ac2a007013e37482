//! A card: the title of a session and a list of fields.

use std::io;

use amplifier_session_storage::model::Session;

use super::{
    markdown::wrapped,
    text::{fitted, one_line, printable},
};
use crate::out::Out;

/// The width of labels.
const LABEL: usize = 9;

/// A field with a label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CardField {
    pub(crate) label: &'static str,
    /// Its value, if any.
    pub(crate) value: Option<String>,
    /// A note about the value, or empty.
    pub(crate) note: &'static str,
}

impl CardField {
    pub(crate) fn new(label: &'static str, value: impl Into<Option<String>>) -> Self {
        let value = value.into().map(|value| one_line(&value)).filter(|value| !value.is_empty());
        Self { label, value, note: "" }
    }

    pub(crate) fn with_note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }
}

/// Writes the title of a session, its id, and fields.
pub(crate) fn card(out: &mut Out, session: &Session, known: Vec<CardField>) -> io::Result<()> {
    let mut all = vec![CardField::new("session", session.session_id.to_string())];
    all.extend(known);
    if out.is_terminal() {
        out.line(&out.paint.title(&fitted(&one_line(session.title()), out.width)))?;
    }
    fields(out, &all)
}

/// A label and its value. With a width, that of a terminal, the value is wrapped in its own column, without control
/// characters.
pub(crate) fn labelled(label: &str, value: &str, width: Option<usize>) -> Vec<String> {
    let value = if width.is_some() { &printable(value) } else { value };
    let lines = wrapped(value, width.map(|width| width.saturating_sub(LABEL + 1)));
    let line = |(at, line): (usize, &String)| {
        let label = if at == 0 { label } else { "" };
        format!("{label:<LABEL$} {line}")
    };
    lines.iter().enumerate().map(line).collect()
}

/// A label and its value on one line: aligned for a terminal, separated by a tab for a pipe.
pub(crate) fn row(label: &str, value: &str, terminal: bool) -> String {
    if terminal { format!("{label:<LABEL$} {value}") } else { format!("{label}\t{value}") }
}

/// A note in parentheses, to follow a value.
fn note_of(note: &str) -> String {
    if note.is_empty() { String::new() } else { format!(" ({note})") }
}

/// Writes one line per field. A pipe gets label, value and note, separated by tabs.
pub(crate) fn fields(out: &mut Out, all: &[CardField]) -> io::Result<()> {
    if !out.is_terminal() {
        let tabbed = |field: &CardField| {
            [field.label, field.value.as_deref().unwrap_or_default(), field.note].join("\t")
        };
        return all.iter().try_for_each(|field| out.line(tabbed(field).trim_end_matches('\t')));
    }
    let width = all.iter().map(|field| field.label.len()).max().unwrap_or(0);
    for CardField { label, value, note } in all {
        let room = out.width.saturating_sub(width + 2);
        let note = note_of(note);
        let whole = value.as_deref().map_or_else(|| "none".to_owned(), str::to_owned) + &note;
        for (at, line) in wrapped(&whole, Some(room)).iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let line = match value {
                None => out.paint.aside(line),
                Some(_) => line
                    .strip_suffix(note.as_str())
                    .filter(|_| !note.is_empty())
                    .map_or_else(|| line.clone(), |value| format!("{value}{}", out.paint.aside(&note))),
            };
            out.line(&format!("{label:<width$}  {line}"))?;
        }
    }
    Ok(())
}
