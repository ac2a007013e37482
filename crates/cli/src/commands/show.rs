//! `show`: the conversation of a session, or its event log.

use amplifier_session_storage::{
    backend::SkippedLine,
    model::Session,
    storage::{DamagedRow, EventLines, Readable},
};
use serde::Serialize;

use crate::{
    app::{App, Reader},
    args::ShowArgs,
    failure::{Failure, Outcome, report_damage, say},
    messages::{EventView, MessageView, SessionView},
    render::{
        conversation::{self, Head},
        events,
        message::Look,
        text::counted,
    },
};

/// The conversation as JSON.
#[derive(Serialize)]
struct ConversationView<'a> {
    session: SessionView<'a>,
    /// Lines of the session's files that could not be taken in.
    skipped: &'a [SkippedLine],
    messages: Vec<MessageView>,
    has_more_before: bool,
    has_more_after: bool,
    /// Messages that can't be read.
    #[serde(skip_serializing_if = "<[DamagedRow]>::is_empty")]
    damaged: &'a [DamagedRow],
}

/// The event log as JSON.
#[derive(Serialize)]
struct EventsView<'a> {
    session: SessionView<'a>,
    events: Vec<EventView<'a>>,
    has_more_before: bool,
    has_more_after: bool,
    /// Events that can't be read.
    #[serde(skip_serializing_if = "<[DamagedRow]>::is_empty")]
    damaged: &'a [DamagedRow],
}

pub(super) async fn run(app: &mut App, args: ShowArgs) -> Result<Outcome, Failure> {
    let reader = app.reader(false).await?;
    let session = reader.storage.find_session(&reader.scope, &args.session).await?;
    if args.events {
        show_events(app, &reader, &session, &args).await
    } else {
        show(app, &reader, &session, &args).await
    }
}

async fn show(
    app: &mut App,
    reader: &Reader,
    session: &Session,
    args: &ShowArgs,
) -> Result<Outcome, Failure> {
    let Reader { storage, scope } = reader;
    let after = args.from.checked_sub(1);
    let Readable { rows: messages, damaged, .. } =
        storage.readable_transcript_lines(scope, &session.session_id, after, args.limit).await?;
    let skipped = storage.get_sync_statistics(scope, &session.session_id).await?.skipped;
    let page = Page::new(session.message_count, args.from, messages.len() + damaged.len());
    if app.out.is_json() {
        app.out.json(&ConversationView {
            session: SessionView::from(session),
            skipped: &skipped,
            messages: messages.iter().map(MessageView::from).collect(),
            has_more_before: page.has_more_before(),
            has_more_after: page.has_more_after(),
            damaged: &damaged,
        })?;
    } else {
        let head = Head { session, names_owner: reader.names_owners(), skipped: &skipped };
        conversation::head(&mut app.out, head, &app.now)?;
        let look = look(app, args);
        conversation::messages(&mut app.out, &messages, look, |_| false, &app.now)?;
        app.out.finish()?;
        page.tell("message");
        if !skipped.is_empty() {
            say("hint", &format!("`{} sync` takes skipped lines in once they are mended", app.program()));
        }
    }
    report_damage(&damaged)?;
    Ok(page.outcome())
}

fn look(app: &App, args: &ShowArgs) -> Look {
    Look {
        full: args.full,
        thinking: !args.no_thinking,
        tools: !args.no_tools,
        width: app.out.wrap_at(),
        paint: app.out.paint,
    }
}

async fn show_events(
    app: &mut App,
    reader: &Reader,
    session: &Session,
    args: &ShowArgs,
) -> Result<Outcome, Failure> {
    let lines =
        EventLines::default().after(args.from.checked_sub(1)).with_limit(args.limit).with_payload(args.full);
    let Readable { rows: found, damaged, .. } =
        reader.storage.readable_event_lines(&reader.scope, &session.session_id, lines).await?;
    let page = Page::new(session.event_count, args.from, found.len() + damaged.len());
    if app.out.is_json() {
        app.out.json(&EventsView {
            session: SessionView::from(session),
            events: found.iter().map(EventView::from).collect(),
            has_more_before: page.has_more_before(),
            has_more_after: page.has_more_after(),
            damaged: &damaged,
        })?;
    } else {
        events::log(&mut app.out, &found, &app.now)?;
        app.out.finish()?;
        page.tell("event");
    }
    report_damage(&damaged)?;
    Ok(page.outcome())
}

/// Which of how many are shown.
#[derive(Debug, Clone, Copy)]
struct Page {
    total: u64,
    from: u64,
    shown: u64,
}

impl Page {
    fn new(total: u32, from: u32, shown: usize) -> Self {
        Self { total: total.into(), from: from.into(), shown: shown as u64 }
    }

    fn has_more_before(self) -> bool {
        self.from > 0 && self.total > 0
    }

    fn has_more_after(self) -> bool {
        self.from + self.shown < self.total
    }

    /// An empty session is shown as it is; a page beyond the end finds nothing.
    fn outcome(self) -> Outcome {
        Outcome::found(self.shown > 0 || self.from == 0)
    }

    fn tell(self, what: &str) {
        let (total, next) = (counted(self.total, what), self.from + self.shown);
        if self.shown == 0 {
            say("note", &format!("there is no {what} {}; the session has {total}", self.from));
        } else if self.has_more_after() {
            say("note", &format!("shown are {} of {total}; --from {next} goes on", self.shown));
        }
    }
}
