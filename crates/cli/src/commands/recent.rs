//! `sessions --by project`: recently active projects and sessions.

use amplifier_session_api::{ApiAnswer, filter::RequestFilter, operations::recent::RecentRequest};

use crate::{
    app::App,
    args::SessionsArgs,
    failure::{Failure, Outcome, say},
    refresh,
    render::{recent, text::counted},
};

/// A longer period, in days, that a hint suggests.
const LONGER: u64 = 30;

pub(super) async fn run(app: &mut App, args: SessionsArgs) -> Result<Outcome, Failure> {
    let since = args.since();
    let request = RecentRequest {
        scope: app.global.scope.into(),
        filter: RequestFilter { since: since.clone(), ..args.filter.request(&args.narrow) },
        sort: args.order(),
        limit: args.limit,
        short_ids: app.out.is_terminal() && !app.out.is_json(),
    };
    request.check(&app.now)?;
    let reader = app.reader().await?;
    refresh::before_reading(app, &reader, args.no_refresh).await;
    let ApiAnswer { response, notices } = reader.api(app).recent(&request).await?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        recent::recent(&mut app.out, &response, args.order(), &app.now)?;
    }
    app.out.finish()?;
    if response.projects.is_empty() {
        say("note", &no_sessions(since.as_deref()));
        let program = app.program();
        let longer = format!("`{program} sessions --by project --days {LONGER}` looks back further");
        let all = format!("`{program} sessions` lists the newest sessions, regardless of date");
        let is_short = since.as_deref().and_then(days_of).is_some_and(|days| days < LONGER);
        say("hint", if is_short { &longer } else { &all });
    }
    Ok(Outcome::found(!response.projects.is_empty()))
}

/// The number of days of `7d`.
fn days_of(typed: &str) -> Option<u64> {
    typed.strip_suffix('d').and_then(|days| days.parse().ok())
}

/// `no sessions in the last 7 days`, or with the date as it was typed.
fn no_sessions(since: Option<&str>) -> String {
    let Some(typed) = since else { return "no sessions in the period".to_owned() };
    match days_of(typed) {
        Some(1) => "no sessions in the last day".to_owned(),
        Some(days) => format!("no sessions in the last {}", counted(days, "day")),
        None => format!("no sessions since {typed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::no_sessions;

    #[test]
    fn an_empty_result_names_the_period() {
        assert_eq!(no_sessions(Some("7d")), "no sessions in the last 7 days");
        assert_eq!(no_sessions(Some("1d")), "no sessions in the last day");
        assert_eq!(no_sessions(Some("monday")), "no sessions since monday");
        assert_eq!(no_sessions(None), "no sessions in the period");
    }
}
