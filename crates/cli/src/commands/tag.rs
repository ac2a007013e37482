//! `tag`: tags of sessions.

use amplifier_session_api::{
    ApiAnswer, Reach,
    operations::{
        session::SessionRequest,
        tag::TagRequest,
        tags::{TagCount, TagsRequest},
    },
    views::ChangedView,
};

use crate::{
    app::App,
    args::TagArgs,
    failure::{Failure, Outcome, say},
    render::{
        card::{CardField, card},
        chart::{Chart, ChartRow},
        text::{grouped, one_line},
    },
};

pub(super) async fn run(app: &mut App, args: TagArgs) -> Result<Outcome, Failure> {
    let TagArgs { session, tags: add, remove } = args;
    let Some(session) = session else { return list(app).await };
    let request = TagRequest { session, add, remove };
    request.check()?;
    let ApiAnswer { response, notices } = if request.is_change() {
        app.editor(false).await?.api(app).tag(&request).await?
    } else {
        read(app, &request.session).await?
    };
    app.say_notices(&notices);
    show(app, &response)?;
    Ok(Outcome::found(request.is_change() || !response.session.session.tags.is_empty()))
}

/// The session as it is. To show its tags, a token needs only the right to read.
async fn read(app: &App, session: &str) -> Result<ApiAnswer<ChangedView>, Failure> {
    let request = SessionRequest { scope: Reach::Own, session: session.to_owned(), short_ids: false };
    let store = app.own_reader(false).await?;
    let ApiAnswer { response, notices } = store.api(app).session(&request).await?;
    Ok(ApiAnswer { response: ChangedView::from(&response.session.session), notices })
}

fn show(app: &mut App, response: &ChangedView) -> Result<(), Failure> {
    let session = &response.session.session;
    if app.out.is_json() {
        app.out.json(response)?;
    } else if app.out.is_terminal() {
        card(&mut app.out, session, vec![CardField::new("tags", session.tags.join(", "))])?;
    } else {
        session.tags.iter().try_for_each(|tag| app.out.line(&one_line(tag)))?;
    }
    app.out.finish()?;
    if session.tags.is_empty() && !app.out.is_json() {
        say("note", "the session has no tags");
    }
    Ok(())
}

async fn list(app: &mut App) -> Result<Outcome, Failure> {
    let store = app.own_reader(false).await?;
    let ApiAnswer { response, notices } = store.api(app).tags(&TagsRequest::default()).await?;
    app.say_notices(&notices);
    let any = !response.tags.is_empty();
    if app.out.is_json() {
        app.out.json(&response)?;
    } else if app.out.is_terminal() && any {
        app.out.lines(&chart(&response.tags).lines(app.out.width, app.out.paint))?;
    } else {
        let line = |of: &TagCount| format!("{}\t{}", one_line(&of.tag), of.sessions);
        response.tags.iter().try_for_each(|of| app.out.line(&line(of)))?;
    }
    app.out.finish()?;
    if !any {
        say("note", "no session has a tag");
        say("hint", &format!("add one with `{} tag SESSION TAG`", app.program()));
    }
    Ok(Outcome::found(any))
}

fn chart(tags: &[TagCount]) -> Chart {
    let row = |of: &TagCount| ChartRow {
        label: of.tag.clone(),
        numbers: vec![grouped(of.sessions)],
        value: of.sessions as f64,
        ..ChartRow::default()
    };
    let rows = tags.iter().map(row).collect();
    Chart { title: "Tag".to_owned(), columns: vec!["sessions"], rows, ..Chart::default() }
}
