//! Lists of sessions.

use std::io;

use amplifier_session_storage::model::Session;
use jiff::Zoned;
use unicode_width::UnicodeWidthStr as _;

use super::{
    ids::{short, short_length},
    text::{fitted, grouped, one_line},
};
use crate::{dates, out::Out, paint::Paint};

/// What stands above the columns.
const HEADER: [&str; 5] = ["session", "changed", "project", "messages", "title"];
/// The column of numbers, which is aligned to the right.
const NUMBERS: usize = 3;
/// The least columns that are left for a title, on however narrow a terminal.
const NARROWEST_TITLE: usize = 20;

/// Writes one line a session: a table for people, fields separated by tabs in a pipe.
pub(crate) fn list(out: &mut Out, sessions: &[Session], now: &Zoned) -> io::Result<()> {
    if out.is_terminal() {
        let lines = table(sessions, out.width, out.paint, now);
        return lines.iter().try_for_each(|line| out.line(line));
    }
    for session in sessions {
        out.line(&tabbed(session, now))?;
    }
    Ok(())
}

fn tabbed(session: &Session, now: &Zoned) -> String {
    let fields = [
        session.session_id.to_string(),
        dates::with_offset(session.updated, now),
        one_line(session.project_slug.as_str()),
        session.message_count.to_string(),
        session.turn_count.to_string(),
        session.event_count.to_string(),
        one_line(session.title()),
    ];
    fields.join("\t")
}

/// A header, and a line for each session that fits into `width`.
fn table(sessions: &[Session], width: usize, paint: Paint, now: &Zoned) -> Vec<String> {
    let length = short_length(sessions.iter().map(|session| &session.session_id));
    let cells = |session: &Session| {
        [
            short(&session.session_id, length).to_owned(),
            dates::minute(session.updated, now),
            one_line(session.project_slug.as_str()),
            grouped(session.message_count.into()),
            one_line(session.title()),
        ]
    };
    let mut rows: Vec<[String; 5]> = vec![HEADER.map(str::to_owned)];
    rows.extend(sessions.iter().map(cells));
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
    let widths: Vec<usize> = (0..HEADER.len() - 1).map(|column| widest(column).unwrap_or(0)).collect();
    let left = width.saturating_sub(widths.iter().map(|width| width + 2).sum()).max(NARROWEST_TITLE);
    let mut lines: Vec<String> = rows.iter().map(|row| aligned(row, &widths, left)).collect();
    if let Some(header) = lines.first_mut() {
        *header = paint.aside(header);
    }
    lines
}

fn aligned(row: &[String; 5], widths: &[usize], left: usize) -> String {
    let [.., title] = row;
    let mut line = String::new();
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        let padding = " ".repeat(width.saturating_sub(cell.width()));
        let cell = if column == NUMBERS { padding + cell } else { cell.clone() + &padding };
        line.push_str(&cell);
        line.push_str("  ");
    }
    line + &fitted(title, left)
}

#[cfg(test)]
mod tests {
    use amplifier_session_storage::model::{HostId, ProjectSlug, SessionId, SessionKey, Timestamp, UserId};

    use super::*;

    fn session(id: &str, name: &str) -> Session {
        let key = SessionKey::new(UserId::new("u").unwrap(), SessionId::new(id).unwrap());
        let slug = ProjectSlug::new("-home-ana-payments").unwrap();
        let created = Timestamp::parse("2026-01-31T09:30:00Z").unwrap();
        let mut session = Session::new(key, HostId::new("h").unwrap(), slug, created);
        session.name = Some(name.to_owned());
        session.message_count = 1_234;
        session
    }

    fn now() -> Zoned {
        "2026-04-04T15:30:00+00:00[UTC]".parse().unwrap()
    }

    #[test]
    fn a_pipe_gets_fields_that_no_text_can_break() {
        let line = tabbed(&session("3a7c1e90-1f4b", "a\tb\nc"), &now());
        assert_eq!(line, "3a7c1e90-1f4b\t2026-01-31T09:30:00+00:00\t-home-ana-payments\t1234\t0\t0\ta b c");
    }

    #[test]
    fn a_person_gets_a_table_with_one_line_a_session() {
        let sessions = [session("3a7c1e90-1f4b", "Short"), session("5b8d2f10-77aa", &"日本 ".repeat(40))];
        let lines = table(&sessions, 100, Paint::new(false), &now());
        let expected = [
            "session   changed           project             messages  title",
            "3a7c1e90  2026-01-31 09:30  -home-ana-payments     1,234  Short",
        ];
        assert_eq!(lines[..2], expected);
        assert!(lines[2].ends_with('…') && (98..=100).contains(&lines[2].width()), "{}", lines[2]);
        assert_eq!(lines.len(), 3);
    }
}
