//! `stats`: counts and charts.

use amplifier_session_api::{
    ApiAnswer,
    operations::statistics::{StatisticsRequest, StatisticsResponse},
    pictures,
};

use crate::{
    app::App,
    args::{By, StatsArgs},
    failure::{Failure, Outcome, say},
    file::{check_picture, is_stdout, write_private},
    render::stats::{self, StatsOptions},
};

pub(super) async fn run(app: &mut App, args: StatsArgs) -> Result<Outcome, Failure> {
    if let Some(file) = &args.plot {
        app.check_out(file)?;
        check_picture(file)?;
    }
    let request = StatisticsRequest {
        scope: app.global.scope.into(),
        filter: args.filter.request(&args.narrow),
        session: args.session.clone(),
    };
    request.check(&app.now)?;
    let reader = app.reader().await?;
    let ApiAnswer { response, notices } = reader.api(app).statistics(&request).await?;
    app.say_notices(&notices);
    let any = response.statistics.totals.sessions > 0;
    let plot = args.plot.as_deref().filter(|_| any);
    if let Some(file) = plot {
        write_private(file, &pictures::statistics(&response.statistics, By::unit(&args.by), &response.tz))?;
    }
    // The picture is the only output on stdout.
    if !plot.is_some_and(is_stdout) {
        show(app, &response, &args)?;
    }
    app.out.finish()?;
    if let Some(file) = plot.filter(|file| !is_stdout(file)) {
        say("note", &format!("the picture was written to {}", file.display()));
    }
    Ok(Outcome::found(any))
}

fn show(app: &mut App, response: &StatisticsResponse, args: &StatsArgs) -> Result<(), Failure> {
    if app.out.is_json() {
        app.out.json(response)?;
    } else if response.statistics.totals.sessions > 0 {
        let has_period = args.filter.since.is_some() || args.filter.until.is_some();
        let shown = StatsOptions { by: &args.by, all: args.all, has_period, home: app.home.as_deref() };
        let lines = if app.out.is_terminal() {
            stats::blocks(response, shown, app.out.width, app.out.paint)
        } else {
            stats::tabbed(response, shown)
        };
        app.out.lines(&lines)?;
    }
    Ok(())
}
