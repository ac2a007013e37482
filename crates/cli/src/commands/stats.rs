//! `stats`: counts and charts.

use amplifier_session_storage::{
    Scope,
    backend::{PendingQuery, meta::Generations},
    storage::StatisticsOptions,
};

use crate::{
    app::{App, StoreReader},
    args::StatsArgs,
    dates::DatePeriod,
    failure::{Failure, Outcome, say},
    file::{check_picture, is_stdout, write_private},
    render::{
        over_time::Unit,
        stats::{self, Facts, StatsOptions, StoreVectors},
    },
};

/// Pending messages are counted one by one up to this number.
const MOST_OWING: usize = 1_000;

pub(super) async fn run(app: &mut App, args: StatsArgs) -> Result<Outcome, Failure> {
    if let Some(file) = &args.plot {
        app.check_out(file)?;
        check_picture(file)?;
    }
    let period = args.filter.period(app)?;
    let sessions = args.narrow.filter()?;
    let reader = app.reader().await?;
    let project = args.filter.project(app, &reader).await?;
    let mut sessions = sessions.within(&project);
    if let Some(session) = &args.session {
        sessions = sessions.with_session(reader.find_session(session).await?.session_id);
    }
    let options =
        StatisticsOptions::default().with_sessions(sessions).with_period(period.since, period.until);
    let facts = Facts {
        statistics: reader.storage.statistics().get_statistics(&reader.scope, &options).await?,
        places: reader.storage.backend().info().places,
        vectors: vectors(&reader).await?,
        damaged: reader.storage.sessions().damaged_sessions(),
    };
    let any = facts.statistics.totals.sessions > 0;
    let has_period = period != DatePeriod::default();
    let plot = args.plot.as_deref().filter(|_| any);
    if let Some(file) = plot {
        write_private(file, &stats::svg(&facts.statistics, Unit::of(&args.by)))?;
    }
    // The picture is the only output on stdout.
    if !plot.is_some_and(is_stdout) {
        show(app, &facts, &args, has_period)?;
    }
    app.out.finish()?;
    if let Some(file) = plot.filter(|file| !is_stdout(file)) {
        say("note", &format!("the picture was written to {}", file.display()));
    }
    if !any {
        say("note", "no session matches");
        args.narrow.explain_nothing();
        app.warn_of_unknown_project(&reader, &project).await?;
    }
    Ok(Outcome::found(any))
}

fn show(app: &mut App, facts: &Facts, args: &StatsArgs, has_period: bool) -> Result<(), Failure> {
    if app.out.is_json() {
        app.out.json(facts)?;
    } else if facts.statistics.totals.sessions > 0 {
        let shown = StatsOptions { by: &args.by, all: args.all, has_period, home: app.home.as_deref() };
        let lines = if app.out.is_terminal() {
            stats::blocks(facts, shown, app.out.width, app.out.paint)
        } else {
            stats::tabbed(facts, shown)
        };
        app.out.lines(&lines)?;
    }
    Ok(())
}

/// The state of the store's vectors, without counting all of them.
async fn vectors(reader: &StoreReader) -> Result<StoreVectors, Failure> {
    let space = reader.storage.vectors().embedding_space().await?;
    let Scope::User(user) = &reader.scope else {
        return Ok(StoreVectors { space, pending_messages: None, pending_more: false });
    };
    let backend = reader.storage.backend();
    let generation = Generations::of(&backend.meta().await?).current_number();
    let mut query =
        PendingQuery { user: user.clone(), session: None, generation, turns: false, after: None, limit: 0 };
    let mut pending = 0;
    while pending <= MOST_OWING {
        query.limit = MOST_OWING - pending + 1;
        let page = backend.messages_pending_vectors(&query).await?;
        let Some(last) = page.last() else { break };
        pending += page.len();
        query.after = Some(last.message_ref());
    }
    Ok(StoreVectors {
        space,
        pending_messages: Some(pending.min(MOST_OWING)),
        pending_more: pending > MOST_OWING,
    })
}
