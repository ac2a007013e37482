//! A session and its messages.

use std::io;

use amplifier_session_api::{
    ids::{ShortIds, short},
    views::{MessageView, SessionView},
};
use amplifier_session_storage::{
    backend::SkippedLine,
    model::{RepositoryKind, Session, SessionSource, Visibility},
};
use jiff::Zoned;
use unicode_width::UnicodeWidthStr as _;

use super::{
    markdown::wrapped,
    message::{self, MessageOptions},
    text::{counted, one_line},
    wrap::wrapped_words,
};
use crate::{dates, out::Out};

/// The width of the labels in a session's header.
const LABEL: usize = 10;

/// The data for the header of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionHeader<'a> {
    pub(crate) session: &'a SessionView,
    /// The short id of its parent.
    pub(crate) short_ids: &'a ShortIds,
    /// Whether to name its owner.
    pub(crate) names_owner: bool,
    /// The lines of its files that were skipped.
    pub(crate) skipped: &'a [SkippedLine],
}

/// Writes the header of a session.
pub(crate) fn head(out: &mut Out, head: SessionHeader<'_>, now: &Zoned) -> io::Result<()> {
    title(out, &head.session.title)?;
    for (label, value) in fields(head, now) {
        let (label, below) = (format!("{label:<LABEL$}"), " ".repeat(LABEL));
        let width = out.wrap_at().unwrap_or(usize::MAX);
        for line in wrapped_words(&one_line(&value), &label, &below, width) {
            let begin = [&label, &below].into_iter().find(|begin| line.starts_with(begin.as_str()));
            let shown = match begin {
                Some(begin) => out.paint.aside(begin) + line.strip_prefix(begin.as_str()).unwrap_or_default(),
                // Its value has a line of its own.
                None if line == label.trim_end() => out.paint.aside(&line),
                None => line,
            };
            out.line(&shown)?;
        }
    }
    Ok(())
}

/// Writes the title of a session.
pub(crate) fn title(out: &mut Out, title: &str) -> io::Result<()> {
    let lines = wrapped(&one_line(title), out.wrap_at());
    lines.iter().try_for_each(|line| out.line(&out.paint.title(line)))
}

fn fields(head: SessionHeader<'_>, now: &Zoned) -> Vec<(&'static str, String)> {
    let SessionHeader { session: view, short_ids, names_owner, skipped } = head;
    let (session, is_estimated) = (&view.session, view.is_estimated());
    let id = &session.session_id;
    let [from, to] = [session.created, session.updated].map(|ts| dates::about_minute(ts, is_estimated, now));
    let fields = [
        ("session", Some(id.to_string())),
        ("owner", names_owner.then(|| session.user_id.to_string())),
        ("project", Some(session.project_slug.to_string())),
        ("repo", repository(session)),
        ("about", session.description.clone()),
        ("time", Some(format!("{from} to {to}"))),
        ("content", Some(counts(session))),
        ("model", session.model.clone()),
        ("bundle", session.bundle.clone()),
        ("tags", Some(session.tags.join(", "))),
        (
            "source",
            Some(session.source)
                .filter(|source| *source != SessionSource::Amplifier)
                .map(|of| of.to_string()),
        ),
        ("moved", session.moved_to.as_ref().map(|host| format!("to {host}, where it goes on"))),
        ("shared", shared_with(session)),
        ("folder", session.working_dir.clone()),
        (
            "parent",
            session.parent_id.as_ref().map(|parent| {
                let turn = session
                    .forked_from_turn
                    .map_or_else(String::new, |turn| format!(", forked at turn {turn}"));
                format!("{}{turn}", short(short_ids, parent))
            }),
        ),
        ("skipped", Some(skipped).filter(|skipped| !skipped.is_empty()).map(skipped_lines)),
    ];
    let known = fields.into_iter().filter_map(|(label, value)| Some((label, value?)));
    known.filter(|(_, value)| !value.trim().is_empty()).collect()
}

/// How much a session contains.
pub(super) fn counts(session: &Session) -> String {
    let counts = [
        counted(session.message_count, "message"),
        counted(session.turn_count, "turn"),
        counted(session.event_count, "event"),
    ];
    counts.join(", ")
}

/// The repository, unless it is only a folder: that is shown anyway.
fn repository(session: &Session) -> Option<String> {
    let repository = session.repository.as_ref()?;
    (repository.kind() != RepositoryKind::Folder).then(|| repository.to_string())
}

/// With whom the session is shared, if at all.
fn shared_with(session: &Session) -> Option<String> {
    match session.visibility {
        Visibility::Private => None,
        Visibility::Team => {
            let teams = if session.team_ids.len() == 1 { "team" } else { "teams" };
            Some(format!("with the {teams} {}", session.team_ids.join(", ")))
        }
        Visibility::Org => Some(format!("with {}", session.org_id.as_deref().unwrap_or("an organisation"))),
        Visibility::Public => Some("with everyone".to_owned()),
    }
}

/// The skipped lines of the session's files, in words.
fn skipped_lines(skipped: &[SkippedLine]) -> String {
    const NAMED: usize = 3;
    let named: Vec<String> = skipped
        .iter()
        .take(NAMED)
        .map(|skipped| format!("{}:{} ({})", skipped.file, skipped.line, skipped.reason))
        .collect();
    let more = if skipped.len() > NAMED { ", …" } else { "" };
    format!("{} of its files: {}{more}", counted(skipped.len() as u64, "line"), named.join(", "))
}

/// Writes messages with speaker and time, and a separator before each turn. `marked` is the number of the requested
/// message. `options` returns how to show the message at an index.
pub(crate) fn messages(
    out: &mut Out,
    messages: &[MessageView],
    options: impl Fn(usize) -> MessageOptions,
    marked: impl Fn(u32) -> bool,
    now: &Zoned,
) -> io::Result<()> {
    let mut turn = None;
    for (at, message) in messages.iter().enumerate() {
        let options = options(at);
        let line = message.line();
        let body = message::body(&line, options, "  ");
        // The options hide everything in it. An empty message is shown.
        if body.is_empty() && !(options.thinking && options.tools) {
            continue;
        }
        if let Some(begins) = message.turn.filter(|_| message.turn != turn) {
            turn = message.turn;
            out.line("")?;
            out.line(&separator(out, begins))?;
        }
        let role = message::speaker(&line);
        let place = out.paint.title(&format!("#{}", message.sequence));
        let role = out.paint.speaker(message.role, &role);
        let time =
            out.paint.aside(&format!(" · {}", dates::about_minute(message.ts, message.ts_estimated, now)));
        let mark = if marked(message.sequence) { "> " } else { "" };
        out.line("")?;
        out.line(&format!("{mark}{place} {role}{time}"))?;
        out.lines(&body)?;
    }
    Ok(())
}

/// The line before a turn, across the terminal.
fn separator(out: &Out, turn: u32) -> String {
    let text = format!("── turn {turn} ──");
    let rest = if out.is_terminal() { out.width.saturating_sub(text.width()) } else { 0 };
    out.paint.aside(&(text + &"─".repeat(rest)))
}
