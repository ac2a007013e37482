//! Superseded lines: stored lines of files that no longer contain them.

use super::sessions::check_unknown;
use crate::prelude::*;

/// Which pieces a query returns.
type Condition<'a> = &'a dyn Fn(&SupersededPiece) -> bool;

const AT: &str = "2026-01-09T10:00:00Z";

fn at(time: &str) -> Timestamp {
    Timestamp::parse(time).unwrap()
}

/// A piece of superseded lines from sequence `first` on. Backends do not read the content.
fn piece(target: &IngestTarget, kind: LineKind, first: u32, content: &[u8]) -> SupersededPiece {
    SupersededPiece {
        session: target.key.clone(),
        id: SupersededPiece::new_id(kind, first, Digest::of(content), 0),
        kind,
        first_sequence: first,
        last_sequence: first + 2,
        lines: 3,
        bytes: 1 << 40,
        superseded_at: at(AT),
        reason: SupersededReason::CutOff,
        data: content.to_vec(),
    }
}

/// All pieces of a query, page by page.
async fn listed(store: &Store, query: &SupersededQuery) -> Vec<SupersededPiece> {
    let (mut query, mut pieces) = (query.clone(), Vec::new());
    loop {
        let page = store.backend.list_superseded(&query).await.unwrap();
        let Some(last) = page.last() else { return pieces };
        assert!(page.len() <= query.limit);
        query.after = Some(last.piece_ref());
        pieces.extend(page);
    }
}

async fn all(store: &Store, scope: impl Into<Scope>) -> Vec<SupersededPiece> {
    listed(store, &SupersededQuery::new(scope).with_data(true)).await
}

async fn supersede(store: &Store, target: &IngestTarget, pieces: &[SupersededPiece]) {
    store.write(target, |change| change.superseded = pieces.to_vec()).await;
}

/// Lines are superseded by the change that removes their rows. No other read returns them.
pub async fn lines_are_superseded_with_the_change_that_removes_them(store: Store) {
    let target = target("s");
    store.sync(&target, ["one", "two", "three"].map(lines::user).to_vec()).await;
    store.sync_events(&target, vec![lines::logger_event("a"), lines::logger_event("b")]).await;
    let pieces = [
        piece(&target, LineKind::Event, 1, b"\x00\xff event"),
        piece(&target, LineKind::Message, 1, "two, three é".as_bytes()),
    ];
    let stale = store.stored(&target).await;
    store
        .write(&target, |change| {
            change.session.message_count = 1;
            change.session.event_count = 1;
            change.messages.truncate = Some(1);
            change.events.truncate = Some(1);
            change.superseded = pieces.to_vec();
        })
        .await;
    for handle in [&store, &store.again().await] {
        assert_eq!(all(handle, ana()).await, pieces);
        let without_data = listed(handle, &SupersededQuery::new(ana())).await;
        assert!(without_data.iter().all(|piece| piece.data.is_empty()), "{without_data:?}");
        assert_eq!((handle.messages(&target).await.len(), handle.events(&target).await.len()), (1, 1));
        assert!(handle.find(&target, "three").await.is_empty());
    }
    // A rejected change supersedes nothing.
    let mut change = SessionChange::new(stale.session, Some(stale.version));
    change.superseded = vec![piece(&target, LineKind::Message, 7, b"refused")];
    assert_eq!(store.backend.write_one(change).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(all(&store, ana()).await, pieces);
}

/// A piece that is written again, as after an interruption, is stored once and does not change.
pub async fn superseded_lines_are_stored_once(store: Store) {
    let target = target("s");
    store.sync(&target, vec![lines::user("one")]).await;
    let first = piece(&target, LineKind::Message, 3, b"content");
    supersede(&store, &target, std::slice::from_ref(&first)).await;
    let again = SupersededPiece { superseded_at: at("2026-01-10T10:00:00Z"), ..first.clone() };
    let other = piece(&target, LineKind::Message, 4, b"other content");
    supersede(&store, &target, &[again.clone(), other.clone(), other.clone()]).await;
    assert_eq!(all(&store, ana()).await, [first, other]);
}

/// Superseded lines are listed in pages, in order of user, session and id. Every condition works alone, and all of them
/// together.
pub async fn superseded_lines_are_listed_in_pages(store: Store) {
    let (mut expected, later) = (Vec::new(), at("2026-01-20T10:00:00Z"));
    for (user, session) in [("ana", "a"), ("ana", "b"), ("ben", "a")] {
        let target = target_of(user, &format!("{session}-project"), session);
        store.sync(&target, vec![lines::user("one")]).await;
        let mut pieces = Vec::new();
        for kind in [LineKind::Event, LineKind::Message] {
            let of = |n: u32| SupersededPiece {
                superseded_at: if n < 4 { at(AT) } else { later },
                ..piece(&target, kind, n, format!("{user} {session} {n}").as_bytes())
            };
            pieces.extend([0, 2, 3, 9, 10, 100, 4_000_000_000].map(of));
        }
        supersede(&store, &target, &pieces).await;
        expected.extend(pieces);
    }
    assert_eq!(all(&store, Scope::Everyone).await, expected);
    let everyone = || SupersededQuery::new(Scope::Everyone).with_data(true);
    for limit in [1, 3, 1_000] {
        assert_eq!(listed(&store, &everyone().with_limit(limit)).await, expected);
    }
    let project = SessionFilter::default().with_project(ProjectSlug::new("b-project").unwrap());
    let session = SessionFilter::default().with_session(SessionId::new("a").unwrap());
    let queries: [(SupersededQuery, Condition<'_>); 5] = [
        (everyone().with_kind(LineKind::Event), &|piece| piece.kind == LineKind::Event),
        (everyone().with_until(later), &|piece| piece.superseded_at < later),
        (everyone().with_filter(project), &|piece| piece.session.session_id.as_str() == "b"),
        (everyone().with_filter(session.clone()), &|piece| piece.session.session_id.as_str() == "a"),
        (everyone().with_filter(session).with_kind(LineKind::Message).with_until(later), &|piece| {
            piece.session.session_id.as_str() == "a"
                && piece.kind == LineKind::Message
                && piece.superseded_at < later
        }),
    ];
    for (query, admits) in queries {
        let expected: Vec<_> = expected.iter().filter(|piece| admits(piece)).cloned().collect();
        assert!(!expected.is_empty());
        assert_eq!(listed(&store, &query.with_limit(2)).await, expected);
    }
}

/// Superseded lines are listed within a scope: only those of sessions that a reader may see. Two users with the same
/// session id have separate ones.
pub async fn superseded_lines_stay_in_scope(store: Store) {
    let (anas, bens) = (target_of("ana", "p", "s"), target_of("ben", "p", "s"));
    for target in [&anas, &bens] {
        store.sync(target, vec![lines::user("one")]).await;
    }
    let mine = piece(&anas, LineKind::Message, 1, b"the same content");
    let his = piece(&bens, LineKind::Message, 1, b"the same content");
    supersede(&store, &anas, std::slice::from_ref(&mine)).await;
    supersede(&store, &bens, std::slice::from_ref(&his)).await;
    let viewer = |user: &UserId| Scope::Visible(Viewer::new(user.clone()));
    assert_eq!(all(&store, anas.key.user_id.clone()).await, std::slice::from_ref(&mine));
    assert_eq!(all(&store, bens.key.user_id.clone()).await, std::slice::from_ref(&his));
    assert_eq!(all(&store, viewer(&bens.key.user_id)).await, std::slice::from_ref(&his));
    store.storage.sessions().share_session(&anas.key, &Sharing::public()).await.unwrap();
    assert_eq!(all(&store, viewer(&bens.key.user_id)).await, [mine.clone(), his.clone()]);
    let of_ana = [mine.piece_ref()];
    let pruned = store.backend.prune_superseded(&of_ana).await;
    assert!(matches!(pruned.deleted.as_slice(), [Ok(true)]), "{pruned:?}");
    assert_eq!(all(&store, Scope::Everyone).await, [his]);
}

/// Superseded lines are removed one by one, and nothing else is.
pub async fn superseded_lines_are_pruned(store: Store) {
    let target = target("s");
    store.sync(&target, vec![lines::user("a needle")]).await;
    let pieces: Vec<_> =
        (0..9).map(|n| piece(&target, LineKind::Message, n, format!("content {n}").as_bytes())).collect();
    supersede(&store, &target, &pieces).await;
    let before = store.messages(&target).await;
    let mut gone: Vec<SupersededRef> = pieces.iter().step_by(2).map(SupersededPiece::piece_ref).collect();
    gone.push(piece(&target, LineKind::Event, 0, b"missing").piece_ref());
    for expected in [[true, true, true, true, true, false], [false; 6]] {
        let Deletion { deleted, remains } = store.backend.prune_superseded(&gone).await;
        assert!(remains.is_empty(), "{remains:?}");
        assert_eq!(deleted.into_iter().collect::<Result<Vec<bool>>>().unwrap(), expected);
        let left: Vec<_> = pieces.iter().skip(1).step_by(2).cloned().collect();
        assert_eq!(all(&store.again().await, ana()).await, left);
        assert_eq!(store.messages(&target).await, before);
        assert_eq!(store.find(&target, "needle").await, [0]);
    }
    assert!(store.backend.prune_superseded(&[]).await.deleted.is_empty());
    // Pruned lines can be superseded again.
    supersede(&store, &target, &pieces).await;
    assert_eq!(all(&store, ana()).await, pieces);
}

/// Superseded lines are deleted with their session, however many there are. A session that is created again has no
/// superseded lines.
pub async fn superseded_lines_are_deleted_with_their_session(store: Store) {
    let (gone, kept) = (target("gone"), target("kept"));
    for target in [&gone, &kept] {
        store.sync(target, vec![lines::user("one")]).await;
        let pieces: Vec<_> =
            (0..70).map(|n| piece(target, LineKind::Event, n, format!("content {n}").as_bytes())).collect();
        supersede(&store, target, &pieces).await;
    }
    assert_eq!(all(&store, ana()).await.len(), 140);
    assert!(store.backend.delete_session(&gone.key).await.unwrap());
    let left = |pieces: Vec<SupersededPiece>| {
        assert!(pieces.iter().all(|piece| piece.session == kept.key));
        assert_eq!(pieces.len(), 70);
    };
    left(all(&store.again().await, ana()).await);
    check_unknown(&*store.backend, &gone.key).await;
    store.sync(&gone, vec![lines::user("again")]).await;
    left(all(&store, ana()).await);
}

/// Superseded lines move with a renamed user, and with their session to another project.
pub async fn superseded_lines_move_with_their_session(store: Store) {
    let target = target_of("ana", "old", "s");
    store.sync(&target, vec![lines::user("one")]).await;
    let before = piece(&target, LineKind::Message, 1, b"content");
    supersede(&store, &target, std::slice::from_ref(&before)).await;
    let eve = target_of("eve", "new", "s");
    let project = eve.project_slug.clone();
    store.write(&target, |change| change.session.project_slug = project.clone()).await;
    let filter = SessionFilter::default().with_project(project);
    let query = SupersededQuery::new(Scope::Everyone).with_filter(filter).with_data(true);
    assert_eq!(listed(&store, &query).await, std::slice::from_ref(&before));
    store.storage.users().rename_user(&target.key.user_id, &eve.key.user_id).await.unwrap();
    assert!(all(&store, target.key.user_id.clone()).await.is_empty());
    let moved = SupersededPiece { session: eve.key.clone(), ..before };
    assert_eq!(all(&store, eve.key.user_id.clone()).await, std::slice::from_ref(&moved));
    assert_eq!(listed(&store, &query).await, [moved]);
}
