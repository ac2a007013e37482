//! `embeddings`: status and making of vectors.

use amplifier_session_api::{
    ApiAnswer,
    operations::vectors::{EmbedRequest, EmbedResponse, SessionVectorsRequest, VectorStatusRequest},
};
use amplifier_session_storage::storage::{EmbedReport, VectorStatus};

use super::models;
use crate::{
    app::{App, with_turns},
    args::{BackfillArgs, EmbeddingsAction, EmbeddingsArgs, EstimateArgs, RebuildArgs, TurnsArgs, quoted},
    failure::{Failure, Outcome, say},
    progress::Bar,
    render::{
        embeddings as render,
        text::{counted, one_line},
    },
};

pub(super) async fn run(app: &mut App, args: EmbeddingsArgs) -> Result<Outcome, Failure> {
    match (args.action, args.session) {
        (None, None) => status(app).await,
        (None, Some(session)) => of_session(app, &session).await,
        (Some(EmbeddingsAction::Models(_)), Some(_)) => {
            Err(Failure::wrong_use("--session has no effect on models", "omit --session"))
        }
        (Some(action), Some(session)) => {
            let program = app.program();
            let hint = format!("`{program} embeddings {} --session {}`", action.name(), quoted(&session));
            Err(Failure::wrong_use("--session must come after the subcommand", hint))
        }
        (Some(EmbeddingsAction::Status(args)), None) => match args.session {
            Some(session) => of_session(app, &session).await,
            None => status(app).await,
        },
        (Some(EmbeddingsAction::Estimate(args)), None) => {
            let EstimateArgs { all, part, price } = args;
            let price = price
                .map_or_else(|| app.config.number("price_per_million_tokens"), |price| Ok(Some(price)))?;
            estimate(app, &part.request(all), price).await
        }
        (Some(EmbeddingsAction::Backfill(args)), None) => backfill(app, args).await,
        (Some(EmbeddingsAction::Rebuild(args)), None) => rebuild(app, args).await,
        (Some(EmbeddingsAction::Models(args)), None) => models::run(app, args).await,
    }
}

async fn status(app: &mut App) -> Result<Outcome, Failure> {
    let reader = app.reader().await?;
    let request = VectorStatusRequest { scope: app.global.scope.into() };
    let ApiAnswer { response: status, .. } = reader.api(app).vector_status(&request).await?;
    if app.out.is_json() {
        app.out.json(&status)?;
    } else if app.out.is_terminal() {
        let lines = render::table(&status, app.out.width, app.out.paint);
        app.out.lines(&lines)?;
    } else {
        app.out.lines(&render::tabbed(&status))?;
    }
    app.out.finish()?;
    print_failures(&status);
    print_hints(app, &status);
    Ok(Outcome::Done)
}

/// Which texts of each message of a session have vectors.
async fn of_session(app: &mut App, session: &str) -> Result<Outcome, Failure> {
    let reader = app.reader().await?;
    let request = SessionVectorsRequest { scope: app.global.scope.into(), session: session.to_owned() };
    let ApiAnswer { response, notices } = reader.api(app).session_vectors(&request).await?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        let lines = render::of_messages(&response.messages, app.out.is_terminal());
        app.out.lines(&lines)?;
    }
    app.out.finish()?;
    Ok(Outcome::Done)
}

fn print_failures(status: &VectorStatus) {
    for generation in status.current.iter().chain(&status.next) {
        for (reason, messages) in &generation.counts.failed {
            say("failed", &format!("{}: {}", counted(*messages, "message"), one_line(reason)));
        }
    }
}

fn print_hints(app: &App, status: &VectorStatus) {
    let pending = status.current.as_ref().map_or(status.embeddable, |current| current.counts.pending);
    if let Some(next) = &status.next {
        say(
            "note",
            &format!(
                "vectors of {} are being created; until they are complete, searches use the old ones",
                next.space
            ),
        );
        say(
            "hint",
            &format!(
                "to continue, run `{} embeddings rebuild` with the --embedding of that model",
                app.program()
            ),
        );
    } else if pending > 0 {
        say(
            "hint",
            &format!("`{} embeddings backfill` creates the missing vectors", app.program_with_embedding()),
        );
    }
}

async fn backfill(app: &mut App, args: BackfillArgs) -> Result<Outcome, Failure> {
    make(app, &args.part.request(false), args.turns, args.dry_run).await
}

async fn rebuild(app: &mut App, args: RebuildArgs) -> Result<Outcome, Failure> {
    make(app, &args.part.request(true), args.turns, args.dry_run).await
}

/// Makes pending vectors or all of them, or only counts what would be embedded.
async fn make(
    app: &mut App,
    request: &EmbedRequest,
    turns: TurnsArgs,
    dry_run: bool,
) -> Result<Outcome, Failure> {
    if dry_run {
        return estimate(app, request, None).await;
    }
    check_provider(app)?;
    let mut store = app.editor(true).await?;
    let storage = store.storage()?.clone();
    let counts = storage.sessions().get_session_statistics(&store.scope, None).await?;
    let bar = Bar::of_vectors(counts.messages);
    let mut on_embedded = |report: &EmbedReport| bar.embedded(report);
    store.set_storage(with_turns(storage, turns.choice()));
    let answer = store.api_here(app)?.make_vectors(request, &mut on_embedded).await;
    drop(bar);
    let ApiAnswer { response, notices } = answer?;
    app.say_notices(&notices);
    print_report(app, &response, if request.everything { "rebuild" } else { "backfill" })
}

async fn estimate(app: &mut App, request: &EmbedRequest, price: Option<f64>) -> Result<Outcome, Failure> {
    check_provider(app)?;
    let store = app.own_reader(true).await?;
    let ApiAnswer { response, notices } = store.api_here(app)?.estimate_vectors(request, price).await?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        let terminal = app.out.is_terminal();
        let lines = render::estimate(&response.estimate, price.zip(response.cost), terminal);
        app.out.lines(&lines)?;
    }
    app.out.finish()?;
    Ok(Outcome::Done)
}

fn check_provider(app: &App) -> Result<(), Failure> {
    if app.global.embedding != "none" {
        return Ok(());
    }
    Err(Failure::wrong_use(
        "--embedding none creates no vectors",
        "pass another provider, for example --embedding local",
    ))
}

fn print_report(app: &mut App, response: &EmbedResponse, command: &str) -> Result<Outcome, Failure> {
    let EmbedResponse { report, pending_reason } = response;
    if app.out.is_json() {
        app.out.json(response)?;
    } else {
        app.out.lines(&render::report(report, app.out.wrap_at()))?;
    }
    app.out.finish()?;
    if report.refused > 0 {
        say("note", "refused texts have no vectors; `embeddings` shows the reasons");
    }
    match pending_reason {
        None => Ok(Outcome::Done),
        Some(reason) => {
            let hint = format!("`{} embeddings {command}` continues", app.program_with_embedding());
            Err(Failure::failed(format!("some vectors are still missing: {reason}"), hint))
        }
    }
}
