//! A session and its messages.

use std::io;

use amplifier_session_storage::model::{Message, Session};
use jiff::Zoned;

use super::{
    ids::{short, short_length},
    message,
    text::{counted, one_line},
};
use crate::{dates, out::Out};

/// Writes what a session is.
pub(crate) fn head(out: &mut Out, session: &Session, now: &Zoned) -> io::Result<()> {
    let id = &session.session_id;
    out.line(&out.paint.title(&one_line(session.title())))?;
    out.line(&format!("session   {id}"))?;
    out.line(&format!("project   {}", one_line(session.project_slug.as_str())))?;
    let (from, to) = (dates::minute(session.created, now), dates::minute(session.updated, now));
    out.line(&format!("time      {from} to {to}"))?;
    let counts = [
        counted(session.message_count, "message"),
        counted(session.turn_count, "turn"),
        counted(session.event_count, "event"),
    ];
    out.line(&format!("holds     {}", counts.join(", ")))?;
    let optional = [("model", &session.model), ("bundle", &session.bundle), ("folder", &session.working_dir)];
    for (label, value) in optional {
        if let Some(value) = value {
            out.line(&format!("{label:<9} {}", one_line(value)))?;
        }
    }
    if let Some(parent) = &session.parent_id {
        let turn = session.forked_from_turn.map_or_else(String::new, |turn| format!(" at turn {turn}"));
        let parent = short(parent, short_length([parent, id]));
        out.line(&format!("parent    {parent}{turn}"))?;
    }
    Ok(())
}

/// Writes messages, each with who speaks and when; `marked` is the one that was asked for.
pub(crate) fn messages(
    out: &mut Out,
    messages: &[Message],
    full: bool,
    marked: impl Fn(&Message) -> bool,
    now: &Zoned,
) -> io::Result<()> {
    for message in messages {
        let line = message.raw.parse_object().unwrap_or_default();
        let role = message::speaker(&line, message.role);
        let turn = message.turn.map_or_else(String::new, |turn| format!(" · turn {turn}"));
        let estimated = if message.ts_estimated { " (first seen)" } else { "" };
        let place = format!("#{}", message.sequence);
        let rest = format!("{turn} · {}{estimated}", dates::minute(message.ts, now));
        let mark = if marked(message) { "> " } else { "" };
        let paint = out.paint;
        out.line("")?;
        out.line(&format!("{mark}{} {}{}", paint.title(&place), paint.role(&role), paint.aside(&rest)))?;
        for line in message::body(&line, message.role, full, "  ", paint) {
            out.line(&line)?;
        }
    }
    Ok(())
}
