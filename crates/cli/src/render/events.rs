//! The event log of a session.

use std::io;

use amplifier_session_storage::{model::Event, storage::EventLine};
use jiff::Zoned;
use serde_json::Value;

use super::text::{one_line, size};
use crate::{dates, out::Out};

/// Writes events, one a line: place, time, level, type, what is known of it, size. With its line below where there
/// is one.
pub(crate) fn events(out: &mut Out, events: &[EventLine], now: &Zoned) -> io::Result<()> {
    let separator = if out.is_terminal() { "  " } else { "\t" };
    for EventLine { event, raw, .. } in events {
        let fields = [
            format!("#{}", event.sequence),
            dates::with_offset(event.ts, now),
            format!("{:<5}", event.level.as_str()),
            one_line(&event.event_type),
            about(event),
            size(event.data_size_bytes),
        ];
        let fields: Vec<&str> = fields.iter().map(String::as_str).filter(|field| !field.is_empty()).collect();
        out.line(&fields.join(separator))?;
        if let Some(raw) = raw {
            out.line(&format!("  {}", one_line(&raw.to_text())))?;
        }
    }
    Ok(())
}

/// What stands in the event's fields, in a few words.
fn about(event: &Event) -> String {
    let duration = event.summary.get("duration_ms").and_then(Value::as_f64).map(|ms| format!("{ms} ms"));
    let error = event.error_type.as_ref().map(|error| format!("error {error}"));
    let known = [event.tool_name.clone(), event.model.clone(), duration, error];
    one_line(&known.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}
