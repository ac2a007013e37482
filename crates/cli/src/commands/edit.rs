//! `edit`: sets name and description of a session.

use amplifier_session_storage::{
    model::{Session, SessionField},
    storage::SessionEdit,
};

use crate::{
    app::App,
    args::{EditArgs, FieldArg},
    failure::{Failure, Outcome},
    messages::ChangedView,
    render::card::{CardField, card},
};

pub(super) async fn run(app: &mut App, args: EditArgs) -> Result<Outcome, Failure> {
    let edit = edit(&args)?;
    let reader = app.editor(false).await?;
    let session = reader.find_session(&args.session).await?;
    let session = reader.storage.sessions().update_session(&session.key(), &edit).await?;
    if app.out.is_json() {
        app.out.json(&ChangedView::from(&session))?;
    } else {
        card(&mut app.out, &session, fields(&session))?;
    }
    Ok(Outcome::Done)
}

/// The requested changes; at least one, and at most one per field.
fn edit(args: &EditArgs) -> Result<SessionEdit, Failure> {
    let set = [(FieldArg::Name, args.name.is_some()), (FieldArg::Description, args.description.is_some())];
    let set = set.into_iter().filter_map(|(field, is_set)| is_set.then_some(field));
    let mut named: Vec<FieldArg> = Vec::new();
    for field in set.chain(args.clear.iter().copied()).chain(args.reset.iter().copied()) {
        // The values of --clear and --reset are fields, so the definition of the options can't exclude this.
        if named.contains(&field) {
            let message = format!("the {} is given more than once", label(field.into()));
            return Err(Failure::wrong_use(
                message,
                "for each field, pass a new value, --clear or --reset, but only one of them",
            ));
        }
        named.push(field);
    }
    if named.is_empty() {
        let hint = "pass --name, --description, --clear or --reset; set tags with `tag`";
        return Err(Failure::wrong_use("nothing to change", hint));
    }
    let mut edit = SessionEdit::default();
    if let Some(name) = &args.name {
        edit = edit.set_name(name.as_str());
    }
    if let Some(description) = &args.description {
        edit = edit.set_description(description.as_str());
    }
    edit = args.clear.iter().fold(edit, |edit, field| match field {
        FieldArg::Name => edit.set_name(None),
        FieldArg::Description => edit.set_description(None),
        FieldArg::Tags => edit.set_tags(Vec::<String>::new()),
    });
    Ok(args.reset.iter().fold(edit, |edit, field| edit.reset((*field).into())))
}

/// The fields that a user can set, and whether each was set.
fn fields(session: &Session) -> Vec<CardField> {
    let fields = [
        (SessionField::Name, session.name.clone()),
        (SessionField::Description, session.description.clone()),
        (SessionField::Tags, Some(session.tags.join(", "))),
    ];
    let noted = |(field, value): (SessionField, Option<String>)| {
        let by_hand = session.edited.contains(&field);
        CardField::new(label(field), value).with_note(if by_hand { "set by hand" } else { "" })
    };
    fields.into_iter().map(noted).collect()
}

fn label(field: SessionField) -> &'static str {
    match field {
        SessionField::Name => "name",
        SessionField::Description => "description",
        SessionField::Tags => "tags",
    }
}
