//! Lists and trees of sessions.

use std::io;

use amplifier_session_api::{operations::sessions::ListedSession, text::cost, views::SessionView};
use amplifier_session_storage::{
    backend::Usage,
    model::Cost,
    storage::{Origin, SessionOrder},
};
use jiff::Zoned;

use super::{
    ids::{ShortIds, short},
    table::{Column, TableCell, table},
    text::{grouped, hours, one_line},
};
use crate::{dates, out::Out, paint::Paint};

/// From this width on, times include the time of day.
const ROOMY: usize = 80;

/// The columns of a table of this width. On a narrow terminal, the project is shortened first, then the title.
fn columns(width: usize, sort: SessionOrder) -> Vec<Column<'static>> {
    let project = (width.saturating_sub(44) / 3).clamp(6, 24);
    let messages = if width < ROOMY { "msgs" } else { "messages" };
    let mut columns = vec![
        Column::text("session"),
        Column::text("owner"),
        Column::text("changed"),
        Column::text("project").shrinking(1, project).cut_at_start(),
        Column::number(messages),
    ];
    match sort {
        SessionOrder::Cost => columns.push(Column::number("cost")),
        SessionOrder::Duration => columns.push(Column::number("duration")),
        SessionOrder::Updated | SessionOrder::Messages => {}
    }
    columns.push(Column::text("title").shrinking(2, 12));
    columns
}

/// How to show a list of sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListOptions<'a> {
    /// Whether to name the owners.
    pub(crate) owners: bool,
    /// Their order, the value of which is shown too.
    pub(crate) sort: SessionOrder,
    pub(crate) short_ids: &'a ShortIds,
    pub(crate) now: &'a Zoned,
}

/// Writes one line per session: a table on a terminal, tab-separated fields in a pipe.
pub(crate) fn list(out: &mut Out, sessions: &[ListedSession], options: ListOptions<'_>) -> io::Result<()> {
    if !out.is_terminal() {
        return sessions.iter().try_for_each(|one| {
            let mut fields = tabbed(&one.session, options.owners, options.now);
            fields.extend(sorted_field(one, options.sort));
            out.line(&fields.join("\t"))
        });
    }
    let narrow = out.width < ROOMY;
    let title = |view: &SessionView| TableCell::plain(one_line(&view.title));
    let rows: Vec<Vec<TableCell>> =
        sessions.iter().map(|one| row(one, title(&one.session), narrow, options)).collect();
    out.lines(&table(&columns(out.width, options.sort), &rows, out.width, out.paint))
}

/// Writes one line per session, parents before their sub-agents and forks.
pub(crate) fn tree(out: &mut Out, forest: &[ListedSession], options: ListOptions<'_>) -> io::Result<()> {
    let lines: Vec<TreeLine<'_>> = forest.iter().flat_map(lines).collect();
    if !out.is_terminal() {
        return lines.iter().try_for_each(|line| out.line(&line.tabbed(options.owners, options.now)));
    }
    let narrow = out.width < ROOMY;
    let rows: Vec<Vec<TableCell>> =
        lines.iter().map(|line| row(line.tree, line.title(options.short_ids), narrow, options)).collect();
    out.lines(&table(&columns(out.width, options.sort), &rows, out.width, out.paint))
}

/// The cells of a session, without the time of day if `narrow`.
fn row(one: &ListedSession, title: TableCell, narrow: bool, options: ListOptions<'_>) -> Vec<TableCell> {
    let (view, session) = (&one.session, &one.session.session);
    let ListOptions { owners, sort, short_ids, now } = options;
    let owner = if owners { one_line(session.user_id.as_str()) } else { String::new() };
    let minute = dates::about_minute(session.updated, view.is_estimated(), now);
    let changed = if narrow { minute.split(' ').next().unwrap_or_default() } else { &minute };
    let mut cells = vec![
        TableCell::plain(short(short_ids, &session.session_id)),
        TableCell::plain(owner),
        TableCell::styled(changed, Paint::aside),
        TableCell::plain(one_line(session.project_slug.as_str())),
        TableCell::plain(grouped(session.message_count.into())),
    ];
    cells.extend(sorted_value(one.usage.as_ref(), one.duration_seconds, sort).map(TableCell::plain));
    cells.push(title);
    cells
}

/// The value by which something is sorted, for a person: its cost or its duration. Messages are shown anyway.
pub(crate) fn sorted_value(
    usage: Option<&Usage>,
    duration_seconds: Option<u64>,
    sort: SessionOrder,
) -> Option<String> {
    match sort {
        SessionOrder::Updated | SessionOrder::Messages => None,
        SessionOrder::Duration => Some(hours(duration_seconds.unwrap_or_default())),
        SessionOrder::Cost => Some(match usage.and_then(Usage::known_cost) {
            None => "-".to_owned(),
            Some(Cost::ZERO) => "$0.00".to_owned(),
            Some(known) => cost(known),
        }),
    }
}

/// The same for a pipe: the cost in full, or the duration in seconds.
pub(crate) fn sorted_field_of(
    usage: Option<&Usage>,
    duration_seconds: Option<u64>,
    sort: SessionOrder,
) -> Option<String> {
    match sort {
        SessionOrder::Updated | SessionOrder::Messages => None,
        SessionOrder::Duration => Some(duration_seconds.unwrap_or_default().to_string()),
        SessionOrder::Cost => {
            let known = usage.and_then(Usage::known_cost);
            Some(known.map_or_else(|| "-".to_owned(), |known| known.to_string()))
        }
    }
}

/// [`sorted_field_of`] a session.
pub(crate) fn sorted_field(one: &ListedSession, sort: SessionOrder) -> Option<String> {
    sorted_field_of(one.usage.as_ref(), one.duration_seconds, sort)
}

fn tabbed(view: &SessionView, owners: bool, now: &Zoned) -> Vec<String> {
    let session = &view.session;
    let mut fields = vec![
        session.session_id.to_string(),
        dates::with_offset(session.updated, now),
        one_line(session.project_slug.as_str()),
        session.message_count.to_string(),
        session.turn_count.to_string(),
        session.event_count.to_string(),
        one_line(&view.title),
    ];
    fields.extend(owners.then(|| one_line(session.user_id.as_str())));
    fields
}

/// A session of a tree, with the branch drawn before it.
struct TreeLine<'a> {
    tree: &'a ListedSession,
    depth: usize,
    branch: String,
}

impl TreeLine<'_> {
    fn tabbed(&self, owners: bool, now: &Zoned) -> String {
        let session = &self.tree.session.session;
        let parent = session.parent_id.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        let mut fields = vec![self.depth.to_string(), word(self.origin()).to_owned(), parent];
        fields.extend(tabbed(&self.tree.session, owners, now));
        fields.join("\t")
    }

    /// The branch, the relation to the parent, and the title.
    fn title(&self, short_ids: &ShortIds) -> TableCell {
        let SessionView { session, title, .. } = &self.tree.session;
        let mut kind = match (self.origin(), session.forked_from_turn) {
            (Origin::Root, _) => String::new(),
            (Origin::SubAgent, _) => "sub-agent".to_owned(),
            (Origin::Fork, turn) => {
                turn.map_or_else(|| "fork".to_owned(), |turn| format!("fork at turn {turn}"))
            }
        };
        if let Some(parent) = session.parent_id.as_ref().filter(|_| self.depth == 0) {
            kind = format!("{kind} of {}", short(short_ids, parent));
        }
        if !kind.is_empty() {
            kind.push_str(" · ");
        }
        TableCell::styled(&self.branch, Paint::aside)
            .and(kind, Paint::warning)
            .and(one_line(title), Paint::plain)
    }

    fn origin(&self) -> Origin {
        self.tree.origin.unwrap_or(Origin::Root)
    }
}

/// The relation of a session to its parent, in a word.
pub(crate) fn word(origin: Origin) -> &'static str {
    match origin {
        Origin::Root => "root",
        Origin::SubAgent => "sub_agent",
        Origin::Fork => "fork",
    }
}

fn lines(tree: &ListedSession) -> Vec<TreeLine<'_>> {
    let mut lines = Vec::new();
    // Sessions to visit, with the branch before each, and the one before its children.
    let mut open = vec![(tree, 0, String::new(), String::new())];
    while let Some((tree, depth, branch, below)) = open.pop() {
        lines.push(TreeLine { tree, depth, branch });
        let children = tree.children.as_deref().unwrap_or_default();
        for (at, child) in children.iter().enumerate().rev() {
            let (corner, line) =
                if at + 1 == children.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            open.push((child, depth + 1, format!("{below}{corner}"), format!("{below}{line}")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use amplifier_session_api::views::Estimated;
    use amplifier_session_storage::{
        model::{HostId, ProjectSlug, Session, SessionId, SessionKey, Timestamp, UserId},
        storage::SessionTree,
    };

    use super::*;

    fn session(id: &str, name: &str, parent: Option<&str>) -> Session {
        let key = SessionKey::new(UserId::new("u").unwrap(), SessionId::new(id).unwrap());
        let slug = ProjectSlug::new("-home-ana-payments").unwrap();
        let created = Timestamp::parse("2026-01-31T09:30:00Z").unwrap();
        let mut session = Session::new(key, HostId::new("h").unwrap(), slug, created);
        session.name = Some(name.to_owned());
        session.message_count = 1_234;
        session.parent_id = parent.map(|parent| SessionId::new(parent).unwrap());
        session
    }

    fn now() -> Zoned {
        "2026-04-04T15:30:00+00:00[UTC]".parse().unwrap()
    }

    #[test]
    fn fields_in_a_pipe_contain_no_tabs_or_line_breaks() {
        let line =
            tabbed(&SessionView::from(&session("3a7c1e90-1f4b", "a\tb\nc", None)), true, &now()).join("\t");
        assert_eq!(
            line,
            "3a7c1e90-1f4b\t2026-01-31T09:30:00+00:00\t-home-ana-payments\t1234\t0\t0\ta b c\tu"
        );
    }

    #[test]
    fn branches_lead_to_children() {
        let mut fork = session("e", "E", Some("a"));
        fork.forked_from_turn = Some(3);
        let sessions = vec![
            session("a", "A", None),
            session("b", "B", Some("a")),
            session("c", "C", Some("b")),
            fork,
            session("z", "Z", Some("gone")),
        ];
        let forest: Vec<ListedSession> = SessionTree::forest(sessions)
            .iter()
            .map(|tree| ListedSession::of_tree(tree, &Estimated::default()))
            .collect();
        let shown: Vec<String> = forest
            .iter()
            .flat_map(lines)
            .flat_map(|line| {
                let columns = [Column::text("")];
                table(&columns, &[vec![line.title(&ShortIds::new())]], 80, Paint::new(false))
                    .into_iter()
                    .skip(1)
            })
            .collect();
        let expected = [
            "A",
            "├─ sub-agent · B",
            "│  └─ sub-agent · C",
            "└─ fork at turn 3 · E",
            "sub-agent of gone · Z",
        ];
        assert_eq!(shown, expected);
        let first = lines(&forest[0]);
        assert!(first[2].tabbed(false, &now()).starts_with("2\tsub_agent\tb\tc\t"));
    }
}
