//! Events: the log of a session, and what was found in all logs.

use std::{collections::HashMap, io};

use amplifier_session_storage::{
    model::{Event, Level, RawJson, SessionId, UserId},
    storage::EventLine,
};
use jiff::Zoned;
use serde_json::Value;

use super::{
    ids::{short, short_length},
    table::{Cell, Column, Style, table},
    text::{duration, grouped, one_line, printable, size},
};
use crate::{dates, out::Out, paint::Paint};

/// Whole lines of event logs: owner, session and sequence say of which events.
pub(crate) type Payloads = HashMap<(UserId, SessionId, u32), RawJson>;

/// A terminal of fewer columns shows less of times.
const ROOMY: usize = 80;

/// The columns of a table.
const COLUMNS: [Column; 7] = [
    Column::text("time"),
    Column::text("level"),
    Column::text("type").giving_way(8),
    Column::text("tool, model").giving_way(6),
    Column::text("owner"),
    Column::text("event"),
    Column::text("what is known").giving_way(8),
];

/// Writes the events of a session, one a line: place, time, level, type, what is known of it, size. With its line
/// below where there is one.
pub(crate) fn log(out: &mut Out, events: &[EventLine], now: &Zoned) -> io::Result<()> {
    let separator = if out.is_terminal() { "  " } else { "\t" };
    for EventLine { event, raw, .. } in events {
        let about = [event.tool_name.clone().or_else(|| event.model.clone()), known(event)];
        let about: Vec<String> = about.into_iter().flatten().map(|text| one_line(&text)).collect();
        let level = level_style(event.level)(out.paint, &format!("{:<5}", event.level.as_str()));
        let fields = [
            format!("#{}", event.sequence),
            dates::with_offset(event.ts, now),
            level,
            one_line(&event.event_type),
            about.join(" · "),
            size(event.data_size_bytes),
        ];
        let fields: Vec<&str> = fields.iter().map(String::as_str).filter(|field| !field.is_empty()).collect();
        out.line(&fields.join(separator))?;
        if let Some(raw) = raw {
            payload(out, raw)?;
        }
    }
    Ok(())
}

/// Writes events of any sessions, one a line, with their lines where there are `payloads`; `owners`: with whose they
/// are.
pub(crate) fn found(
    out: &mut Out,
    events: &[Event],
    payloads: &Payloads,
    owners: bool,
    now: &Zoned,
) -> io::Result<()> {
    let raw =
        |event: &Event| payloads.get(&(event.user_id.clone(), event.session_id.clone(), event.sequence));
    if !out.is_terminal() {
        for event in events {
            let mut fields = tabbed(event, owners, now);
            fields.extend(raw(event).map(|raw| without_controls(&raw.to_text())));
            out.line(&fields.join("\t"))?;
        }
        return Ok(());
    }
    let length = short_length(events.iter().map(|event| &event.session_id));
    let rows: Vec<Vec<Cell>> =
        events.iter().map(|event| row(event, length, owners, out.width, now)).collect();
    let lines = table(&COLUMNS, &rows, out.width, out.paint);
    let mut lines = lines.iter();
    lines.next().map_or(Ok(()), |header| out.line(header))?;
    for (line, event) in lines.zip(events) {
        out.line(line)?;
        if let Some(raw) = raw(event) {
            payload(out, raw)?;
        }
    }
    Ok(())
}

fn row(event: &Event, length: usize, owners: bool, width: usize, now: &Zoned) -> Vec<Cell> {
    let owner = if owners { one_line(event.user_id.as_str()) } else { String::new() };
    let about = event.tool_name.as_deref().or(event.model.as_deref()).unwrap_or_default();
    let time = dates::second(event.ts, now);
    // Where there is little room, the year and the second say least.
    let time = if width < ROOMY { time.get(5..16).unwrap_or_default().to_owned() } else { time };
    let known_style = if event.level == Level::Error { Paint::failure } else { Paint::plain };
    vec![
        Cell::styled(time, Paint::aside),
        Cell::styled(event.level.as_str(), level_style(event.level)),
        Cell::plain(one_line(&event.event_type)),
        Cell::plain(one_line(about)),
        Cell::plain(owner),
        Cell::plain(short(&event.session_id, length)).and(format!(" #{}", event.sequence), Paint::aside),
        Cell::styled(one_line(&known(event).unwrap_or_default()), known_style),
    ]
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

/// What the summary tells, in a few words.
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
    let known = [milliseconds(event).map(duration), tokens, error];
    let known: Vec<String> = known.into_iter().flatten().collect();
    Some(known.join(" · ")).filter(|known| !known.is_empty())
}

/// What the error says.
fn error(event: &Event) -> Option<&str> {
    event.summary.get("error").and_then(Value::as_str)
}

fn milliseconds(event: &Event) -> Option<f64> {
    event.summary.get("duration_ms").and_then(Value::as_f64)
}

fn usage(event: &Event, name: &str) -> Option<u64> {
    event.summary.get("usage")?.get(name)?.as_f64().map(|count| count as u64)
}

/// Writes the line of an event below it: for people, spread over lines of its own.
fn payload(out: &mut Out, raw: &RawJson) -> io::Result<()> {
    let text = raw.to_text();
    let pretty = || serde_json::to_string_pretty(&serde_json::from_str::<Value>(&text).ok()?).ok();
    match pretty().filter(|_| out.is_terminal()) {
        Some(pretty) => printable(&pretty).lines().try_for_each(|line| out.line(&format!("    {line}"))),
        None => out.line(&format!("  {}", without_controls(&text))),
    }
}

/// JSON holds control characters, line breaks and tabs only between its parts, where a space says the same.
fn without_controls(json: &str) -> String {
    json.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
