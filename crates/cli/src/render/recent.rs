//! Recent projects and sessions.

use std::io;

use amplifier_session_api::{
    operations::{
        recent::{RecentCounts, RecentProject, RecentResponse, RecentUser},
        sessions::ListedSession,
    },
    views::SessionView,
};
use amplifier_session_storage::{model::Timestamp, storage::SessionOrder};
use jiff::Zoned;
use unicode_width::UnicodeWidthStr as _;

use super::{
    ids::{ShortIds, short},
    sessions::{sorted_field, sorted_field_of, sorted_value},
    table::{Column, TableCell, table},
    text::{counted, fitted, fitted_end, grouped, one_line},
};
use crate::{dates, out::Out, paint::Paint};

/// The formatted time of the last change.
fn last_change(recent: &RecentResponse, last: Timestamp, now: &Zoned) -> String {
    let sessions = recent.projects.iter().flat_map(|project| &project.newest);
    let is_estimated =
        sessions.map(|one| &one.session).any(|view| view.session.updated == last && view.is_estimated());
    dates::about_minute(last, is_estimated, now)
}

/// Writes projects with their sessions, and users: blocks on a terminal, tab-separated fields in a pipe.
pub(crate) fn recent(
    out: &mut Out,
    recent: &RecentResponse,
    sort: SessionOrder,
    now: &Zoned,
) -> io::Result<()> {
    let lines = if out.is_terminal() {
        blocks(recent, sort, out.width, out.paint, now)
    } else {
        tabbed(recent, sort, now)
    };
    out.lines(&lines)
}

fn blocks(
    recent: &RecentResponse,
    sort: SessionOrder,
    width: usize,
    paint: Paint,
    now: &Zoned,
) -> Vec<String> {
    const INDENT: &str = "  ";
    let owners = recent.users.is_some();
    let mut lines = Vec::new();
    for (at, of) in recent.projects.iter().enumerate() {
        let RecentProject { project, counts: active, users, newest, .. } = of;
        if at > 0 {
            lines.push(String::new());
        }
        let users = Some(*users).filter(|users| *users > 1).map(|users| counted(users, "user"));
        let value = sorted_value(of.usage.as_ref(), of.duration_seconds, sort).map(|value| match sort {
            SessionOrder::Cost if value == "-" => "unknown cost".to_owned(),
            _ => value,
        });
        let more = users.into_iter().chain(value).collect();
        let counts = counts(active, more, last_change(recent, active.last, now));
        let project =
            fitted_end(&one_line(project.as_str()), width.saturating_sub(counts.width() + 1).max(8));
        let counts = fitted(&counts, width.saturating_sub(project.width() + 1));
        lines.push(format!("{} {}", paint.title(&project), paint.aside(&counts)));
        let row = |one: &ListedSession| {
            let view = &one.session;
            let changed = dates::about_minute(view.session.updated, view.is_estimated(), now);
            let value = match sort {
                SessionOrder::Messages => Some(grouped(view.session.message_count.into())),
                _ => sorted_value(one.usage.as_ref(), one.duration_seconds, sort),
            };
            row(view, &recent.short_ids, owners, changed, value)
        };
        let rows: Vec<Vec<TableCell>> = newest.iter().map(row).collect();
        let mut columns = vec![Column::text(""); 4];
        if sort != SessionOrder::Updated {
            columns.insert(3, Column::number(""));
        }
        let table = table(&columns, &rows, width - INDENT.len(), paint);
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
        let projects = vec![counted(user.projects, "project")];
        let counts = counts(&user.counts, projects, last_change(recent, user.counts.last, now));
        let name = fitted(&one_line(user.user_id.as_str()), width / 3);
        let counts = fitted(&counts, width.saturating_sub(INDENT.len() + name.width() + 1));
        lines.push(format!("{INDENT}{name} {}", paint.aside(&counts)));
    }
    lines
}

fn counts(activity: &RecentCounts, more: Vec<String>, last: String) -> String {
    let sessions = counted(activity.sessions, "session");
    let messages = counted(activity.messages, "message");
    let more: String = more.iter().map(|one| format!(" · {one}")).collect();
    format!("· {sessions} · {messages}{more} · {last}")
}

/// The cells of a session. `value` is that by which it is sorted, if it is not the time of its last change.
fn row(
    view: &SessionView,
    short_ids: &ShortIds,
    owners: bool,
    changed: String,
    value: Option<String>,
) -> Vec<TableCell> {
    let session = &view.session;
    let owner = if owners { one_line(session.user_id.as_str()) } else { String::new() };
    let mut cells = vec![
        TableCell::plain(short(short_ids, &session.session_id)),
        TableCell::plain(owner),
        TableCell::styled(changed, Paint::aside),
    ];
    cells.extend(value.map(TableCell::plain));
    cells.push(TableCell::plain(one_line(&view.title)));
    cells
}

fn tabbed(recent: &RecentResponse, sort: SessionOrder, now: &Zoned) -> Vec<String> {
    let mut lines = Vec::new();
    for RecentProject { project, counts, users, usage, duration_seconds, newest } in &recent.projects {
        let project = one_line(project.as_str());
        let line = counts_line("project", &project, counts, *users, now);
        let value = sorted_field_of(usage.as_ref(), *duration_seconds, sort);
        lines.push([line].into_iter().chain(value).collect::<Vec<_>>().join("\t"));
        for one in newest {
            let SessionView { session, title, .. } = &one.session;
            let mut fields = vec![
                "session".to_owned(),
                project.clone(),
                session.session_id.to_string(),
                dates::with_offset(session.updated, now),
                session.message_count.to_string(),
                one_line(title),
                one_line(session.user_id.as_str()),
            ];
            fields.extend(sorted_field(one, sort));
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
