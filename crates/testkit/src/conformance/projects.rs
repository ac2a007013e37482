//! The filter for several projects.

use crate::prelude::*;

fn sorted(found: impl Iterator<Item = SessionId>) -> Vec<String> {
    let mut ids: Vec<String> = found.map(|id| id.to_string()).collect();
    ids.sort_unstable();
    ids
}

/// One superseded line of a session.
fn piece(target: &IngestTarget) -> SupersededPiece {
    let data = b"line".to_vec();
    SupersededPiece {
        session: target.key.clone(),
        id: SupersededPiece::new_id(LineKind::Message, 7, Digest::of(&data), 0),
        kind: LineKind::Message,
        first_sequence: 7,
        last_sequence: 7,
        lines: 1,
        bytes: data.len() as u64,
        superseded_at: day(3),
        reason: SupersededReason::CutOff,
        data,
    }
}

/// The sessions that each read returns for a filter, by the name of the read.
async fn reads(store: &Store, scope: &Scope, filter: &SessionFilter) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let query = SessionQuery::new(scope.clone()).with_filter(filter.clone());
    let listed = store.storage.sessions().search_sessions(&query).await.unwrap();
    let listed_sessions = listed.len() as u64;
    found.push(("sessions".to_owned(), sorted(listed.into_iter().map(|session| session.session_id))));
    for options in [words("needle"), meaning("needle")] {
        let options = options.with_filter(SearchFilter::default().with_sessions(filter.clone()));
        let results = store.storage.search().search_transcripts(scope, &options).await.unwrap().results;
        let name = format!("search {}", options.mode);
        found.push((name, sorted(results.into_iter().map(|result| result.session_id))));
    }
    let mut events = EventSearchOptions::default();
    events.filter.sessions.clone_from(filter);
    let events = store.storage.reading().search_events(scope, &events).await.unwrap();
    found.push(("events".to_owned(), sorted(events.into_iter().map(|event| event.session_id))));
    let superseded = SupersededQuery::new(scope.clone()).with_filter(filter.clone());
    let superseded = store.backend.list_superseded(&superseded).await.unwrap();
    let superseded = superseded.into_iter().map(|piece| piece.session.session_id);
    found.push(("superseded lines".to_owned(), sorted(superseded)));
    let options = StatisticsOptions::default().with_sessions(filter.clone());
    let statistics = store.storage.statistics().get_statistics(scope, &options).await.unwrap();
    assert_eq!(statistics.totals.sessions, listed_sessions, "{scope:?} {filter:?}");
    found
}

/// The filter for several projects selects the sessions of each of them in every read, and only those in scope.
pub async fn several_projects_are_selected_in_every_read(store: Store) {
    let sessions = [
        ("ana", "shop", "a-shop"),
        ("ana", "blog", "a-blog"),
        ("ana", "club", "a-club"),
        ("ben", "shop", "b-shop"),
        ("ben", "blog", "b-blog"),
        ("ben", "shop-web", "b-web"),
    ];
    for (n, (user, project, id)) in sessions.into_iter().enumerate() {
        let target = target_of(user, project, id);
        store.sync(&target, vec![lines::user("needle")]).await;
        store.sync_events(&target, vec![lines::logger_event("tool:call")]).await;
        store.write(&target, |change| change.superseded = vec![piece(&target)]).await;
        if id == "b-shop" {
            store.storage.sessions().share_session(&target.key, &Sharing::public()).await.unwrap();
        }
        if n == 2 {
            store.storage.update_index().await.unwrap();
        }
    }
    let filter = |names: &[&str]| {
        SessionFilter::default().with_projects(names.iter().map(|name| ProjectSlug::new(*name).unwrap()))
    };
    let visible = Scope::Visible(Viewer::new(target("s").key.user_id));
    let cases: [(Scope, &[&str], &[&str]); 7] = [
        (ana(), &["shop", "blog"], &["a-blog", "a-shop"]),
        (ana(), &["shop"], &["a-shop"]),
        (ana(), &["shop-web", "sho"], &[]),
        (ana(), &[], &[]),
        (visible, &["shop", "blog"], &["a-blog", "a-shop", "b-shop"]),
        (Scope::Everyone, &["shop", "blog"], &["a-blog", "a-shop", "b-blog", "b-shop"]),
        (Scope::Everyone, &["club", "shop-web", "nowhere"], &["a-club", "b-web"]),
    ];
    for _ in 0..2 {
        for (scope, names, expected) in &cases {
            for (read, found) in reads(&store, scope, &filter(names)).await {
                assert_eq!(found, *expected, "{read} {scope:?} {names:?}");
            }
        }
        store.storage.update_index().await.unwrap();
    }
    let one_of_them = filter(&["shop", "blog"]).with_project(ProjectSlug::new("blog").unwrap());
    for (read, found) in reads(&store, &ana(), &one_of_them).await {
        assert_eq!(found, ["a-blog"], "{read}");
    }
}
