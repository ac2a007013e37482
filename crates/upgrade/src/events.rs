//! Events, from rows of `events`.

use amplifier_session_core::{
    Result,
    events::{EventFields, parse_event_line, store},
    model::{Digest, Event, Level, RawJson, Session, StoredEvent, Timestamp},
};

use crate::{json, tables::OldRow};

/// The columns of an event that are read.
pub(crate) const COLUMNS: [&str; 17] = [
    "id",
    "event_id",
    "user_id",
    "host_id",
    "project_slug",
    "session_id",
    "sequence",
    "ts",
    "lvl",
    "level",
    "event",
    "event_type",
    "turn",
    "data",
    "data_json",
    "summary",
    "synced_at",
];

/// The event of a row with its payload, as number `sequence` of `session`. `before` is the time for an event without
/// one.
///
/// # Errors
///
/// Errors of compressing its line.
pub(crate) fn event(
    row: &OldRow<'_>,
    data: Option<String>,
    session: &Session,
    sequence: u32,
    before: Timestamp,
) -> Result<StoredEvent> {
    let (raw, fields) = match whole_line(row, data.as_deref()) {
        Some(line) => line,
        None => {
            let line = made_line(row, data);
            let fields = parse_event_line(&line)?;
            (line, fields)
        }
    };
    let fields = fields.in_log_of(&session.session_id);
    let payload = store(&raw, fields.data_size_bytes)?;
    // As for messages, the columns take precedence over the line.
    let ts = row.time("ts").or(fields.ts);
    let event_type = row.text(&["event", "event_type"]).map(|name| name.trim().to_owned());
    let level = row.text(&["lvl", "level"]).and_then(|name| Level::parse(&name));
    let event = Event {
        event_id: given_id(row).unwrap_or_else(|| Event::derived_id(&session.session_id, sequence)),
        user_id: session.user_id.clone(),
        host_id: session.host_id.clone(),
        project_slug: session.project_slug.clone(),
        session_id: session.session_id.clone(),
        sequence,
        event_type: event_type.filter(|name| !name.is_empty()).unwrap_or(fields.event_type),
        ts: ts.unwrap_or(before),
        ts_estimated: ts.is_none(),
        turn: row.turn("turn").or(fields.turn),
        level: level.unwrap_or(fields.level),
        tool_name: fields.tool_name,
        error_type: fields.error_type,
        model: fields.model,
        provider: fields.provider,
        summary: fields.summary,
        is_chunked: false,
        chunk_count: None,
        data_size_bytes: fields.data_size_bytes,
        synced_at: row.time("synced_at"),
        digest: Digest::of(raw.as_bytes()),
    };
    Ok(StoredEvent::new(event, payload))
}

/// `data` with its fields, if it is the complete line of the log. The library mostly stored it in this way.
fn whole_line(row: &OldRow<'_>, data: Option<&str>) -> Option<(RawJson, EventFields)> {
    let line = RawJson::new(json::part(data?).into_bytes());
    let fields = parse_event_line(&line).ok()?;
    let names = row.text(&["event", "event_type"]).is_none_or(|name| same_type(&name, &fields.event_type));
    names.then_some((line, fields))
}

/// Whether two names are the same, except for the dots of older writers.
fn same_type(name: &str, other: &str) -> bool {
    name.trim().replace('.', ":") == other.replace('.', ":")
}

/// A line with the values of the columns.
fn made_line(row: &OldRow<'_>, data: Option<String>) -> RawJson {
    let mut line = String::from("{");
    if let Some(ts) = row.time("ts").map(|ts| ts.to_string()).or_else(|| row.text(&["ts"])) {
        line += &format!("\"ts\":{},", json::string(&ts));
    }
    if let Some(level) = row.text(&["lvl", "level"]) {
        line += &format!("\"lvl\":{},", json::string(&level));
    }
    let name = row.text(&["event", "event_type"]).filter(|name| !name.trim().is_empty());
    line += &format!("\"event\":{}", json::string(name.as_deref().unwrap_or("unknown")));
    if let Some(turn) = row.turn("turn") {
        line += &format!(",\"turn\":{turn}");
    }
    if let Some(data) = data.or_else(|| row.text(&["summary"])) {
        line += &format!(",\"data\":{}", json::part(&data));
    }
    line.push('}');
    RawJson::new(line.into_bytes())
}

/// The id in a row, unless it looks like a derived one.
fn given_id(row: &OldRow<'_>) -> Option<String> {
    row.text(&["event_id", "id"]).filter(|id| {
        let mut parts = id.rsplit("_evt_");
        let looks_derived =
            parts.next().is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
                && parts.next().is_some();
        !id.is_empty() && id.len() <= 255 && !looks_derived && !id.chars().any(char::is_control)
    })
}
