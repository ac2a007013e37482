//! Sessions that would be deleted, and deleted sessions.

use std::io;

use amplifier_session_api::views::SessionView;
use amplifier_session_storage::model::Session;
use unicode_width::UnicodeWidthStr as _;

use super::{
    conversation::counts,
    ids::{ShortIds, short},
    text::{counted, fitted, fitted_end, one_line},
};
use crate::out::Out;

/// Two lines for each session that would be deleted: its title; its project and its counts.
pub(crate) fn preview(sessions: &[SessionView], short_ids: &ShortIds, width: usize) -> Vec<String> {
    let id = |session: &Session| short(short_ids, &session.session_id).to_owned();
    let sessions = || sessions.iter().map(|view| &view.session);
    let length = sessions().map(|session| id(session).len()).max().unwrap_or_default();
    let indent = " ".repeat(length + 2);
    let lines = |session: &Session| {
        let title = fitted(&one_line(session.title()), width.saturating_sub(indent.len()));
        let counts = counts(session);
        let room = width.saturating_sub(indent.len() + 3 + counts.width());
        let project = fitted_end(&one_line(session.project_slug.as_str()), room.max(6));
        let place = fitted(&format!("{project} · {counts}"), width.saturating_sub(indent.len()));
        [format!("{:<length$}  {title}", id(session)), format!("{indent}{place}")]
    };
    sessions().flat_map(lines).collect()
}

/// The number of sessions, and of their messages and events.
pub(crate) fn total(sessions: &[SessionView]) -> String {
    let sum =
        |count: fn(&Session) -> u32| sessions.iter().map(|view| u64::from(count(&view.session))).sum::<u64>();
    format!(
        "{} with {} and {}",
        counted(sessions.len() as u64, "session"),
        counted(sum(|session| session.message_count), "message"),
        counted(sum(|session| session.event_count), "event"),
    )
}

/// Writes the deleted sessions, one per line, each with a label.
pub(crate) fn list<'a>(
    out: &mut Out,
    label: &str,
    sessions: impl IntoIterator<Item = &'a SessionView>,
    short_ids: &ShortIds,
) -> io::Result<()> {
    for SessionView { session, .. } in sessions {
        let title = one_line(session.title());
        let line = if out.is_terminal() {
            let id = short(short_ids, &session.session_id);
            fitted(&format!("{label}  {id}  {title}"), out.width)
        } else {
            tabbed(label, session, title)
        };
        out.line(&line)?;
    }
    Ok(())
}

fn tabbed(label: &str, session: &Session, title: String) -> String {
    let fields = [
        label.to_owned(),
        session.session_id.to_string(),
        one_line(session.project_slug.as_str()),
        session.message_count.to_string(),
        session.turn_count.to_string(),
        session.event_count.to_string(),
        title,
    ];
    fields.join("\t")
}
