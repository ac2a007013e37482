//! Visibility: private sessions, and sessions shared with teams, an organisation or everyone.

use std::collections::BTreeSet;

use crate::prelude::*;

/// The sessions of olga, named after their visibility.
pub const SESSIONS: [&str; 4] = ["org", "private", "public", "team"];

/// Viewers, and the sessions of olga that they may see.
pub const VIEWERS: [(&str, &[&str]); 6] = [
    ("olga", &SESSIONS),
    ("teammate", &["public", "team"]),
    ("colleague", &["org", "public"]),
    ("both", &["org", "public", "team"]),
    ("stranger", &["public"]),
    ("loner", &["public"]),
];

fn viewer(name: &str) -> Viewer {
    Viewer::new(user(name))
}

/// The scope of one of the [`VIEWERS`].
pub fn scope_of_viewer(name: &str) -> Scope {
    let acme = || Some("acme".to_owned());
    Scope::Visible(match name {
        "teammate" => viewer(name).with_teams(["green", "red"]),
        "colleague" => viewer(name).with_teams(["green"]).with_org(acme()),
        "both" => viewer(name).with_teams(["red"]).with_org(acme()),
        "stranger" => viewer(name).with_teams(["green", "Red", "re"]).with_org(Some("acme2".to_owned())),
        _ => viewer(name),
    })
}

/// The scope of one of the [`VIEWERS`], for sessions of this owner only.
fn scope_of_owner(name: &str, owner: &str) -> Scope {
    match scope_of_viewer(name) {
        Scope::Visible(viewer) => Scope::Visible(viewer.with_owner(Some(user(owner)))),
        scope => scope,
    }
}

/// A session of olga.
pub fn session_of_olga(session: &str) -> IngestTarget {
    target_of("olga", "shop", session)
}

/// Fills a session with a question, an answer and an event.
pub async fn fill(store: &Store, target: &IngestTarget) {
    let answer = format!("the answer of {}", target.key.user_id);
    store.sync(target, vec![lines::user("where is the needle"), lines::assistant(&answer)]).await;
    store.sync_events(target, vec![lines::logger_event("tool:pre").data(json!({"tool_name": "bash"}))]).await;
}

/// Shares a session of olga.
pub async fn share(store: &Store, session: &str, sharing: Sharing) {
    store.storage.sessions().share_session(&session_of_olga(session).key, &sharing).await.unwrap();
}

/// Fills and shares the four sessions of olga. Some are indexed before they are shared.
pub async fn share_all(store: &Store) {
    let sharings =
        [Sharing::org("acme"), Sharing::private(), Sharing::public(), Sharing::teams(["blue", "red"])];
    for (session, sharing) in SESSIONS.into_iter().zip(sharings) {
        fill(store, &session_of_olga(session)).await;
        share(store, session, sharing).await;
        if session == "private" {
            store.storage.update_index().await.unwrap();
        }
    }
}

fn names<'a>(sessions: impl IntoIterator<Item = &'a SessionId>) -> Vec<String> {
    let names: BTreeSet<String> = sessions.into_iter().map(ToString::to_string).collect();
    names.into_iter().collect()
}

/// The sessions visible in a scope, each filled once. Checks that all reads that span sessions agree.
async fn seen(store: &Store, scope: &Scope) -> Vec<String> {
    let backend = &store.backend;
    let ids = backend.session_names(scope).await.unwrap();
    let seen = names(ids.iter().map(|name| &name.session_id));
    let listed = backend.list_sessions(&SessionQuery::new(scope.clone())).await.unwrap();
    assert_eq!(names(listed.iter().map(|session| &session.session_id)), seen, "{scope:?}");
    for options in [words("needle"), meaning("needle")] {
        let results =
            store.storage.search().search_transcripts(scope, &options.with_limit(100)).await.unwrap().results;
        assert_eq!(names(results.iter().map(|result| &result.session_id)), seen, "{scope:?}");
    }
    let events = backend.search_events(scope, &EventSearchOptions::default()).await.unwrap();
    assert_eq!(names(events.iter().map(|event| &event.session_id)), seen, "{scope:?}");
    let first = EventSearchOptions::default().with_limit(1);
    assert_eq!(backend.search_events(scope, &first).await.unwrap().len(), seen.len().min(1), "{scope:?}");
    let events = backend.count_events(scope, &EventFilter::default()).await.unwrap();
    let messages = backend.count_messages(scope, &SearchFilter::default()).await.unwrap();
    let vectors = backend.count_vectors(scope).await.unwrap();
    let counts: [u64; 3] = [
        events.groups.iter().map(|count| count.once.events).sum(),
        messages.iter().map(|count| count.messages).sum(),
        vectors.generations.values().map(|generation| generation.vectors).sum(),
    ];
    let missing = backend.missing_vectors(scope).await.unwrap();
    assert_eq!(missing, MissingVectors::default(), "{scope:?}");
    let count = seen.len() as u64;
    assert_eq!(counts, [count, 2 * count, 2 * count], "{scope:?}");
    seen
}

/// Every read returns exactly what the viewer may see, also of a single owner. The scope of a user contains only the user's
/// own sessions.
pub async fn every_read_returns_what_the_viewer_may_see(store: Store) {
    share_all(&store).await;
    let users = |name: &str| Scope::User(user(name));
    for _ in 0..2 {
        for (name, visible) in VIEWERS {
            assert_eq!(seen(&store, &scope_of_viewer(name)).await, visible, "{name}");
            assert_eq!(seen(&store, &scope_of_owner(name, "olga")).await, visible, "{name}");
            assert!(seen(&store, &scope_of_owner(name, "loner")).await.is_empty(), "{name}");
        }
        assert_eq!(seen(&store, &users("olga")).await, SESSIONS);
        assert_eq!(seen(&store, &Scope::Everyone).await, SESSIONS);
        assert!(seen(&store, &users("stranger")).await.is_empty());
        store.storage.update_index().await.unwrap();
    }
}

/// Sharing an indexed session, and revoking this, takes effect at once.
pub async fn sharing_takes_effect_at_once(store: Store) {
    let again = store.again().await;
    fill(&store, &session_of_olga("s")).await;
    store.storage.update_index().await.unwrap();
    for round in 0..2 {
        let steps: [(Sharing, &[&str]); 4] = [
            (Sharing::private(), &["olga"]),
            (Sharing::teams(["blue", "red"]), &["olga", "teammate"]),
            (Sharing::org("acme"), &["olga", "colleague"]),
            (Sharing::public(), &["olga", "teammate", "colleague", "stranger"]),
        ];
        for (sharing, who) in steps {
            share(&store, "s", sharing).await;
            for (n, name) in ["olga", "teammate", "colleague", "stranger"].into_iter().enumerate() {
                let handle = if n % 2 == 0 { &store } else { &again };
                assert_eq!(
                    seen(handle, &scope_of_viewer(name)).await.len() == 1,
                    who.contains(&name),
                    "{round} {name}"
                );
            }
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Messages and events added to a shared session are found by the viewers of the session.
pub async fn additions_to_a_shared_session_are_found(store: Store) {
    share_all(&store).await;
    store.storage.update_index().await.unwrap();
    for session in SESSIONS {
        store.sync_from(&session_of_olga(session), 2, vec![lines::user("another needle")]).await.unwrap();
    }
    for (name, visible) in VIEWERS {
        for options in [words("needle"), meaning("needle")] {
            let options = options.with_limit(100);
            let results = store
                .storage
                .search()
                .search_transcripts(&scope_of_viewer(name), &options)
                .await
                .unwrap()
                .results;
            let later: Vec<_> = results.iter().filter(|result| result.sequence == 2).collect();
            assert_eq!(names(later.iter().map(|result| &result.session_id)), visible, "{name}");
        }
    }
}

/// Missing and empty names of teams and organisations match nothing.
pub async fn unnamed_groups_match_nothing(store: Store) {
    let groups = [
        (Visibility::Team, "blank-team", Some(String::new())),
        (Visibility::Org, "blank-org", Some(String::new())),
        (Visibility::Org, "no-org", None),
    ];
    for (visibility, session, org) in groups {
        fill(&store, &session_of_olga(session)).await;
        let put = |change: &mut SessionChange| {
            change.session.visibility = visibility;
            (change.session.team_ids, change.session.org_id) = (vec![String::new()], org);
        };
        store.write(&session_of_olga(session), put).await;
    }
    let blank = viewer("stranger").with_teams([""]).with_org(Some(String::new()));
    for viewer in [blank, viewer("stranger").with_teams([""; 0]).with_org(None)] {
        assert!(seen(&store, &Scope::Visible(viewer)).await.is_empty());
    }
}

/// Teams matter only for sessions shared with teams, and organisations only for sessions shared with an organisation.
pub async fn groups_apply_only_to_their_own_visibility(store: Store) {
    for (visibility, session) in [(Visibility::Private, "p"), (Visibility::Team, "t"), (Visibility::Org, "o")]
    {
        fill(&store, &session_of_olga(session)).await;
        let put = |change: &mut SessionChange| {
            change.session.visibility = visibility;
            change.session.team_ids = vec!["red".to_owned()];
            change.session.org_id = Some("acme".to_owned());
        };
        store.write(&session_of_olga(session), put).await;
    }
    let cases: [(&str, &[&str]); 4] =
        [("teammate", &["t"]), ("colleague", &["o"]), ("both", &["o", "t"]), ("stranger", &[])];
    for (name, visible) in cases {
        assert_eq!(seen(&store, &scope_of_viewer(name)).await, visible, "{name}");
    }
}

/// Names of groups are compared literally and in full.
pub async fn group_names_are_compared_literally(store: Store) {
    let groups = ["a", "A", "a_b", "axb", "a%", "o'brien", "\"a\"", "[\"a\"]", "a,b", "a\\", "é", "🦀"];
    for (n, group) in groups.iter().enumerate() {
        for (kind, sharing) in [("team", Sharing::teams(["other", group])), ("org", Sharing::org(*group))] {
            let session = format!("{kind}{n:02}");
            store.sync_text(&session_of_olga(&session), vec![lines::user("needle")]).await;
            share(&store, &session, sharing).await;
        }
    }
    let found = async |viewer: Viewer| {
        let scope = Scope::Visible(viewer);
        let listed = store.backend.list_sessions(&SessionQuery::new(scope.clone())).await.unwrap();
        let results =
            store.storage.search().search_transcripts(&scope, &words("needle")).await.unwrap().results;
        let listed = names(listed.iter().map(|session| &session.session_id));
        assert_eq!(names(results.iter().map(|result| &result.session_id)), listed, "{scope:?}");
        listed
    };
    let of_team = |name: &str| viewer("stranger").with_teams([name]);
    let of_org = |name: &str| viewer("stranger").with_org(Some(name.to_owned()));
    for (n, group) in groups.iter().enumerate() {
        assert_eq!(found(of_team(group)).await, [format!("team{n:02}")], "{group}");
        assert_eq!(found(of_org(group)).await, [format!("org{n:02}")], "{group}");
    }
    for text in ["%", "_", "*", "oth", "other,a"] {
        assert!(found(of_team(text)).await.is_empty() && found(of_org(text)).await.is_empty(), "{text}");
    }
}

/// A filter on a session id finds nothing in another user's private session with that id.
pub async fn a_session_filter_reveals_no_private_session(store: Store) {
    share_all(&store).await;
    for session in ["private", "public"] {
        fill(&store, &target_of("ben", "blog", session)).await;
    }
    for (name, private, public) in [("ben", 1, 2), ("stranger", 0, 1), ("olga", 1, 1)] {
        for (session, expected) in [("private", private), ("public", public)] {
            let sessions = SessionFilter::default().with_session(session_of_olga(session).key.session_id);
            let filter = SearchFilter::default().with_sessions(sessions.clone());
            // Full text finds the one message that contains the word; semantic search finds the answer as well.
            for (options, each) in [(words("needle"), 1), (meaning("needle"), 2)] {
                let options = options.with_filter(filter.clone());
                let found = store
                    .storage
                    .search()
                    .search_transcripts(&scope_of_viewer(name), &options)
                    .await
                    .unwrap()
                    .results;
                assert_eq!(found.len(), each * expected, "{name} {session} {}", options.mode);
            }
            let options = EventSearchOptions::new(EventFilter::default().with_sessions(sessions));
            let events = store.backend.search_events(&scope_of_viewer(name), &options).await.unwrap();
            assert_eq!(events.len(), expected, "{name} {session}");
        }
    }
}
