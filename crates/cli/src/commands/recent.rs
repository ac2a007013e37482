//! `sessions --by project`: recently active projects and sessions.

use amplifier_session_api::{ApiAnswer, operations::recent::RecentRequest};

use crate::{
    app::App,
    args::SessionsArgs,
    failure::{Failure, Outcome, say},
    refresh,
    render::{recent, text::counted},
};

pub(super) async fn run(app: &mut App, args: SessionsArgs) -> Result<Outcome, Failure> {
    let request = RecentRequest {
        scope: app.global.scope.into(),
        since: args.since(),
        repo: args.filter.repo.repo.clone(),
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
        recent::recent(&mut app.out, &response, &app.now)?;
    }
    app.out.finish()?;
    if response.projects.is_empty() {
        say("note", &no_sessions_since(&request.since));
        say("hint", &format!("`{} sessions` lists the newest sessions, regardless of date", app.program()));
    }
    Ok(Outcome::found(!response.projects.is_empty()))
}

/// `no sessions in the last 7 days`, or with the date as it was typed.
fn no_sessions_since(typed: &str) -> String {
    match typed.strip_suffix('d').and_then(|days| days.parse().ok()) {
        Some(1_u64) => "no sessions in the last day".to_owned(),
        Some(days) => format!("no sessions in the last {}", counted(days, "day")),
        None => format!("no sessions since {typed}"),
    }
}

#[cfg(test)]
mod tests {
    use super::no_sessions_since;

    #[test]
    fn an_empty_result_names_the_period() {
        assert_eq!(no_sessions_since("7d"), "no sessions in the last 7 days");
        assert_eq!(no_sessions_since("1d"), "no sessions in the last day");
        assert_eq!(no_sessions_since("monday"), "no sessions since monday");
    }
}
