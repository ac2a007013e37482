//! `show --context`: a turn or a message with its context.

use amplifier_session_api::{ApiAnswer, budget::Portion, operations::context::ContextRequest};

use crate::{
    app::App,
    args::{ContextArgs, PositionArgs},
    budget,
    failure::{Failure, Outcome, if_there, report_damage},
    render::{
        conversation::{self, SessionHeader},
        message::MessageOptions,
    },
};

pub(super) async fn run(app: &mut App, args: ContextArgs) -> Result<Outcome, Failure> {
    let reader = app.reader().await?;
    let PositionArgs { turn, message } = args.position;
    let request = ContextRequest {
        scope: app.global.scope.into(),
        session: args.session,
        turn,
        message,
        before: args.before,
        after: args.after,
        short_ids: !app.out.is_json(),
    };
    let answer = if_there(reader.api(app).context(&request).await)?;
    let Some(ApiAnswer { response, notices }) = answer else { return Ok(Outcome::FoundNothing) };
    app.say_notices(&notices);
    let (items, budget) = (response.items(), args.limits.budget);
    let portion = budget::write(app, budget, items, |app, portion| {
        let limits = args.limits.of(&app.out);
        if app.out.is_json() {
            return Ok(app.out.json(&response.portion(portion, limits))?);
        }
        // A message is cut when it is printed, because not all of it is.
        let shown = response.portion(Portion::all(portion.items), limits.without_max_chars());
        let head = SessionHeader {
            session: &shown.session,
            short_ids: &shown.short_ids,
            names_owner: reader.names_owners(),
            skipped: &[],
        };
        conversation::head(&mut app.out, head, &app.now)?;
        if shown.has_more_before {
            app.out.line("\n…")?;
        }
        let whole = MessageOptions {
            full: args.full,
            thinking: !args.no_thinking,
            tools: !args.no_tools,
            width: app.out.wrap_at(),
            ..MessageOptions::whole(app.out.paint)
        };
        let max_chars = response.chars_of(portion, limits.max_chars);
        let options = |at| MessageOptions { max_chars: max_chars(at), ..whole };
        let asked_for = |sequence| Some(sequence) == shown.sequence;
        conversation::messages(&mut app.out, &shown.messages, options, asked_for, &app.now)?;
        if shown.has_more_after {
            app.out.line("\n…")?;
        }
        Ok(())
    })?;
    app.out.finish()?;
    budget::say_left_out(budget, items, "message", portion);
    report_damage(&response.damaged)?;
    Ok(Outcome::Done)
}
