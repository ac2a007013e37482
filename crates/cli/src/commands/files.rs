//! `files`: the files that a session read and changed.

use amplifier_session_api::{ApiAnswer, operations::files::FilesRequest};

use crate::{
    app::App,
    args::FilesArgs,
    failure::{Failure, Outcome, report_damage, say},
    render::files,
};

pub(super) async fn run(app: &mut App, args: FilesArgs) -> Result<Outcome, Failure> {
    let request = FilesRequest {
        scope: app.global.scope.into(),
        session: args.session,
        changed: args.changed,
        limit: args.limit,
        ..FilesRequest::default()
    };
    let reader = app.reader().await?;
    let ApiAnswer { response, notices } = reader.api(app).list(&request).await?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        files::list(&mut app.out, &response.files)?;
    }
    app.out.finish()?;
    if response.has_more && !app.out.is_json() {
        say("note", "there are more files; use --limit to show more");
    }
    report_damage(&response.damaged)?;
    Ok(Outcome::found(!response.files.is_empty()))
}
