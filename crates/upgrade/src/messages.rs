//! Messages, from rows of `transcripts`.

use amplifier_session_core::{
    content::{ExtractedText, MessageLine},
    model::{Digest, Message, RawJson, Role, Session, TimeSource, Timestamp, VectorState},
};
use serde_json::{Map, Value};

use crate::{json, tables::OldRow};

/// The columns of a message that are read, without the vectors of the first generation.
pub(crate) const COLUMNS: [&str; 13] = [
    "id",
    "user_id",
    "host_id",
    "project_slug",
    "session_id",
    "sequence",
    "role",
    "content_json",
    "content",
    "turn",
    "ts",
    "metadata",
    "synced_at",
];

/// A message, with the data that its vectors and its session need.
#[derive(Debug)]
pub(crate) struct OldMessage {
    pub(crate) message: Message,
    /// Its texts.
    pub(crate) texts: Vec<ExtractedText>,
    /// Its line.
    pub(crate) line: MessageLine,
    /// Whether its role is unknown.
    pub(crate) role_is_guessed: bool,
}

/// The message of a row, as number `sequence` of `session`. `before` is the time for a message without one.
///
/// Role, turn and time come from the columns, even if the line differs, because the old library showed and searched
/// those.
pub(crate) fn message(
    row: &OldRow<'_>,
    session: &Session,
    sequence: u32,
    before: Timestamp,
    now: Timestamp,
) -> OldMessage {
    let named = row.text(&["role"]).unwrap_or_default();
    let (role, role_is_guessed) = role(&named);
    let raw = line(row, &named);
    let line = MessageLine::stored(&raw, role, session.session_id.source());
    let texts = line.texts();
    let (ts, turn) = (row.time("ts").or_else(|| metadata_time(line.fields())), row.turn("turn"));
    OldMessage {
        message: Message {
            user_id: session.user_id.clone(),
            host_id: session.host_id.clone(),
            project_slug: session.project_slug.clone(),
            session_id: session.session_id.clone(),
            sequence,
            role,
            turn,
            ts: ts.unwrap_or(before),
            ts_source: TimeSource::of_estimated(ts.is_none()),
            synced_at: row.time("synced_at").unwrap_or(now),
            vectors: VectorState::before_embedding(texts.iter().map(|text| text.content_type)),
            digest: Digest::of(raw.as_bytes()),
            raw,
        },
        texts,
        line,
        role_is_guessed,
    }
}

fn role(named: &str) -> (Role, bool) {
    // An unknown role is not attributed to a person or model; `--in system` finds it.
    named.parse().map_or((Role::System, true), |role| (role, false))
}

/// The line from which the row was made, as far as it is known: of the line, the library kept only `content`.
fn line(row: &OldRow<'_>, role: &str) -> RawJson {
    let content = row.text(&["content_json", "content"]);
    if let Some(line) = content.as_deref().and_then(|content| whole_line(content, role)) {
        return line;
    }
    let content = content.map_or_else(|| "null".to_owned(), |content| json::part(&content));
    let mut line = format!("{{\"role\":{},\"content\":{content}", json::string(role));
    if let Some(ts) = row.time("ts").map(|ts| ts.to_string()).or_else(|| row.text(&["ts"])) {
        line += &format!(",\"timestamp\":{}", json::string(&ts));
    }
    if let Some(turn) = row.turn("turn") {
        line += &format!(",\"turn\":{turn}");
    }
    if let Some(metadata) = row.text(&["metadata"]) {
        line += &format!(",\"metadata\":{}", json::part(&metadata));
    }
    line.push('}');
    RawJson::new(line.into_bytes())
}

/// `content`, if it is the complete line.
fn whole_line(content: &str, role: &str) -> Option<RawJson> {
    if !content.trim_start().starts_with('{') {
        return None;
    }
    let object = RawJson::from(content).parse_object().ok()?;
    let is_line = object.contains_key("content") && object.get("role").and_then(Value::as_str) == Some(role);
    is_line.then(|| RawJson::new(json::part(content).into_bytes()))
}

fn metadata_time(line: &Map<String, Value>) -> Option<Timestamp> {
    line.get("metadata")?.get("timestamp").and_then(Timestamp::from_json)
}
