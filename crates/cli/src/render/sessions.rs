//! Lists of sessions.

use std::io;

use amplifier_session_storage::model::Session;
use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};
use jiff::Zoned;

use super::{
    ids::{short, short_length},
    text::{fitted, grouped, one_line},
};
use crate::{dates, out::Out};

/// Columns that a title is worth at most.
const TITLE_COLUMNS: usize = 56;

/// Writes one line a session: a table for people, fields separated by tabs in a pipe.
pub(crate) fn list(out: &mut Out, sessions: &[Session], now: &Zoned) -> io::Result<()> {
    if out.is_terminal() {
        let table = table(sessions, out.width, now);
        return out.line(&table);
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

fn table(sessions: &[Session], width: usize, now: &Zoned) -> String {
    let length = short_length(sessions.iter().map(|session| &session.session_id));
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_width(width as u16)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["session", "changed", "project", "messages", "title"]);
    for session in sessions {
        let mut row = Row::from([
            short(&session.session_id, length).to_owned(),
            dates::minute(session.updated, now),
            one_line(session.project_slug.as_str()),
            grouped(session.message_count.into()),
            fitted(&one_line(session.title()), TITLE_COLUMNS),
        ]);
        row.max_height(1);
        table.add_row(row);
    }
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
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
        let sessions =
            [session("3a7c1e90-1f4b", "Short"), session("5b8d2f10-77aa", &"very long ".repeat(20))];
        let table = table(&sessions, 100, &now());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        assert!(
            lines[1].contains("3a7c1e90") && lines[1].contains("1,234") && lines[1].ends_with("Short"),
            "{table}"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{table}");
        assert!(lines[2].ends_with('…') || lines[2].ends_with("..."), "{table}");
    }
}
