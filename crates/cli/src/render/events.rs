//! Events: the log of a session, and search results.

use std::io;

use amplifier_session_api::views::{EventView, LineView};
use amplifier_session_storage::{
    KnownPart,
    model::{Event, Level, RawJson},
};
use jiff::Zoned;
use serde_json::Value;

use super::{
    table::{Column, Style, TableCell, table},
    text::{duration, fitted, grouped, one_line, printable, size},
};
use crate::{dates, out::Out, paint::Paint};

/// The indentation of lines below an event.
const INDENT: &str = "    ";

/// From this width on, the table has a column for every field.
const ROOMY: usize = 100;
/// Below this width, the details of each event are on a separate line.
const NARROW: usize = 80;

/// The columns on a wide terminal.
const COLUMNS: [Column; 7] = [
    Column::text("time"),
    Column::text("level"),
    Column::text("type").shrinking(3, 12),
    Column::text("tool, model").shrinking(2, 12),
    Column::text("owner"),
    Column::text("event"),
    Column::text("details").shrinking(1, 12),
];

/// The columns on a narrower terminal: the level is a letter, and the tool or model is in the details.
const FEWER_COLUMNS: [Column; 6] = [
    Column::text("time"),
    Column::text(""),
    Column::text("type").shrinking(2, 8),
    Column::text("owner").shrinking(3, 4),
    Column::text("event"),
    Column::text("details").shrinking(1, 12),
];

/// Writes the events of a session, one per line: number, time, level, type, details, size. If an event has its original
/// line, it follows.
pub(crate) fn log(out: &mut Out, events: &[EventView], now: &Zoned) -> io::Result<()> {
    if !out.is_terminal() {
        return events.iter().try_for_each(|EventView { event, line, .. }| {
            out.line(&log_line(event, now))?;
            line.as_ref().map_or(Ok(()), |LineView(raw)| payload(out, raw))
        });
    }
    let columns = [
        Column::number("event"),
        Column::text("time"),
        Column::text(if out.width < ROOMY { "" } else { "level" }),
        Column::text("type").shrinking(2, 12),
        Column::text("details").shrinking(1, 12),
        Column::number("size"),
    ];
    let rows: Vec<Vec<TableCell>> = events.iter().map(|view| log_row(&view.event, out.width, now)).collect();
    below_header(out, &table(&columns, &rows, out.width, out.paint), with_lines(events))
}

fn with_lines(events: &[EventView]) -> impl Iterator<Item = (&Event, Option<&RawJson>)> {
    events.iter().map(|EventView { event, line, .. }| (event, line.as_ref().map(|LineView(raw)| raw)))
}

/// Writes the lines of a table, each followed by the details and the original line of its event.
fn below_header<'a>(
    out: &mut Out,
    lines: &[String],
    events: impl Iterator<Item = (&'a Event, Option<&'a RawJson>)>,
) -> io::Result<()> {
    let Some((header, lines)) = lines.split_first().filter(|(_, lines)| !lines.is_empty()) else {
        return Ok(());
    };
    out.line(header)?;
    for (line, (event, raw)) in lines.iter().zip(events) {
        out.line(line)?;
        let details = details(event);
        if out.width < NARROW && !details.is_empty() {
            let fitted = fitted(&details, out.width - INDENT.len());
            out.line(&format!("{INDENT}{}", details_style(event)(out.paint, &fitted)))?;
        }
        if let Some(raw) = raw {
            payload(out, raw)?;
        }
    }
    Ok(())
}

fn log_row(event: &Event, width: usize, now: &Zoned) -> Vec<TableCell> {
    let (time, level) = if width < ROOMY {
        (short_time(event, now), event.level.as_str().part(..1))
    } else {
        (dates::second(event.ts, now), event.level.as_str())
    };
    vec![
        TableCell::plain(event.sequence.to_string()),
        TableCell::styled(time, Paint::aside),
        TableCell::styled(level, level_style(event.level)),
        TableCell::plain(one_line(&event.event_type)),
        beside_type(event, width),
        TableCell::styled(size(event.data_size_bytes), Paint::aside),
    ]
}

fn log_line(event: &Event, now: &Zoned) -> String {
    let about = [subject(event).map(str::to_owned), known(event)];
    let about: Vec<String> = about.into_iter().flatten().map(|text| one_line(&text)).collect();
    let fields = [
        format!("#{}", event.sequence),
        dates::with_offset(event.ts, now),
        format!("{:<5}", event.level.as_str()),
        one_line(&event.event_type),
        about.join(" · "),
        size(event.data_size_bytes),
    ];
    let fields: Vec<&str> = fields.iter().map(String::as_str).filter(|field| !field.is_empty()).collect();
    fields.join("\t")
}

/// Writes events of any sessions, one per line, with their original lines if present. `owners` is whether to name the
/// owners.
pub(crate) fn found(out: &mut Out, events: &[EventView], owners: bool, now: &Zoned) -> io::Result<()> {
    if !out.is_terminal() {
        for EventView { event, line, .. } in events {
            let mut fields = tabbed(event, owners, now);
            fields.extend(line.as_ref().map(|LineView(raw)| without_controls(&raw.to_text())));
            out.line(&fields.join("\t"))?;
        }
        return Ok(());
    }
    let lines = if out.width < ROOMY {
        let rows: Vec<Vec<TableCell>> =
            events.iter().map(|found| shorter_row(found, owners, out.width, now)).collect();
        table(&FEWER_COLUMNS, &rows, out.width, out.paint)
    } else {
        let rows: Vec<Vec<TableCell>> = events.iter().map(|found| row(found, owners, now)).collect();
        table(&COLUMNS, &rows, out.width, out.paint)
    };
    below_header(out, &lines, with_lines(events))
}

fn row(found: &EventView, owners: bool, now: &Zoned) -> Vec<TableCell> {
    let EventView { event, address, .. } = found;
    vec![
        TableCell::styled(dates::second(event.ts, now), Paint::aside),
        TableCell::styled(event.level.as_str(), level_style(event.level)),
        TableCell::plain(one_line(&event.event_type)),
        TableCell::plain(one_line(subject(event).unwrap_or_default())),
        owner(event, owners),
        TableCell::plain(address.clone()),
        TableCell::styled(one_line(&known(event).unwrap_or_default()), details_style(event)),
    ]
}

fn shorter_row(found: &EventView, owners: bool, width: usize, now: &Zoned) -> Vec<TableCell> {
    let EventView { event, address, .. } = found;
    let letter = event.level.as_str().part(..1);
    vec![
        TableCell::styled(short_time(event, now), Paint::aside),
        TableCell::styled(letter, level_style(event.level)),
        TableCell::plain(one_line(&event.event_type)),
        owner(event, owners),
        TableCell::plain(address.clone()),
        beside_type(event, width),
    ]
}

/// The time without year and seconds, which matter least.
fn short_time(event: &Event, now: &Zoned) -> String {
    dates::second(event.ts, now).part(5..16).to_owned()
}

/// The details, unless they are on a separate line.
fn beside_type(event: &Event, width: usize) -> TableCell {
    TableCell::styled(if width < NARROW { String::new() } else { details(event) }, details_style(event))
}

/// The details, with the tool or model.
fn details(event: &Event) -> String {
    let (subject, known) = (subject(event).map(str::to_owned), known(event));
    // In an error, the message comes before the tool or model.
    let known = if event.level == Level::Error { [known, subject] } else { [subject, known] };
    one_line(&known.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}

/// The tool or model that an event is about.
fn subject(event: &Event) -> Option<&str> {
    event.tool_name.as_deref().or(event.model.as_deref())
}

fn owner(event: &Event, owners: bool) -> TableCell {
    TableCell::plain(if owners { one_line(event.user_id.as_str()) } else { String::new() })
}

fn details_style(event: &Event) -> Style {
    if event.level == Level::Error { Paint::failure } else { Paint::plain }
}

fn level_style(level: Level) -> Style {
    match level {
        Level::Debug => Paint::aside,
        Level::Info => Paint::plain,
        Level::Warn => Paint::warning,
        Level::Error => Paint::failure,
    }
}

fn tabbed(event: &Event, owners: bool, now: &Zoned) -> Vec<String> {
    let or_hyphen = |text: Option<String>| {
        text.map(|text| one_line(&text)).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned())
    };
    let tokens = |name| usage(event, name).map(|count| count.to_string());
    let mut fields = vec![
        dates::with_offset(event.ts, now),
        event.level.as_str().to_owned(),
        one_line(&event.event_type),
        or_hyphen(event.tool_name.clone()),
        or_hyphen(event.model.clone()),
        event.session_id.to_string(),
        event.sequence.to_string(),
        or_hyphen(milliseconds(event).map(|ms| ms.to_string())),
        or_hyphen(tokens("input_tokens")),
        or_hyphen(tokens("output_tokens")),
        or_hyphen(event.error_type.clone()),
    ];
    fields.extend(owners.then(|| one_line(event.user_id.as_str())));
    fields.push(or_hyphen(error(event).map(str::to_owned)));
    fields
}

/// The main facts of the summary, in a few words.
fn known(event: &Event) -> Option<String> {
    let tokens = match (usage(event, "input_tokens"), usage(event, "output_tokens")) {
        (None, None) => None,
        (input, output) => {
            let count = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), grouped);
            Some(format!("{} → {} tokens", count(input), count(output)))
        }
    };
    let error = match (event.error_type.as_deref(), error(event)) {
        (Some(kind), Some(error)) if !error.starts_with(kind) => Some(format!("{kind}: {error}")),
        (kind, error) => error.or(kind).map(str::to_owned),
    };
    // If there is little room, the end is cut off.
    let known = [error, milliseconds(event).map(duration), tokens];
    let known: Vec<String> = known.into_iter().flatten().collect();
    Some(known.join(" · ")).filter(|known| !known.is_empty())
}

/// The error message.
fn error(event: &Event) -> Option<&str> {
    event.summary.get("error").and_then(Value::as_str)
}

fn milliseconds(event: &Event) -> Option<f64> {
    event.summary.get("duration_ms").and_then(Value::as_f64)
}

fn usage(event: &Event, name: &str) -> Option<u64> {
    event.summary.get("usage")?.get(name)?.as_f64().map(|count| count as u64)
}

/// Writes the original line of an event; on a terminal, formatted over several lines.
fn payload(out: &mut Out, raw: &RawJson) -> io::Result<()> {
    let text = raw.to_text();
    let pretty = || serde_json::to_string_pretty(&serde_json::from_str::<Value>(&text).ok()?).ok();
    match pretty().filter(|_| out.is_terminal()) {
        Some(pretty) => printable(&pretty).lines().try_for_each(|line| out.line(&format!("{INDENT}{line}"))),
        None => out.line(&format!("  {}", without_controls(&text))),
    }
}

/// In JSON, control characters, line breaks and tabs are only between tokens, where a space is equivalent.
fn without_controls(json: &str) -> String {
    json.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
