//! `embeddings`, `backfill`, `rebuild`: status and making of vectors.

use std::collections::BTreeMap;

use amplifier_session_storage::{
    Scope,
    model::{ContentTypes, SessionId, UserId},
    storage::{EmbedReport, Estimate, EstimateOf, VectorStatus, VectorsOf},
};
use serde::Serialize;

use crate::{
    app::{App, StoreReader, with_turns},
    args::{BackfillArgs, EmbeddingsAction, EmbeddingsArgs, EstimateArgs, PartArgs, RebuildArgs, TurnsArgs},
    failure::{Failure, Outcome, say},
    messages::{HasVectors, has_vectors},
    progress::Bar,
    render::{
        embeddings as render,
        text::{counted, one_line},
    },
};

/// The result of embedding, as JSON.
#[derive(Serialize)]
struct ReportView<'a> {
    #[serde(flatten)]
    report: &'a EmbedReport,
    /// Why vectors are still missing.
    #[serde(rename = "owed_reason")]
    pending_reason: Option<String>,
}

/// An estimate as JSON.
#[derive(Serialize)]
struct EstimateView {
    #[serde(flatten)]
    estimate: Estimate,
    /// In the currency of the price.
    cost: Option<f64>,
}

/// Which vectors a session has, as JSON.
#[derive(Serialize)]
struct SessionVectorsView<'a> {
    session_id: &'a SessionId,
    messages: Vec<MessageVectorsView>,
}

#[derive(Serialize)]
struct MessageVectorsView {
    sequence: u32,
    has_vectors: HasVectors,
}

pub(super) async fn run(app: &mut App, args: EmbeddingsArgs) -> Result<Outcome, Failure> {
    match (&args.session, &args.action) {
        (Some(session), None | Some(EmbeddingsAction::Status)) => return of_session(app, session).await,
        (Some(_), Some(EmbeddingsAction::Estimate(_))) => {
            let message = "--session must come after `estimate`";
            return Err(Failure::wrong_use(message, "use `embeddings estimate --session SESSION`"));
        }
        (None, _) => {}
    }
    match args.action {
        None | Some(EmbeddingsAction::Status) => status(app).await,
        Some(EmbeddingsAction::Estimate(args)) => {
            let what = if args.all { EstimateOf::Everything } else { EstimateOf::Pending };
            let EstimateArgs { part, price, .. } = args;
            let price = price
                .map_or_else(|| app.config.number("price_per_million_tokens"), |price| Ok(Some(price)))?;
            estimate(app, &part, what, price).await
        }
    }
}

async fn status(app: &mut App) -> Result<Outcome, Failure> {
    let reader = app.reader().await?;
    let status = reader.storage.vectors().vector_status(&reader.scope).await?;
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
    let session = reader.find_session(session).await?;
    let types = reader.storage.vectors().vector_content_types(&reader.scope, &session.session_id).await?;
    let types: BTreeMap<u32, ContentTypes> = types.into_iter().collect();
    let of = |sequence| types.get(&sequence).copied().unwrap_or(ContentTypes::NONE);
    let messages = (0..session.message_count).map(|sequence| (sequence, of(sequence)));
    if app.out.is_json() {
        let messages = messages
            .map(|(sequence, types)| MessageVectorsView { sequence, has_vectors: has_vectors(types) });
        let view = SessionVectorsView { session_id: &session.session_id, messages: messages.collect() };
        app.out.json(&view)?;
    } else {
        let lines = render::of_messages(messages, app.out.is_terminal());
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
            &format!("to continue, run `{} rebuild` with the --embedding of that model", app.program()),
        );
    } else if pending > 0 {
        say("hint", &format!("`{} backfill` creates the missing vectors", app.program_with_embedding()));
    }
}

pub(super) async fn backfill(app: &mut App, args: BackfillArgs) -> Result<Outcome, Failure> {
    make(app, &args.part, args.turns, args.dry_run, EstimateOf::Pending).await
}

pub(super) async fn rebuild(app: &mut App, args: RebuildArgs) -> Result<Outcome, Failure> {
    make(app, &args.part, args.turns, args.dry_run, EstimateOf::Everything).await
}

/// Makes pending vectors or all of them, or only counts what would be embedded.
async fn make(
    app: &mut App,
    args: &PartArgs,
    turns: TurnsArgs,
    dry_run: bool,
    what: EstimateOf,
) -> Result<Outcome, Failure> {
    if dry_run {
        return estimate(app, args, what, None).await;
    }
    let (reader, of) = part(app, args).await?;
    let counts = reader.storage.sessions().get_session_statistics(&reader.scope, None).await?;
    let bar = Bar::of_vectors(counts.messages);
    let mut on_embedded = |report: &EmbedReport| bar.embedded(report);
    let storage = with_turns(reader.storage, turns.choice());
    let (report, command) = match what {
        EstimateOf::Pending => (storage.vectors().backfill(&of, &mut on_embedded).await?, "backfill"),
        EstimateOf::Everything => (storage.vectors().rebuild(&of, &mut on_embedded).await?, "rebuild"),
    };
    drop(bar);
    print_report(app, &report, command)
}

async fn estimate(
    app: &mut App,
    args: &PartArgs,
    what: EstimateOf,
    price: Option<f64>,
) -> Result<Outcome, Failure> {
    let (reader, of) = part(app, args).await?;
    let estimate = reader.storage.vectors().estimate_embedding(&of, what).await?;
    let cost = price.map(|price| estimate.tokens as f64 / 1e6 * price);
    if app.out.is_json() {
        app.out.json(&EstimateView { estimate, cost })?;
    } else {
        let terminal = app.out.is_terminal();
        let lines = render::estimate(&estimate, price.zip(cost), terminal);
        app.out.lines(&lines)?;
    }
    app.out.finish()?;
    Ok(Outcome::Done)
}

/// The store with its embedding provider, and the requested part of the user's sessions.
async fn part(app: &App, args: &PartArgs) -> Result<(StoreReader, VectorsOf), Failure> {
    if app.global.embedding == "none" {
        return Err(Failure::wrong_use(
            "--embedding none creates no vectors",
            "pass another provider, for example --embedding local",
        ));
    }
    let reader = app.editor(true).await?;
    let Scope::User(user) = &reader.scope else {
        return Err(Failure::wrong_use("vectors are created for one user only", "omit --scope"));
    };
    let project = app.project(&reader, args.project.as_deref()).await?;
    let project = args.repo.within(app, &reader, project).await?;
    app.warn_of_unknown_project(&reader, &project).await?;
    let session = match &args.session {
        Some(session) => Some(reader.find_session(session).await?.session_id),
        None => None,
    };
    let of = VectorsOf::user(UserId::clone(user)).with_filter(project).with_session(session);
    Ok((reader, of))
}

fn print_report(app: &mut App, report: &EmbedReport, command: &str) -> Result<Outcome, Failure> {
    let reason = report.failure.as_ref().map(|error| error.to_string());
    if app.out.is_json() {
        app.out.json(&ReportView { report, pending_reason: reason.clone() })?;
    } else {
        app.out.lines(&render::report(report, app.out.wrap_at()))?;
    }
    app.out.finish()?;
    if report.refused > 0 {
        say("note", "refused texts have no vectors; `embeddings` shows the reasons");
    }
    match reason {
        None => Ok(Outcome::Done),
        Some(reason) => {
            let hint = format!("`{} {command}` continues", app.program_with_embedding());
            Err(Failure::failed(format!("some vectors are still missing: {reason}"), hint))
        }
    }
}
