//! The state of the interactive search, and the effects of keys and answers. It is independent of the terminal.

use std::{collections::BTreeSet, ops::Range};

use amplifier_session_api::{operations::search::SearchRequest, views::MessageView};
use amplifier_session_storage::{
    model::{ProjectSlug, SessionId},
    search::{SearchOptions, TypedQuery},
};

use super::{
    conversation::Conversation,
    filters::Filters,
    input::Input,
    keys::{Action, Focus},
    latest::Latest,
    preview::Preview,
    text::Look,
};
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
    /// Its results, best first.
    pub(super) hits: Vec<Hit>,
}

/// A message that was found.
#[derive(Debug, Clone)]
pub(super) struct Hit {
    pub(super) sequence: u32,
    pub(super) address: String,
    /// The content type, in words.
    pub(super) kind: &'static str,
    pub(super) snippet: String,
    pub(super) highlights: Vec<(u32, u32)>,
}

/// The answer to a search.
#[derive(Debug, Clone, Default)]
pub(super) struct FoundGroups {
    pub(super) groups: Vec<SessionHits>,
    pub(super) notices: Vec<String>,
}

/// A line of the list of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListRow {
    Session(usize),
    Hit(usize, usize),
    /// The number of results of a session that are not shown.
    More(usize),
}

/// A task that runs in the background.
#[derive(Debug)]
pub(super) enum Work {
    /// Load the projects, and find out whether there are any sessions.
    Begin,
    Search {
        number: u64,
        request: Box<SearchRequest>,
    },
    Preview {
        number: u64,
        session: SessionId,
        sequence: u32,
    },
    Messages {
        opened: u64,
        session: SessionId,
        range: Range<u32>,
    },
}

/// The result of a task. An error is its message.
#[derive(Debug)]
pub(super) enum WorkAnswer {
    Began { projects: Vec<ProjectSlug>, is_empty: bool },
    Found { number: u64, found: Result<FoundGroups, String> },
    Preview { number: u64, found: Result<Vec<MessageView>, String> },
    Messages { opened: u64, range: Range<u32>, found: Result<(u32, Vec<MessageView>), String> },
}

/// The effect of a key, for the event loop.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// Wait for further typing, and then call [`SearchState::debounced`].
    Debounce,
    Copy(String),
    Quit,
}

/// The interactive search.
#[derive(Debug)]
pub(super) struct SearchState {
    pub(super) query: Input,
    pub(super) filters: Filters,
    pub(super) focus: Focus,
    pub(super) look: Look,
    pub(super) found: FoundGroups,
    pub(super) preview: Option<Preview>,
    pub(super) conversation: Option<Conversation>,
    /// The latest status message: the copied text, or an error.
    pub(super) status: Option<String>,
    /// Whether the store has no sessions.
    pub(super) is_empty: bool,
    /// The first row of the list that is shown.
    pub(super) list_top: usize,
    /// The number of columns of a snippet.
    pub(super) snippet_width: usize,
    base: SearchRequest,
    /// The selected session and its result.
    selected: (usize, usize),
    /// Sessions whose results are all shown.
    unfolded: BTreeSet<usize>,
    search: Latest,
    previews: Latest,
    /// The address, project and number of the message that is being read for the preview.
    previewed: (String, String, u32),
    is_debounced: bool,
    has_begun: bool,
    opened: u64,
}

impl SearchState {
    /// A search with the request of the command line, and what it means in the store.
    pub(super) fn new(request: SearchRequest, options: &SearchOptions, look: Look) -> Self {
        Self {
            query: Input::default(),
            filters: Filters::of(options),
            focus: Focus::Query,
            look,
            found: FoundGroups::default(),
            preview: None,
            conversation: None,
            status: None,
            is_empty: false,
            list_top: 0,
            snippet_width: options.snippet_chars,
            // All results of a session can be unfolded.
            base: SearchRequest {
                by_session: true,
                per_session: usize::MAX,
                explain: false,
                full: false,
                ..request
            },
            selected: (0, 0),
            unfolded: BTreeSet::new(),
            search: Latest::default(),
            previews: Latest::default(),
            previewed: Default::default(),
            is_debounced: false,
            has_begun: false,
            opened: 0,
        }
    }

    /// The part of the screen that receives keys now.
    pub(super) fn keys_go_to(&self) -> Focus {
        if self.conversation.is_some() { Focus::Conversation } else { self.focus }
    }

    /// Performs the action of a key.
    pub(super) fn act(&mut self, action: Action) -> Effect {
        self.status = None;
        if action == Action::Quit {
            return Effect::Quit;
        }
        match self.keys_go_to() {
            Focus::Conversation => self.act_in_conversation(&action),
            Focus::Filters => self.act_in_filters(&action),
            Focus::Query | Focus::Results => self.act_in_search(action),
        }
    }

    fn act_in_conversation(&mut self, action: &Action) -> Effect {
        let Some(conversation) = &mut self.conversation else { return Effect::None };
        match action {
            Action::Back => self.conversation = None,
            Action::Copy => return Effect::Copy(conversation.address()),
            Action::Up => conversation.scroll(1, false),
            Action::Down => conversation.scroll(1, true),
            Action::PageUp => conversation.page(false),
            Action::PageDown => conversation.page(true),
            Action::Home => conversation.go(false),
            Action::End => conversation.go(true),
            Action::NextMessage => conversation.step(true),
            Action::PreviousMessage => conversation.step(false),
            Action::Full => conversation.toggle_full(&self.look),
            _ => {}
        }
        Effect::None
    }

    fn act_in_filters(&mut self, action: &Action) -> Effect {
        match action {
            Action::Back | Action::Search => self.focus = Focus::Query,
            Action::Next => self.focus = Focus::Query,
            Action::Previous => self.focus = Focus::Results,
            Action::Left => self.filters.previous(),
            Action::Right => self.filters.next(),
            Action::Toggle | Action::Down if self.filters.change(true) => return self.changed(),
            Action::Up if self.filters.change(false) => return self.changed(),
            Action::Copy => return self.copy(),
            _ => {}
        }
        Effect::None
    }

    fn act_in_search(&mut self, action: Action) -> Effect {
        let is_query = self.focus == Focus::Query;
        match action {
            Action::Back => return Effect::Quit,
            Action::Next if is_query && self.hit().is_some() => self.focus = Focus::Results,
            Action::Next => self.focus = Focus::Filters,
            Action::Previous if is_query => self.focus = Focus::Filters,
            Action::Previous | Action::Search => self.focus = Focus::Query,
            Action::Open => self.open(),
            Action::Copy => return self.copy(),
            Action::Up => self.step(false),
            Action::Down => self.step(true),
            Action::PageUp | Action::PageDown => {
                let is_down = action == Action::PageDown;
                self.preview.iter_mut().for_each(|preview| preview.scroll(is_down));
            }
            Action::Left if !is_query => self.fold(true),
            Action::Right if !is_query => self.fold(false),
            Action::Home if !is_query => self.select((0, 0)),
            Action::End if !is_query => {
                let last = self.rows().into_iter().rev().find_map(hit_of);
                self.select(last.unwrap_or_default());
            }
            Action::Left => self.query.left(),
            Action::Right => self.query.right(),
            Action::Home => self.query.home(),
            Action::End => self.query.end(),
            Action::Type(c) => {
                self.query.insert(c);
                return self.changed();
            }
            Action::Paste(text) => {
                self.focus = Focus::Query;
                self.query.paste(&text);
                return self.changed();
            }
            // Keys that leave the query as it is start no search.
            Action::Backspace if self.query.backspace() => return self.changed(),
            Action::Delete if self.query.delete() => return self.changed(),
            Action::DeleteWord => {
                self.query.delete_word();
                return self.changed();
            }
            Action::Clear => {
                self.query.clear();
                return self.changed();
            }
            _ => {}
        }
        Effect::None
    }

    /// Handles a change of the query or of a filter.
    fn changed(&mut self) -> Effect {
        self.is_debounced = false;
        if self.query.is_blank() {
            self.search.forget();
            self.show(FoundGroups::default());
            return Effect::None;
        }
        self.search.want();
        Effect::Debounce
    }

    /// Handles a pause in typing.
    pub(super) fn debounced(&mut self) {
        self.is_debounced = true;
    }

    /// The next task to start, if any. Call it again until it returns `None`.
    pub(super) fn next_work(&mut self) -> Option<Work> {
        if !std::mem::replace(&mut self.has_begun, true) {
            return Some(Work::Begin);
        }
        if let Some(conversation) = &mut self.conversation
            && let Some(range) = conversation.wanted()
        {
            let session = conversation.session.clone();
            return Some(Work::Messages { opened: self.opened, session, range });
        }
        if self.is_debounced
            && let Some(number) = self.search.start()
        {
            return Some(Work::Search { number, request: Box::new(self.request()) });
        }
        let (group, hit) = self.hit()?;
        let (session, sequence) = (group.session.clone(), hit.sequence);
        let asked = (hit.address.clone(), group.project.clone(), sequence);
        let number = self.previews.start()?;
        self.previewed = asked;
        Some(Work::Preview { number, session, sequence })
    }

    /// The words of the query.
    fn words(&self) -> String {
        let typed = self.query.text();
        if self.is_plain() { typed } else { TypedQuery::parse(&typed).text }
    }

    /// Whether the query is plain text. One with fields is, because the filters replace fields.
    fn is_plain(&self) -> bool {
        self.base.query.plain || !TypedQuery::parse(&self.query.text()).fields.is_empty()
    }

    fn request(&self) -> SearchRequest {
        let mut request = self.filters.apply(self.base.clone());
        (request.query.query, request.query.plain) = (self.query.text(), self.is_plain());
        request.snippet_chars = Some(self.snippet_width.clamp(20, 400));
        request
    }

    /// Processes the result of a task.
    pub(super) fn answer(&mut self, answer: WorkAnswer) {
        match answer {
            WorkAnswer::Began { projects, is_empty } => {
                self.filters.offer(projects);
                self.is_empty = is_empty;
            }
            WorkAnswer::Found { number, found } => {
                if self.search.accepts(number) {
                    match found {
                        Ok(found) => self.show(found),
                        Err(error) => self.status = Some(error),
                    }
                }
            }
            WorkAnswer::Preview { number, found } => {
                if self.previews.accepts(number) {
                    self.show_preview(found);
                }
            }
            WorkAnswer::Messages { opened, range, found } => {
                // Another conversation may have been opened meanwhile.
                let Some(conversation) = self.conversation.as_mut().filter(|_| opened == self.opened) else {
                    return;
                };
                match found {
                    Ok((total, messages)) => conversation.add(range, total, messages, &self.look),
                    Err(error) => {
                        conversation.failed();
                        self.status = Some(error);
                    }
                }
            }
        }
    }

    fn show(&mut self, found: FoundGroups) {
        self.look.highlight(&self.words());
        self.found = found;
        self.unfolded.clear();
        self.list_top = 0;
        if self.found.groups.is_empty() {
            self.previews.forget();
            self.preview = None;
            if self.focus == Focus::Results {
                self.focus = Focus::Query;
            }
        } else {
            self.select((0, 0));
        }
    }

    fn show_preview(&mut self, found: Result<Vec<MessageView>, String>) {
        let (address, project, sequence) = self.previewed.clone();
        match found {
            Ok(messages) => self.preview = Some(Preview::new(address, project, sequence, messages)),
            Err(error) => {
                self.preview = None;
                self.status = Some(error);
            }
        }
    }

    /// Whether a search is running or about to start.
    pub(super) fn is_searching(&self) -> bool {
        self.search.is_open()
    }

    /// The lines of the list.
    pub(super) fn rows(&self) -> Vec<ListRow> {
        let mut rows = Vec::new();
        for (at, group) in self.found.groups.iter().enumerate() {
            let shown = if self.unfolded.contains(&at) { usize::MAX } else { HITS }.min(group.hits.len());
            rows.push(ListRow::Session(at));
            rows.extend((0..shown).map(|hit| ListRow::Hit(at, hit)));
            rows.extend((shown < group.hits.len()).then_some(ListRow::More(group.hits.len() - shown)));
        }
        rows
    }

    /// The selected result and its session.
    pub(super) fn hit(&self) -> Option<(&SessionHits, &Hit)> {
        let group = self.found.groups.get(self.selected.0)?;
        Some((group, group.hits.get(self.selected.1)?))
    }

    /// Whether this row is the selected one.
    pub(super) fn is_selected(&self, row: ListRow) -> bool {
        hit_of(row) == Some(self.selected)
    }

    fn select(&mut self, hit: (usize, usize)) {
        self.selected = hit;
        self.previews.want();
    }

    /// Selects the next result or the previous one. Afterwards, keys go to the results.
    fn step(&mut self, is_down: bool) {
        let hits: Vec<(usize, usize)> = self.rows().into_iter().filter_map(hit_of).collect();
        let Some(at) = hits.iter().position(|hit| *hit == self.selected) else { return };
        let next = if is_down { Some(at + 1) } else { at.checked_sub(1) };
        match next.and_then(|next| hits.get(next)) {
            Some(next) => {
                self.select(*next);
                self.focus = Focus::Results;
            }
            // The query is above the first result.
            None if !is_down => self.focus = Focus::Query,
            None => self.focus = Focus::Results,
        }
    }

    /// Shows all results of the selected session, or only the best ones.
    fn fold(&mut self, is_folded: bool) {
        let (session, hit) = self.selected;
        if is_folded {
            self.unfolded.remove(&session);
            if hit >= HITS {
                self.select((session, HITS - 1));
            }
        } else {
            self.unfolded.insert(session);
        }
    }

    fn open(&mut self) {
        let Some((group, hit)) = self.hit() else { return };
        let SessionHits { session, short, title, project, .. } = group.clone();
        self.conversation = Some(Conversation::new(session, short, title, project, hit.sequence));
        self.opened += 1;
    }

    fn copy(&self) -> Effect {
        self.hit().map_or(Effect::None, |(_, hit)| Effect::Copy(hit.address.clone()))
    }

    /// The number of results, in words.
    pub(super) fn count(&self) -> String {
        let groups = &self.found.groups;
        let messages: usize = groups.iter().map(|group| group.hits.len()).sum();
        let sessions = counted(groups.len() as u64, "session");
        format!("{} in {sessions}", counted(messages as u64, "message"))
    }
}

fn hit_of(row: ListRow) -> Option<(usize, usize)> {
    match row {
        ListRow::Hit(group, hit) => Some((group, hit)),
        ListRow::Session(_) | ListRow::More(_) => None,
    }
}
