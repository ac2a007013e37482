//! Filters, in every way to search: what they leave is what a look at every message leaves.

use std::collections::BTreeSet;

use amplifier_session_core::{
    model::{Message, ProjectSlug, RawJson, Role, Session, Timestamp},
    search::{SearchFilter, SearchMode, SearchOptions, SessionFilter, VectorSearchOptions},
    storage::{IngestTarget, SessionEdit},
};

use super::{
    Subject, samples,
    store::{Store, scope, target, target_of},
};
use crate::lines::{self, Line};

/// Session and sequence of messages of ana.
type Found = BTreeSet<(String, u32)>;

fn day(n: u64) -> String {
    format!("2026-01-{n:02}T00:00:00Z")
}

fn time(n: u64) -> Timestamp {
    Timestamp::parse(&day(n)).unwrap()
}

fn project(name: &str) -> ProjectSlug {
    ProjectSlug::new(name).unwrap()
}

/// Lines that all hold the word, of every role that is searched, some days apart.
fn lines_with(random: &mut samples::Random, word: &str, count: usize) -> Vec<Line> {
    let lines = (0..count).map(|n| {
        let text = format!("{word} {}", random.words(3, 50));
        let line = match random.below(4) {
            0 => lines::assistant(&text),
            1 => lines::tool(&text),
            2 => lines::thinking("so be it", &text),
            _ => lines::user(&text),
        };
        line.at(&day(1 + (random.below(8) + n as u64) % 8))
    });
    lines.collect()
}

fn targets() -> Vec<IngestTarget> {
    (0..10).map(|n| target_of("ana", ["shop", "blog", "club"][n % 3], &format!("s{n}"))).collect()
}

/// Sessions of ana that differ in all that can be asked for; half of them are in the index.
async fn fill(store: &Store) {
    let mut random = samples::Random(23);
    let metadata = [
        r#"{"bundle":"x","tags":["red","blue"]}"#,
        r#"{"bundle":"y","tags":["red"]}"#,
        r#"{"tags":["blue","it's \"100%\""]}"#,
        "{}",
    ];
    for (n, target) in targets().iter().enumerate() {
        let count = 3 + random.below(8) as usize;
        store.sync(target, lines_with(&mut random, "needle", count)).await;
        store.storage.sync_session_metadata(target, RawJson::from(metadata[n % 4])).await.unwrap();
        if n == 4 {
            store.storage.update_index().await.unwrap();
        }
    }
    // The same, by somebody else.
    let stranger = target_of("ben", "shop", "s0");
    store.sync(&stranger, lines_with(&mut random, "needle", 5)).await;
    store.storage.sync_session_metadata(&stranger, RawJson::from(metadata[0])).await.unwrap();
}

/// What each way to search finds of ana's for the word that all messages hold.
async fn found(store: &Store, filter: &SearchFilter) -> Vec<(String, Found)> {
    let scope = scope(&target("s"));
    let mut answers = Vec::new();
    for mode in [SearchMode::FullText, SearchMode::Semantic, SearchMode::Hybrid] {
        let options =
            SearchOptions::new("needle").with_mode(mode).with_filter(filter.clone()).with_limit(200);
        let answer = store.storage.search_transcripts(&scope, &options).await.unwrap();
        assert_eq!(answer.mode, mode);
        answers.push((mode.to_string(), answer.results));
    }
    let options = VectorSearchOptions::new(store.embedding.vector("needle")).with_filter(filter.clone());
    let answer = store.storage.vector_search(&scope, &options.with_limit(200)).await.unwrap();
    answers.push(("vector".to_owned(), answer.results));
    let places = answers.into_iter().map(|(way, results)| {
        assert!(results.iter().all(|result| result.user_id.as_str() == "ana"), "{way}");
        (way, results.iter().map(|result| (result.session_id.to_string(), result.sequence)).collect())
    });
    places.collect()
}

/// Every message of ana, with its session as it is now.
async fn everything(store: &Store) -> Vec<(Session, Message)> {
    let mut all = Vec::new();
    for target in targets() {
        let session = store.stored(&target).await.session;
        all.extend(store.messages(&target).await.into_iter().map(|message| (session.clone(), message)));
    }
    all
}

/// A filter, and what it means.
type Narrowing = (SearchFilter, fn(&Session, &Message) -> bool);

fn of_sessions(narrow: impl Fn(SessionFilter) -> SessionFilter) -> SearchFilter {
    SearchFilter::default().with_sessions(narrow(SessionFilter::default()))
}

/// Each field of the filter, and some of them together.
fn narrowings() -> Vec<Narrowing> {
    let none = SearchFilter::default;
    vec![
        (none(), |_, _| true),
        (none().with_project(project("blog")), |s, _| s.project_slug.as_str() == "blog"),
        (none().with_project(project("blo")), |_, _| false),
        (none().with_session(target("s3").key.session_id), |s, _| s.session_id.as_str() == "s3"),
        (none().with_session(target("s").key.session_id), |_, _| false),
        (of_sessions(|f| f.with_bundle("x".to_owned())), |s, _| s.bundle.as_deref() == Some("x")),
        (of_sessions(|f| f.with_bundle(String::new())), |_, _| false),
        (of_sessions(|f| f.with_tags(["red"])), |s, _| s.tags.contains(&"red".to_owned())),
        (of_sessions(|f| f.with_tags(["blue", "red"])), |s, _| s.tags == ["red", "blue"]),
        (of_sessions(|f| f.with_tags(["it's \"100%\""])), |s, _| s.tags.len() == 2 && s.tags[0] == "blue"),
        (of_sessions(|f| f.with_tags(["re"])), |_, _| false),
        (of_sessions(|f| f.with_min_turns(3)), |s, _| s.turn_count >= 3),
        (of_sessions(|f| f.with_max_turns(2)), |s, _| s.turn_count <= 2),
        (of_sessions(|f| f.with_min_turns(2).with_max_turns(2)), |s, _| s.turn_count == 2),
        (none().with_role(Role::User), |_, m| m.role == Role::User),
        (none().with_role(Role::Tool), |_, m| m.role == Role::Tool),
        (none().with_role(Role::System), |_, _| false),
        (none().with_since(time(5)), |_, m| m.ts >= time(5)),
        (none().with_until(time(5)), |_, m| m.ts < time(5)),
        (none().with_since(time(3)).with_until(time(4)), |_, m| m.ts == time(3)),
        (none().with_since(time(4)).with_until(time(3)), |_, _| false),
        (of_sessions(|f| f.with_tags(["blue"]).with_max_turns(4)).with_role(Role::Assistant), |s, m| {
            s.tags.contains(&"blue".to_owned()) && s.turn_count <= 4 && m.role == Role::Assistant
        }),
        (
            of_sessions(|f| f.with_project(project("shop")).with_bundle("y".to_owned())).with_since(time(2)),
            |s, m| s.project_slug.as_str() == "shop" && s.bundle.as_deref() == Some("y") && m.ts >= time(2),
        ),
    ]
}

/// Every filter leaves the same in every way to search: what a look at everything leaves.
async fn check(store: &Store, label: &str) {
    let everything = everything(store).await;
    let mut sizes = BTreeSet::new();
    for (filter, is_wanted) in narrowings() {
        let wanted = everything.iter().filter(|(session, message)| is_wanted(session, message));
        let expected: Found =
            wanted.map(|(s, message)| (s.session_id.to_string(), message.sequence)).collect();
        sizes.insert(expected.len());
        for (way, found) in found(store, &filter).await {
            assert_eq!(found, expected, "{label} {way} {filter:?}");
        }
    }
    assert!(sizes.len() > 8, "the filters tell nothing apart: {sizes:?}");
}

/// Every filter, in every way to search, equals a look at every message: whatever part is in the index.
pub async fn every_filter_equals_brute_force(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store).await;
    check(&store, "half indexed").await;
    store.storage.update_index().await.unwrap();
    check(&store, "indexed").await;
}

/// What was written after the last update of the index is filtered as what was written before it.
pub async fn filters_hold_for_what_came_after_the_index(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store).await;
    store.storage.update_index().await.unwrap();
    let mut random = samples::Random(29);
    for target in targets().iter().step_by(2) {
        let start = store.messages(target).await.len() as u32;
        store.sync_from(target, start, lines_with(&mut random, "needle", 2)).await.unwrap();
    }
    let rewritten = lines_with(&mut random, "needle", 6);
    store.sync(&targets()[1], rewritten).await;
    check(&store, "after the index").await;
    check(&Store::open_again(subject).await, "another handle").await;
    store.storage.update_index().await.unwrap();
    check(&store, "indexed again").await;
}

/// A session is filtered by what it is now: tags that were edited, metadata that was synced, turns that were added,
/// a project that it moved to. No index needs to be made again.
pub async fn a_session_is_filtered_by_what_it_is_now(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    fill(&store).await;
    store.storage.update_index().await.unwrap();
    let targets = targets();
    let edit = |edit: SessionEdit, n: usize| {
        let (store, key) = (&store, targets[n].key.clone());
        async move { store.storage.update_session(&key, &edit).await.unwrap() }
    };
    edit(SessionEdit::default().add_tags(["red"]), 3).await;
    edit(SessionEdit::default().remove_tags(["red"]), 0).await;
    edit(SessionEdit::default().set_tags(["red", "blue"]), 7).await;
    check(&store, "tags").await;
    let metadata = RawJson::from(r#"{"bundle":"y","tags":["red","blue"]}"#);
    store.storage.sync_session_metadata(&targets[2], metadata).await.unwrap();
    check(&store, "metadata").await;
    let start = store.messages(&targets[5]).await.len() as u32;
    let turns = (0..5).map(|_| lines::user("needle again").at(&day(2))).collect();
    store.sync_from(&targets[5], start, turns).await.unwrap();
    check(&store, "turns").await;
    let moved = IngestTarget { project_slug: project("club"), ..targets[4].clone() };
    let metadata = RawJson::from(r#"{"bundle":"x","tags":["red","blue"]}"#);
    store.storage.sync_session_metadata(&moved, metadata).await.unwrap();
    check(&store, "project").await;
    check(&Store::open_again(subject).await, "another handle").await;
    store.storage.update_index().await.unwrap();
    check(&store, "indexed again").await;
}

/// A filter narrows before the ranking: what it leaves is found, among however many that match better.
pub async fn filters_narrow_before_the_ranking(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let crowd = (0..160).map(|_| lines::user("needle")).collect();
    store.sync(&target("crowd"), crowd).await;
    let filler = "something else altogether ".repeat(20);
    let rare = vec![lines::user(&format!("{filler} needle")), lines::assistant(&format!("needle {filler}"))];
    store.sync(&target("rare"), rare).await;
    let metadata = RawJson::from(r#"{"bundle":"rare"}"#);
    store.storage.sync_session_metadata(&target("rare"), metadata).await.unwrap();
    let edit = SessionEdit::default().add_tags(["rare"]);
    for round in 0..2 {
        store.storage.update_session(&target("rare").key, &edit).await.unwrap();
        let filters = [
            of_sessions(|f| f.with_tags(["rare"])),
            of_sessions(|f| f.with_bundle("rare".to_owned())),
            of_sessions(|f| f.with_max_turns(1)),
            of_sessions(|f| f.with_tags(["rare"]).with_min_turns(1)),
        ];
        for filter in filters {
            for (way, found) in found(&store, &filter).await {
                let expected = [("rare".to_owned(), 0), ("rare".to_owned(), 1)];
                assert_eq!(found, Found::from(expected), "{round} {way} {filter:?}");
            }
        }
        store.storage.update_index().await.unwrap();
    }
}
