//! Recent projects and sessions.

use std::io;

use amplifier_session_api::{
    operations::recent::{RecentCounts, RecentProject, RecentResponse, RecentUser},
    views::SessionView,
};
use amplifier_session_storage::model::Timestamp;
use jiff::Zoned;
use unicode_width::UnicodeWidthStr as _;

use super::{
    ids::{ShortIds, short},
    table::{Column, TableCell, table},
    text::{counted, fitted, fitted_end, one_line},
};
use crate::{dates, out::Out, paint::Paint};

/// The formatted time of the last change.
fn last_change(recent: &RecentResponse, last: Timestamp, now: &Zoned) -> String {
    let mut sessions = recent.projects.iter().flat_map(|project| &project.newest);
    let is_estimated = sessions.any(|view| view.session.updated == last && view.is_estimated());
    dates::about_minute(last, is_estimated, now)
}

/// Writes projects with their sessions, and users: blocks on a terminal, tab-separated fields in a pipe.
pub(crate) fn recent(out: &mut Out, recent: &RecentResponse, now: &Zoned) -> io::Result<()> {
    let lines =
        if out.is_terminal() { blocks(recent, out.width, out.paint, now) } else { tabbed(recent, now) };
    out.lines(&lines)
}

fn blocks(recent: &RecentResponse, width: usize, paint: Paint, now: &Zoned) -> Vec<String> {
    const INDENT: &str = "  ";
    let owners = recent.users.is_some();
    let mut lines = Vec::new();
    for (at, RecentProject { project, counts: active, users, newest }) in recent.projects.iter().enumerate() {
        if at > 0 {
            lines.push(String::new());
        }
        let users = Some(*users).filter(|users| *users > 1).map(|users| counted(users, "user"));
        let counts = counts(active, users, last_change(recent, active.last, now));
        let project =
            fitted_end(&one_line(project.as_str()), width.saturating_sub(counts.width() + 1).max(8));
        let counts = fitted(&counts, width.saturating_sub(project.width() + 1));
        lines.push(format!("{} {}", paint.title(&project), paint.aside(&counts)));
        let row = |view: &SessionView| {
            let changed = dates::about_minute(view.session.updated, view.is_estimated(), now);
            row(view, &recent.short_ids, owners, changed)
        };
        let rows: Vec<Vec<TableCell>> = newest.iter().map(row).collect();
        let table = table(&[Column::text(""); 4], &rows, width - INDENT.len(), paint);
        // The tables of all projects have the same columns, so their headers are left out.
        lines.extend(table.iter().skip(1).map(|line| format!("{INDENT}{line}")));
        let more = active.sessions.saturating_sub(newest.len() as u64);
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
        let projects = Some(counted(user.projects, "project"));
        let counts = counts(&user.counts, projects, last_change(recent, user.counts.last, now));
        let name = fitted(&one_line(user.user_id.as_str()), width / 3);
        let counts = fitted(&counts, width.saturating_sub(INDENT.len() + name.width() + 1));
        lines.push(format!("{INDENT}{name} {}", paint.aside(&counts)));
    }
    lines
}

fn counts(activity: &RecentCounts, across: Option<String>, last: String) -> String {
    let sessions = counted(activity.sessions, "session");
    let messages = counted(activity.messages, "message");
    let across = across.map_or_else(String::new, |across| format!(" · {across}"));
    format!("· {sessions} · {messages}{across} · {last}")
}

fn row(view: &SessionView, short_ids: &ShortIds, owners: bool, changed: String) -> Vec<TableCell> {
    let session = &view.session;
    let owner = if owners { one_line(session.user_id.as_str()) } else { String::new() };
    vec![
        TableCell::plain(short(short_ids, &session.session_id)),
        TableCell::plain(owner),
        TableCell::styled(changed, Paint::aside),
        TableCell::plain(one_line(&view.title)),
    ]
}

fn tabbed(recent: &RecentResponse, now: &Zoned) -> Vec<String> {
    let mut lines = Vec::new();
    for RecentProject { project, counts, users, newest } in &recent.projects {
        let project = one_line(project.as_str());
        lines.push(counts_line("project", &project, counts, *users, now));
        for SessionView { session, title, .. } in newest {
            let fields = [
                "session".to_owned(),
                project.clone(),
                session.session_id.to_string(),
                dates::with_offset(session.updated, now),
                session.message_count.to_string(),
                one_line(title),
                one_line(session.user_id.as_str()),
            ];
            lines.push(fields.join("\t"));
        }
    }
    let users = recent.users.iter().flatten();
    lines.extend(users.map(|RecentUser { user_id, counts, projects }| {
        counts_line("user", &one_line(user_id.as_str()), counts, *projects, now)
    }));
    lines
}

fn counts_line(kind: &str, of: &str, counts: &RecentCounts, across: u64, now: &Zoned) -> String {
    let fields = [
        kind.to_owned(),
        of.to_owned(),
        counts.sessions.to_string(),
        counts.messages.to_string(),
        counts.events.to_string(),
        dates::with_offset(counts.last, now),
        across.to_string(),
    ];
    fields.join("\t")
}
