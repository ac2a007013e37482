//! Sessions: their fields, finding and listing them, counting and deleting.

use amplifier_session_core::{
    ErrorKind, Scope, StorageSettings,
    backend::{SessionCursor, SessionQuery, prelude::*},
    model::{
        HostId, MetadataFile, ProjectSlug, RawJson, Session, SessionId, SessionKey, Timestamp, UserId,
        Visibility,
    },
    search::SessionFilter,
    storage::IngestTarget,
};

use super::{
    Subject, samples,
    store::{Store, kind, meaning, range, scope, target, target_of, words},
};
use crate::lines;

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// A session with something in every field.
fn full_session(target: &IngestTarget) -> Session {
    let created = time("2026-01-05T10:00:00.123456+02:00");
    let mut session =
        Session::new(target.key.clone(), target.host_id.clone(), target.project_slug.clone(), created);
    session.updated = time("2026-01-06T00:00:00Z");
    session.name = Some("It's \"done\"; -- 100% café 👍\u{2028}".to_owned());
    session.description = Some("multi\nline\0".to_owned());
    session.bundle = Some("bundle:foundation".to_owned());
    session.model = Some("m-1".to_owned());
    (session.turn_count, session.message_count, session.event_count) = (3, 0, 0);
    session.parent_id = Some(SessionId::new("parent-1").unwrap());
    session.forked_from_turn = Some(2);
    session.tags = vec!["a,b".to_owned(), "quo\"te".to_owned(), String::new()];
    session.visibility = Visibility::Team;
    session.org_id = Some("org".to_owned());
    session.team_ids = vec!["t1".to_owned(), "t2".to_owned()];
    session.shared_at = Some(time("2026-01-05T08:00:01Z"));
    session.working_dir = Some("/home/ana/o'brien".to_owned());
    session.first_prompt = Some("hello".to_owned());
    session
}

/// Where the settings ask for UUIDs, a new session without one is refused and nothing is stored.
pub async fn session_ids_are_uuids_where_asked_for(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let strict = store.storage.clone().with_settings(StorageSettings::default().with_uuid_session_ids(true));
    let sync = async |id: &str| strict.sync_session_metadata(&target(id), RawJson::from("{}")).await;
    let error = sync("span_agent").await.unwrap_err();
    assert_eq!((error.kind(), error.context("field")), (ErrorKind::Validation, Some("session_id")));
    sync("3a7c1e90-1f4b-4d2a-9c11-0b2e5d6f7a01").await.unwrap();
    let sessions = store.storage.search_sessions(&SessionQuery::new(scope(&target("x")))).await.unwrap();
    assert_eq!(sessions.len(), 1);
}

/// All fields of a session come back as they were stored, from any handle.
pub async fn all_fields_come_back(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let (full, bare) = (target("full"), target("bare"));
    let least = Session::new(
        bare.key.clone(),
        bare.host_id.clone(),
        ProjectSlug::unnamed(),
        time("1969-07-20T20:17:40Z"),
    );
    let sessions = [full_session(&full), least];
    for session in &sessions {
        store.storage.create_session(session.clone()).await.unwrap();
    }
    let again = Store::open_again(subject).await;
    for session in &sessions {
        let read = again.storage.get_session(&scope(&full), &session.session_id).await.unwrap();
        assert_eq!(read.as_ref(), Some(session));
    }
    assert_eq!(store.storage.search_sessions(&SessionQuery::new(scope(&full))).await.unwrap(), sessions);
}

/// Creating a session that exists is refused and changes nothing.
pub async fn creating_an_existing_session_is_refused(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let session = full_session(&target("s"));
    store.storage.create_session(session.clone()).await.unwrap();
    let other = Session { name: Some("other".to_owned()), ..session.clone() };
    assert_eq!(kind(store.storage.create_session(other).await), ErrorKind::SessionExists);
    assert_eq!(store.stored(&target("s")).await.session, session);
}

/// Reading an unknown session is `SessionNotFound`; looking for one answers nothing.
pub async fn an_unknown_session_is_not_found(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let (storage, unknown) = (&store.storage, target("unknown"));
    let (scope, id) = (scope(&unknown), &unknown.key.session_id);
    assert_eq!(storage.get_session(&scope, id).await.unwrap(), None);
    assert_eq!(kind(storage.find_session(&scope, "unknown").await), ErrorKind::SessionNotFound);
    assert_eq!(kind(storage.get_transcript_lines(&scope, id, None, 10).await), ErrorKind::SessionNotFound);
    let events =
        storage.get_event_lines(&scope, id, amplifier_session_core::storage::EventLines::default()).await;
    assert_eq!(kind(events), ErrorKind::SessionNotFound);
    assert_eq!(kind(storage.get_turn_context(&scope, id, 1, 0, 0).await), ErrorKind::SessionNotFound);
    assert_eq!(kind(storage.get_message_context(&scope, id, 0, 0, 0).await), ErrorKind::SessionNotFound);
    assert!(!storage.delete_session(&unknown.key.user_id, &unknown.project_slug, id).await.unwrap());
}

/// Metadata files come back byte for byte.
pub async fn metadata_comes_back_byte_for_byte(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for (name, metadata) in samples::awkward_metadata() {
        store.storage.sync_session_metadata(&target("s"), metadata.clone()).await.unwrap();
        let files = vec![MetadataFile { name: "metadata.json".to_owned(), raw: metadata }];
        assert_eq!(store.stored(&target("s")).await.metadata_files, files, "{name}");
    }
}

/// The fields of a session are filled from its metadata, and the same metadata again writes nothing.
pub async fn metadata_fills_the_fields(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let metadata = RawJson::from(
        r#"{"session_id":"s","created":"2026-01-05T10:00:00+02:00","name":"Fix it","bundle":"b","model":"m",
        "description":"d","parent_id":"p","forked_from_turn":2,"tags":["x","y"],"working_dir":"/w","turn_count":99}"#,
    );
    let report = store.storage.sync_session_metadata(&target("s"), metadata.clone()).await.unwrap();
    assert!(report.created);
    let session = store.stored(&target("s")).await.session;
    assert_eq!(session.created, time("2026-01-05T08:00:00Z"));
    assert_eq!((session.name.as_deref(), session.bundle.as_deref()), (Some("Fix it"), Some("b")));
    assert_eq!((session.model.as_deref(), session.description.as_deref()), (Some("m"), Some("d")));
    assert_eq!(session.parent_id.as_ref().map(SessionId::as_str), Some("p"));
    assert_eq!((session.forked_from_turn, session.turn_count), (Some(2), 0));
    assert_eq!(
        (session.tags.as_slice(), session.working_dir.as_deref()),
        (["x", "y"].map(str::to_owned).as_slice(), Some("/w"))
    );
    store.backend.reset_counts();
    let report = store.storage.sync_session_metadata(&target("s"), metadata).await.unwrap();
    assert_eq!((report, store.backend.writes()), (Default::default(), 0));
}

/// Metadata that is no JSON object is refused and changes nothing.
pub async fn metadata_that_is_no_object_is_refused(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for text in ["", "{", "[]", "\"name\"", "null"] {
        let result = store.storage.sync_session_metadata(&target("s"), RawJson::from(text)).await;
        assert_eq!(kind(result), ErrorKind::Validation, "{text:?}");
    }
    assert_eq!(store.backend.get_session(&target("s").key).await.unwrap(), None);
}

/// Puts sessions into the store: user, project, id, time of the last change.
async fn put_sessions(store: &Store, sessions: &[(&str, &str, &str, &str)]) {
    for (user, project, id, updated) in sessions {
        let target = target_of(user, project, id);
        let session = Session::new(target.key, target.host_id, target.project_slug, time(updated));
        store.storage.create_session(session).await.unwrap();
    }
}

async fn listed(store: &Store, query: SessionQuery) -> Vec<String> {
    let sessions = store.storage.search_sessions(&query).await.unwrap();
    sessions.iter().map(|session| format!("{}/{}", session.user_id, session.session_id)).collect()
}

fn ana() -> Scope {
    Scope::User(UserId::new("ana").unwrap())
}

/// Sessions are listed by their last change, newest first; then by user and id.
pub async fn sessions_are_listed_newest_first(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let (early, late) = ("2026-01-05T08:00:00.000001Z", "2026-01-05T08:00:00.000002Z");
    put_sessions(
        &store,
        &[
            ("ben", "p", "a", early),
            ("ana", "p", "b", early),
            ("ana", "p", "a", early),
            ("ben", "p", "z", late),
        ],
    )
    .await;
    assert_eq!(
        listed(&store, SessionQuery::new(Scope::Everyone)).await,
        ["ben/z", "ana/a", "ana/b", "ben/a"]
    );
    assert_eq!(listed(&store, SessionQuery::new(ana())).await, ["ana/a", "ana/b"]);
    assert_eq!(listed(&store, SessionQuery::new(ana()).with_limit(1)).await, ["ana/a"]);
    assert!(listed(&store, SessionQuery::new(ana()).with_limit(0)).await.is_empty());
}

/// A list in pages is the whole list: nothing twice, nothing left out, also among equal times.
pub async fn pages_of_sessions_make_the_whole_list(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let ids: Vec<String> = (0..30).map(|n| format!("s{n:02}")).collect();
    let times = ["2026-01-05T08:00:00Z", "2026-01-06T08:00:00Z"];
    for (n, id) in ids.iter().enumerate() {
        put_sessions(&store, &[("ana", "p", id, times[n % 2]), ("ben", "p", id, times[n % 2])]).await;
    }
    for scope in [ana(), Scope::Everyone] {
        let all = listed(&store, SessionQuery::new(scope.clone())).await;
        let mut query = SessionQuery::new(scope).with_limit(8);
        let mut paged = Vec::new();
        loop {
            let page = store.storage.search_sessions(&query).await.unwrap();
            paged.extend(page.iter().map(|session| format!("{}/{}", session.user_id, session.session_id)));
            match page.last() {
                Some(last) if page.len() == 8 => query = query.with_after(Some(SessionCursor::from(last))),
                _ => break,
            }
        }
        assert_eq!(paged, all);
    }
}

/// A list is narrowed by project, and by time: from `since` on, before `until`.
pub async fn lists_are_narrowed_by_project_and_time(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let day = |n: u32| format!("2026-01-0{n}T00:00:00Z");
    put_sessions(
        &store,
        &[("ana", "shop", "a", &day(1)), ("ana", "blog", "b", &day(2)), ("ana", "shop", "c", &day(3))],
    )
    .await;
    let query = || SessionQuery::new(ana());
    let project = |name: &str| SessionFilter::default().with_project(ProjectSlug::new(name).unwrap());
    assert_eq!(listed(&store, query().with_filter(project("shop"))).await, ["ana/c", "ana/a"]);
    assert!(listed(&store, query().with_filter(project("Shop"))).await.is_empty());
    assert_eq!(listed(&store, query().with_since(Some(time(&day(2))))).await, ["ana/c", "ana/b"]);
    assert_eq!(listed(&store, query().with_until(Some(time(&day(2))))).await, ["ana/a"]);
    let both = query().with_since(Some(time(&day(2)))).with_until(Some(time(&day(3))));
    assert_eq!(listed(&store, both.with_filter(project("blog"))).await, ["ana/b"]);
}

/// A prefix of an id is plain text: no character in it is a pattern, and case counts.
pub async fn prefixes_of_ids_are_plain_text(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let at = "2026-01-05T08:00:00Z";
    put_sessions(
        &store,
        &[("ana", "p", "a_b", at), ("ana", "p", "axb", at), ("ana", "p", "A_B", at), ("ana", "p", "b", at)],
    )
    .await;
    let prefix = |text: &str| SessionQuery::new(ana()).with_id_prefix(Some(text.to_owned()));
    assert_eq!(listed(&store, prefix("a_")).await, ["ana/a_b"]);
    assert_eq!(listed(&store, prefix("A")).await, ["ana/A_B"]);
    assert_eq!(listed(&store, prefix("a")).await, ["ana/a_b", "ana/axb"]);
    for text in ["%", "_", "a%", "*", "a*", "[a]", "a\\", "é", "a_bc"] {
        assert!(listed(&store, prefix(text)).await.is_empty(), "{text}");
    }
    assert_eq!(listed(&store, prefix("")).await.len(), 4);
}

/// A session is found by its id, or by a beginning of it that no other session has.
pub async fn a_session_is_found_by_a_unique_prefix(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let at = "2026-01-05T08:00:00Z";
    put_sessions(
        &store,
        &[
            ("ana", "p", "abc", at),
            ("ana", "p", "abcdef", at),
            ("ana", "p", "abx", at),
            ("ben", "p", "other", at),
        ],
    )
    .await;
    let found = async |id: &str| {
        store.storage.find_session(&ana(), id).await.map(|session| session.session_id.to_string())
    };
    assert_eq!(found("abc").await.unwrap(), "abc");
    assert_eq!(found("abcd").await.unwrap(), "abcdef");
    assert_eq!(found("abx").await.unwrap(), "abx");
    let error = found("ab").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Validation);
    assert!(["abc", "abcdef", "abx"].iter().all(|id| error.to_string().contains(id)), "{error}");
    assert_eq!(found("ABCD").await.unwrap(), "abcdef");
    for id in ["", "x", "%", "abc/..", "oth", "other"] {
        assert_eq!(kind(found(id).await), ErrorKind::SessionNotFound, "{id:?}");
    }
}

/// An id that several users have is ambiguous for someone who sees them all.
pub async fn an_id_of_several_users_is_ambiguous_to_everyone(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let at = "2026-01-05T08:00:00Z";
    put_sessions(&store, &[("ana", "p", "same", at), ("ben", "p", "same", at), ("ben", "p", "samet", at)])
        .await;
    let id = SessionId::new("same").unwrap();
    assert_eq!(kind(store.storage.get_session(&Scope::Everyone, &id).await), ErrorKind::Validation);
    let id = SessionId::new("samet").unwrap();
    assert_eq!(store.storage.get_session(&Scope::Everyone, &id).await.unwrap().unwrap().session_id, id);
    assert_eq!(store.storage.find_session(&ana(), "sam").await.unwrap().user_id.as_str(), "ana");
}

/// Counts are those of all sessions in scope, however many pages they fill.
pub async fn statistics_count_what_is_stored(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for n in 0..9 {
        for user in ["ana", "ben"] {
            let target = target_of(user, if n < 3 { "shop" } else { "blog" }, &format!("s{n}"));
            store.sync(&target, vec![lines::user("q"), lines::assistant("a"), lines::user("q2")]).await;
            store.sync_events(&target, vec![lines::logger_event("e")]).await;
        }
    }
    let counted = async |scope: Scope, project: Option<&str>| {
        let project = project.map(|name| ProjectSlug::new(name).unwrap());
        let counts = store.storage.get_session_statistics(&scope, project.as_ref()).await.unwrap();
        (counts.sessions, counts.messages, counts.turns, counts.events)
    };
    assert_eq!(counted(ana(), None).await, (9, 27, 18, 9));
    assert_eq!(counted(ana(), Some("shop")).await, (3, 9, 6, 3));
    assert_eq!(counted(Scope::Everyone, None).await, (18, 54, 36, 18));
    assert_eq!(counted(ana(), Some("none")).await, (0, 0, 0, 0));
}

/// Deleting a session in another project than its own deletes nothing.
pub async fn deleting_in_another_project_deletes_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let target = target("s");
    store.sync(&target, vec![lines::user("still here")]).await;
    let (user, session) = (&target.key.user_id, &target.key.session_id);
    for project in ["other", "Shop", "default"] {
        let project = ProjectSlug::new(project).unwrap();
        assert!(!store.storage.delete_session(user, &project, session).await.unwrap());
    }
    assert_eq!(store.find(&target, "here").await, [0]);
    assert_eq!(store.messages(&target).await.len(), 1);
}

/// Nothing is left of a deleted session, in any read or search; a new one of the same id begins empty.
pub async fn nothing_is_left_of_a_deleted_session(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let (gone, kept) = (target("gone"), target("kept"));
    for target in [&gone, &kept] {
        store
            .sync(
                target,
                vec![lines::user("find the basket"), lines::thinking("a basket", "the basket is there")],
            )
            .await;
        let event =
            lines::logger_event("e").with("event_id", format!("id of {}", target.key.session_id).into());
        let large = lines::logger_event("large").data("x".repeat(500_000).into());
        store.sync_events(target, vec![event, large]).await;
    }
    let delete = async || {
        let (user, session) = (&gone.key.user_id, &gone.key.session_id);
        store.storage.delete_session(user, &gone.project_slug, session).await.unwrap()
    };
    assert!(delete().await);
    assert!(!delete().await);

    let key = &gone.key;
    assert!(store.messages(&gone).await.is_empty() && store.events(&gone).await.is_empty());
    assert!(store.backend.message_states(key).await.unwrap().is_empty());
    assert!(store.backend.event_digests(key, range(0, 10)).await.unwrap().is_empty());
    assert!(store.backend.event_payloads(key, &[0, 1]).await.unwrap().is_empty());
    assert!(store.backend.find_events(&key.user_id, &["id of gone".to_owned()]).await.unwrap().is_empty());
    assert_eq!(store.backend.session_rows(key).await.unwrap().vectors, 0);
    assert!(store.vectors(&gone).await.is_empty() && store.owing(&gone).await.is_empty());
    for options in [words("basket"), meaning("basket")] {
        let results = store.search(&gone, &options).await.results;
        assert!(!results.is_empty() && results.iter().all(|result| result.session_id == kept.key.session_id));
    }
    assert_eq!(listed(&store, SessionQuery::new(ana())).await, ["ana/kept"]);
    assert_eq!((store.messages(&kept).await.len(), store.events(&kept).await.len()), (2, 2));

    let report = store.sync(&gone, vec![lines::user("a new beginning")]).await;
    assert_eq!((report.created, report.messages_written), (true, 1));
    assert_eq!((store.messages(&gone).await.len(), store.events(&gone).await.len()), (1, 0));
    assert_eq!(store.vectors(&gone).await.len(), 1);
}

/// A sync under another project moves the session: reads and searches by project follow.
pub async fn a_session_moves_to_another_project(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let (old, new) = (target_of("ana", "old", "s"), target_of("ana", "new", "s"));
    store.sync(&old, vec![lines::user("find the basket")]).await;
    store.sync_events(&old, vec![lines::logger_event("e")]).await;
    store.sync(&new, vec![lines::user("find the basket")]).await;
    assert_eq!(store.stored(&new).await.session.project_slug, new.project_slug);
    assert_eq!(store.messages(&new).await[0].project_slug, new.project_slug);
    assert_eq!(store.events(&new).await[0].event.project_slug, new.project_slug);
    for options in [words("basket"), meaning("basket")] {
        for (target, count) in [(&old, 0), (&new, 1)] {
            let filter = amplifier_session_core::search::SearchFilter::default()
                .with_project(target.project_slug.clone());
            assert_eq!(store.search(target, &options.clone().with_filter(filter)).await.results.len(), count);
        }
    }
    let of_project = SessionFilter::default().with_project(new.project_slug);
    assert_eq!(listed(&store, SessionQuery::new(ana()).with_filter(of_project)).await, ["ana/s"]);
}

/// The user who first writes a store is remembered.
pub async fn the_first_user_is_pinned(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    assert_eq!(store.storage.pinned_user().await.unwrap(), None);
    let (ana, ben) = (UserId::new("ana").unwrap(), UserId::new("ben").unwrap());
    assert_eq!(store.storage.pin_user(&ana).await.unwrap(), ana);
    assert_eq!(store.storage.pin_user(&ben).await.unwrap(), ana);
    assert_eq!(Store::open_again(subject).await.storage.pinned_user().await.unwrap(), Some(ana));
}

/// What is written through one handle is there for another, at once.
pub async fn another_handle_sees_what_was_written(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let again = Store::open_again(subject).await;
    let target = target("s");
    store.sync(&target, vec![lines::user("find the basket"), lines::assistant("there it is")]).await;
    store.sync_events(&target, vec![lines::logger_event("e").data("x".repeat(500_000).into())]).await;
    assert_eq!(again.stored(&target).await, store.stored(&target).await);
    assert_eq!(again.messages(&target).await, store.messages(&target).await);
    assert_eq!(again.events(&target).await, store.events(&target).await);
    assert_eq!(again.vectors(&target).await, store.vectors(&target).await);
    assert_eq!(again.find(&target, "basket").await, [0]);
    again.sync(&target, vec![lines::user("find the cup")]).await;
    assert_eq!(store.messages(&target).await, again.messages(&target).await);
    assert_eq!((store.find(&target, "basket").await, store.find(&target, "cup").await), (vec![], vec![0]));
}

/// A session's host and key are those it was made with, whatever its metadata says.
pub async fn metadata_changes_no_identity(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let metadata =
        r#"{"session_id":"other","user_id":"ben","host_id":"h2","project_slug":"p2","visibility":"public"}"#;
    store.storage.sync_session_metadata(&target("s"), RawJson::from(metadata)).await.unwrap();
    let session = store.stored(&target("s")).await.session;
    assert_eq!(session.key(), SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap()));
    assert_eq!(
        (session.host_id, session.project_slug),
        (HostId::new("laptop").unwrap(), target("s").project_slug)
    );
    assert_eq!(session.visibility, Visibility::Private);
}
