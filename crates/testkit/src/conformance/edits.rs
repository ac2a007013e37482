//! What a person sets on a session: name, description and tags, which syncs leave alone; and who may see it.

use std::sync::Arc;

use amplifier_session_core::{
    ErrorKind,
    model::{RawJson, Session, SessionField, Visibility},
    storage::{IngestTarget, SessionEdit, Sharing},
};

use super::{
    Subject,
    store::{Store, kind, target, target_of},
};
use crate::lines;

const METADATA: &str = r#"{"name":"from the file","description":"as told","tags":["file"],"bundle":"b"}"#;

async fn sync_metadata(store: &Store, target: &IngestTarget, metadata: &str) {
    store.storage.sync_session_metadata(target, RawJson::from(metadata)).await.unwrap();
}

/// A session with metadata, messages and events.
async fn fill(store: &Store, target: &IngestTarget) {
    sync_metadata(store, target, METADATA).await;
    store.sync(target, vec![lines::user("find the basket"), lines::assistant("there")]).await;
    store.sync_events(target, vec![lines::logger_event("e")]).await;
}

async fn edit(store: &Store, edit: SessionEdit) -> Session {
    let edited = store.storage.update_session(&target("s").key, &edit).await.unwrap();
    assert_eq!(store.stored(&target("s")).await.session, edited);
    edited
}

/// Name, description and tags.
fn set(session: &Session) -> (Option<&str>, Option<&str>, Vec<&str>) {
    let tags = session.tags.iter().map(String::as_str).collect();
    (session.name.as_deref(), session.description.as_deref(), tags)
}

/// What a person set stays through every later sync; what nobody set follows the files.
pub async fn an_edit_survives_every_later_sync(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store, &target("s")).await;
    let edited =
        edit(&store, SessionEdit::default().set_name("Mine: \"100%\" café").set_tags(["a,b", "c"])).await;
    assert_eq!(set(&edited), (Some("Mine: \"100%\" café"), Some("as told"), vec!["a,b", "c"]));
    assert_eq!(edited.edited, [SessionField::Name, SessionField::Tags].into());
    for round in 0..3 {
        let metadata =
            format!(r#"{{"name":"other","description":"told {round}","tags":["t{round}"],"bundle":"c"}}"#);
        sync_metadata(&store, &target("s"), &metadata).await;
        store.sync(&target("s"), vec![lines::user(&format!("again {round}"))]).await;
        store.sync_events(&target("s"), vec![lines::logger_event(&format!("e:{round}"))]).await;
        let session = Store::open_again(subject).await.stored(&target("s")).await.session;
        let told = format!("told {round}");
        assert_eq!(set(&session), (Some("Mine: \"100%\" café"), Some(told.as_str()), vec!["a,b", "c"]));
        assert_eq!((session.bundle.as_deref(), session.message_count), (Some("c"), 1));
    }
    let files = store.stored(&target("s")).await.metadata_files;
    assert!(files[0].raw.to_text().contains("told 2"));
}

/// What a person cleared stays empty, whatever the files say; nothing but white space clears too.
pub async fn a_cleared_field_stays_empty(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store, &target("s")).await;
    let nothing: [&str; 0] = [];
    let cleared = SessionEdit::default().set_name(None).set_description(" \n").set_tags(nothing);
    assert_eq!(set(&edit(&store, cleared).await), (None, None, vec![]));
    sync_metadata(&store, &target("s"), r#"{"name":"other","description":"other","tags":["other"]}"#).await;
    let session = store.stored(&target("s")).await.session;
    assert_eq!(set(&session), (None, None, vec![]));
    assert_eq!(session.title(), "find the basket");
}

/// Tags are added and removed one by one, each kept once and in order; steps of an edit follow one another.
pub async fn tags_are_added_and_removed(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store, &target("s")).await;
    let tags = async |change: SessionEdit| edit(&store, change).await.tags;
    assert_eq!(tags(SessionEdit::default().add_tags(["new", "file", " new "])).await, ["file", "new"]);
    sync_metadata(&store, &target("s"), r#"{"tags":["from a later file"]}"#).await;
    assert_eq!(tags(SessionEdit::default().remove_tags(["file", "never there"])).await, ["new"]);
    assert_eq!(tags(SessionEdit::default().add_tags(["New"])).await, ["new", "New"]);
    let steps = SessionEdit::default().set_tags(["a", "b"]).remove_tags(["a"]).add_tags(["c", "b"]);
    assert_eq!(tags(steps).await, ["b", "c"]);
    assert_eq!(tags(SessionEdit::default()).await, ["b", "c"]);
}

/// A field that is reset is what the files say, now and after later syncs.
pub async fn a_field_that_is_reset_follows_the_files_again(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store, &target("s")).await;
    let all = SessionEdit::default().set_name("mine").set_description("my own").set_tags(["mine"]);
    edit(&store, all).await;
    sync_metadata(&store, &target("s"), r#"{"name":"later","description":"later","tags":["later"]}"#).await;
    let session = edit(&store, SessionEdit::default().reset(SessionField::Name)).await;
    assert_eq!(set(&session), (Some("later"), Some("my own"), vec!["mine"]));
    let rest = SessionEdit::default().reset(SessionField::Tags).reset(SessionField::Description);
    let session = edit(&store, rest).await;
    assert_eq!(set(&session), (Some("later"), Some("later"), vec!["later"]));
    assert!(session.edited.is_empty());
    sync_metadata(&store, &target("s"), METADATA).await;
    let session = store.stored(&target("s")).await.session;
    assert_eq!(set(&session), (Some("from the file"), Some("as told"), vec!["file"]));
}

/// A reset changes the one field, also of a session that was created without files.
pub async fn a_reset_changes_one_field_alone(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    let created = store.storage.now();
    let mut session = Session::new(target.key.clone(), target.host_id, target.project_slug, created);
    session.description = Some("given".to_owned());
    session.bundle = Some("bundle".to_owned());
    session.model = Some("m".to_owned());
    session.working_dir = Some("/w".to_owned());
    session.tags = vec!["given".to_owned()];
    store.storage.create_session(session.clone()).await.unwrap();
    edit(&store, SessionEdit::default().set_name("mine")).await;
    assert_eq!(edit(&store, SessionEdit::default().reset(SessionField::Name)).await, session);
}

/// An edit changes that session alone, and of it nothing but the fields that it names.
pub async fn an_edit_changes_nothing_else(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let targets = [target("s"), target_of("ben", "shop", "s"), target("t")];
    let state = async |target: &IngestTarget| {
        let rows = (store.messages(target).await, store.events(target).await, store.vectors(target).await);
        (store.stored(target).await, rows)
    };
    for target in &targets {
        fill(&store, target).await;
    }
    let before = [state(&targets[0]).await, state(&targets[1]).await, state(&targets[2]).await];
    edit(&store, SessionEdit::default().set_name("mine").add_tags(["mine"])).await;
    store.storage.share_session(&targets[0].key, &Sharing::public()).await.unwrap();

    let (mut edited, rows) = state(&targets[0]).await;
    assert_eq!(rows, before[0].1);
    assert_ne!(edited.version, before[0].0.version);
    let original = &before[0].0.session;
    edited.version = before[0].0.version.clone();
    edited.session.name.clone_from(&original.name);
    edited.session.tags.clone_from(&original.tags);
    edited.session.edited.clear();
    (edited.session.visibility, edited.session.shared_at) = (original.visibility, original.shared_at);
    assert_eq!(edited, before[0].0);
    assert_eq!(state(&targets[1]).await, before[1]);
    assert_eq!(state(&targets[2]).await, before[2]);
}

/// Editing or sharing a session that the user does not have is `SessionNotFound`, and makes none.
pub async fn a_missing_session_is_not_edited(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store, &target_of("ben", "shop", "s")).await;
    let key = target("s").key;
    let edit = store.storage.update_session(&key, &SessionEdit::default().set_name("x")).await;
    assert_eq!(kind(edit), ErrorKind::SessionNotFound);
    let nothing = store.storage.update_session(&key, &SessionEdit::default()).await;
    assert_eq!(kind(nothing), ErrorKind::SessionNotFound);
    let share = store.storage.share_session(&key, &Sharing::public()).await;
    assert_eq!(kind(share), ErrorKind::SessionNotFound);
    assert!(store.messages(&target("s")).await.is_empty());
    assert_eq!(
        store.stored(&target_of("ben", "shop", "s")).await.session.name.as_deref(),
        Some("from the file")
    );
}

/// An edit that is too long, or of a tag that is none, is refused as a whole and names the field.
pub async fn an_edit_out_of_range_is_refused(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store, &target("s")).await;
    let before = store.stored(&target("s")).await;
    let text = |length: usize| "é".repeat(length);
    let new = || SessionEdit::default().set_description("not to be kept");
    let refused = [
        (new().set_name(text(501).as_str()), "name"),
        (SessionEdit::default().set_description(text(10_001).as_str()), "description"),
        (new().add_tags([text(101)]), "tags"),
        (new().set_tags(["fine", " "]), "tags"),
        (new().add_tags(["a\0b"]), "tags"),
    ];
    for (edit, field) in refused {
        let error = store.storage.update_session(&target("s").key, &edit).await.unwrap_err();
        assert_eq!((error.kind(), error.context("field")), (ErrorKind::Validation, Some(field)));
    }
    assert_eq!(store.stored(&target("s")).await, before);
    let longest = SessionEdit::default().set_name(text(500).as_str()).add_tags([text(100)]);
    assert_eq!(edit(&store, longest).await.tags.len(), 2);
}

/// Edits that are made at the same time as others and as syncs are all there in the end.
pub async fn edits_at_the_same_time_are_all_kept(subject: &dyn Subject) {
    let store = Arc::new(Store::open(subject).await);
    fill(&store, &target("s")).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let store = store.clone();
        tasks.spawn(async move {
            let edit = SessionEdit::default().add_tags([format!("tag{n}")]);
            store.storage.update_session(&target("s").key, &edit).await.unwrap();
            sync_metadata(&store, &target("s"), &format!(r#"{{"tags":["file {n}"],"bundle":"{n}"}}"#)).await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let mut tags = store.stored(&target("s")).await.session.tags;
    tags.sort();
    // The first edit takes over the tag that the files gave until then.
    assert_eq!(tags.iter().filter(|tag| tag.starts_with("tag")).count(), 8, "{tags:?}");
    assert_eq!(tags.len(), 9, "{tags:?}");
}

/// The first time that a session was shared is kept through everything that follows.
pub async fn the_first_sharing_is_remembered(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store, &target("s")).await;
    let share =
        async |sharing: Sharing| store.storage.share_session(&target("s").key, &sharing).await.unwrap();
    assert_eq!(share(Sharing::private()).await.shared_at, None);
    let first = share(Sharing::teams(["red", "it's \"blue\""])).await;
    assert!(first.shared_at.is_some());
    assert_eq!((first.visibility, first.team_ids.len()), (Visibility::Team, 2));
    for (sharing, visibility) in [
        (Sharing::org("acme"), Visibility::Org),
        (Sharing::private(), Visibility::Private),
        (Sharing::public(), Visibility::Public),
    ] {
        let session = share(sharing).await;
        assert_eq!((session.visibility, session.shared_at), (visibility, first.shared_at));
        assert_eq!(session.org_id.is_some(), visibility == Visibility::Org);
        assert!(session.team_ids.is_empty());
        fill(&store, &target("s")).await;
        assert_eq!(store.stored(&target("s")).await.session.visibility, visibility);
    }
}

/// Sharing with teams or an organisation without naming them is refused and changes nothing.
pub async fn sharing_with_nobody_in_particular_is_refused(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store, &target("s")).await;
    let nobody: [&str; 0] = [];
    let mut no_org = Sharing::org("acme");
    no_org.org_id = None;
    let refused = [
        (Sharing::teams(nobody), "team_ids"),
        (Sharing::teams(["red", " "]), "team_ids"),
        (Sharing::org(""), "org_id"),
        (no_org, "org_id"),
    ];
    for (sharing, field) in refused {
        let error = store.storage.share_session(&target("s").key, &sharing).await.unwrap_err();
        assert_eq!((error.kind(), error.context("field")), (ErrorKind::Validation, Some(field)));
    }
    assert_eq!(store.stored(&target("s")).await.session.visibility, Visibility::Private);
}
