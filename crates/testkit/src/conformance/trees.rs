//! Sessions that come from sessions: sub-agents and forks.

use amplifier_session_core::{
    ErrorKind, Scope, Viewer,
    model::{RawJson, Session, SessionId, Timestamp},
    storage::{Origin, SessionTree},
};

use super::{
    Subject,
    store::{Store, kind, scope, target, target_of},
};

fn id(session: &str) -> SessionId {
    SessionId::new(session).unwrap()
}

/// A session of a user that was created on day `day` and came from `parent`.
async fn put(store: &Store, user: &str, session: &str, day: u32, parent: Option<&str>) {
    let target = target_of(user, "shop", session);
    let created = Timestamp::parse(&format!("2026-01-{day:02}T00:00:00Z")).unwrap();
    let mut session = Session::new(target.key, target.host_id, target.project_slug, created);
    session.parent_id = parent.map(id);
    store.storage.create_session(session).await.unwrap();
}

async fn tree(store: &Store, session: &str) -> SessionTree {
    store.storage.session_tree(&scope(&target("x")), &id(session)).await.unwrap()
}

/// The ids of a tree, each behind its depth.
fn shown(tree: &SessionTree) -> Vec<String> {
    let all = tree.flattened().into_iter();
    all.map(|(depth, tree)| format!("{depth} {}", tree.session.session_id)).collect()
}

/// Whichever of its sessions is asked for, the tree is the whole one, children the oldest first.
pub async fn the_whole_tree_is_shown(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    put(&store, "ana", "top", 1, None).await;
    put(&store, "ana", "late", 9, Some("top")).await;
    put(&store, "ana", "early", 2, Some("top")).await;
    put(&store, "ana", "deep", 3, Some("late")).await;
    put(&store, "ana", "deeper", 4, Some("deep")).await;
    put(&store, "ana", "other", 1, None).await;
    for session in ["top", "late", "early", "deep", "deeper"] {
        let tree = tree(&store, session).await;
        assert_eq!(shown(&tree), ["0 top", "1 early", "1 late", "2 deep", "3 deeper"], "{session}");
        let stored = store.stored(&target("deeper")).await.session;
        assert!(tree.flattened().iter().any(|(_, tree)| tree.session == stored));
    }
    assert_eq!(shown(&tree(&store, "other").await), ["0 other"]);
    let missing = store.storage.session_tree(&scope(&target("x")), &id("missing")).await;
    assert_eq!(kind(missing), ErrorKind::SessionNotFound);
}

/// A session that names the turn at which it left its parent is a fork, one that names none a sub-agent.
pub async fn forks_and_sub_agents_are_told_apart(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let metadata = [
        ("top", r#"{"created":"2026-01-01T00:00:00Z"}"#),
        ("agent", r#"{"created":"2026-01-02T00:00:00Z","parent_id":"top"}"#),
        ("fork", r#"{"created":"2026-01-03T00:00:00Z","parent_id":"top","forked_from_turn":2}"#),
    ];
    for (session, metadata) in metadata {
        store.storage.sync_session_metadata(&target(session), RawJson::from(metadata)).await.unwrap();
    }
    let tree = tree(&store, "fork").await;
    let origins: Vec<_> =
        tree.flattened().iter().map(|(_, tree)| (tree.session.session_id.to_string(), tree.origin)).collect();
    let expected = [("top", Origin::Root), ("agent", Origin::SubAgent), ("fork", Origin::Fork)];
    assert_eq!(origins, expected.map(|(session, origin)| (session.to_owned(), origin)));
}

/// A session whose parent is not in the store is the top of its tree, until the parent comes.
pub async fn a_session_without_its_parent_is_the_top(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    put(&store, "ana", "child", 2, Some("parent")).await;
    put(&store, "ana", "sibling", 3, Some("parent")).await;
    put(&store, "ana", "grandchild", 4, Some("child")).await;
    let before = tree(&store, "grandchild").await;
    assert_eq!(shown(&before), ["0 child", "1 grandchild"]);
    assert_eq!(before.origin, Origin::SubAgent);
    put(&store, "ana", "parent", 1, None).await;
    assert_eq!(
        shown(&tree(&store, "grandchild").await),
        ["0 parent", "1 child", "2 grandchild", "1 sibling"]
    );
}

/// A circle of parents ends: each session of it is shown once.
pub async fn a_circle_of_parents_ends(subject: &dyn Subject) {
    let store = Store::open(subject).await;
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

/// A tree is of one user: sessions of others that name the same parent are not shown, to nobody.
pub async fn children_of_another_user_are_not_shown(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for user in ["ana", "ben"] {
        put(&store, user, "top", 1, None).await;
        put(&store, user, &format!("child-of-{user}"), 2, Some("top")).await;
    }
    put(&store, "eve", "child-of-eve", 2, Some("top")).await;
    assert_eq!(shown(&tree(&store, "top").await), ["0 top", "1 child-of-ana"]);
    let everyone = store.storage.session_tree(&Scope::Everyone, &id("child-of-ben")).await.unwrap();
    assert_eq!(shown(&everyone), ["0 top", "1 child-of-ben"]);
    assert!(everyone.flattened().iter().all(|(_, tree)| tree.session.user_id.as_str() == "ben"));
    let eve = Scope::Visible(Viewer::new(target_of("eve", "p", "s").key.user_id));
    let own = store.storage.session_tree(&eve, &id("child-of-eve")).await.unwrap();
    assert_eq!(shown(&own), ["0 child-of-eve"]);
}

/// A long line of sessions, each from the one before, is shown from end to end.
pub async fn a_long_line_of_sessions_is_shown_whole(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for n in 0..150 {
        let parent = (n > 0).then(|| format!("s{:03}", n - 1));
        put(&store, "ana", &format!("s{n:03}"), 1, parent.as_deref()).await;
    }
    let expected: Vec<String> = (0..150).map(|n| format!("{n} s{n:03}")).collect();
    for session in ["s000", "s075", "s149"] {
        assert_eq!(shown(&tree(&store, session).await), expected);
    }
}
