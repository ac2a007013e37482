//! `show --context`: a turn or a message with its context.

use std::ops::Range;

use amplifier_session_api::budget::Items;
use amplifier_session_storage::{
    KnownPart,
    model::{DamagedRow, Message, Session, SessionId},
    storage::{Addressed, AddressedLine},
};
use serde::Serialize;

use crate::{
    app::{App, StoreReader},
    args::{ContextArgs, LimitArgs, PositionArgs},
    budget,
    failure::{Failure, Outcome, report_damage},
    messages::{Estimated, MessageView, SessionView},
    render::{
        conversation::{self, SessionHeader},
        message::MessageOptions,
    },
};

/// Turns on each side by default.
const TURNS: u32 = 1;
/// Messages on each side by default.
const MESSAGES: u32 = 3;

/// The answer as JSON.
#[derive(Serialize)]
struct ContextView<'a> {
    session: SessionView,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u32>,
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

/// A turn or a message with its context.
struct ContextMessages {
    session: Session,
    messages: Vec<Message>,
    has_more_before: bool,
    has_more_after: bool,
    damaged: Vec<DamagedRow>,
}

pub(super) async fn run(app: &mut App, args: ContextArgs) -> Result<Outcome, Failure> {
    let reader = app.reader().await?;
    let Addressed { session, line, .. } = reader.find_address(&args.session).await?;
    let position = position(&args, line)?;
    let ContextMessages { session, messages, has_more_before, has_more_after, damaged } =
        context(&reader, &session.session_id, position, &args).await?;
    let PositionArgs { turn, message: sequence } = position;
    let (name, parent_name) = reader.short_names(&session).await?;
    let order = Order::of(&messages, position);
    let items = Items { count: messages.len(), can_be_cut: true };
    let LimitArgs { budget, .. } = args.limits;
    let estimated = Estimated::of(&reader.storage, std::slice::from_ref(&session)).await?;
    let portion = budget::write(app, budget, items, |app, portion| {
        let range = order.first(portion.items);
        let last = order.last(portion.items);
        let shown = messages.part(range.clone());
        let most = args.limits.max_chars(&app.out);
        // The message that was fitted last is cut to the rest of the budget.
        let max_chars = |at: usize| {
            if Some(range.start + at) == last {
                portion.chars_of(portion.items.saturating_sub(1), most)
            } else {
                most
            }
        };
        let has_more_before = has_more_before || range.start > 0;
        let has_more_after = has_more_after || range.end < messages.len();
        if app.out.is_json() {
            let view = |(at, message)| MessageView::new(message, &name, max_chars(at));
            return Ok(app.out.json(&ContextView {
                session: SessionView::with_estimates(&session, &estimated),
                turn,
                sequence,
                messages: shown.iter().enumerate().map(view).collect(),
                left_out: budget.map(|_| messages.len() - shown.len()),
                has_more_before,
                has_more_after,
                damaged: &damaged,
            })?);
        }
        let head = SessionHeader {
            session: &session,
            parent_name: parent_name.as_deref(),
            is_estimated: estimated.has(&session),
            names_owner: reader.names_owners(),
            skipped: &[],
        };
        conversation::head(&mut app.out, head, &app.now)?;
        if has_more_before {
            app.out.line("\n…")?;
        }
        let asked_for = |message: &Message| Some(message.sequence) == sequence;
        let whole = MessageOptions {
            full: args.full,
            width: app.out.wrap_at(),
            ..MessageOptions::whole(app.out.paint)
        };
        let options = |at| MessageOptions { max_chars: max_chars(at), ..whole };
        conversation::messages(&mut app.out, shown, options, asked_for, &app.now)?;
        if has_more_after {
            app.out.line("\n…")?;
        }
        Ok(())
    })?;
    app.out.finish()?;
    budget::say_left_out(budget, items, "message", portion);
    report_damage(&damaged)?;
    Ok(Outcome::Done)
}

/// The order in which messages are fitted into a budget: the requested ones first, then the nearest ones around them.
struct Order {
    /// The number of messages.
    count: usize,
    /// The requested messages.
    asked: Range<usize>,
}

impl Order {
    fn of(messages: &[Message], position: PositionArgs) -> Self {
        let is_asked = |message: &Message| match position.turn {
            Some(turn) => message.turn == Some(turn),
            None => Some(message.sequence) == position.message,
        };
        let start = messages.iter().position(is_asked).unwrap_or(0);
        let end = messages.iter().rposition(is_asked).map_or(start, |last| last + 1);
        Self { count: messages.len(), asked: start..end }
    }

    /// The range of the first `items` messages in this order. They are always next to each other.
    fn first(&self, items: usize) -> Range<usize> {
        let mut range = self.asked.start..self.asked.start;
        for _ in 0..items.min(self.count) {
            range = self.grown(&range);
        }
        range
    }

    /// The last of the first `items` messages in this order.
    fn last(&self, items: usize) -> Option<usize> {
        let (before, with) = (self.first(items.checked_sub(1)?), self.first(items));
        if with.start < before.start { Some(with.start) } else { with.end.checked_sub(1) }
    }

    fn grown(&self, range: &Range<usize>) -> Range<usize> {
        let (before, after) = (self.asked.start - range.start, range.end.saturating_sub(self.asked.end));
        let asks_more = range.end < self.asked.end;
        let goes_back = range.start > 0 && (before <= after || range.end == self.count);
        if !asks_more && goes_back { range.start - 1..range.end } else { range.start..range.end + 1 }
    }
}

/// The requested turn or message, from the address or the options.
fn position(args: &ContextArgs, line: Option<AddressedLine>) -> Result<PositionArgs, Failure> {
    let PositionArgs { turn, message } = args.position;
    match line {
        Some(AddressedLine::Message(_)) if turn.is_some() || message.is_some() => {
            let text = format!("{} already names a message", args.session);
            Err(Failure::wrong_use(text, "omit --turn"))
        }
        Some(AddressedLine::Message(sequence)) => Ok(PositionArgs { turn: None, message: Some(sequence) }),
        None if turn.is_some() || message.is_some() => Ok(args.position),
        None => {
            let hint = "pass a message as SESSION#N, or a turn with --turn N";
            Err(Failure::wrong_use("a message or a turn is required", hint))
        }
        Some(_) => {
            let text = format!("{} names an event, but --context shows messages", args.session);
            Err(Failure::wrong_use(text, "omit --context to show the event"))
        }
    }
}

async fn context(
    reader: &StoreReader,
    id: &SessionId,
    position: PositionArgs,
    args: &ContextArgs,
) -> Result<ContextMessages, Failure> {
    let StoreReader { storage, scope, .. } = reader;
    let sides = |default: u32| (args.before.unwrap_or(default), args.after.unwrap_or(default));
    if let Some(turn) = position.turn {
        let (before, after) = sides(TURNS);
        let found = storage.reading().get_turn_context(scope, id, turn, before, after).await?;
        return Ok(ContextMessages {
            session: found.session,
            messages: found.messages,
            has_more_before: found.has_more_before,
            has_more_after: found.has_more_after,
            damaged: found.damaged,
        });
    }
    let (before, after) = sides(MESSAGES);
    let sequence = position.message.unwrap_or_default();
    let found = storage.reading().get_message_context(scope, id, sequence, before, after).await?;
    Ok(ContextMessages {
        session: found.session,
        messages: found.messages,
        has_more_before: found.has_more_before,
        has_more_after: found.has_more_after,
        damaged: found.damaged,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requested_messages_come_first_then_the_nearest() {
        let order = Order { count: 7, asked: 2..4 };
        let ranges: Vec<Range<usize>> = (0..=8).map(|items| order.first(items)).collect();
        assert_eq!(ranges, [2..2, 2..3, 2..4, 1..4, 1..5, 0..5, 0..6, 0..7, 0..7]);
        let last: Vec<Option<usize>> = (0..=7).map(|items| order.last(items)).collect();
        assert_eq!(last, [None, Some(2), Some(3), Some(1), Some(4), Some(0), Some(5), Some(6)]);
        assert_eq!(Order { count: 3, asked: 2..3 }.first(3), 0..3);
    }
}
