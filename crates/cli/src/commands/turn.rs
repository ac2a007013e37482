//! `show --turn`: one turn in full.

use amplifier_session_api::{ApiAnswer, operations::turn::TurnRequest};

use crate::{
    app::App,
    args::TurnArgs,
    failure::{Failure, Outcome, if_there},
    render::turn as render,
};

pub(super) async fn run(app: &mut App, args: TurnArgs) -> Result<Outcome, Failure> {
    let request = TurnRequest {
        scope: app.global.scope.into(),
        session: args.session,
        turn: args.turn,
        // Only JSON shows what was embedded.
        embedding: app.out.is_json(),
        turn_count: !app.out.is_json(),
    };
    let reader = app.silent_reader(request.embedding).await?;
    let answer = if_there(reader.api(app).turn(&request).await)?;
    let Some(ApiAnswer { response, notices }) = answer else { return Ok(Outcome::FoundNothing) };
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        render::whole(&mut app.out, &response, &app.now)?;
    }
    app.out.finish()?;
    Ok(Outcome::Done)
}
