//! Reads of single sessions by viewers who may see them and by others.

use amplifier_session_testkit::{
    conformance::scopes::{SESSIONS, VIEWERS, fill, scope_of_viewer, session_of_olga, share, share_all},
    prelude::*,
};

on_both_stores![
    rows_are_readable_only_in_visible_sessions,
    trees_contain_only_visible_sessions,
    activity_and_statistics_cover_visible_sessions,
    a_viewers_own_session_takes_precedence,
];

fn id(session: &str) -> SessionId {
    session_of_olga(session).key.session_id
}

/// The answers of the reads of one session: the number of rows, or the error.
async fn reads(store: &Store, scope: &Scope, id: &SessionId) -> Vec<(&'static str, Result<usize>)> {
    let storage = &store.storage;
    let events = EventLines::default().with_payload(true);
    vec![
        ("session", storage.sessions().find_session(scope, id.as_str()).await.map(|_| 2)),
        (
            "transcript",
            storage.reading().get_transcript_lines(scope, id, None, 10).await.map(|rows| rows.len()),
        ),
        ("events", storage.reading().get_event_lines(scope, id, events).await.map(|rows| rows.len() + 1)),
        (
            "message",
            storage.reading().get_message_context(scope, id, 0, 0, 1).await.map(|c| c.messages.len()),
        ),
        ("turn", storage.reading().get_turn_context(scope, id, 1, 0, 0).await.map(|c| c.messages.len())),
        (
            "sync",
            storage.statistics().get_sync_statistics(scope, id).await.map(|s| s.rows.messages.count as usize),
        ),
        ("vectors", storage.vectors().vector_content_types(scope, id).await.map(|types| types.len())),
        ("tree", storage.sessions().session_tree(scope, id).await.map(|tree| tree.flattened().len() + 1)),
    ]
}

/// The rows of a session are readable by viewers who may see it. To others, the session does not exist.
async fn rows_are_readable_only_in_visible_sessions(store: Store) {
    share_all(&store).await;
    for (name, visible) in VIEWERS {
        for session in SESSIONS {
            for (read, answer) in reads(&store, &scope_of_viewer(name), &id(session)).await {
                if visible.contains(&session) {
                    assert_eq!(answer.unwrap(), 2, "{name} {session} {read}");
                } else {
                    assert_eq!(kind(answer), ErrorKind::SessionNotFound, "{name} {session} {read}");
                }
            }
        }
    }
}

/// A tree contains the visible sessions. If its top is hidden, it starts below.
async fn trees_contain_only_visible_sessions(store: Store) {
    let sessions = [
        ("public", None, Sharing::public()),
        ("team", Some("public"), Sharing::teams(["blue", "red"])),
        ("org", Some("team"), Sharing::org("acme")),
        ("private", Some("public"), Sharing::private()),
    ];
    for (session, parent, sharing) in sessions {
        store.create(&session_of_olga(session), |row| row.parent_id = parent.map(id)).await;
        share(&store, session, sharing).await;
    }
    let tree = async |name: &str, of: &str| {
        let tree = store.storage.sessions().session_tree(&scope_of_viewer(name), &id(of)).await?;
        let all = tree.flattened().into_iter();
        Ok(all.map(|(depth, tree)| format!("{depth} {}", tree.session.session_id)).collect::<Vec<_>>())
    };
    for of in SESSIONS {
        assert_eq!(tree("olga", of).await.unwrap(), ["0 public", "1 private", "1 team", "2 org"], "{of}");
    }
    assert_eq!(tree("both", "org").await.unwrap(), ["0 public", "1 team", "2 org"]);
    assert_eq!(tree("teammate", "team").await.unwrap(), ["0 public", "1 team"]);
    assert_eq!(tree("stranger", "public").await.unwrap(), ["0 public"]);
    assert_eq!(tree("colleague", "org").await.unwrap(), ["0 org"]);
    assert_eq!(kind(tree("stranger", "team").await), ErrorKind::SessionNotFound);
}

/// Users, projects and statistics cover the visible sessions.
async fn activity_and_statistics_cover_visible_sessions(store: Store) {
    share_all(&store).await;
    for (name, visible) in VIEWERS {
        let (scope, count) = (scope_of_viewer(name), visible.len() as u64);
        let statistics =
            store.storage.statistics().get_statistics(&scope, &StatisticsOptions::default()).await.unwrap();
        let totals = statistics.totals;
        assert_eq!((totals.sessions, totals.messages, totals.events), (count, 2 * count, count), "{name}");
        assert_eq!(statistics.projects[0].counts.sessions, count, "{name}");
        assert_eq!((statistics.event_types[0].events, statistics.tools[0].uses), (count, count), "{name}");
        let users = store.storage.sessions().list_users(SessionQuery::new(scope.clone())).await.unwrap();
        assert_eq!((users.len(), users[0].of.as_str(), users[0].sessions), (1, "olga", count), "{name}");
        let projects =
            store.storage.sessions().list_projects(SessionQuery::new(scope.clone())).await.unwrap();
        assert_eq!((projects.len(), projects[0].sessions), (1, count), "{name}");
    }
}

/// A viewer's own session takes precedence over shared sessions with the same id.
async fn a_viewers_own_session_takes_precedence(store: Store) {
    share_all(&store).await;
    for name in ["teammate", "stranger"] {
        fill(&store, &target_of(name, "shop", "public")).await;
        let scope = scope_of_viewer(name);
        let session = store.storage.sessions().get_session(&scope, &id("public")).await.unwrap().unwrap();
        assert_eq!(session.user_id.as_str(), name);
        assert_eq!(
            store.storage.sessions().find_session(&scope, "public").await.unwrap().user_id.as_str(),
            name
        );
        let lines =
            store.storage.reading().get_transcript_lines(&scope, &id("public"), None, 10).await.unwrap();
        assert!(lines.iter().all(|line| line.user_id.as_str() == name));
    }
    // To other viewers, the id is ambiguous.
    let other = target_of("ben", "shop", "public");
    fill(&store, &other).await;
    store.storage.sessions().share_session(&other.key, &Sharing::public()).await.unwrap();
    assert_eq!(
        kind(store.storage.sessions().get_session(&scope_of_viewer("loner"), &id("public")).await),
        ErrorKind::Validation
    );
}
