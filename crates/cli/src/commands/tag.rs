//! `tag`: tags of sessions.

use std::collections::BTreeMap;

use amplifier_session_storage::{
    backend::SessionQuery, model::Session, storage::SessionEdit, text::composed,
};
use serde::Serialize;

use crate::{
    app::{App, StoreReader},
    args::TagArgs,
    failure::{Failure, Outcome, say},
    messages::ChangedView,
    render::{
        card::{CardField, card},
        chart::{Chart, ChartRow},
        text::{grouped, one_line},
    },
};

/// Number of sessions read at a time.
const PAGE: usize = 500;

/// All tags as JSON.
#[derive(Serialize)]
struct TagsView {
    tags: Vec<TagCount>,
}

/// A tag, and the number of sessions that have it.
#[derive(Serialize)]
struct TagCount {
    tag: String,
    sessions: u64,
}

pub(super) async fn run(app: &mut App, mut args: TagArgs) -> Result<Outcome, Failure> {
    for tag in args.tags.iter_mut().chain(&mut args.remove) {
        *tag = composed(tag).into_owned();
    }
    if let Some(both) = args.tags.iter().find(|tag| args.remove.contains(tag)) {
        let message = format!("the tag {both:?} is both added and removed");
        return Err(Failure::wrong_use(
            message,
            "pass it once: before --remove to add it, or after --remove to remove it",
        ));
    }
    let changes = !args.tags.is_empty() || !args.remove.is_empty();
    let reader = if changes { app.editor(false).await? } else { app.own_reader().await? };
    match &args.session {
        Some(session) => of_session(app, &reader, session, &args).await,
        None => list(app, &reader).await,
    }
}

async fn of_session(
    app: &mut App,
    reader: &StoreReader,
    session: &str,
    args: &TagArgs,
) -> Result<Outcome, Failure> {
    let mut session = reader.find_session(session).await?;
    let changes = !args.tags.is_empty() || !args.remove.is_empty();
    if changes {
        for missing in args.remove.iter().filter(|tag| !session.tags.contains(tag)) {
            say("note", &format!("the session has no tag {missing:?}"));
        }
        let mut edit = SessionEdit::default();
        if !args.remove.is_empty() {
            edit = edit.remove_tags(&args.remove);
        }
        if !args.tags.is_empty() {
            edit = edit.add_tags(&args.tags);
        }
        session = reader.storage.sessions().update_session(&session.key(), &edit).await?;
    }
    show(app, &session)?;
    Ok(Outcome::found(changes || !session.tags.is_empty()))
}

fn show(app: &mut App, session: &Session) -> Result<(), Failure> {
    if app.out.is_json() {
        app.out.json(&ChangedView::from(session))?;
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

async fn list(app: &mut App, reader: &StoreReader) -> Result<Outcome, Failure> {
    let tags = in_use(reader).await?;
    let any = !tags.is_empty();
    if app.out.is_json() {
        app.out.json(&TagsView { tags })?;
    } else if app.out.is_terminal() && any {
        app.out.lines(&chart(&tags).lines(app.out.width, app.out.paint))?;
    } else {
        tags.iter().try_for_each(|of| app.out.line(&format!("{}\t{}", one_line(&of.tag), of.sessions)))?;
    }
    app.out.finish()?;
    if !any {
        say("note", "no session has a tag");
        say("hint", &format!("add one with `{} tag SESSION TAG`", app.program()));
    }
    Ok(Outcome::found(any))
}

/// The tags of all sessions, the most frequent first.
async fn in_use(reader: &StoreReader) -> Result<Vec<TagCount>, Failure> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let query = SessionQuery::new(reader.scope.clone()).with_limit(PAGE);
    for tag in
        reader.storage.sessions().all_sessions(query).await?.into_iter().flat_map(|session| session.tags)
    {
        *counts.entry(tag).or_default() += 1;
    }
    let mut tags: Vec<TagCount> =
        counts.into_iter().map(|(tag, sessions)| TagCount { tag, sessions }).collect();
    tags.sort_by_key(|of| std::cmp::Reverse(of.sessions));
    Ok(tags)
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
