//! The results of sending sessions to servers, for people and programs.

use std::{fmt, io};

use amplifier_session_storage::storage::{PlannedTransfer, PushReport, TransferFailure};
use serde::Serialize;

use crate::{
    failure::{Failure, say, say_some},
    out::Out,
    render::{
        card::labelled,
        table::{Column, TableCell, table},
        text::{counted, grouped, one_line},
    },
};

/// At most this many sessions are listed.
const LISTED: usize = 10;

/// The result of sending to one server, as JSON: `to`, and the fields of the report or an `error`.
#[derive(Debug, Serialize)]
pub(super) struct PushedTo {
    to: String,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    report: Option<PushReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    hint: Option<String>,
    /// In a dry run: how many sessions would be read first, and may then be sent too.
    #[serde(skip_serializing_if = "Option::is_none")]
    to_read: Option<u64>,
}

// Builds without the client make none.
#[cfg_attr(not(feature = "client"), allow(dead_code))]
impl PushedTo {
    pub(super) fn new(to: &impl fmt::Display, report: PushReport) -> Self {
        Self { to: to.to_string(), report: Some(report), error: None, hint: None, to_read: None }
    }

    pub(super) fn planned(to: &impl fmt::Display, report: PushReport, to_read: u64) -> Self {
        Self { to_read: Some(to_read), ..Self::new(to, report) }
    }

    pub(super) fn failed(to: &impl fmt::Display, error: String, hint: Option<&str>) -> Self {
        let hint = hint.map(str::to_owned);
        Self { to: to.to_string(), report: None, error: Some(error), hint, to_read: None }
    }
}

impl PushedTo {
    /// Prints what was sent: a line; or what would be, a line for each session.
    pub(super) fn print(&self, out: &mut Out) -> io::Result<()> {
        let Some(report) = &self.report else { return Ok(()) };
        if self.to_read.is_some() {
            return list(out, &self.to, &report.planned);
        }
        let line = format!("{} to {}", summary(report), self.to);
        out.lines(&labelled("pushed", &line, out.wrap_at()))
    }

    /// Says what went wrong, and what was left out. Returns whether all sessions were sent.
    fn say_problems(&self) -> bool {
        if let Some(error) = &self.error {
            say("failed", error);
        }
        if let Some(hint) = &self.hint {
            say("hint", hint);
        }
        let Some(report) = &self.report else { return false };
        if let Some(to_read) = self.to_read {
            say(
                "note",
                &format!("dry run: {}", would_be_sent(report.planned.len() as u64, to_read, &self.to)),
            );
        }
        if !report.deleted.is_empty() {
            let count = counted(report.deleted.len() as u64, "session");
            say("note", &format!("not sent again: {count} deleted from {}", self.to));
            say("hint", "`sync --include-deleted --push` sends them again");
        }
        let line = |TransferFailure { session_id, reason }: &TransferFailure| {
            format!("{session_id} to {}: {}", self.to, one_line(reason))
        };
        say_some("failed", report.failed.iter().map(line), LISTED, report.failed.len() as u64);
        report.failed.is_empty()
    }
}

/// `3 stored sessions would be sent to https://…, and up to 2 that would be read first`.
fn would_be_sent(stored: u64, to_read: u64, to: &str) -> String {
    let count = counted(stored, "stored session");
    match (stored, to_read) {
        (_, 0) => format!("{count} would be sent to {to}"),
        (0, _) => format!("up to {} would be read, and then sent to {to}", counted(to_read, "session")),
        _ => {
            format!("{count} would be sent to {to}, and up to {} that would be read first", grouped(to_read))
        }
    }
}

/// `3 sessions, 40 messages, 120 events (281 unchanged)`.
pub(super) fn summary(report: &PushReport) -> String {
    let mut text = [(report.sessions, "session"), (report.messages, "message"), (report.events, "event")]
        .map(|(count, one)| counted(count, one))
        .join(", ");
    if report.superseded > 0 {
        text.push_str(&format!(", {}", counted(report.superseded, "superseded line")));
    }
    if report.unchanged > 0 {
        text.push_str(&format!(" ({} unchanged)", grouped(report.unchanged)));
    }
    text
}

/// Prints what would be sent: a table on a terminal, tab-separated fields in a pipe.
fn list(out: &mut Out, to: &str, planned: &[PlannedTransfer]) -> io::Result<()> {
    let change = |one: &PlannedTransfer| if one.is_new { "push new" } else { "push changed" };
    if !out.is_terminal() {
        return planned.iter().try_for_each(|one| {
            let (messages, events) = (one.messages, one.events);
            let project = one_line(one.project_slug.as_str());
            out.line(&format!("{}\t{project}\t{}\t{messages}\t{events}\t{to}", change(one), one.session_id))
        });
    }
    if planned.is_empty() {
        return Ok(());
    }
    let columns = [
        Column::text(""),
        Column::text("project").shrinking(1, 8).cut_at_start(),
        Column::text("session").shrinking(2, 16),
        Column::number("messages"),
        Column::number("events"),
    ];
    let row = |one: &PlannedTransfer| {
        let cells = [
            change(one).to_owned(),
            one_line(one.project_slug.as_str()),
            one.session_id.to_string(),
            grouped(one.messages.into()),
            grouped(one.events.into()),
        ];
        cells.map(TableCell::plain).to_vec()
    };
    let rows: Vec<Vec<TableCell>> = planned.iter().map(row).collect();
    out.lines(&table(&columns, &rows, out.width, out.paint))
}

/// Says what went wrong with each server, and fails if one did not get all sessions.
pub(super) fn report(pushed: &[PushedTo]) -> Result<(), Failure> {
    let failed = pushed.iter().filter(|one| !one.say_problems()).count() as u64;
    match failed {
        0 => Ok(()),
        1 => Err(Failure::failed("a server did not get all sessions", AGAIN)),
        more => Err(Failure::failed(format!("{} did not get all sessions", counted(more, "server")), AGAIN)),
    }
}

const AGAIN: &str = "run the same command again: it sends only what is missing";
