//! Tests of the interactive search without a terminal and without a store.

mod drawings;
mod filters;
mod lists;
mod sessions;
mod states;

use amplifier_session_api::{
    operations::{search::SearchRequest, sessions::SessionsRequest},
    query::QueryRequest,
    views::MessageView,
};
use amplifier_session_storage::model::{
    Digest, HostId, Message, ProjectSlug, RawJson, Role, SessionId, TimeSource, Timestamp, UserId,
    VectorState,
};
use jiff::tz::TimeZone;

use super::{
    keys::Action,
    results::{FoundGroups, Hit, SessionHits},
    state::{Effect, ListRequest, SearchState, Work, WorkAnswer},
    text::Look,
    values::KnownValue,
};

fn state() -> SearchState {
    state_of(SearchRequest::new(""))
}

/// An interactive search with the options of a command line.
fn state_of(request: SearchRequest) -> SearchState {
    let now = "2026-01-05T08:00:00Z".parse::<jiff::Timestamp>().unwrap().to_zoned(TimeZone::UTC);
    SearchState::new(request, Look::new(true, now))
}

fn hit(short: &str, sequence: u32, kind: &'static str, snippet: &str) -> Hit {
    Hit {
        sequence,
        address: format!("{short}#{sequence}"),
        kind,
        remark: None,
        snippet: snippet.to_owned(),
        highlights: Vec::new(),
    }
}

fn group(short: &str, title: &str, hits: Vec<Hit>) -> SessionHits {
    SessionHits {
        session: SessionId::new(short).unwrap(),
        short: short.to_owned(),
        title: title.to_owned(),
        project: "-home-mira-bakery".to_owned(),
        when: "2026-01-04 17:20".to_owned(),
        hits,
    }
}

/// Two sessions with five and one results.
fn found() -> FoundGroups {
    let flour = (0..5).map(|n| hit("7f3c9a52", n * 3, "assistant", "…the flour is wet, so the dough sticks"));
    let oven = hit("38e6d1f5", 14, "tool output", "烤箱 oven: 230 °C\u{1b}[31m dough in\u{202e} 🥖 45 min");
    FoundGroups {
        groups: vec![
            group("7f3c9a52", "Why does the dough stick?", flour.collect()),
            group(
                "38e6d1f5",
                "Oven log\u{7} of 日本の朝, checked once more before the summer holidays",
                vec![oven],
            ),
        ],
        ..FoundGroups::default()
    }
}

/// Two recent sessions.
fn recent() -> FoundGroups {
    let session = |short: &str, title: &str| {
        let first = Hit { address: short.to_owned(), ..hit(short, 0, "", "") };
        group(short, title, vec![first])
    };
    FoundGroups {
        groups: vec![
            session("7f3c9a52", "Why does the dough stick?"),
            session("38e6d1f5", "Oven log of 日本の朝, checked once more before the summer holidays"),
        ],
        are_recent: true,
        ..FoundGroups::default()
    }
}

/// Message `sequence`, by the user if the number is even.
fn message(sequence: u32, text: &str) -> MessageView {
    let role = if sequence.is_multiple_of(2) { Role::User } else { Role::Assistant };
    message_of(sequence, role, &serde_json::json!({"role": role.as_str(), "content": text}))
}

/// A message of the assistant that calls tools.
fn message_with_calls(sequence: u32, calls: serde_json::Value) -> MessageView {
    let line = serde_json::json!({"role": "assistant", "content": "", "tool_calls": calls});
    message_of(sequence, Role::Assistant, &line)
}

fn message_of(sequence: u32, role: Role, line: &serde_json::Value) -> MessageView {
    let line = line.to_string();
    let ts = Timestamp::parse(&format!("2026-01-04T17:{:02}:00Z", sequence % 60)).unwrap();
    let message = Message {
        user_id: UserId::new("mira").unwrap(),
        host_id: HostId::new("oven").unwrap(),
        project_slug: ProjectSlug::new("-home-mira-bakery").unwrap(),
        session_id: SessionId::new("7f3c9a52").unwrap(),
        sequence,
        role,
        turn: Some(sequence / 2 + 1),
        ts,
        ts_source: TimeSource::Stated,
        synced_at: ts,
        vectors: VectorState::Nothing,
        digest: Digest::default(),
        raw: RawJson::from(line.as_str()),
    };
    MessageView::new(&message, "7f3c9a52", None)
}

impl SearchState {
    fn typed(&mut self, text: &str) -> Effect {
        let mut effect = Effect::None;
        for c in text.chars() {
            effect = self.act(Action::Type(c));
        }
        effect
    }

    fn repeated(&mut self, times: usize, action: &Action) {
        (0..times).for_each(|_| _ = self.act(action.clone()));
    }

    /// The number and the request of the list to read, if any.
    fn list_work(&mut self) -> Option<(u64, ListRequest)> {
        while let Some(work) = self.next_work() {
            if let Work::List { number, request } = work {
                return Some((number, request));
            }
        }
        None
    }

    /// The number and the request of the search to start, if any.
    fn search_work(&mut self) -> Option<(u64, SearchRequest)> {
        match self.list_work()? {
            (number, ListRequest::Search(request)) => Some((number, *request)),
            (_, ListRequest::Recent(_)) => None,
        }
    }

    /// As [`Self::search_work`], only the query.
    fn search(&mut self) -> Option<(u64, QueryRequest)> {
        self.search_work().map(|(number, request)| (number, request.query))
    }

    /// The number and the request of the recent sessions to read, if any.
    fn recent_work(&mut self) -> Option<(u64, SessionsRequest)> {
        match self.list_work()? {
            (number, ListRequest::Recent(request)) => Some((number, *request)),
            (_, ListRequest::Search(_)) => None,
        }
    }

    fn list_answer(&mut self, number: u64, found: FoundGroups) {
        self.answer(WorkAnswer::List { number, found: Ok(found) });
    }

    /// Lists `found` as the recent sessions.
    fn with_recent(mut self, found: FoundGroups) -> Self {
        let (number, _) = self.recent_work().unwrap();
        self.list_answer(number, found);
        self
    }

    /// Searches for `query`, which finds `found`.
    fn with(mut self, query: &str, found: FoundGroups) -> Self {
        if let Some((number, _)) = self.recent_work() {
            self.list_answer(number, recent());
        }
        self.typed(query);
        self.debounced();
        let (number, _) = self.search().unwrap();
        self.list_answer(number, found);
        self
    }

    /// Answers the request for a preview, if there is one.
    fn with_preview(mut self, messages: Vec<MessageView>) -> Self {
        while let Some(work) = self.next_work() {
            if let Work::Preview { number, .. } = work {
                self.answer(WorkAnswer::Preview { number, found: Ok(messages.clone()) });
            }
        }
        self
    }

    /// Answers requests for messages of a session of `total` messages.
    fn read(&mut self, total: u32) {
        while let Some(work) = self.next_work() {
            if let Work::Messages { opened, range, .. } = work {
                let messages = range.clone().take_while(|sequence| *sequence < total);
                let messages = messages.map(|n| message(n, &format!("Line {n} of the dough."))).collect();
                self.answer(WorkAnswer::Messages { opened, range, found: Ok((total, messages)) });
            }
        }
    }

    /// Answers the request for values, which there must be.
    fn values(&mut self, values: &[(&str, &str)]) {
        while let Some(work) = self.next_work() {
            if let Work::Values { kind, scope } = work {
                let values = values.iter().map(|(value, help)| KnownValue::new(*value, *help)).collect();
                return self.answer(WorkAnswer::Values { kind, scope, found: Ok(values) });
            }
        }
        panic!("no values wanted");
    }

    /// The items of the list to choose from.
    fn offered(&self) -> Vec<String> {
        let shown = self.picker.as_ref().map(|picker| picker.shown()).unwrap_or_default();
        shown.into_iter().map(|item| item.value).collect()
    }

    fn selected_address(&self) -> Option<&str> {
        self.list.hit().map(|(_, hit)| hit.address.as_str())
    }
}
