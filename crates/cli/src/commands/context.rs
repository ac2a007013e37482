//! `context`: what stands around a turn or a message.

use amplifier_session_storage::model::{Message, Session};
use serde::Serialize;

use crate::{
    app::{App, Reader},
    args::ContextArgs,
    failure::{Failure, Outcome},
    messages::{MessageView, SessionView},
    render::{
        conversation::{self, Head},
        message::Look,
    },
};

/// Turns on each side unless the user says otherwise.
const TURNS: u32 = 1;
/// Messages on each side unless the user says otherwise.
const MESSAGES: u32 = 3;

/// The answer as JSON.
#[derive(Serialize)]
struct View<'a> {
    session: SessionView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u32>,
    messages: Vec<MessageView>,
    has_more_before: bool,
    has_more_after: bool,
}

/// A turn or a message with what stands around it.
struct Around {
    session: Session,
    messages: Vec<Message>,
    has_more_before: bool,
    has_more_after: bool,
}

pub(super) async fn run(app: &mut App, args: ContextArgs) -> Result<Outcome, Failure> {
    let reader = app.reader(false).await?;
    let Around { session, messages, has_more_before, has_more_after } = around(&reader, &args).await?;
    let (turn, sequence) = (args.place.turn, args.place.message);
    if app.out.is_json() {
        app.out.json(&View {
            session: SessionView::from(&session),
            turn,
            sequence,
            messages: messages.iter().map(MessageView::from).collect(),
            has_more_before,
            has_more_after,
        })?;
        return Ok(Outcome::Done);
    }
    let head = Head { session: &session, names_owner: reader.names_owners(), skipped: &[] };
    conversation::head(&mut app.out, head, &app.now)?;
    if has_more_before {
        app.out.line("\n…")?;
    }
    let asked_for = |message: &Message| Some(message.sequence) == sequence;
    let look = Look { full: args.full, width: app.out.wrap_at(), ..Look::whole(app.out.paint) };
    conversation::messages(&mut app.out, &messages, look, asked_for, &app.now)?;
    if has_more_after {
        app.out.line("\n…")?;
    }
    Ok(Outcome::Done)
}

async fn around(reader: &Reader, args: &ContextArgs) -> Result<Around, Failure> {
    let Reader { storage, scope } = reader;
    let id = storage.find_session(scope, &args.session).await?.session_id;
    let sides = |default: u32| (args.before.unwrap_or(default), args.after.unwrap_or(default));
    if let Some(turn) = args.place.turn {
        let (before, after) = sides(TURNS);
        let found = storage.get_turn_context(scope, &id, turn, before, after).await?;
        return Ok(Around {
            session: found.session,
            messages: found.messages,
            has_more_before: found.has_more_before,
            has_more_after: found.has_more_after,
        });
    }
    let (before, after) = sides(MESSAGES);
    let sequence = args.place.message.unwrap_or_default();
    let found = storage.get_message_context(scope, &id, sequence, before, after).await?;
    Ok(Around {
        session: found.session,
        messages: found.messages,
        has_more_before: found.has_more_before,
        has_more_after: found.has_more_after,
    })
}
