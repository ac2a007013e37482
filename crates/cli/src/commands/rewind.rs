//! `rewind`: removes the last turns of a session from the store.

use std::path::Path;

use amplifier_session_api::{
    ApiAnswer,
    operations::rewind::{RewindPreviewRequest, RewindRequest, RewindResponse},
};

use super::confirm::ChangeQuestion;
use crate::{
    app::App,
    args::RewindArgs,
    failure::{Failure, Outcome, say},
    refresh,
    render::{deleted, ids::ShortIds, rewound, text::one_line},
};

pub(super) async fn run(app: &mut App, args: RewindArgs) -> Result<Outcome, Failure> {
    let store = if args.dry_run { app.own_reader(false).await? } else { app.editor(false).await? };
    refresh::before_reading(app, &store, false).await;
    let RewindArgs { to_turn, keep_events, .. } = args;
    let request = RewindPreviewRequest { session: args.session, to_turn, keep_events, short_ids: true };
    let ApiAnswer { response: mut preview, notices } = store.api(app).rewind_preview(&request).await?;
    app.say_notices(&notices);
    let short_ids = std::mem::take(&mut preview.short_ids);
    if args.dry_run {
        return show(app, &preview, &short_ids);
    }
    if !preview.removed.is_empty() && !args.yes && !is_confirmed(app, &preview, &short_ids)? {
        say("note", "nothing was removed");
        return Ok(Outcome::Done);
    }
    let request = RewindRequest {
        session_id: preview.session.session.session_id,
        to_turn,
        keep_events,
        at_most: (!args.yes).then_some(preview.removed),
    };
    let ApiAnswer { response, .. } = store.api(app).rewind(&request).await?;
    show(app, &response, &short_ids)
}

/// Shows what would be removed, and asks for confirmation.
fn is_confirmed(app: &App, preview: &RewindResponse, short_ids: &ShortIds) -> Result<bool, Failure> {
    let removed = rewound::removed(&preview.removed);
    let session = std::slice::from_ref(&preview.session);
    let question = ChangeQuestion {
        change: format!("{removed} would be removed"),
        preview: deleted::preview(session, short_ids, app.out.width),
        question: format!("Remove {removed} {} from the store?", rewound::after(preview.to_turn)),
        hint: "pass --yes to rewind without asking, or --dry-run",
    };
    question.is_confirmed(app)
}

/// Prints what was or would be removed, and where the files are.
fn show(app: &mut App, response: &RewindResponse, short_ids: &ShortIds) -> Result<Outcome, Failure> {
    if app.out.is_json() {
        app.out.json(response)?;
    } else {
        rewound::line(&mut app.out, response, short_ids)?;
    }
    app.out.finish()?;
    let is_rewound = !response.dry_run && !response.removed.is_empty();
    // The folder of a session of another machine does not exist here.
    if let Some(folder) = response.folder.as_deref().filter(|folder| is_rewound && Path::new(folder).is_dir())
    {
        let folder = one_line(folder);
        say(
            "note",
            &format!(
                "the files in {folder} are not changed; if they change, a sync stores everything in them again"
            ),
        );
    }
    Ok(Outcome::Done)
}
