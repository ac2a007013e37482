//! What makes two lines the same event.

use serde_json::{Map, Value};

use crate::{
    Error, ErrorField, Result, known_json,
    model::{Digest, RawJson, Timestamp, normalised_type},
};

/// The most that the times of an event in two logs differ by, in microseconds.
pub(crate) const SAME_TIME: i64 = 500_000;

/// The members of a line that a hook writes.
/// Earlier versions of the hook do not write `workspace`.
const OF_HOOK: [&str; 4] = ["event", "timestamp", "workspace", "data"];

/// An event, as far as its line says which one it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoggedEvent {
    id: Option<String>,
    pub(crate) event_type: String,
    pub(crate) ts: Option<Timestamp>,
    /// The data, without what is compared by itself or is the same in all lines of a log.
    data: Digest,
    /// Whether the line has the envelope of hooks, who also post events. Others state other data and another time.
    is_of_hook: bool,
}

impl LoggedEvent {
    /// Reads a line.
    ///
    /// # Errors
    ///
    /// `Validation` if it is not an event.
    pub(crate) fn of(line: &RawJson) -> Result<Self> {
        let object = line.parse_object()?;
        let text = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| object.get(*name)?.as_str())
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        let event_type = text(&["event", "type", "event_type"]);
        let event_type = event_type.ok_or_else(|| Error::validation(ErrorField::Event, "is missing"))?;
        let data = object.get("data").and_then(Value::as_object);
        let stated = ["ts", "timestamp"].iter().find_map(|name| Timestamp::from_json(object.get(*name)?));
        let in_data = || Timestamp::from_json(data?.get("timestamp")?);
        Ok(Self {
            id: text(&["event_id", "id"]).map(str::to_owned),
            event_type: normalised_type(event_type),
            ts: stated.or_else(in_data),
            data: data.map(digest_of_data).unwrap_or_default(),
            is_of_hook: object.keys().all(|name| OF_HOOK.contains(&name.as_str())),
        })
    }

    /// Whether both are the same event: they have the same id; or not both have one, and name, time and data are the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.id, &other.id) {
            (Some(id), Some(other)) => id == other,
            _ => (&self.event_type, self.ts, self.data) == (&other.event_type, other.ts, other.data),
        }
    }

    /// Whether `other` is the line of another program about this event: see the sync of two event logs. Two lines of a hook
    /// are never that.
    pub(crate) fn is_in_other_log(&self, other: &Self) -> bool {
        let (Some(ts), Some(other_ts)) = (self.ts, other.ts) else { return false };
        self.is_of_hook != other.is_of_hook
            && self.event_type == other.event_type
            && ts.as_micros().abs_diff(other_ts.as_micros()) <= SAME_TIME.unsigned_abs()
    }
}

fn digest_of_data(data: &Map<String, Value>) -> Digest {
    let mut data = in_order(data);
    for name in ["session_id", "timestamp"] {
        data.shift_remove(name);
    }
    Digest::of(known_json(&data).as_bytes())
}

/// The object with its members, and those of all objects in it, in order of their names.
fn in_order(object: &Map<String, Value>) -> Map<String, Value> {
    let mut members: Vec<(&String, &Value)> = object.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    members.into_iter().map(|(name, value)| (name.clone(), value_in_order(value))).collect()
}

fn value_in_order(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(in_order(object)),
        Value::Array(values) => Value::Array(values.iter().map(value_in_order).collect()),
        other => other.clone(),
    }
}

/// The line that the hook writes to its log for an event that it posts: members in order of their names, without spaces.
pub(crate) fn line_of_hook(event: &str, workspace: &str, data: &Map<String, Value>) -> RawJson {
    let timestamp = data.get("timestamp").cloned().unwrap_or_else(|| Value::from(""));
    let mut line = Map::new();
    line.insert("data".to_owned(), Value::Object(in_order(data)));
    line.insert("event".to_owned(), Value::from(event));
    line.insert("timestamp".to_owned(), timestamp);
    line.insert("workspace".to_owned(), Value::from(workspace));
    RawJson::from(known_json(&line).as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(line: Value) -> LoggedEvent {
        LoggedEvent::of(&RawJson::from(line.to_string().as_str())).unwrap()
    }

    fn posted(data: Value) -> LoggedEvent {
        let Value::Object(data) = data else { panic!("no object") };
        LoggedEvent::of(&line_of_hook("tool:pre", "-srv-shop", &data)).unwrap()
    }

    #[test]
    fn the_order_of_members_makes_no_other_event() {
        let one =
            posted(json!({"timestamp": "2026-01-05T08:00:00Z", "session_id": "s", "a": {"b": 1, "c": [2]}}));
        let same =
            posted(json!({"a": {"c": [2], "b": 1}, "session_id": "s", "timestamp": "2026-01-05T08:00:00Z"}));
        assert!(one.is(&same) && !one.is_in_other_log(&same));
        let other =
            posted(json!({"a": {"c": [3], "b": 1}, "session_id": "s", "timestamp": "2026-01-05T08:00:00Z"}));
        assert!(!one.is(&other) && !one.is_in_other_log(&other));
    }

    #[test]
    fn two_lines_of_a_hook_are_different_events() {
        let line = |workspace: Option<&str>, ts: &str| {
            let mut line = json!({"event": "tool:pre", "timestamp": ts, "data": {"timestamp": ts, "n": 1}});
            if let Some(workspace) = workspace {
                line["workspace"] = json!(workspace);
            }
            event(line)
        };
        for workspace in [None, Some("-srv-shop"), Some("other")] {
            let logged = line(workspace, "2026-01-05T08:00:00Z");
            let posted = |ts: &str| posted(json!({"timestamp": ts, "n": 1}));
            assert!(posted("2026-01-05T08:00:00Z").is(&logged));
            let next = posted("2026-01-05T08:00:00.05Z");
            assert!(!next.is(&logged) && !next.is_in_other_log(&logged) && !logged.is_in_other_log(&next));
        }
    }

    #[test]
    fn the_id_counts_if_both_have_one() {
        let line = |id: &str, data: u32| {
            event(
                json!({"event": "tool:pre", "event_id": id, "timestamp": "2026-01-05T08:00:00Z", "data": {"n": data}}),
            )
        };
        assert!(line("a", 1).is(&line("a", 2)) && !line("a", 1).is(&line("b", 1)));
        let hook = posted(json!({"session_id": "s", "timestamp": "2026-01-05T08:00:00Z", "n": 1}));
        assert!(hook.is(&line("a", 1)) && !hook.is(&line("a", 2)));
    }

    #[test]
    fn another_program_states_another_time() {
        let hook = posted(json!({"timestamp": "2026-01-05T08:00:00Z", "tool": "bash"}));
        let logger =
            |ts: &str, name: &str| event(json!({"ts": ts, "lvl": "INFO", "event": name, "data": {"x": 1}}));
        assert!(hook.is_in_other_log(&logger("2026-01-05T08:00:00.4Z", "tool:pre")));
        assert!(!hook.is_in_other_log(&logger("2026-01-05T08:00:00.6Z", "tool:pre")));
        assert!(!hook.is_in_other_log(&logger("2026-01-05T08:00:00Z", "tool:post")));
        assert!(!hook.is(&logger("2026-01-05T08:00:00Z", "tool:pre")));
    }
}
