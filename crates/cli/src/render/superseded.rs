//! Sessions with superseded lines, and the lines.

use amplifier_session_api::operations::{
    superseded_events::SupersededEvent,
    superseded_messages::{SupersededMessage, Supersession},
};
use amplifier_session_storage::{model::SupersededReason, storage::SupersededSession};
use jiff::Zoned;

use super::{
    ids::{ShortIds, short},
    table::{Column, TableCell, table},
    text::{counted, grouped, one_line, size},
};
use crate::{dates, out::Out, paint::Paint};

/// The number of messages and events, and their size.
pub(crate) fn amount(messages: u64, events: u64, bytes: u64) -> String {
    let counts = [(messages, "superseded message"), (events, "superseded event")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, one)| counted(count, one)).collect();
    if counts.is_empty() {
        "no superseded lines".to_owned()
    } else {
        format!("{} ({})", counts.join(" and "), size(bytes))
    }
}

/// A session with its counts, in one line.
pub(crate) fn sentence(session: &SupersededSession) -> String {
    let SupersededSession { session_id, project, messages, events, bytes, .. } = session;
    format!("{session_id}  {} · {}", one_line(project.as_str()), amount(*messages, *events, *bytes))
}

/// A label, the session, its project and its counts, separated by tabs.
pub(crate) fn tabbed_counts(label: &str, session: &SupersededSession) -> String {
    let SupersededSession { session_id, project, messages, events, bytes, .. } = session;
    format!("{label}\t{session_id}\t{}\t{messages}\t{events}\t{bytes}", one_line(project.as_str()))
}

/// Writes sessions, one per line: a table on a terminal, tab-separated fields in a pipe.
pub(crate) fn sessions(
    out: &mut Out,
    sessions: &[SupersededSession],
    short_ids: &ShortIds,
    owners: bool,
    now: &Zoned,
) -> std::io::Result<()> {
    if !out.is_terminal() {
        return sessions.iter().try_for_each(|session| out.line(&tabbed(session, owners, now)));
    }
    let columns = [
        Column::text("session"),
        Column::text("owner"),
        Column::text("superseded"),
        Column::text("project").shrinking(1, 8).cut_at_start(),
        Column::number("messages"),
        Column::number("events"),
        Column::number("size"),
        Column::text("why"),
    ];
    let row = |session: &SupersededSession| {
        vec![
            TableCell::plain(short(short_ids, &session.session_id)),
            TableCell::plain(if owners { one_line(session.user_id.as_str()) } else { String::new() }),
            TableCell::styled(dates::minute(session.last_superseded_at, now), Paint::aside),
            TableCell::plain(one_line(session.project.as_str())),
            TableCell::plain(grouped(session.messages)),
            TableCell::plain(grouped(session.events)),
            TableCell::plain(size(session.bytes)),
            TableCell::plain(reasons(session)),
        ]
    };
    let rows: Vec<Vec<TableCell>> = sessions.iter().map(row).collect();
    out.lines(&table(&columns, &rows, out.width, out.paint))
}

fn reasons(session: &SupersededSession) -> String {
    session.reasons.iter().map(|reason| reason.as_str()).collect::<Vec<_>>().join(",")
}

fn tabbed(session: &SupersededSession, owners: bool, now: &Zoned) -> String {
    let mut fields = vec![
        session.session_id.to_string(),
        dates::with_offset(session.last_superseded_at, now),
        one_line(session.project.as_str()),
        session.messages.to_string(),
        session.events.to_string(),
        session.bytes.to_string(),
        reasons(session),
    ];
    fields.extend(owners.then(|| one_line(session.user_id.as_str())));
    fields.join("\t")
}

/// The line before messages that were superseded together.
pub(crate) fn heading(how: &Supersession, now: &Zoned) -> String {
    let why = match how.reason {
        SupersededReason::Compacted => "the log became shorter",
        SupersededReason::HeadLost => "the file begins with another line",
        SupersededReason::Edited => "lines were changed or removed",
        SupersededReason::CutOff => "the file ends within a turn",
        SupersededReason::Rewound => "the session was rewound",
        SupersededReason::Diverged => "another store sent them, of a copy that goes on differently",
        SupersededReason::Unreadable => {
            return format!("kept {}: lines that can't be read", dates::minute(how.superseded_at, now));
        }
        _ => how.reason.as_str(),
    };
    format!("superseded {}: {why}", dates::minute(how.superseded_at, now))
}

/// A line that can't be read: its number in the file, and its text.
pub(crate) fn unreadable(line: &SupersededMessage) -> String {
    let raw = line.how.raw.as_deref().unwrap_or_default();
    format!("line {}: {}", line.message.sequence, super::text::escaped(raw))
}

/// An event as tab-separated fields.
pub(crate) fn event(found: &SupersededEvent, owner: bool, full: bool, now: &Zoned) -> String {
    let line = &found.event;
    let mut fields = vec![
        dates::with_offset(line.ts, now),
        one_line(line.event_type.as_deref().unwrap_or("-")),
        line.session_id.to_string(),
        line.sequence.to_string(),
        dates::with_offset(line.superseded_at, now),
        line.reason.to_string(),
    ];
    fields.extend(owner.then(|| one_line(line.user_id.as_str())));
    fields.extend(full.then(|| match &found.line {
        Some(line) => super::text::escaped(line.get()),
        None => super::text::escaped(&line.raw.to_text()),
    }));
    fields.join("\t")
}
