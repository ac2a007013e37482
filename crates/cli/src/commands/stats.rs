//! `stats`: how much there is, of what, and where.

use amplifier_session_storage::{
    Scope,
    backend::{OwingQuery, meta::Generations},
    storage::StatisticsOptions,
};

use crate::{
    app::{App, Reader},
    args::StatsArgs,
    dates::Period,
    failure::{Failure, Outcome, say},
    file::whole_file,
    render::stats::{self, Facts, Shown, Vectors},
};

/// More messages than this are not counted one by one.
const MOST_OWING: usize = 1_000;

pub(super) async fn run(app: &mut App, args: StatsArgs) -> Result<Outcome, Failure> {
    let project = args.filter.project()?;
    let period = args.filter.period(&app.now)?;
    let mut sessions = args.narrow.filter(project.clone())?;
    let reader = app.reader(false).await?;
    if let Some(session) = &args.session {
        sessions =
            sessions.with_session(reader.storage.find_session(&reader.scope, session).await?.session_id);
    }
    let options =
        StatisticsOptions::default().with_sessions(sessions).with_period(period.since, period.until);
    let facts = Facts {
        statistics: reader.storage.get_statistics(&reader.scope, &options).await?,
        places: reader.storage.places().await?,
        vectors: vectors(&reader).await?,
    };
    let any = facts.statistics.totals.sessions > 0;
    let has_period = period != Period::default();
    let plot = args.plot.as_deref().filter(|_| any);
    if let Some(file) = plot {
        app.check_out(file)?;
        whole_file(file, |out| {
            out.write_all(stats::svg(&facts.statistics).as_bytes()).map_err(Failure::from)
        })?;
    }
    show(app, &facts, &args, has_period)?;
    app.out.finish()?;
    if let Some(file) = plot {
        say("note", &format!("the picture is in {}", file.display()));
    }
    if !any {
        say("note", "no session matches");
        args.narrow.explain_nothing();
        app.warn_of_unknown_project(&reader, project.as_ref()).await?;
    }
    Ok(Outcome::found(any))
}

fn show(app: &mut App, facts: &Facts, args: &StatsArgs, has_period: bool) -> Result<(), Failure> {
    if app.out.is_json() {
        app.out.json(facts)?;
    } else if facts.statistics.totals.sessions > 0 {
        let shown = Shown { by: &args.by, all: args.all, has_period };
        let lines = match app.out.is_terminal() {
            true => stats::blocks(facts, shown, app.out.width, app.out.paint),
            false => stats::tabbed(facts, shown),
        };
        lines.iter().try_for_each(|line| app.out.line(line))?;
    }
    Ok(())
}

/// What there is to know of the store's vectors without counting them all.
async fn vectors(reader: &Reader) -> Result<Vectors, Failure> {
    let space = reader.storage.embedding_space().await?;
    let Scope::User(user) = &reader.scope else {
        return Ok(Vectors { space, owing_messages: None, owing_more: false });
    };
    let backend = reader.storage.backend();
    let generation = Generations::of(&backend.meta().await?).current_number();
    let mut query = OwingQuery { user: user.clone(), session: None, generation, after: None, limit: 0 };
    let mut owing = 0;
    while owing <= MOST_OWING {
        query.limit = MOST_OWING - owing + 1;
        let page = backend.messages_owing_vectors(&query).await?;
        let Some(last) = page.last() else { break };
        owing += page.len();
        query.after = Some(last.place());
    }
    Ok(Vectors { space, owing_messages: Some(owing.min(MOST_OWING)), owing_more: owing > MOST_OWING })
}
