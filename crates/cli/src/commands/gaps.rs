//! `gaps`: lists missing messages and events.

use amplifier_session_storage::{
    backend::SessionQuery,
    model::{Session, SessionId, UserId},
    storage::Gaps,
};
use serde::Serialize;

use crate::{
    app::{App, StoreReader},
    args::GapsArgs,
    failure::{Failure, Outcome, say},
    render::text::counted,
};

/// Number of sessions listed at a time.
const SESSIONS: usize = 100;

/// Sequences without rows.
#[derive(Serialize)]
struct GapView {
    user_id: UserId,
    session_id: SessionId,
    row: &'static str,
    first: u32,
    last: u32,
}

/// All gaps as JSON.
#[derive(Default, Serialize)]
struct GapsView {
    sessions: u64,
    missing_messages: u64,
    missing_events: u64,
    gaps: Vec<GapView>,
}

pub(super) async fn run(app: &mut App, args: GapsArgs) -> Result<Outcome, Failure> {
    let reader = app.patient_reader().await?;
    let mut view = GapsView::default();
    if args.sessions.is_empty() {
        let query = SessionQuery::new(reader.scope.clone()).with_limit(SESSIONS);
        for session in &reader.storage.sessions().all_sessions(query).await? {
            view.add(session, &reader).await?;
        }
    }
    for typed in &args.sessions {
        let session = reader.find_session(typed).await?;
        view.add(&session, &reader).await?;
    }
    if app.out.is_json() {
        app.out.json(&view)?;
    } else {
        let is_terminal = app.out.is_terminal();
        for gap in &view.gaps {
            app.out.line(&gap.line(is_terminal))?;
        }
    }
    app.out.finish()?;
    let (messages, events) = (view.missing_messages, view.missing_events);
    if messages + events == 0 {
        say("note", &format!("nothing is missing in {}", counted(view.sessions, "session")));
        return Ok(Outcome::Done);
    }
    let missing = match (messages, events) {
        (messages, 0) => counted(messages, "message"),
        (0, events) => counted(events, "event"),
        (messages, events) => format!("{} and {}", counted(messages, "message"), counted(events, "event")),
    };
    let are = if messages + events == 1 { "is" } else { "are" };
    let hint = format!("`{} verify --repair` reads them from the session folders", app.program());
    Err(Failure::failed(format!("{missing} {are} missing"), hint))
}

impl GapsView {
    async fn add(&mut self, session: &Session, reader: &StoreReader) -> Result<(), Failure> {
        let gaps: Gaps = reader.storage.verification().missing_rows(session).await?;
        let (messages, events) = gaps.count();
        self.sessions += 1;
        self.missing_messages += messages;
        self.missing_events += events;
        for (row, gaps) in [("messages", gaps.messages), ("events", gaps.events)] {
            self.gaps.extend(gaps.into_iter().map(|(first, last)| GapView {
                user_id: session.user_id.clone(),
                session_id: session.session_id.clone(),
                row,
                first,
                last,
            }));
        }
        Ok(())
    }
}

impl GapView {
    fn line(&self, is_terminal: bool) -> String {
        let Self { session_id, row, first, last, .. } = self;
        if !is_terminal {
            format!("{session_id}\t{row}\t{first}\t{last}")
        } else if first == last {
            format!("{session_id}  {} {first}", row.trim_end_matches('s'))
        } else {
            format!("{session_id}  {row} {first}-{last}")
        }
    }
}
