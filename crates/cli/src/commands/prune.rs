//! `delete --superseded`: removes superseded lines.

use amplifier_session_api::{
    ApiAnswer,
    operations::prune::{PrunePreviewRequest, PruneRequest, PruneResponse, PrunedSession},
};

use super::confirm::ChangeQuestion;
use crate::{
    app::App,
    args::DeleteArgs,
    failure::{Failure, Outcome, say},
    render::{
        superseded::{self, amount},
        text::counted,
    },
};

pub(super) async fn run(app: &mut App, args: DeleteArgs) -> Result<Outcome, Failure> {
    let DeleteArgs { sessions, project, repo, older_than, .. } = args;
    let request = PrunePreviewRequest {
        sessions,
        project,
        repo: repo.repo,
        older_than,
        ..PrunePreviewRequest::default()
    };
    request.check(&app.now)?;
    let store = if args.dry_run { app.own_reader(false).await? } else { app.editor(false).await? };
    let ApiAnswer { response: preview, notices } = store.api(app).prune_preview(&request).await?;
    app.say_notices(&notices);
    let is_empty = preview.sessions().is_empty();
    if args.dry_run {
        show(app, &preview)?;
        if !is_empty {
            say("note", &format!("dry run: {} would be removed", total(&preview)));
        }
        return Ok(Outcome::Done);
    }
    if !is_empty && !args.yes && !is_confirmed(app, &preview)? {
        say("note", "nothing was removed");
        return Ok(Outcome::Done);
    }
    let request = PruneRequest { sessions: preview.sessions().iter().map(PrunedSession::from).collect() };
    let ApiAnswer { response, notices } = store.api(app).prune(&request).await?;
    show(app, &response)?;
    app.say_notices(&notices);
    if response.remains.is_empty() {
        return Ok(Outcome::Done);
    }
    let hint =
        format!("the next command that writes to the store erases them, such as `{} sync`", app.program());
    Err(Failure::failed("the words of removed lines could not be erased", hint))
}

fn is_confirmed(app: &App, preview: &PruneResponse) -> Result<bool, Failure> {
    let what = total(preview);
    let question = ChangeQuestion {
        change: format!("{what} would be removed"),
        preview: preview.sessions().iter().map(superseded::sentence).collect(),
        question: format!("Remove {what} from the store?"),
        hint: "pass --yes to remove without asking",
    };
    question.is_confirmed(app)
}

fn show(app: &mut App, response: &PruneResponse) -> Result<(), Failure> {
    let is_preview = response.would_prune.is_some();
    if app.out.is_json() {
        app.out.json(response)?;
    } else {
        for session in response.sessions() {
            let line = if app.out.is_terminal() {
                let label = if is_preview { "would remove" } else { "removed" };
                format!("{label}  {}", superseded::sentence(session))
            } else {
                superseded::tabbed_counts(if is_preview { "would-prune" } else { "pruned" }, session)
            };
            app.out.line(&line)?;
        }
    }
    Ok(app.out.finish()?)
}

fn total(response: &PruneResponse) -> String {
    let lines = amount(response.messages, response.events, response.bytes);
    format!("{lines} of {}", counted(response.sessions().len() as u64, "session"))
}
