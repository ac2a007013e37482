//! Tests of the interactive search without a terminal and without a store.

mod drawings;
mod states;

use amplifier_session_api::{operations::search::SearchRequest, query::QueryRequest, views::MessageView};
use amplifier_session_storage::{
    model::{
        Digest, HostId, Message, ProjectSlug, RawJson, Role, SessionId, TimeSource, Timestamp, UserId,
        VectorState,
    },
    search::SearchOptions,
};
use jiff::tz::TimeZone;

use super::{
    keys::Action,
    state::{Effect, FoundGroups, Hit, SearchState, SessionHits, Work, WorkAnswer},
    text::Look,
};

fn state() -> SearchState {
    let now = "2026-01-05T08:00:00Z".parse::<jiff::Timestamp>().unwrap().to_zoned(TimeZone::UTC);
    SearchState::new(SearchRequest::new(""), &SearchOptions::new(""), Look::new(true, now))
}

fn hit(short: &str, sequence: u32, kind: &'static str, snippet: &str) -> Hit {
    Hit {
        sequence,
        address: format!("{short}#{sequence}"),
        kind,
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
        notices: Vec::new(),
    }
}

/// Message `sequence`, by the user if the number is even.
fn message(sequence: u32, text: &str) -> MessageView {
    let role = if sequence.is_multiple_of(2) { Role::User } else { Role::Assistant };
    let line = serde_json::json!({"role": role.as_str(), "content": text}).to_string();
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

    /// The number and the query of the search to start, if any.
    fn search(&mut self) -> Option<(u64, QueryRequest)> {
        while let Some(work) = self.next_work() {
            if let Work::Search { number, request } = work {
                return Some((number, request.query));
            }
        }
        None
    }

    /// Searches for `query`, which finds `found`.
    fn with(mut self, query: &str, found: FoundGroups) -> Self {
        self.typed(query);
        self.debounced();
        let (number, _) = self.search().unwrap();
        self.answer(WorkAnswer::Found { number, found: Ok(found) });
        self
    }

    /// Answers the request for a preview, if there is one.
    fn with_preview(mut self, messages: Vec<MessageView>) -> Self {
        if let Some(Work::Preview { number, .. }) = self.next_work() {
            self.answer(WorkAnswer::Preview { number, found: Ok(messages) });
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

    fn selected(&self) -> Option<&str> {
        self.hit().map(|(_, hit)| hit.address.as_str())
    }
}
