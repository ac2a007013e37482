//! The list of results: sessions with the messages that were found in them, or recent sessions.

use std::collections::{BTreeSet, HashSet};

use amplifier_session_storage::model::SessionId;

use crate::{groups::HITS, render::text::counted};

/// The results of a session.
#[derive(Debug, Clone)]
pub(super) struct SessionHits {
    pub(super) session: SessionId,
    /// The short id of the session.
    pub(super) short: String,
    pub(super) title: String,
    pub(super) project: String,
    /// When the session last changed.
    pub(super) when: String,
    /// Its results, best first. A recent session has its first message.
    pub(super) hits: Vec<Hit>,
}

/// A message that was found.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    pub(super) sequence: u32,
    /// The address of the message, or of a recent session.
    pub(super) address: String,
    /// The content type, in words.
    pub(super) kind: &'static str,
    /// Why it was found, if its text does not show this: it has no word of the query.
    pub(super) remark: Option<String>,
    pub(super) snippet: String,
    pub(super) highlights: Vec<(u32, u32)>,
}

/// The answer to a search, or the recent sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct FoundGroups {
    pub(super) groups: Vec<SessionHits>,
    pub(super) notices: Vec<String>,
    /// Whether these are recent sessions, not results of a search.
    pub(super) are_recent: bool,
    /// Whether there may be more sessions.
    pub(super) has_more: bool,
}

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListRow {
    /// The heading of a session. It can't be selected.
    Session(usize),
    Hit(usize, usize),
    /// A session has more results than are shown: the session, and their number.
    More(usize, usize),
}

/// The list, with the selected line.
#[derive(Debug, Default)]
pub(super) struct ResultList {
    pub(super) found: FoundGroups,
    /// The first row that is shown.
    pub(super) top: usize,
    selected: Option<ListRow>,
    /// Sessions whose results are all shown.
    unfolded: BTreeSet<usize>,
}

impl ResultList {
    /// A list with the first result selected.
    pub(super) fn new(found: FoundGroups) -> Self {
        let selected = (!found.groups.is_empty()).then_some(ListRow::Hit(0, 0));
        Self { found, selected, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.groups.is_empty()
    }

    /// Adds the sessions that are not in the list yet. Those that are keep their places, so nothing moves under the eyes
    /// of the reader.
    pub(super) fn append(&mut self, found: FoundGroups) {
        let listed = self.found.groups.iter().map(|group| group.short.clone());
        let listed: HashSet<String> = listed.collect();
        let further = found.groups.into_iter().filter(|group| !listed.contains(&group.short));
        self.found.groups.extend(further);
        self.found.notices = found.notices;
        self.found.has_more = found.has_more;
    }

    /// The lines of the list.
    pub(super) fn rows(&self) -> Vec<ListRow> {
        let mut rows = Vec::new();
        for (at, group) in self.found.groups.iter().enumerate() {
            let shown = if self.unfolded.contains(&at) { usize::MAX } else { HITS }.min(group.hits.len());
            rows.extend((!self.found.are_recent).then_some(ListRow::Session(at)));
            rows.extend((0..shown).map(|hit| ListRow::Hit(at, hit)));
            rows.extend((shown < group.hits.len()).then(|| ListRow::More(at, group.hits.len() - shown)));
        }
        rows
    }

    /// The selected message and its session, unless another line is selected.
    pub(super) fn hit(&self) -> Option<(&SessionHits, &Hit)> {
        let ListRow::Hit(group, hit) = self.selected? else { return None };
        let group = self.found.groups.get(group)?;
        Some((group, group.hits.get(hit)?))
    }

    pub(super) fn is_selected(&self, row: ListRow) -> bool {
        self.selected == Some(row)
    }

    /// Moves the selection by a number of lines that can be selected, as far as there are some.
    pub(super) fn step(&mut self, lines: isize) {
        let rows: Vec<ListRow> = self.selectable().collect();
        let Some(at) = rows.iter().position(|row| self.is_selected(*row)) else { return };
        let at = at.saturating_add_signed(lines).min(rows.len().saturating_sub(1));
        self.selected = rows.get(at).copied();
    }

    /// Selects the first line or the last one.
    pub(super) fn go(&mut self, is_end: bool) {
        self.selected = if is_end { self.selectable().last() } else { self.selectable().next() };
    }

    /// Whether the last line is selected.
    pub(super) fn is_at_end(&self) -> bool {
        self.selected.is_some() && self.selectable().last() == self.selected
    }

    fn selectable(&self) -> impl Iterator<Item = ListRow> {
        self.rows().into_iter().filter(|row| !matches!(row, ListRow::Session(_)))
    }

    /// If the selected line stands for further results, shows them and selects the first of them.
    pub(super) fn unfold(&mut self) -> bool {
        let Some(ListRow::More(group, _)) = self.selected else { return false };
        self.unfolded.insert(group);
        self.selected = Some(ListRow::Hit(group, HITS));
        true
    }

    /// The number of results, in words.
    pub(super) fn count(&self) -> String {
        let FoundGroups { groups, are_recent, has_more, .. } = &self.found;
        let or_more = if *has_more { "+" } else { "" };
        let sessions = counted(groups.len() as u64, "session").replacen(' ', &format!("{or_more} "), 1);
        if *are_recent {
            return format!("{sessions}, newest first");
        }
        let messages: usize = groups.iter().map(|group| group.hits.len()).sum();
        format!("{} in {sessions}", counted(messages as u64, "message"))
    }
}
