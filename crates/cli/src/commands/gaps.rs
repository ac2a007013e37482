//! `verify --gaps`: lists missing messages and events.

use amplifier_session_api::{
    ApiAnswer,
    operations::gaps::{Gap, GapRows, GapsRequest},
};

use crate::{
    app::App,
    args::VerifyArgs,
    failure::{Failure, Outcome, say},
    render::text::counted,
};

pub(super) async fn run(app: &mut App, args: VerifyArgs) -> Result<Outcome, Failure> {
    let request = GapsRequest { scope: app.global.scope.into(), sessions: args.sessions };
    let reader = app.patient_reader().await?;
    let ApiAnswer { response, notices } = reader.api(app).gaps(&request).await?;
    app.say_notices(&notices);
    if app.out.is_json() {
        app.out.json(&response)?;
    } else {
        let is_terminal = app.out.is_terminal();
        for gap in &response.gaps {
            app.out.line(&line(gap, is_terminal))?;
        }
    }
    app.out.finish()?;
    let (messages, events) = (response.missing_messages, response.missing_events);
    if messages + events == 0 {
        say("note", &format!("nothing is missing in {}", counted(response.sessions, "session")));
        return Ok(Outcome::Done);
    }
    let missing = match (messages, events) {
        (messages, 0) => counted(messages, "message"),
        (0, events) => counted(events, "event"),
        (messages, events) => format!("{} and {}", counted(messages, "message"), counted(events, "event")),
    };
    let are = if messages + events == 1 { "is" } else { "are" };
    let hint = format!("`{} verify --repair` reads them from the session folders", app.program());
    Err(Failure::failed(format!("{missing} {are} missing"), hint))
}

fn line(gap: &Gap, is_terminal: bool) -> String {
    let Gap { session_id, row, first, last, .. } = gap;
    let (one, several) = match row {
        GapRows::Messages => ("message", "messages"),
        GapRows::Events => ("event", "events"),
    };
    if !is_terminal {
        format!("{session_id}\t{several}\t{first}\t{last}")
    } else if first == last {
        format!("{session_id}  {one} {first}")
    } else {
        format!("{session_id}  {several} {first}-{last}")
    }
}
