//! `show ADDRESS --raw` and `show ADDRESS --command`: one line as it is stored, or the commands in it.

use std::borrow::Cow;

use amplifier_session_api::{
    ApiAnswer, ApiError, InvalidRequest, Notice,
    lines::{LineRange, LinesRequest},
    operations::{messages::MessagesRequest, session_events::SessionEventsRequest},
    views::{LineView, MessageView},
};
use amplifier_session_storage::model::{DamagedRow, RawJson};

use crate::{
    app::App,
    args::ShowArgs,
    failure::{Failure, Outcome, report_damage, say},
    opened::OpenedStore,
    render::text::{escaped, printable},
};

/// A line that was read.
struct StoredLine {
    range: Option<LineRange>,
    raw: Option<RawJson>,
    /// The commands of the tool calls in a message.
    commands: Vec<String>,
    damaged: Vec<DamagedRow>,
    notices: Vec<Notice>,
}

pub(super) async fn run(app: &mut App, args: ShowArgs) -> Result<Outcome, Failure> {
    let option = if args.raw { "--raw" } else { "--command" };
    if app.out.is_json() {
        return Err(Failure::wrong_use(
            format!("{option} and --json contradict each other"),
            "omit one of them",
        ));
    }
    let not_one = |app: &App| {
        let named = if args.raw { "one message or event" } else { "one message" };
        let hint = format!("pass it as SESSION#N, for example `{} show 3a7c1e90#14 {option}`", app.program());
        Failure::wrong_use(format!("{option} needs the address of {named}"), hint)
    };
    let reader = app.reader().await?;
    let scope = app.global.scope.into();
    let lines = LinesRequest { scope, session: args.session.clone(), from: None, limit: None, range: true };
    let line = match message(app, &reader, lines.clone()).await {
        Err(ApiError::Invalid(InvalidRequest::NamesEvent { .. })) if args.raw => {
            event(app, &reader, lines).await?
        }
        Err(ApiError::Invalid(InvalidRequest::NamesEvent { .. })) => return Err(not_one(app)),
        line => line?,
    };
    if !line.range.is_some_and(|range| range.is_one) {
        return Err(not_one(app));
    }
    app.say_notices(&line.notices);
    let is_found = if args.raw {
        print_raw(app, line.raw.as_ref())?;
        line.raw.is_some()
    } else {
        line.commands.iter().try_for_each(|command| print_command(app, command))?;
        !line.commands.is_empty()
    };
    app.out.finish()?;
    if !is_found && line.notices.is_empty() && line.damaged.is_empty() {
        say(
            "note",
            if args.raw { "the line of this event is not stored" } else { "this message has no command" },
        );
    }
    report_damage(&line.damaged)?;
    Ok(Outcome::found(is_found))
}

async fn message(app: &App, reader: &OpenedStore, lines: LinesRequest) -> Result<StoredLine, ApiError> {
    let request = MessagesRequest { lines, vectors: false, short_ids: false };
    let ApiAnswer { mut response, notices } = reader.api(app).messages(&request).await?;
    let found = response.messages.pop();
    let line = found.as_ref().map(MessageView::line);
    let calls = line.iter().flat_map(|line| line.called_tools());
    let commands =
        calls.flat_map(|call| call.commands().into_iter().map(Cow::into_owned).collect::<Vec<_>>());
    Ok(StoredLine {
        range: response.range,
        commands: commands.collect(),
        raw: found.map(|message| message.message.0),
        damaged: response.damaged,
        notices,
    })
}

async fn event(app: &App, reader: &OpenedStore, lines: LinesRequest) -> Result<StoredLine, ApiError> {
    let request = SessionEventsRequest { lines, full: false };
    let ApiAnswer { mut response, notices } = reader.api(app).session_events(&request).await?;
    let raw = response.events.pop().and_then(|event| event.line);
    Ok(StoredLine {
        range: response.range,
        raw: raw.map(|LineView(raw)| raw),
        commands: Vec::new(),
        damaged: response.damaged,
        notices,
    })
}

/// Writes the line byte for byte. On a terminal, control characters and invisible characters are escaped, as in JSON.
fn print_raw(app: &mut App, raw: Option<&RawJson>) -> Result<(), Failure> {
    let Some(raw) = raw else { return Ok(()) };
    if app.out.is_terminal() {
        return Ok(app.out.line(&escaped(&raw.to_text()))?);
    }
    let writer = app.out.writer();
    writer.write_all(raw.as_bytes())?;
    Ok(writer.write_all(b"\n")?)
}

/// Writes a command for a shell: unchanged, or without control characters on a terminal.
fn print_command(app: &mut App, command: &str) -> Result<(), Failure> {
    let end = if command.ends_with('\n') { "" } else { "\n" };
    if app.out.is_terminal() {
        return Ok(app.out.text(&(printable(command) + end))?);
    }
    Ok(app.out.text(&format!("{command}{end}"))?)
}
