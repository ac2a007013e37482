//! Recent projects and sessions.

use std::io;

use amplifier_session_storage::{
    model::{ProjectSlug, Session, Timestamp, UserId},
    storage::Activity,
};
use jiff::Zoned;
use unicode_width::UnicodeWidthStr as _;

use super::{
    ids::{ShortIds, short},
    table::{Column, TableCell, table},
    text::{counted, fitted, fitted_end, one_line},
};
use crate::{dates, messages::Estimated, out::Out, paint::Paint};

/// A project with its newest sessions.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) activity: Activity<ProjectSlug>,
    pub(crate) newest: Vec<Session>,
}

/// Recent projects, sessions and users.
#[derive(Debug)]
pub(crate) struct Recent {
    pub(crate) since: Timestamp,
    pub(crate) projects: Vec<Project>,
    /// The users, if the scope includes more than one.
    pub(crate) users: Option<Vec<Activity<UserId>>>,
    /// The sessions whose dates are estimates.
    pub(crate) estimated: Estimated,
    pub(crate) short_ids: ShortIds,
}

impl Recent {
    /// The formatted time of the last change.
    fn last(&self, last: Timestamp, now: &Zoned) -> String {
        let mut sessions = self.projects.iter().flat_map(|project| &project.newest);
        let is_estimated = sessions.any(|session| session.updated == last && self.estimated.has(session));
        dates::about_minute(last, is_estimated, now)
    }
}

/// Writes projects with their sessions, and users: blocks on a terminal, tab-separated fields in a pipe.
pub(crate) fn recent(out: &mut Out, recent: &Recent, now: &Zoned) -> io::Result<()> {
    let lines =
        if out.is_terminal() { blocks(recent, out.width, out.paint, now) } else { tabbed(recent, now) };
    out.lines(&lines)
}

fn blocks(recent: &Recent, width: usize, paint: Paint, now: &Zoned) -> Vec<String> {
    const INDENT: &str = "  ";
    let owners = recent.users.is_some();
    let mut lines = Vec::new();
    for (at, Project { activity, newest }) in recent.projects.iter().enumerate() {
        if at > 0 {
            lines.push(String::new());
        }
        let users = Some(activity.across).filter(|users| *users > 1).map(|users| counted(users, "user"));
        let counts = counts(activity, users, recent.last(activity.last, now));
        let project =
            fitted_end(&one_line(activity.of.as_str()), width.saturating_sub(counts.width() + 1).max(8));
        let counts = fitted(&counts, width.saturating_sub(project.width() + 1));
        lines.push(format!("{} {}", paint.title(&project), paint.aside(&counts)));
        let row = |session: &Session| {
            let changed = dates::about_minute(session.updated, recent.estimated.has(session), now);
            row(session, &recent.short_ids, owners, changed)
        };
        let rows: Vec<Vec<TableCell>> = newest.iter().map(row).collect();
        let table = table(&[Column::text(""); 4], &rows, width - INDENT.len(), paint);
        // The tables of all projects have the same columns, so their headers are left out.
        lines.extend(table.iter().skip(1).map(|line| format!("{INDENT}{line}")));
        let more = activity.sessions.saturating_sub(newest.len() as u64);
        if more > 0 {
            lines.push(format!(
                "{INDENT}{}",
                paint.aside(&format!("… and {}", counted(more, "other session")))
            ));
        }
    }
    for (at, user) in recent.users.iter().flatten().enumerate() {
        if at == 0 {
            lines.extend([String::new(), paint.title("Users")]);
        }
        let projects = Some(counted(user.across, "project"));
        let counts = counts(user, projects, recent.last(user.last, now));
        let name = fitted(&one_line(user.of.as_str()), width / 3);
        let counts = fitted(&counts, width.saturating_sub(INDENT.len() + name.width() + 1));
        lines.push(format!("{INDENT}{name} {}", paint.aside(&counts)));
    }
    lines
}

fn counts<T>(activity: &Activity<T>, across: Option<String>, last: String) -> String {
    let sessions = counted(activity.sessions, "session");
    let messages = counted(activity.messages, "message");
    let across = across.map_or_else(String::new, |across| format!(" · {across}"));
    format!("· {sessions} · {messages}{across} · {last}")
}

fn row(session: &Session, short_ids: &ShortIds, owners: bool, changed: String) -> Vec<TableCell> {
    let owner = if owners { one_line(session.user_id.as_str()) } else { String::new() };
    vec![
        TableCell::plain(short(short_ids, &session.session_id)),
        TableCell::plain(owner),
        TableCell::styled(changed, Paint::aside),
        TableCell::plain(one_line(session.title())),
    ]
}

fn tabbed(recent: &Recent, now: &Zoned) -> Vec<String> {
    let mut lines = Vec::new();
    for Project { activity, newest } in &recent.projects {
        let project = one_line(activity.of.as_str());
        lines.push(activity_line("project", &project, activity, now));
        for session in newest {
            let fields = [
                "session".to_owned(),
                project.clone(),
                session.session_id.to_string(),
                dates::with_offset(session.updated, now),
                session.message_count.to_string(),
                one_line(session.title()),
                one_line(session.user_id.as_str()),
            ];
            lines.push(fields.join("\t"));
        }
    }
    let users = recent.users.iter().flatten();
    lines.extend(users.map(|user| activity_line("user", &one_line(user.of.as_str()), user, now)));
    lines
}

fn activity_line<T>(kind: &str, of: &str, activity: &Activity<T>, now: &Zoned) -> String {
    let fields = [
        kind.to_owned(),
        of.to_owned(),
        activity.sessions.to_string(),
        activity.messages.to_string(),
        activity.events.to_string(),
        dates::with_offset(activity.last, now),
        activity.across.to_string(),
    ];
    fields.join("\t")
}
