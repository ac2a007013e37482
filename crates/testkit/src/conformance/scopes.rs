//! Who sees what: sessions that are private, or shared with teams, with an organisation, with everyone.

use std::collections::BTreeSet;

use crate::prelude::*;

/// The sessions of olga; each is called as it is shared.
pub const SESSIONS: [&str; 4] = ["org", "private", "public", "team"];

/// Who looks, and which of olga's sessions they see.
pub const LOOKERS: [(&str, &[&str]); 6] = [
    ("olga", &SESSIONS),
    ("teammate", &["public", "team"]),
    ("colleague", &["org", "public"]),
    ("both", &["org", "public", "team"]),
    ("stranger", &["public"]),
    ("loner", &["public"]),
];

fn viewer(name: &str) -> Viewer {
    Viewer::new(UserId::new(name).unwrap())
}

/// What one of the [`LOOKERS`] sees.
#[must_use]
pub fn sight(name: &str) -> Scope {
    let acme = || Some("acme".to_owned());
    Scope::Visible(match name {
        "teammate" => viewer(name).with_teams(["green", "red"]),
        "colleague" => viewer(name).with_teams(["green"]).with_org(acme()),
        "both" => viewer(name).with_teams(["red"]).with_org(acme()),
        "stranger" => viewer(name).with_teams(["green", "Red", "re"]).with_org(Some("acme2".to_owned())),
        _ => viewer(name),
    })
}

/// A session of olga.
#[must_use]
pub fn olgas(session: &str) -> IngestTarget {
    target_of("olga", "shop", session)
}

/// Fills a session with a message, an answer and an event.
pub async fn fill(store: &Store, target: &IngestTarget) {
    let answer = format!("the answer of {}", target.key.user_id);
    store.sync(target, vec![lines::user("where is the needle"), lines::assistant(&answer)]).await;
    store.sync_events(target, vec![lines::logger_event("tool:pre").data(json!({"tool_name": "bash"}))]).await;
}

/// Shares a session of olga.
pub async fn share(store: &Store, session: &str, sharing: Sharing) {
    store.storage.share_session(&olgas(session).key, &sharing).await.unwrap();
}

/// Fills and shares olga's four sessions: some are in the index when they are shared, some not.
pub async fn share_all(store: &Store) {
    let sharings =
        [Sharing::org("acme"), Sharing::private(), Sharing::public(), Sharing::teams(["blue", "red"])];
    for (session, sharing) in SESSIONS.into_iter().zip(sharings) {
        fill(store, &olgas(session)).await;
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

/// The sessions that a scope shows, each filled once. All reads of more than one session must agree.
async fn seen(store: &Store, scope: &Scope) -> Vec<String> {
    let backend = &store.backend;
    let ids = backend.session_names(scope).await.unwrap();
    let seen = names(ids.iter().map(|name| &name.session_id));
    let listed = backend.list_sessions(&SessionQuery::new(scope.clone())).await.unwrap();
    assert_eq!(names(listed.iter().map(|session| &session.session_id)), seen, "{scope:?}");
    for options in [words("needle"), meaning("needle")] {
        let results =
            store.storage.search_transcripts(scope, &options.with_limit(100)).await.unwrap().results;
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
        events.iter().map(|count| count.events).sum(),
        messages.iter().map(|count| count.messages).sum(),
        vectors.generations.values().map(|generation| generation.vectors).sum(),
    ];
    let count = seen.len() as u64;
    assert_eq!(counts, [count, 2 * count, 2 * count], "{scope:?}");
    seen
}

/// Every read shows what one may see and nothing else; the scope of a user is what they own, whatever others share.
pub async fn every_read_shows_what_one_may_see(store: Store) {
    share_all(&store).await;
    let users = |name: &str| Scope::User(UserId::new(name).unwrap());
    for _ in 0..2 {
        for (name, visible) in LOOKERS {
            assert_eq!(seen(&store, &sight(name)).await, visible, "{name}");
        }
        assert_eq!(seen(&store, &users("olga")).await, SESSIONS);
        assert_eq!(seen(&store, &Scope::Everyone).await, SESSIONS);
        assert!(seen(&store, &users("stranger")).await.is_empty());
        store.storage.update_index().await.unwrap();
    }
}

/// A session that is shared after it was indexed is found at once, and is gone as soon as it is not shared any more.
pub async fn sharing_takes_effect_at_once(store: Store) {
    let again = store.again().await;
    fill(&store, &olgas("s")).await;
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
                    seen(handle, &sight(name)).await.len() == 1,
                    who.contains(&name),
                    "{round} {name}"
                );
            }
        }
        store.storage.update_index().await.unwrap();
    }
}

/// What is written into a shared session afterwards is found by those who may see it.
pub async fn what_follows_in_a_shared_session_is_found(store: Store) {
    share_all(&store).await;
    store.storage.update_index().await.unwrap();
    for session in SESSIONS {
        store.sync_from(&olgas(session), 2, vec![lines::user("another needle")]).await.unwrap();
    }
    for (name, visible) in LOOKERS {
        for options in [words("needle"), meaning("needle")] {
            let options = options.with_limit(100);
            let results = store.storage.search_transcripts(&sight(name), &options).await.unwrap().results;
            let later: Vec<_> = results.iter().filter(|result| result.sequence == 2).collect();
            assert_eq!(names(later.iter().map(|result| &result.session_id)), visible, "{name}");
        }
    }
}

/// A team or an organisation without a name matches nothing by accident.
pub async fn groups_without_a_name_match_nothing(store: Store) {
    let groups = [
        (Visibility::Team, "blank-team", Some(String::new())),
        (Visibility::Org, "blank-org", Some(String::new())),
        (Visibility::Org, "no-org", None),
    ];
    for (visibility, session, org) in groups {
        fill(&store, &olgas(session)).await;
        let put = |change: &mut SessionChange| {
            change.session.visibility = visibility;
            (change.session.team_ids, change.session.org_id) = (vec![String::new()], org);
        };
        store.write(&olgas(session), put).await;
    }
    let blank = viewer("stranger").with_teams([""]).with_org(Some(String::new()));
    for viewer in [blank, viewer("stranger").with_teams([""; 0]).with_org(None)] {
        assert!(seen(&store, &Scope::Visible(viewer)).await.is_empty());
    }
}

/// A team matters only where a session is shared with teams, an organisation where it is shared with that.
pub async fn a_group_counts_for_its_own_visibility_alone(store: Store) {
    for (visibility, session) in [(Visibility::Private, "p"), (Visibility::Team, "t"), (Visibility::Org, "o")]
    {
        fill(&store, &olgas(session)).await;
        let put = |change: &mut SessionChange| {
            change.session.visibility = visibility;
            change.session.team_ids = vec!["red".to_owned()];
            change.session.org_id = Some("acme".to_owned());
        };
        store.write(&olgas(session), put).await;
    }
    let cases: [(&str, &[&str]); 4] =
        [("teammate", &["t"]), ("colleague", &["o"]), ("both", &["o", "t"]), ("stranger", &[])];
    for (name, visible) in cases {
        assert_eq!(seen(&store, &sight(name)).await, visible, "{name}");
    }
}

/// Names of groups are plain text, compared in full.
pub async fn names_of_groups_are_plain_text(store: Store) {
    let groups = ["a", "A", "a_b", "axb", "a%", "o'brien", "\"a\"", "[\"a\"]", "a,b", "a\\", "é", "🦀"];
    for (n, group) in groups.iter().enumerate() {
        for (kind, sharing) in [("team", Sharing::teams(["other", group])), ("org", Sharing::org(*group))] {
            let session = format!("{kind}{n:02}");
            store.sync_text(&olgas(&session), vec![lines::user("needle")]).await;
            share(&store, &session, sharing).await;
        }
    }
    let found = async |viewer: Viewer| {
        let scope = Scope::Visible(viewer);
        let listed = store.backend.list_sessions(&SessionQuery::new(scope.clone())).await.unwrap();
        let results = store.storage.search_transcripts(&scope, &words("needle")).await.unwrap().results;
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

/// A filter on a session's id finds nothing of another user's private session of that id.
pub async fn a_filter_on_a_session_shows_no_private_one(store: Store) {
    share_all(&store).await;
    for session in ["private", "public"] {
        fill(&store, &target_of("ben", "blog", session)).await;
    }
    for (name, private, public) in [("ben", 1, 2), ("stranger", 0, 1), ("olga", 1, 1)] {
        for (session, expected) in [("private", private), ("public", public)] {
            let sessions = SessionFilter::default().with_session(olgas(session).key.session_id);
            let filter = SearchFilter::default().with_sessions(sessions.clone());
            // Full text finds the one message that holds the word, meaning the answer as well.
            for (options, each) in [(words("needle"), 1), (meaning("needle"), 2)] {
                let options = options.with_filter(filter.clone());
                let found = store.storage.search_transcripts(&sight(name), &options).await.unwrap().results;
                assert_eq!(found.len(), each * expected, "{name} {session} {}", options.mode);
            }
            let options = EventSearchOptions::new(EventFilter::default().with_sessions(sessions));
            let events = store.backend.search_events(&sight(name), &options).await.unwrap();
            assert_eq!(events.len(), expected, "{name} {session}");
        }
    }
}
