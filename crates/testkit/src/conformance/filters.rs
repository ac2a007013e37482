//! Filters: every search mode returns the same messages as filtering all messages one by one.

use std::collections::BTreeSet;

use crate::prelude::*;

/// The repositories of sessions.
const APP: &str = "github.com/acme/app";
const FOLDER: &str = "/home/o'brien/_%\"app";

/// Session and sequence of messages of ana.
type Found = BTreeSet<(String, u32)>;

fn project(name: &str) -> ProjectSlug {
    ProjectSlug::new(name).unwrap()
}

fn repository(text: &str) -> Repository {
    Repository::new(text).unwrap()
}

/// Lines that all contain the word, in every role that is searched, on different days.
fn lines_with(random: &mut Random, word: &str, count: usize) -> Vec<Line> {
    let lines = (0..count).map(|n| {
        let text = format!("{word} {}", random.words(3, 50));
        let line = match random.below(4) {
            0 => lines::assistant(&text),
            1 => lines::tool(&text),
            2 => lines::thinking("so be it", &text),
            _ => lines::user(&text),
        };
        line.at(day(1 + (random.below(8) + n) as u32 % 8))
    });
    lines.collect()
}

fn targets() -> Vec<IngestTarget> {
    (0..10).map(|n| target_of("ana", ["shop", "blog", "club"][n % 3], &format!("s{n}"))).collect()
}

/// Sessions of ana that differ in every field of the filter. Half of them are indexed.
async fn fill(store: &Store) {
    let mut random = Random(23);
    let metadata = [
        r#"{"bundle":"x","tags":["red","blue"]}"#,
        r#"{"bundle":"y","tags":["red"]}"#,
        r#"{"tags":["blue","it's \"100%\""]}"#,
        "{}",
    ];
    let repositories = [Some(repository(APP)), Some(repository(FOLDER)), None];
    for (n, target) in targets().iter().enumerate() {
        let count = 3 + random.below(8);
        store.sync(target, lines_with(&mut random, "needle", count)).await;
        store.sync_metadata(target, metadata[n % 4]).await;
        store.write(target, |change| change.session.repository.clone_from(&repositories[n / 2 % 3])).await;
        if n % 5 == 2 {
            store.write(target, |change| change.session.source = SessionSource::AmplifierAgent).await;
        }
        if n == 4 {
            store.storage.update_index().await.unwrap();
        }
    }
    // The same for another user.
    let stranger = target_of("ben", "shop", "s0");
    store.sync(&stranger, lines_with(&mut random, "needle", 5)).await;
    store.sync_metadata(&stranger, metadata[0]).await;
    store.write(&stranger, |change| change.session.repository = Some(repository(APP))).await;
}

/// The messages of ana that each search mode finds for the word that all messages contain.
async fn found(store: &Store, filter: &SearchFilter) -> Vec<(SearchMode, Found)> {
    let mut answers = Vec::new();
    for options in [words("needle"), meaning("needle")] {
        let options = options.with_filter(filter.clone()).with_limit(200);
        let answer = store.search(&target("s"), &options).await;
        assert_eq!(answer.mode, options.mode);
        assert!(answer.results.iter().all(|result| result.user_id.as_str() == "ana"));
        let places = answer.results.iter().map(|result| (result.session_id.to_string(), result.sequence));
        answers.push((options.mode, places.collect()));
    }
    answers
}

/// Every message of ana with its current session.
async fn everything(store: &Store) -> Vec<(Session, Message)> {
    let mut all = Vec::new();
    for target in targets() {
        let session = store.stored(&target).await.session;
        all.extend(store.messages(&target).await.into_iter().map(|message| (session.clone(), message)));
    }
    all
}

/// A filter and its definition.
type Narrowing = (SearchFilter, fn(&Session, &Message) -> bool);

fn of_sessions(narrow: impl Fn(SessionFilter) -> SessionFilter) -> SearchFilter {
    SearchFilter::default().with_sessions(narrow(SessionFilter::default()))
}

/// Each field of the filter, and some combinations.
fn narrowings() -> Vec<Narrowing> {
    let none = SearchFilter::default;
    vec![
        (none(), |_, _| true),
        (none().with_project(project("blog")), |s, _| s.project_slug.as_str() == "blog"),
        (none().with_project(project("blo")), |_, _| false),
        (of_sessions(|f| f.with_projects(["blog", "club"].map(project))), |s, _| {
            ["blog", "club"].contains(&s.project_slug.as_str())
        }),
        (of_sessions(|f| f.with_projects([project("club")])), |s, _| s.project_slug.as_str() == "club"),
        (of_sessions(|f| f.with_projects([project("blo"), project("%")])), |_, _| false),
        (of_sessions(|f| f.with_projects([])), |_, _| false),
        (
            of_sessions(|f| f.with_projects(["blog", "shop"].map(project)).with_project(project("shop"))),
            |s, _| s.project_slug.as_str() == "shop",
        ),
        (none().with_session(target("s3").key.session_id), |s, _| s.session_id.as_str() == "s3"),
        (none().with_session(target("s").key.session_id), |_, _| false),
        (of_sessions(|f| f.with_repositories([repository(APP)])), |s, _| {
            s.repository.as_ref().is_some_and(|of| of.as_str() == APP)
        }),
        (of_sessions(|f| f.with_repositories([repository(FOLDER)]).with_project(project("blog"))), |s, _| {
            s.repository.as_ref().is_some_and(|of| of.as_str() == FOLDER) && s.project_slug.as_str() == "blog"
        }),
        (of_sessions(|f| f.with_repositories([repository(APP), repository(FOLDER)])), |s, _| {
            s.repository.is_some()
        }),
        (
            of_sessions(|f| f.with_repositories([repository("acme/app"), repository("github.com/acme/%")])),
            |_, _| false,
        ),
        (of_sessions(|f| f.with_repositories([])), |_, _| false),
        (of_sessions(|f| f.with_bundle("x".to_owned())), |s, _| s.bundle.as_deref() == Some("x")),
        (of_sessions(|f| f.with_bundle(String::new())), |_, _| false),
        (of_sessions(|f| f.with_source(SessionSource::AmplifierAgent)), |s, _| {
            ["s2", "s7"].contains(&s.session_id.as_str())
        }),
        (of_sessions(|f| f.with_source(SessionSource::Amplifier)), |s, _| {
            s.source == SessionSource::Amplifier
        }),
        (of_sessions(|f| f.with_tags(["red"])), |s, _| s.tags.contains(&"red".to_owned())),
        (of_sessions(|f| f.with_tags(["blue", "red"])), |s, _| s.tags == ["red", "blue"]),
        (of_sessions(|f| f.with_tags(["it's \"100%\""])), |s, _| s.tags.len() == 2 && s.tags[0] == "blue"),
        (of_sessions(|f| f.with_tags(["re"])), |_, _| false),
        (of_sessions(|f| f.with_min_turns(3)), |s, _| s.turn_count >= 3),
        (of_sessions(|f| f.with_max_turns(2)), |s, _| s.turn_count <= 2),
        (of_sessions(|f| f.with_min_turns(2).with_max_turns(2)), |s, _| s.turn_count == 2),
        (of_sessions(|f| f.excluding(target("s3").key)), |s, _| s.session_id.as_str() != "s3"),
        // The session of another user.
        (of_sessions(|f| f.excluding(target_of("ben", "shop", "s0").key)), |_, _| true),
        (of_sessions(|f| f.with_only([target_of("ben", "shop", "s0").key])), |_, _| false),
        (of_sessions(|f| f.with_only([])), |_, _| false),
        (of_sessions(|f| f.with_only([target("s1").key, target("s6").key])), |s, _| {
            ["s1", "s6"].contains(&s.session_id.as_str())
        }),
        (
            of_sessions(|f| f.with_only([target("s1").key, target("s6").key]).excluding(target("s6").key)),
            |s, _| s.session_id.as_str() == "s1",
        ),
        (
            of_sessions(|f| f.excluding(target("s0").key).excluding(target("s6").key))
                .with_project(project("shop"))
                .with_role(Role::User),
            |s, m| ["s3", "s9"].contains(&s.session_id.as_str()) && m.role == Role::User,
        ),
        (none().with_role(Role::User), |_, m| m.role == Role::User),
        (none().with_role(Role::Tool), |_, m| m.role == Role::Tool),
        (none().with_role(Role::System), |_, _| false),
        (none().with_since(day(5)), |_, m| m.ts >= day(5)),
        (none().with_until(day(5)), |_, m| m.ts < day(5)),
        (none().with_since(day(3)).with_until(day(4)), |_, m| m.ts == day(3)),
        (none().with_since(day(4)).with_until(day(4)), |_, _| false),
        (of_sessions(|f| f.with_tags(["blue"]).with_max_turns(4)).with_role(Role::Assistant), |s, m| {
            s.tags.contains(&"blue".to_owned()) && s.turn_count <= 4 && m.role == Role::Assistant
        }),
        (
            of_sessions(|f| f.with_project(project("shop")).with_bundle("y".to_owned())).with_since(day(2)),
            |s, m| s.project_slug.as_str() == "shop" && s.bundle.as_deref() == Some("y") && m.ts >= day(2),
        ),
    ]
}

/// Checks that every filter returns the same messages in every search mode as filtering all messages one by one.
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
    assert!(sizes.len() > 8, "the filters do not distinguish anything: {sizes:?}");
}

/// Every filter equals brute force in every search mode, whichever messages are indexed.
pub async fn every_search_filter_equals_brute_force(store: Store) {
    fill(&store).await;
    check(&store, "half indexed").await;
    store.storage.update_index().await.unwrap();
    let mut random = Random(29);
    for target in targets().iter().step_by(2) {
        let start = store.messages(target).await.len() as u32;
        store.sync_from(target, start, lines_with(&mut random, "needle", 2)).await.unwrap();
    }
    store.sync(&targets()[1], lines_with(&mut random, "needle", 6)).await;
    check(&store.again().await, "after the index").await;
}

/// Filters use the current session: edited tags, synced metadata, added turns and a changed project take effect without
/// rebuilding an index.
pub async fn filters_use_the_current_session(store: Store) {
    fill(&store).await;
    store.storage.update_index().await.unwrap();
    let targets = targets();
    for (n, edit) in [
        (3, SessionEdit::default().add_tags(["red"])),
        (0, SessionEdit::default().remove_tags(["red"])),
        (7, SessionEdit::default().set_tags(["red", "blue"])),
    ] {
        store.storage.sessions().update_session(&targets[n].key, &edit).await.unwrap();
    }
    store.sync_metadata(&targets[2], r#"{"bundle":"y","tags":["red","blue"]}"#).await;
    let start = store.messages(&targets[5]).await.len() as u32;
    let turns = (0..5).map(|_| lines::user("needle again").at(day(2))).collect();
    store.sync_from(&targets[5], start, turns).await.unwrap();
    let moved = IngestTarget { project_slug: project("club"), ..targets[4].clone() };
    store.sync_metadata(&moved, r#"{"bundle":"x","tags":["red","blue"]}"#).await;
    check(&store.again().await, "as it is now").await;
}

/// Filters apply before ranking: matching messages are found even if many excluded ones rank higher.
pub async fn filters_apply_before_ranking(store: Store) {
    let crowd: Vec<Line> = (0..160).map(|_| lines::user("needle")).collect();
    for target in [target_of("ana", "crowd", "crowd"), target_of("ben", "crowd", "rare")] {
        store.sync(&target, crowd.clone()).await;
    }
    let rare = target_of("ana", "rare", "rare");
    let filler = "something else altogether ".repeat(20);
    let lines = vec![lines::user(&format!("{filler} needle")), lines::assistant(&format!("needle {filler}"))];
    store.sync(&rare, lines).await;
    store.sync_metadata(&rare, r#"{"bundle":"rare"}"#).await;
    let edit = SessionEdit::default().add_tags(["rare"]);
    for round in 0..2 {
        store.storage.sessions().update_session(&rare.key, &edit).await.unwrap();
        let filters = [
            of_sessions(|f| f.with_project(rare.project_slug.clone())),
            of_sessions(|f| f.with_session(rare.key.session_id.clone())),
            of_sessions(|f| f.with_bundle("rare".to_owned())),
            of_sessions(|f| f.with_max_turns(1)),
            of_sessions(|f| f.with_tags(["rare"]).with_min_turns(1)),
            of_sessions(|f| f.with_tags(["rare"])).with_role(Role::User),
        ];
        for (n, filter) in filters.into_iter().enumerate() {
            for (way, found) in found(&store, &filter).await {
                let expected = [("rare".to_owned(), 0), ("rare".to_owned(), 1)];
                let expected = Found::from_iter(expected.into_iter().take(if n == 5 { 1 } else { 2 }));
                assert_eq!(found, expected, "{round} {way} {filter:?}");
            }
        }
        store.storage.update_index().await.unwrap();
    }
}

/// A session is excluded by its user and its id: the session of another user with the same id is still found.
pub async fn sessions_are_excluded_by_user_and_id(store: Store) {
    let (anas, bens) = (target("same"), target_of("ben", "shop", "same"));
    for target in [&anas, &bens] {
        store.sync(target, vec![lines::user("needle")]).await;
        store.storage.sessions().share_session(&target.key, &Sharing::public()).await.unwrap();
        // The first session is indexed, and the second one is not.
        if *target == anas {
            store.storage.update_index().await.unwrap();
        }
    }
    let (ana, ben) = (anas.key, bens.key);
    let cases = [
        (of_sessions(|f| f.excluding(ana.clone())), vec!["ben"]),
        (of_sessions(|f| f.excluding(ben.clone())), vec!["ana"]),
        (of_sessions(|f| f.excluding(ana.clone()).excluding(ben.clone())), vec![]),
        (of_sessions(|f| f.with_only([ben.clone()])), vec!["ben"]),
        (of_sessions(|f| f.with_only([ana.clone(), ben.clone()]).excluding(ben.clone())), vec!["ana"]),
    ];
    let viewer = Viewer::new(target_of("carl", "p", "s").key.user_id);
    for _ in 0..2 {
        for scope in [Scope::Everyone, Scope::Visible(viewer.clone())] {
            for (filter, expected) in &cases {
                for options in [words("needle"), meaning("needle")] {
                    let options = options.with_filter(filter.clone());
                    let results =
                        store.storage.search().search_transcripts(&scope, &options).await.unwrap().results;
                    let users: Vec<&str> = results.iter().map(|result| result.user_id.as_str()).collect();
                    assert_eq!(users, *expected, "{} {scope:?} {filter:?}", options.mode);
                }
            }
        }
        store.storage.update_index().await.unwrap();
    }
}

/// The filter by repository returns only what the viewer may see, and only events of sessions of the repository.
pub async fn a_repository_has_only_sessions_in_scope(store: Store) {
    let sessions = [
        ("ana", "own", Some(APP), false),
        ("ana", "elsewhere", Some(FOLDER), false),
        ("ben", "shared", Some(APP), true),
        ("ben", "private", Some(APP), false),
        ("ben", "shared-elsewhere", Some(FOLDER), true),
        ("ben", "shared-nowhere", None, true),
    ];
    for (n, (user, id, of, is_shared)) in sessions.into_iter().enumerate() {
        let target = target_of(user, "p", id);
        store.sync(&target, vec![lines::user("needle")]).await;
        store.sync_events(&target, vec![lines::logger_event("tool:call")]).await;
        store.write(&target, |change| change.session.repository = of.map(repository)).await;
        if is_shared {
            store.storage.sessions().share_session(&target.key, &Sharing::public()).await.unwrap();
        }
        if n == 2 {
            store.storage.update_index().await.unwrap();
        }
    }
    let filter = SessionFilter::default().with_repositories([repository(APP)]);
    let visible = Scope::Visible(Viewer::new(target("s").key.user_id));
    let cases: [(Scope, &[&str]); 3] =
        [(ana(), &["own"]), (visible, &["own", "shared"]), (Scope::Everyone, &["own", "private", "shared"])];
    for (scope, expected) in cases {
        let sorted = |mut ids: Vec<String>| {
            ids.sort_unstable();
            ids
        };
        let query = SessionQuery::new(scope.clone()).with_filter(filter.clone());
        let listed = store.storage.sessions().search_sessions(&query).await.unwrap();
        let listed = listed.iter().map(|session| session.session_id.to_string());
        assert_eq!(sorted(listed.collect()), expected, "{scope:?}");
        for options in [words("needle"), meaning("needle")] {
            let options = options.with_filter(SearchFilter::default().with_sessions(filter.clone()));
            let found = store.storage.search().search_transcripts(&scope, &options).await.unwrap().results;
            let found = found.iter().map(|result| result.session_id.to_string());
            assert_eq!(sorted(found.collect()), expected, "{} {scope:?}", options.mode);
        }
        let mut events = EventSearchOptions::default();
        events.filter.sessions.clone_from(&filter);
        let events = store.storage.reading().search_events(&scope, &events).await.unwrap();
        let events = events.iter().map(|event| event.session_id.to_string());
        assert_eq!(sorted(events.collect()), expected, "{scope:?}");
    }
}

/// Only the requested content types are searched.
pub async fn only_requested_content_types_are_searched(store: Store) {
    let lines = vec![
        lines::user("needle asked"),
        lines::thinking("needle thought", "needle answered"),
        lines::tool("needle returned"),
        lines::thinking("needle only thought", "something else"),
        lines::system("needle ruled"),
        lines::tool_call("needle", json!({"command": "ran"})),
    ];
    store.sync(&target("s"), lines).await;
    let cases: [(ContentType, &[u32], &[u32]); 6] = [
        (ContentType::UserQuery, &[0], &[0]),
        (ContentType::AssistantThinking, &[1, 3], &[1, 3]),
        (ContentType::ToolOutput, &[2], &[2]),
        // Semantic search also has the other answer as a candidate.
        (ContentType::AssistantResponse, &[1], &[1, 3]),
        // System messages have no vectors.
        (ContentType::System, &[4], &[]),
        (ContentType::ToolCall, &[5], &[]),
    ];
    for _ in 0..2 {
        for (content_type, by_words, by_meaning) in cases {
            for (options, expected) in [(words("needle"), by_words), (meaning("needle"), by_meaning)] {
                let options = options.with_content_types(only(content_type));
                let results = store.search(&target("s"), &options).await.results;
                assert!(results.iter().all(|result| result.content_type == content_type), "{content_type}");
                let mut found = sequences(&results);
                found.sort_unstable();
                assert_eq!(found, expected, "{content_type} {}", options.mode);
            }
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Every search of an empty store returns nothing.
pub async fn an_empty_store_has_no_results(store: Store) {
    for _ in 0..2 {
        for (way, found) in found(&store, &SearchFilter::default()).await {
            assert!(found.is_empty(), "{way}");
        }
        store.storage.update_index().await.unwrap();
    }
}
