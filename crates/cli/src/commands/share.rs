//! `share`: sets who can see a session besides its owner.

use amplifier_session_api::{ApiAnswer, operations::share::ShareRequest};
use amplifier_session_storage::model::{Session, Visibility};

use crate::{
    app::App,
    args::ShareArgs,
    dates,
    failure::{Failure, Outcome},
    render::card::{CardField, card},
};

pub(super) async fn run(app: &mut App, args: ShareArgs) -> Result<Outcome, Failure> {
    let request = ShareRequest { session: args.session, with: args.with.0 };
    let store = app.editor(false).await?;
    let ApiAnswer { response, notices } = store.api(app).share(&request).await?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
        return Ok(Outcome::Done);
    }
    let session = &response.session.session;
    let first = session.shared_at.map(|at| {
        if app.out.is_terminal() { dates::minute(at, &app.now) } else { dates::with_offset(at, &app.now) }
    });
    let fields = vec![
        CardField::new("visibility", session.visibility.as_str().to_owned()),
        CardField::new("visible to", visible_to(session)),
        CardField::new("first shared", first.or_else(|| Some("never".to_owned()))),
    ];
    card(&mut app.out, session, fields)?;
    Ok(Outcome::Done)
}

/// The users who can see the session, in words.
fn visible_to(session: &Session) -> String {
    let owner = &session.user_id;
    match session.visibility {
        Visibility::Private => format!("{owner} only"),
        Visibility::Team => {
            let teams = if session.team_ids.len() == 1 { "team" } else { "teams" };
            format!("{owner} and the {teams} {}", session.team_ids.join(", "))
        }
        Visibility::Org => {
            format!("{owner} and the organisation {}", session.org_id.as_deref().unwrap_or_default())
        }
        Visibility::Public => "everyone who can read the store".to_owned(),
    }
}
