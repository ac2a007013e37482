//! `edit`: sets name and description of a session.

use amplifier_session_api::{ApiAnswer, operations::edit::EditRequest};
use amplifier_session_storage::model::{Session, SessionField};

use crate::{
    app::App,
    args::EditArgs,
    failure::{Failure, Outcome},
    render::card::{CardField, card},
};

pub(super) async fn run(app: &mut App, args: EditArgs) -> Result<Outcome, Failure> {
    let request = EditRequest {
        session: args.session,
        name: args.name,
        description: args.description,
        clear: args.clear.into_iter().map(Into::into).collect(),
        reset: args.reset.into_iter().map(Into::into).collect(),
    };
    request.check()?;
    let store = app.editor(false).await?;
    let ApiAnswer { response, notices } = store.api(app).edit(&request).await?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        let session = &response.session.session;
        card(&mut app.out, session, fields(session))?;
    }
    Ok(Outcome::Done)
}

/// The fields that a user can set, and whether each was set.
fn fields(session: &Session) -> Vec<CardField> {
    let fields = [
        (SessionField::Name, session.name.clone()),
        (SessionField::Description, session.description.clone()),
        (SessionField::Tags, Some(session.tags.join(", "))),
    ];
    let noted = |(field, value): (SessionField, Option<String>)| {
        let by_hand = session.edited.contains(&field);
        CardField::new(field.as_str(), value).with_note(if by_hand { "set by hand" } else { "" })
    };
    fields.into_iter().map(noted).collect()
}
