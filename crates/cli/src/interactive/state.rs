//! The state of the interactive search, the tasks that it needs, and the effects of their results. It is independent of
//! the terminal and of the store.

use std::{collections::BTreeMap, ops::Range};

use amplifier_session_api::{
    Reach,
    operations::{search::SearchRequest, sessions::SessionsRequest},
    views::MessageView,
};
use amplifier_session_storage::{
    model::SessionId,
    search::{SearchMode, TypedQuery},
};

use super::{
    conversation::Conversation,
    filters::Filters,
    input::Input,
    keys::Focus,
    latest::Latest,
    picker::Picker,
    preview::Preview,
    results::{FoundGroups, ResultList},
    text::Look,
    values::{KnownValue, ValueKind},
};

/// The most sessions that a search returns.
const MOST_SESSIONS: usize = 1_000;
/// The least number of sessions to ask for: a screen full of them.
const FEWEST_SESSIONS: usize = 30;
/// The most hits of a session to go through.
const MOST_HITS: usize = 500;

/// A list to show: the results of a search, or recent sessions.
#[derive(Debug)]
pub(super) enum ListRequest {
    Search(Box<SearchRequest>),
    Recent(Box<SessionsRequest>),
}

/// A task that runs in the background.
#[derive(Debug)]
pub(super) enum Work {
    List {
        number: u64,
        request: ListRequest,
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
    /// Find the hits of an opened session.
    Hits {
        opened: u64,
        request: Box<SearchRequest>,
    },
    /// Read the values of a filter or a field.
    Values {
        kind: ValueKind,
        scope: Reach,
    },
}

/// The result of a task. An error is its message.
#[derive(Debug)]
pub(super) enum WorkAnswer {
    List { number: u64, found: Result<FoundGroups, String> },
    Preview { number: u64, found: Result<Vec<MessageView>, String> },
    Messages { opened: u64, range: Range<u32>, found: Result<(u32, Vec<MessageView>), String> },
    Hits { opened: u64, found: Result<Vec<u32>, String> },
    Values { kind: ValueKind, scope: Reach, found: Result<Vec<KnownValue>, String> },
}

/// The effect of a key, for the event loop.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// Wait for further typing, and then call [`SearchState::debounced`].
    Debounce,
    /// Draw everything again.
    Redraw,
    /// Copy a text. The other one describes it.
    Copy(String, String),
    /// Open the text of the message with this address in an editor.
    Edit {
        address: String,
        text: String,
    },
    /// Quit, and print the address of the chosen message, if there is one.
    Quit(Option<String>),
}

/// The interactive search.
#[derive(Debug)]
pub(super) struct SearchState {
    pub(super) query: Input,
    pub(super) filters: Filters,
    pub(super) look: Look,
    pub(super) list: ResultList,
    pub(super) preview: Option<Preview>,
    pub(super) conversation: Option<Conversation>,
    pub(super) picker: Option<Picker>,
    /// Whether the next key chooses what to copy.
    pub(super) is_copying: bool,
    /// The first line of the list of keys, if it is shown.
    pub(super) help: Option<usize>,
    /// The latest status message: the copied text, or an error.
    pub(super) status: Option<String>,
    /// Why the latest search failed.
    pub(super) error: Option<String>,
    /// Who else has sessions in the store, if the user has none.
    pub(super) others: Option<String>,
    /// The number of columns of a snippet.
    pub(super) snippet_width: usize,
    /// The number of results on a page.
    pub(super) page: usize,
    /// The address of the message that was chosen by a key, or read last.
    pub(super) chosen: Option<String>,
    /// The session that is opened, counted from 1.
    pub(super) opened: u64,
    /// The session whose hits are to be found.
    pub(super) hits_wanted: Option<Box<SearchRequest>>,
    /// The values that were read, and the scope from which.
    pub(super) values: BTreeMap<ValueKind, (Reach, Vec<KnownValue>)>,
    pub(super) values_wanted: Option<(ValueKind, Reach)>,
    search: Latest,
    previews: Latest,
    /// The address, project and number of the message that is being read for the preview.
    previewed: (String, String, u32),
    is_debounced: bool,
    /// The maximum number of sessions of the next search.
    limit: usize,
    /// The number of the search that adds further results to the list.
    extends: Option<u64>,
    /// Whether the next search adds further results to the list.
    is_extending: bool,
}

impl SearchState {
    /// A search with the request of the command line.
    pub(super) fn new(request: SearchRequest, look: Look) -> Self {
        let mut search = Latest::default();
        search.want();
        let snippet_width = 100;
        let limit = request.limit.max(FEWEST_SESSIONS);
        // All results of a session can be unfolded.
        let request = SearchRequest { by_session: true, per_session: usize::MAX, ..request };
        Self {
            query: Input::default(),
            filters: Filters::new(request),
            look,
            list: ResultList::default(),
            preview: None,
            conversation: None,
            picker: None,
            is_copying: false,
            help: None,
            status: None,
            error: None,
            others: None,
            snippet_width,
            page: 10,
            chosen: None,
            opened: 0,
            hits_wanted: None,
            values: BTreeMap::new(),
            values_wanted: None,
            search,
            previews: Latest::default(),
            previewed: Default::default(),
            // The recent sessions are listed at once.
            is_debounced: true,
            limit,
            extends: None,
            is_extending: false,
        }
    }

    /// The part of the screen that receives keys now.
    pub(super) fn keys_go_to(&self) -> Focus {
        if self.help.is_some() {
            Focus::Help
        } else if self.is_copying {
            Focus::Copying
        } else if self.picker.is_some() {
            Focus::Picker
        } else if self.conversation.is_some() {
            Focus::Conversation
        } else {
            Focus::Search
        }
    }

    /// Handles a change of the query or of a filter.
    pub(super) fn changed(&mut self) -> Effect {
        self.limit = self.filters.limit().max(FEWEST_SESSIONS);
        self.is_extending = false;
        self.chosen = None;
        self.search.want();
        // Recent sessions are read quickly.
        self.is_debounced = self.lists_recent();
        if self.is_debounced { Effect::None } else { Effect::Debounce }
    }

    /// Handles a pause in typing.
    pub(super) fn debounced(&mut self) {
        self.is_debounced = true;
    }

    /// Whether there is nothing to search for, so that recent sessions are listed.
    fn lists_recent(&self) -> bool {
        self.query.is_blank() && !self.filters.select_messages()
    }

    /// Asks for more sessions if the end of the list is chosen.
    pub(super) fn extend(&mut self) {
        let can_be_more = self.list.found.has_more && self.limit < MOST_SESSIONS;
        if self.list.is_at_end() && can_be_more && !self.search.is_open() {
            self.limit = (2 * self.limit).min(MOST_SESSIONS);
            self.is_extending = true;
            self.is_debounced = true;
            self.search.want();
        }
    }

    /// The next task to start, if any. Call it again until it returns `None`.
    pub(super) fn next_work(&mut self) -> Option<Work> {
        let opened = self.opened;
        if let Some(conversation) = &mut self.conversation
            && let Some(range) = conversation.wanted()
        {
            let session = conversation.session.clone();
            return Some(Work::Messages { opened, session, range });
        }
        if let Some(request) = self.hits_wanted.take() {
            return Some(Work::Hits { opened, request });
        }
        if let Some((kind, scope)) = self.values_wanted.take() {
            return Some(Work::Values { kind, scope });
        }
        if self.is_debounced
            && let Some(number) = self.search.start()
        {
            self.extends = self.is_extending.then_some(number);
            return Some(Work::List { number, request: self.request() });
        }
        let (group, hit) = self.list.hit()?;
        let (session, sequence) = (group.session.clone(), hit.sequence);
        let asked = (hit.address.clone(), group.project.clone(), sequence);
        let number = self.previews.start()?;
        self.previewed = asked;
        Some(Work::Preview { number, session, sequence })
    }

    fn request(&self) -> ListRequest {
        if self.lists_recent() {
            return ListRequest::Recent(Box::new(self.filters.recent(self.limit)));
        }
        let mut request = self.filters.search(&self.query.text());
        request.limit = self.limit;
        request.snippet_chars = Some(self.snippet_width.clamp(20, 400));
        ListRequest::Search(Box::new(request))
    }

    /// A search for further messages of a session that have words of the query: by meaning, any message could be found.
    pub(super) fn request_for_hits(&self, session: &SessionId) -> Option<Box<SearchRequest>> {
        if self.list.found.are_recent {
            return None;
        }
        let mut request = self.filters.search(&self.query.text());
        if request.query.mode == SearchMode::Semantic {
            return None;
        }
        (request.by_session, request.limit) = (false, MOST_HITS);
        request.query.session = Some(session.to_string());
        Some(Box::new(request))
    }

    /// The words of the query.
    fn words(&self) -> String {
        let typed = self.query.text();
        if self.filters.is_plain() { typed } else { TypedQuery::parse(&typed).text }
    }

    /// Processes the result of a task.
    pub(super) fn answer(&mut self, answer: WorkAnswer) {
        match answer {
            WorkAnswer::List { number, found } => {
                if self.search.accepts(number) {
                    self.listed(number, found);
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
            WorkAnswer::Hits { opened, found } => {
                let conversation = self.conversation.as_mut().filter(|_| opened == self.opened);
                match (conversation, found) {
                    (Some(conversation), Ok(hits)) => conversation.mark(hits, &self.look),
                    (Some(_), Err(error)) => self.status = Some(error),
                    (None, _) => {}
                }
            }
            WorkAnswer::Values { kind, scope, found } => self.offer(kind, scope, found),
        }
    }

    fn listed(&mut self, number: u64, found: Result<FoundGroups, String>) {
        let is_extension = self.extends == Some(number);
        self.error = None;
        match found {
            Ok(found) if is_extension => self.list.append(found),
            Ok(found) => {
                self.look.highlight(&self.words());
                self.show(found);
            }
            Err(error) if is_extension => {
                self.list.found.has_more = false;
                self.status = Some(error);
            }
            Err(error) => {
                self.error = Some(error);
                self.show(FoundGroups::default());
            }
        }
    }

    fn show(&mut self, found: FoundGroups) {
        self.list = ResultList::new(found);
        self.selection_changed();
        if self.list.is_empty() {
            self.previews.forget();
            self.preview = None;
        }
    }

    /// Reads the preview of the selected result.
    pub(super) fn selection_changed(&mut self) {
        self.previews.want();
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

    /// Whether the list has no sessions because the store has none.
    pub(super) fn is_store_empty(&self) -> bool {
        self.list.found.are_recent && self.list.is_empty() && self.filters.shown().is_empty()
    }
}
