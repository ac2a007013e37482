//! Trees of sessions: sub-agents and forks.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    the_whole_tree_is_returned,
    forks_and_sub_agents_are_distinguished,
    a_session_without_its_parent_is_the_top,
    a_cycle_of_parents_ends,
    children_of_other_users_are_not_in_a_tree,
    a_long_chain_of_sessions_is_complete,
];

fn id(session: &str) -> SessionId {
    SessionId::new(session).unwrap()
}

/// Creates a session of a user on a day, with the parent `parent`.
async fn put(store: &Store, user: &str, session: &str, created: u32, parent: Option<&str>) {
    let fill = |session: &mut Session| {
        (session.created, session.parent_id) = (day(created), parent.map(id));
    };
    store.create(&target_of(user, "shop", session), fill).await;
}

async fn tree(store: &Store, session: &str) -> SessionTree {
    store.storage.sessions().session_tree(&ana(), &id(session)).await.unwrap()
}

/// The ids of a tree with their depths.
fn shown(tree: &SessionTree) -> Vec<String> {
    let all = tree.flattened().into_iter();
    all.map(|(depth, tree)| format!("{depth} {}", tree.session.session_id)).collect()
}

/// The tree of any of its sessions is the whole tree, the oldest children first.
async fn the_whole_tree_is_returned(store: Store) {
    for (session, created, parent) in [
        ("top", 1, None),
        ("late", 9, Some("top")),
        ("early", 2, Some("top")),
        ("deep", 3, Some("late")),
        ("deeper", 4, Some("deep")),
        ("other", 1, None),
    ] {
        put(&store, "ana", session, created, parent).await;
    }
    for session in ["top", "late", "early", "deep", "deeper"] {
        let tree = tree(&store, session).await;
        assert_eq!(shown(&tree), ["0 top", "1 early", "1 late", "2 deep", "3 deeper"], "{session}");
        let stored = store.stored(&target("deeper")).await.session;
        assert!(tree.flattened().iter().any(|(_, tree)| tree.session == stored));
    }
    assert_eq!(shown(&tree(&store, "other").await), ["0 other"]);
}

/// A session that names a turn of its parent is a fork. Others are sub-agents.
async fn forks_and_sub_agents_are_distinguished(store: Store) {
    let metadata = [
        ("top", r#"{"created":"2026-01-01T00:00:00Z"}"#),
        ("agent", r#"{"created":"2026-01-02T00:00:00Z","parent_id":"top"}"#),
        ("fork", r#"{"created":"2026-01-03T00:00:00Z","parent_id":"top","forked_from_turn":2}"#),
    ];
    for (session, metadata) in metadata {
        store.sync_metadata(&target(session), metadata).await;
    }
    let tree = tree(&store, "fork").await;
    let flattened = tree.flattened();
    let origins = flattened.iter().map(|(_, tree)| (tree.session.session_id.as_str(), tree.origin));
    assert!(origins.eq([("top", Origin::Root), ("agent", Origin::SubAgent), ("fork", Origin::Fork)]));
}

/// A session whose parent is not in the store is the top of its tree until the parent is stored.
async fn a_session_without_its_parent_is_the_top(store: Store) {
    put(&store, "ana", "child", 2, Some("parent")).await;
    put(&store, "ana", "sibling", 3, Some("parent")).await;
    put(&store, "ana", "grandchild", 4, Some("child")).await;
    let before = tree(&store, "grandchild").await;
    assert_eq!(shown(&before), ["0 child", "1 grandchild"]);
    assert_eq!(before.origin, Origin::SubAgent);
    put(&store, "ana", "parent", 1, None).await;
    let after = tree(&store, "grandchild").await;
    assert_eq!(shown(&after), ["0 parent", "1 child", "2 grandchild", "1 sibling"]);
}

/// In a cycle of parents, each session is listed once.
async fn a_cycle_of_parents_ends(store: Store) {
    for (session, parent) in [("a", "c"), ("b", "a"), ("c", "b"), ("d", "b"), ("self", "self")] {
        put(&store, "ana", session, 1, Some(parent)).await;
    }
    for session in ["a", "b", "c", "d"] {
        let tree = tree(&store, session).await;
        let mut found: Vec<String> =
            tree.flattened().iter().map(|(_, tree)| tree.session.session_id.to_string()).collect();
        found.sort();
        assert_eq!(found, ["a", "b", "c", "d"], "{session}");
    }
    assert_eq!(shown(&tree(&store, "self").await), ["0 self"]);
}

/// A tree contains sessions of one user. Sessions of others that name the same parent are not in it, in any scope.
async fn children_of_other_users_are_not_in_a_tree(store: Store) {
    for user in ["ana", "ben"] {
        put(&store, user, "top", 1, None).await;
        put(&store, user, &format!("child-of-{user}"), 2, Some("top")).await;
    }
    put(&store, "eve", "child-of-eve", 2, Some("top")).await;
    assert_eq!(shown(&tree(&store, "top").await), ["0 top", "1 child-of-ana"]);
    let everyone =
        store.storage.sessions().session_tree(&Scope::Everyone, &id("child-of-ben")).await.unwrap();
    assert_eq!(shown(&everyone), ["0 top", "1 child-of-ben"]);
    assert!(everyone.flattened().iter().all(|(_, tree)| tree.session.user_id.as_str() == "ben"));
    let eve = Scope::Visible(Viewer::new(target_of("eve", "p", "s").key.user_id));
    let own = store.storage.sessions().session_tree(&eve, &id("child-of-eve")).await.unwrap();
    assert_eq!(shown(&own), ["0 child-of-eve"]);
}

/// A long chain of sessions is returned completely.
async fn a_long_chain_of_sessions_is_complete(store: Store) {
    for n in 0..150 {
        let parent = (n > 0).then(|| format!("s{:03}", n - 1));
        put(&store, "ana", &format!("s{n:03}"), 1, parent.as_deref()).await;
    }
    let expected: Vec<String> = (0..150).map(|n| format!("{n} s{n:03}")).collect();
    for session in ["s000", "s075", "s149"] {
        assert_eq!(shown(&tree(&store, session).await), expected);
    }
}
