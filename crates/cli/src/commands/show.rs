//! `show`: the conversation of a session, or its event log.

use std::collections::{BTreeMap, HashMap};

use amplifier_session_api::budget::Items;
use amplifier_session_storage::{
    KnownPart,
    backend::SkippedLine,
    model::{ContentTypes, DamagedRow, Message, Session},
    storage::{Addressed, AddressedLine, EventLine, EventLines, Readable},
};
use serde::Serialize;

use super::superseded;
use crate::{
    app::{App, StoreReader},
    args::{LimitArgs, ShowArgs},
    budget,
    failure::{Failure, Outcome, report_damage, say},
    messages::{Estimated, EventView, MessageView, SessionView},
    render::{
        conversation::{self, SessionHeader},
        events,
        ids::event_address,
        message::MessageOptions,
        text::counted,
    },
};

/// The conversation as JSON.
#[derive(Serialize)]
struct ConversationView<'a> {
    session: SessionView,
    /// Lines of the session's files that could not be read.
    skipped: &'a [SkippedLine],
    messages: Vec<MessageView>,
    /// Messages that do not fit into the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
    has_more_before: bool,
    has_more_after: bool,
    /// Messages that can't be read.
    #[serde(skip_serializing_if = "<[DamagedRow]>::is_empty")]
    damaged: &'a [DamagedRow],
}

/// The event log as JSON.
#[derive(Serialize)]
struct EventsView<'a> {
    session: SessionView,
    events: Vec<EventView>,
    has_more_before: bool,
    has_more_after: bool,
    /// Events that can't be read.
    #[serde(skip_serializing_if = "<[DamagedRow]>::is_empty")]
    damaged: &'a [DamagedRow],
}

pub(super) async fn run(app: &mut App, args: ShowArgs) -> Result<Outcome, Failure> {
    let reader = app.reader().await?;
    if args.superseded {
        return superseded::show(app, &reader, &args).await;
    }
    let Addressed { session, line, .. } = reader.find_address(&args.session).await?;
    let part = RequestedRange::of(&args, line)?;
    if args.events || matches!(line, Some(AddressedLine::Event(_))) {
        show_events(app, &reader, &session, &args, part).await
    } else {
        show(app, &reader, &session, &args, part).await
    }
}

/// The requested range of messages or events.
#[derive(Debug, Clone, Copy)]
struct RequestedRange {
    from: u32,
    limit: usize,
    /// Whether an address names a single one.
    is_one: bool,
}

impl RequestedRange {
    fn of(args: &ShowArgs, line: Option<AddressedLine>) -> Result<Self, Failure> {
        const LIMIT: usize = 100;
        let named = match line {
            Some(AddressedLine::Message(sequence)) if args.events => {
                let message = format!("{} names a message, but --events shows events", args.session);
                let hint =
                    format!("events are numbered separately: --from {sequence} begins at event {sequence}");
                return Err(Failure::wrong_use(message, hint));
            }
            Some(AddressedLine::Message(sequence) | AddressedLine::Event(sequence)) => Some(sequence),
            _ => None,
        };
        if named.is_some() && args.from.is_some() {
            let message = format!("{} and --from both say where to begin", args.session);
            return Err(Failure::wrong_use(message, "omit --from, and use --limit to show what follows"));
        }
        Ok(Self {
            from: named.or(args.from).unwrap_or_default(),
            limit: args.limit.unwrap_or(if named.is_some() { 1 } else { LIMIT }),
            is_one: named.is_some() && args.limit.is_none(),
        })
    }
}

async fn show(
    app: &mut App,
    reader: &StoreReader,
    session: &Session,
    args: &ShowArgs,
    part: RequestedRange,
) -> Result<Outcome, Failure> {
    let StoreReader { storage, scope, .. } = reader;
    let after = part.from.checked_sub(1);
    let Readable { rows: messages, damaged, .. } =
        storage.reading().readable_transcript_lines(scope, &session.session_id, after, part.limit).await?;
    let skipped = storage.statistics().skipped_lines(scope, &session.session_id).await?;
    let (name, parent_name) = reader.short_names(session).await?;
    let estimated = Estimated::of(storage, std::slice::from_ref(session)).await?;
    let types = if app.out.is_json() {
        storage.vectors().vector_content_types(scope, &session.session_id).await?
    } else {
        Vec::new()
    };
    let types: BTreeMap<u32, ContentTypes> = types.into_iter().collect();
    let items = Items { count: messages.len(), can_be_cut: true };
    let LimitArgs { budget, .. } = args.limits;
    let read = messages.len() + damaged.len();
    let is_beyond_end = Page::new(session.message_count, part, read).is_beyond_end();
    // If some messages are left out, the page ends with the last one shown.
    let page = |shown: &[Message]| {
        let end = shown.last().map_or(part.from, |last| last.sequence.saturating_add(1));
        let left_out = shown.len() < messages.len();
        let count = if left_out { end.saturating_sub(part.from) as usize } else { read };
        Page::new(session.message_count, part, count)
    };
    let portion = budget::write(app, budget, items, |app, portion| {
        let shown = messages.part(..portion.items);
        let page = page(shown);
        let max_chars = |rank| portion.chars_of(rank, args.limits.max_chars(&app.out));
        if app.out.is_json() {
            let view = |(rank, message): (usize, &Message)| {
                let types = types.get(&message.sequence);
                MessageView::new(message, &name, max_chars(rank)).with_vectors(types)
            };
            return Ok(app.out.json(&ConversationView {
                session: SessionView::with_estimates(session, &estimated),
                skipped: &skipped,
                messages: shown.iter().enumerate().map(view).collect(),
                left_out: budget.map(|_| messages.len() - shown.len()),
                has_more_before: page.has_more_before(),
                has_more_after: page.has_more_after(),
                damaged: &damaged,
            })?);
        }
        // A page beyond the end prints only a note.
        if is_beyond_end {
            return Ok(());
        }
        let head = SessionHeader {
            session,
            parent_name: parent_name.as_deref(),
            is_estimated: estimated.has(session),
            names_owner: reader.names_owners(),
            skipped: &skipped,
        };
        let options = MessageOptions { full: args.full || part.is_one, ..message_options(app, args) };
        let chars: Vec<Option<usize>> = (0..shown.len()).map(max_chars).collect();
        let options =
            |rank: usize| MessageOptions { max_chars: chars.get(rank).copied().flatten(), ..options };
        conversation::head(&mut app.out, head, &app.now)?;
        conversation::messages(&mut app.out, shown, options, |_| false, &app.now)?;
        Ok(())
    })?;
    app.out.finish()?;
    budget::say_left_out(budget, items, "message", portion);
    let page = page(messages.get(..portion.items).unwrap_or_default());
    if !app.out.is_json() {
        page.print_note("message");
        if !skipped.is_empty() && !is_beyond_end {
            say("hint", &format!("fix the skipped lines in the file, then run `{} sync`", app.program()));
        }
    }
    report_damage(&damaged)?;
    Ok(Page::new(session.message_count, part, read).outcome())
}

fn message_options(app: &App, args: &ShowArgs) -> MessageOptions {
    MessageOptions {
        full: args.full,
        thinking: !args.no_thinking,
        tools: !args.no_tools,
        max_chars: None,
        width: app.out.wrap_at(),
        paint: app.out.paint,
    }
}

async fn show_events(
    app: &mut App,
    reader: &StoreReader,
    session: &Session,
    args: &ShowArgs,
    part: RequestedRange,
) -> Result<Outcome, Failure> {
    // A single event is shown in full, like a single message.
    let full = args.full || part.is_one;
    let lines =
        EventLines::default().after(part.from.checked_sub(1)).with_limit(part.limit).with_payload(full);
    let Readable { rows: found, damaged, .. } =
        reader.storage.reading().readable_event_lines(&reader.scope, &session.session_id, lines).await?;
    let page = Page::new(session.event_count, part, found.len() + damaged.len());
    if app.out.is_json() {
        let estimated = Estimated::of(&reader.storage, std::slice::from_ref(session)).await?;
        let name = reader.short_id(&session.session_id).await?;
        let short_ids = HashMap::from([(session.session_id.clone(), name)]);
        let views = found.iter().map(|EventLine { event, raw, .. }| {
            EventView::new(event, raw.as_ref(), event_address(&short_ids, event))
        });
        app.out.json(&EventsView {
            session: SessionView::with_estimates(session, &estimated),
            events: views.collect(),
            has_more_before: page.has_more_before(),
            has_more_after: page.has_more_after(),
            damaged: &damaged,
        })?;
    } else {
        if !page.is_beyond_end() {
            events::log(&mut app.out, &found, &app.now)?;
        }
        app.out.finish()?;
        page.print_note("event");
    }
    report_damage(&damaged)?;
    Ok(page.outcome())
}

/// The part of the messages or events that is shown.
#[derive(Debug, Clone, Copy)]
struct Page {
    total: u64,
    from: u64,
    shown: u64,
    is_one: bool,
}

impl Page {
    fn new(total: u32, part: RequestedRange, shown: usize) -> Self {
        Self { total: total.into(), from: part.from.into(), shown: shown as u64, is_one: part.is_one }
    }

    fn has_more_before(self) -> bool {
        self.from > 0 && self.total > 0
    }

    fn has_more_after(self) -> bool {
        self.from + self.shown < self.total
    }

    /// Whether the page is beyond the end; an empty session has an empty first page.
    fn is_beyond_end(self) -> bool {
        self.shown == 0 && self.from > 0
    }

    fn outcome(self) -> Outcome {
        Outcome::found(!self.is_beyond_end())
    }

    fn print_note(self, what: &str) {
        let (total, next) = (counted(self.total, what), self.from + self.shown);
        if self.shown == 0 {
            say("note", &format!("there is no {what} {}; the session has {total}", self.from));
        } else if self.has_more_after() && !self.is_one {
            say("note", &format!("showing {} of {total}; continue with --from {next}", self.shown));
        }
    }
}
