//! Edited fields of a session (name, description, tags), which syncs do not overwrite; and sharing.

use std::sync::Arc;

use amplifier_session_core::content::Redaction;
use amplifier_session_testkit::{WordRedactor, prelude::*};

on_both_stores![
    an_edit_survives_every_later_sync,
    a_cleared_field_stays_empty,
    tags_are_added_and_removed,
    a_field_that_is_reset_follows_the_files_again,
    a_reset_changes_only_one_field,
    an_edit_changes_nothing_else,
    a_missing_session_is_not_edited,
    an_invalid_edit_is_refused,
    concurrent_edits_are_all_kept,
    the_first_sharing_is_remembered,
    sharing_with_an_unnamed_group_is_refused,
    a_session_that_was_seen_is_changed_only_as_it_was,
    a_session_is_deleted_only_as_it_was_compared,
];

const METADATA: &str = r#"{"name":"from the file","description":"as given","tags":["file"],"bundle":"b"}"#;

/// Fills a session with metadata, messages and events.
async fn fill(store: &Store, target: &IngestTarget) {
    store.sync_metadata(target, METADATA).await;
    store.sync(target, vec![lines::user("find the basket"), lines::assistant("there")]).await;
    store.sync_events(target, vec![lines::logger_event("e")]).await;
}

async fn edit(store: &Store, edit: SessionEdit) -> Session {
    let edited = store.storage.sessions().update_session(&target("s").key, &edit).await.unwrap();
    assert_eq!(store.stored(&target("s")).await.session, edited);
    edited
}

/// Name, description and tags.
fn set(session: &Session) -> (Option<&str>, Option<&str>, Vec<&str>) {
    let tags = session.tags.iter().map(String::as_str).collect();
    (session.name.as_deref(), session.description.as_deref(), tags)
}

/// Later syncs keep edited fields and update the others.
async fn an_edit_survives_every_later_sync(store: Store) {
    fill(&store, &target("s")).await;
    let edited =
        edit(&store, SessionEdit::default().set_name("Mine: \"100%\" café").set_tags(["a,b", "c"])).await;
    assert_eq!(set(&edited), (Some("Mine: \"100%\" café"), Some("as given"), vec!["a,b", "c"]));
    assert_eq!(edited.edited, [SessionField::Name, SessionField::Tags].into());
    for round in 0..3 {
        let metadata =
            format!(r#"{{"name":"other","description":"text {round}","tags":["t{round}"],"bundle":"c"}}"#);
        store.sync_metadata(&target("s"), &metadata).await;
        store.sync(&target("s"), vec![lines::user(&format!("again {round}"))]).await;
        store.sync_events(&target("s"), vec![lines::logger_event(&format!("e:{round}"))]).await;
        let session = store.again().await.stored(&target("s")).await.session;
        let text = format!("text {round}");
        assert_eq!(set(&session), (Some("Mine: \"100%\" café"), Some(text.as_str()), vec!["a,b", "c"]));
        assert_eq!((session.bundle.as_deref(), session.message_count), (Some("c"), 1));
    }
    let files = store.stored(&target("s")).await.metadata_files;
    assert!(files[0].raw.to_text().contains("text 2"));
}

/// A cleared field stays empty, whatever the files contain. A value of only white space clears it too.
async fn a_cleared_field_stays_empty(store: Store) {
    fill(&store, &target("s")).await;
    let cleared = SessionEdit::default().set_name(None).set_description(" \n").set_tags([""; 0]);
    assert_eq!(set(&edit(&store, cleared).await), (None, None, vec![]));
    store.sync_metadata(&target("s"), r#"{"name":"other","description":"other","tags":["other"]}"#).await;
    let session = store.stored(&target("s")).await.session;
    assert_eq!(set(&session), (None, None, vec![]));
    assert_eq!(session.title(), "find the basket");
}

/// Tags are added and removed one by one, sorted and without duplicates. The steps of an edit apply in order.
async fn tags_are_added_and_removed(store: Store) {
    fill(&store, &target("s")).await;
    let tags = async |change: SessionEdit| edit(&store, change).await.tags;
    assert_eq!(tags(SessionEdit::default().add_tags(["new", "file", " new "])).await, ["file", "new"]);
    store.sync_metadata(&target("s"), r#"{"tags":["from a later file"]}"#).await;
    assert_eq!(tags(SessionEdit::default().remove_tags(["file", "never there"])).await, ["new"]);
    assert_eq!(tags(SessionEdit::default().add_tags(["New"])).await, ["new", "New"]);
    let steps = SessionEdit::default().set_tags(["a", "b"]).remove_tags(["a"]).add_tags(["c", "b"]);
    assert_eq!(tags(steps).await, ["b", "c"]);
    assert_eq!(tags(SessionEdit::default()).await, ["b", "c"]);
}

/// A field that is reset follows the files again, now and in later syncs.
async fn a_field_that_is_reset_follows_the_files_again(store: Store) {
    fill(&store, &target("s")).await;
    let all = SessionEdit::default().set_name("mine").set_description("my own").set_tags(["mine"]);
    edit(&store, all).await;
    store.sync_metadata(&target("s"), r#"{"name":"later","description":"later","tags":["later"]}"#).await;
    let session = edit(&store, SessionEdit::default().reset(SessionField::Name)).await;
    assert_eq!(set(&session), (Some("later"), Some("my own"), vec!["mine"]));
    let rest = SessionEdit::default().reset(SessionField::Tags).reset(SessionField::Description);
    let session = edit(&store, rest).await;
    assert_eq!(set(&session), (Some("later"), Some("later"), vec!["later"]));
    assert!(session.edited.is_empty());
    store.sync_metadata(&target("s"), METADATA).await;
    let session = store.stored(&target("s")).await.session;
    assert_eq!(set(&session), (Some("from the file"), Some("as given"), vec!["file"]));
}

/// A reset changes only one field, also if the session has no files.
async fn a_reset_changes_only_one_field(store: Store) {
    let text = |text: &str| Some(text.to_owned());
    let fill = |session: &mut Session| {
        (session.description, session.bundle, session.model) = (text("given"), text("bundle"), text("m"));
        (session.working_dir, session.tags) = (text("/w"), vec!["given".to_owned()]);
    };
    let session = store.create(&target("s"), fill).await;
    edit(&store, SessionEdit::default().set_name("mine")).await;
    assert_eq!(edit(&store, SessionEdit::default().reset(SessionField::Name)).await, session);
}

/// An edit changes only the fields that it names, and only in that session.
async fn an_edit_changes_nothing_else(store: Store) {
    let others = [target_of("ben", "shop", "s"), target("t")];
    let mut before = Vec::new();
    for other in &others {
        fill(&store, other).await;
        before.push(store.everything(other).await);
    }
    fill(&store, &target("s")).await;
    let mut expected = store.everything(&target("s")).await;
    let edited = edit(&store, SessionEdit::default().set_name("mine").add_tags(["mine"])).await;
    let shared = store.storage.sessions().share_session(&target("s").key, &Sharing::public()).await.unwrap();

    let session = &mut expected.0.session;
    (session.name, session.tags, session.edited) = (edited.name, edited.tags, edited.edited);
    (session.visibility, session.shared_at) = (shared.visibility, shared.shared_at);
    expected.0.version = store.stored(&target("s")).await.version;
    assert_eq!(store.everything(&target("s")).await, expected);
    for (other, before) in others.iter().zip(before) {
        assert_eq!(store.everything(other).await, before);
    }
}

/// Editing or sharing a session that the user does not have is `SessionNotFound`, and does not create it.
async fn a_missing_session_is_not_edited(store: Store) {
    fill(&store, &target_of("ben", "shop", "s")).await;
    let key = target("s").key;
    for edit in [SessionEdit::default().set_name("x"), SessionEdit::default()] {
        assert_eq!(
            kind(store.storage.sessions().update_session(&key, &edit).await),
            ErrorKind::SessionNotFound
        );
    }
    let share = store.storage.sessions().share_session(&key, &Sharing::public()).await;
    assert_eq!(kind(share), ErrorKind::SessionNotFound);
    assert_eq!(store.backend.get_session(&key).await.unwrap(), None);
    let bens = store.stored(&target_of("ben", "shop", "s")).await.session;
    assert_eq!(bens.name.as_deref(), Some("from the file"));
}

/// An edit that is too long or has an invalid tag is refused as a whole, and the error names the field.
async fn an_invalid_edit_is_refused(store: Store) {
    fill(&store, &target("s")).await;
    let before = store.stored(&target("s")).await;
    let text = |length: usize| "é".repeat(length);
    let new = || SessionEdit::default().set_description("not to be kept");
    let refused = [
        (new().set_name(text(501).as_str()), ErrorField::Name),
        (SessionEdit::default().set_description(text(10_001).as_str()), ErrorField::Description),
        (new().add_tags([text(101)]), ErrorField::Tags),
        (new().set_tags(["fine", " "]), ErrorField::Tags),
        (new().add_tags(["a\0b"]), ErrorField::Tags),
    ];
    for (edit, field) in refused {
        let error = store.storage.sessions().update_session(&target("s").key, &edit).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(field)));
    }
    assert_eq!(store.stored(&target("s")).await, before);
    let longest = SessionEdit::default().set_name(text(500).as_str()).add_tags([text(100)]);
    assert_eq!(edit(&store, longest).await.tags.len(), 2);
}

/// Concurrent edits and syncs lose no edit.
async fn concurrent_edits_are_all_kept(store: Store) {
    let store = Arc::new(store);
    fill(&store, &target("s")).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let store = store.clone();
        tasks.spawn(async move {
            let edit = SessionEdit::default().add_tags([format!("tag{n}")]);
            store.storage.sessions().update_session(&target("s").key, &edit).await.unwrap();
            store.sync_metadata(&target("s"), &format!(r#"{{"tags":["file {n}"],"bundle":"{n}"}}"#)).await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let mut tags = store.stored(&target("s")).await.session.tags;
    tags.sort();
    // The first edit keeps the tag that the files contained.
    assert_eq!(tags.iter().filter(|tag| tag.starts_with("tag")).count(), 8, "{tags:?}");
    assert_eq!(tags.len(), 9, "{tags:?}");
}

/// The time at which a session was first shared never changes.
async fn the_first_sharing_is_remembered(store: Store) {
    fill(&store, &target("s")).await;
    let share = async |sharing: Sharing| {
        store.storage.sessions().share_session(&target("s").key, &sharing).await.unwrap()
    };
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

/// Sharing with teams or an organisation without a name is refused and changes nothing.
async fn sharing_with_an_unnamed_group_is_refused(store: Store) {
    fill(&store, &target("s")).await;
    let mut no_org = Sharing::org("acme");
    no_org.org_id = None;
    let refused = [
        (Sharing::teams([""; 0]), ErrorField::TeamIds),
        (Sharing::teams(["red", " "]), ErrorField::TeamIds),
        (Sharing::org(""), ErrorField::OrgId),
        (no_org, ErrorField::OrgId),
    ];
    for (sharing, field) in refused {
        let error = store.storage.sessions().share_session(&target("s").key, &sharing).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(field)));
    }
    assert_eq!(store.stored(&target("s")).await.session.visibility, Visibility::Private);
}

/// Another process may change a session between the look at it and the change.
async fn a_session_that_was_seen_is_changed_only_as_it_was(store: Store) {
    fill(&store, &target("s")).await;
    fill(&store, &target("other")).await;
    let key = &target("s").key;
    let seen = store.stored(&target("s")).await.session;
    let careful = store.storage.clone().only_unchanged(seen);
    let name = |name| SessionEdit::default().set_name(name);
    edit(&store, name("changed by another process")).await;
    let refused = |error: Error| (error.kind(), error.context(CHANGED_SINCE).is_some());
    let conflict = (ErrorKind::Conflict, true);
    let edited = careful.sessions().update_session(key, &name("mine")).await;
    assert_eq!(refused(edited.unwrap_err()), conflict);
    let shared = careful.sessions().share_session(key, &Sharing::public()).await;
    assert_eq!(refused(shared.unwrap_err()), conflict);
    let rewound = careful.ingestion().rewind(key, &RewindOptions::to_turn(0)).await;
    assert_eq!(refused(rewound.unwrap_err()), conflict);
    let digests: Vec<Digest> = store.messages(&target("s")).await.iter().map(|line| line.digest).collect();
    let purging = careful.clone().with_redactor(Redaction::Off, Arc::new(WordRedactor::new(["basket"])));
    let purged = purging.secrets().purge_secrets(key, &digests).await;
    assert_eq!(refused(purged.unwrap_err()), conflict);
    let project = &target("s").project_slug;
    let deleted = careful.sessions().delete_session(&key.user_id, project, &key.session_id).await;
    assert_eq!(refused(deleted.unwrap_err()), conflict);
    let mut deleted = careful.sessions().delete_sessions(&[target("gone").key, key.clone()]).await.deleted;
    assert_eq!(refused(deleted.pop().unwrap().unwrap_err()), conflict);
    assert!(!deleted.pop().unwrap().unwrap());
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.name.as_deref(), session.message_count), (Some("changed by another process"), 2));
    // As it is now, and other sessions, it changes.
    let careful = store.storage.clone().only_unchanged(session);
    careful.sessions().update_session(&target("other").key, &name("other")).await.unwrap();
    careful.sessions().update_session(key, &name("mine")).await.unwrap();
    assert_eq!(store.stored(&target("s")).await.session.name.as_deref(), Some("mine"));
}

/// Another process may also write between the comparison and the deletion.
async fn a_session_is_deleted_only_as_it_was_compared(store: Store) {
    let flaky = Arc::new(FlakyBackend::new(store.backend.clone()));
    let key = &target("s").key;
    let write = async |store: &Store, change: &dyn Fn(&mut Session)| {
        let stored = store.stored(&target("s")).await;
        let mut written = SessionChange::new(stored.session.clone(), Some(stored.version));
        change(&mut written.session);
        flaky.write_before_deletion(written);
        SessionStorage::new(flaky.clone()).only_unchanged(stored.session)
    };
    fill(&store, &target("s")).await;
    let careful = write(&store, &|session| session.name = Some("of another process".to_owned())).await;
    let deleted = careful.sessions().delete_sessions(std::slice::from_ref(key)).await.deleted;
    let error = deleted[0].as_ref().unwrap_err();
    assert_eq!((error.kind(), error.context(CHANGED_SINCE).is_some()), (ErrorKind::Conflict, true));
    assert_eq!(store.messages(&target("s")).await.len(), 2);
    // A write that changes nothing of what was seen is no reason to refuse it.
    let careful = write(&store, &|_| ()).await;
    let deleted = careful.sessions().delete_sessions(std::slice::from_ref(key)).await.deleted;
    assert!(deleted[0].as_ref().unwrap());
}
