//! `show --turn`: one turn in full.

use amplifier_session_storage::storage::{Addressed, AddressedLine, StoredTurnEmbedding, Turn};
use serde::Serialize;

use crate::{
    app::App,
    args::TurnArgs,
    failure::{Failure, Outcome},
    render::{ids::address, turn as render},
};

/// A turn as JSON.
#[derive(Serialize)]
struct TurnView<'a> {
    /// The address of the user's message.
    address: &'a str,
    title: &'a str,
    #[serde(flatten)]
    turn: &'a Turn,
    /// The stored embedding of the turn for the model that `--embedding` selects, if there is one.
    embedding: Option<StoredTurnEmbedding>,
}

pub(super) async fn run(app: &mut App, args: TurnArgs) -> Result<Outcome, Failure> {
    // Only JSON shows what was embedded.
    let reader = app.silent_reader(app.out.is_json()).await?;
    let Addressed { session, line, .. } = reader.find_address(&args.session).await?;
    let number = match (line, args.turn) {
        (None, Some(turn)) => turn,
        (Some(AddressedLine::Message(sequence)), None) => {
            reader.storage.turns().turn_of_message(&reader.scope, &session.session_id, sequence).await?
        }
        (None, None) => {
            let hint = "pass a message as SESSION#N, or a turn with --turn N";
            return Err(Failure::wrong_use("a message or a turn is required", hint));
        }
        (Some(AddressedLine::Message(_)), Some(_)) => {
            let text = format!("{} already names a message", args.session);
            return Err(Failure::wrong_use(text, "omit the number of --turn, or the message"));
        }
        (Some(_), _) => {
            let text = format!("{} names an event, which is not part of a turn", args.session);
            return Err(Failure::wrong_use(text, "omit --turn to show the event"));
        }
    };
    let turn = reader.storage.turns().get_turn(&session, number).await?;
    let (name, _) = reader.short_names(&session).await?;
    if app.out.is_json() {
        let embedding = reader.storage.turns().turn_embedding(&turn).await?;
        let address = address(&name, turn.user.sequence);
        app.out.json(&TurnView { address: &address, title: session.title(), turn: &turn, embedding })?;
    } else {
        render::whole(&mut app.out, &turn, &session, &name, &app.now)?;
    }
    app.out.finish()?;
    Ok(Outcome::Done)
}
