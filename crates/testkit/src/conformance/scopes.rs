//! Who sees what: sessions that are private, or shared with teams, with an organisation, with everyone.

use std::collections::BTreeSet;

use amplifier_session_core::{
    ErrorKind, Result, Scope, Viewer,
    backend::{SessionQuery, prelude::*},
    model::{Session, SessionId, Timestamp, UserId, Visibility},
    search::{
        EventFilter, EventSearchOptions, SearchFilter, SearchMode, SearchOptions, SearchResult,
        SessionFilter, VectorSearchOptions,
    },
    storage::{EventLines, IngestTarget, Sharing, StatisticsOptions},
};

use super::{
    Subject,
    store::{Store, kind, meaning, target_of, words},
};
use crate::lines;

/// The owner's sessions; each is called as it is shared.
const SESSIONS: [&str; 4] = ["org", "private", "public", "team"];

/// Who looks, and which of the owner's sessions they see.
const LOOKERS: [(&str, &[&str]); 6] = [
    ("olga", &SESSIONS),
    ("teammate", &["public", "team"]),
    ("colleague", &["org", "public"]),
    ("both", &["org", "public", "team"]),
    ("stranger", &["public"]),
    ("loner", &["public"]),
];

fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

fn id(session: &str) -> SessionId {
    SessionId::new(session).unwrap()
}

/// What a person of these six sees.
fn sight(name: &str) -> Scope {
    let viewer = Viewer::new(user(name));
    let acme = || Some("acme".to_owned());
    Scope::Visible(match name {
        "teammate" => viewer.with_teams(["green", "red"]),
        "colleague" => viewer.with_teams(["green"]).with_org(acme()),
        "both" => viewer.with_teams(["red"]).with_org(acme()),
        "stranger" => viewer.with_teams(["green", "Red", "re"]).with_org(Some("acme2".to_owned())),
        _ => viewer,
    })
}

fn olgas(session: &str) -> IngestTarget {
    target_of("olga", "shop", session)
}

/// A session with a message, an answer and an event.
async fn fill(store: &Store, target: &IngestTarget) {
    let answer = format!("the answer of {}", target.key.user_id);
    store.sync(target, vec![lines::user("where is the needle"), lines::assistant(&answer)]).await;
    let event = lines::logger_event("tool:pre").data(serde_json::json!({"tool_name": "bash"}));
    store.sync_events(target, vec![event.at("2026-01-05T08:00:00Z")]).await;
}

async fn share(store: &Store, session: &str) {
    let sharing = match session {
        "team" => Sharing::teams(["blue", "red"]),
        "org" => Sharing::org("acme"),
        "public" => Sharing::public(),
        _ => Sharing::private(),
    };
    store.storage.share_session(&olgas(session).key, &sharing).await.unwrap();
}

/// The owner's four sessions: some in the index when they are shared, some not.
async fn shared_store(subject: &dyn Subject) -> Store {
    let store = Store::open(subject).await;
    for (n, session) in SESSIONS.into_iter().enumerate() {
        fill(&store, &olgas(session)).await;
        share(&store, session).await;
        if n == 1 {
            store.storage.update_index().await.unwrap();
        }
    }
    store
}

fn names<'a>(sessions: impl IntoIterator<Item = &'a SessionId>) -> Vec<String> {
    let names: BTreeSet<String> = sessions.into_iter().map(ToString::to_string).collect();
    names.into_iter().collect()
}

/// The results of every way to search for what all sessions hold.
async fn all_searches(
    store: &Store,
    scope: &Scope,
    filter: &SearchFilter,
) -> Vec<(String, Vec<SearchResult>)> {
    let mut answers = Vec::new();
    for options in [words("needle"), meaning("needle"), SearchOptions::new("needle")] {
        let options = options.with_filter(filter.clone()).with_limit(100);
        let found = store.storage.search_transcripts(scope, &options).await.unwrap();
        answers.push((options.mode.to_string(), found.results));
    }
    let options = VectorSearchOptions::new(store.embedding.vector("needle")).with_filter(filter.clone());
    let found = store.storage.vector_search(scope, &options.with_limit(100)).await.unwrap();
    answers.push(("vector".to_owned(), found.results));
    answers
}

/// Sessions that any way to search finds; all ways must agree.
async fn searched(store: &Store, scope: &Scope, filter: &SearchFilter) -> Vec<String> {
    let answers = all_searches(store, scope, filter).await;
    let found: Vec<Vec<String>> =
        answers.iter().map(|(_, results)| names(results.iter().map(|result| &result.session_id))).collect();
    assert!(found.iter().all(|of_way| *of_way == found[0]), "{scope:?}: {found:?}");
    found.into_iter().next().unwrap()
}

/// How many events a person finds.
async fn count_events(store: &Store, name: &str) -> usize {
    store.storage.search_events(&sight(name), &EventSearchOptions::default()).await.unwrap().len()
}

/// Sessions are got, listed and found by prefix as far as one may see them.
pub async fn sessions_are_listed_as_far_as_one_may_see(subject: &dyn Subject) {
    let store = shared_store(subject).await;
    for (name, visible) in LOOKERS {
        let scope = sight(name);
        let listed = store.storage.search_sessions(&SessionQuery::new(scope.clone())).await.unwrap();
        assert_eq!(names(listed.iter().map(|session| &session.session_id)), visible, "{name}");
        assert!(listed.iter().all(|session| session.user_id.as_str() == "olga"));
        for session in SESSIONS {
            let found = store.storage.get_session(&scope, &id(session)).await.unwrap();
            assert_eq!(found.is_some(), visible.contains(&session), "{name} {session}");
            let by_prefix = store.storage.find_session(&scope, &session[..3]).await;
            match visible.contains(&session) {
                true => assert_eq!(by_prefix.unwrap().session_id, id(session), "{name}"),
                false => assert_eq!(kind(by_prefix), ErrorKind::SessionNotFound, "{name} {session}"),
            }
        }
    }
}

/// Reads of one session's rows that are refused where one may not see it.
async fn reads_of_rows(
    store: &Store,
    scope: &Scope,
    session: &SessionId,
) -> Vec<(&'static str, Result<usize>)> {
    let storage = &store.storage;
    let events = EventLines::default().with_payload(true);
    vec![
        ("transcript", storage.get_transcript_lines(scope, session, None, 10).await.map(|rows| rows.len())),
        ("events", storage.get_event_lines(scope, session, events).await.map(|rows| rows.len() + 1)),
        ("message", storage.get_message_context(scope, session, 0, 0, 1).await.map(|c| c.messages.len())),
        ("turn", storage.get_turn_context(scope, session, 1, 0, 0).await.map(|c| c.messages.len())),
        ("sync", storage.get_sync_statistics(scope, session).await.map(|s| s.rows.messages.count as usize)),
        ("vectors", storage.vector_content_types(scope, session).await.map(|types| types.len())),
        ("tree", storage.session_tree(scope, session).await.map(|tree| tree.flattened().len() + 1)),
    ]
}

/// The rows of a session are read by those who may see it; to others it is not there.
pub async fn rows_are_read_by_those_who_may_see_them(subject: &dyn Subject) {
    let store = shared_store(subject).await;
    for (name, visible) in LOOKERS {
        for session in SESSIONS {
            for (read, answer) in reads_of_rows(&store, &sight(name), &id(session)).await {
                match visible.contains(&session) {
                    true => assert_eq!(answer.unwrap(), 2, "{name} {session} {read}"),
                    false => assert_eq!(kind(answer), ErrorKind::SessionNotFound, "{name} {session} {read}"),
                }
            }
        }
    }
}

/// Every way to search finds what one may see and nothing else, and names the owner.
pub async fn searches_find_what_one_may_see(subject: &dyn Subject) {
    let store = shared_store(subject).await;
    for round in 0..2 {
        for (name, visible) in LOOKERS {
            for (way, results) in all_searches(&store, &sight(name), &SearchFilter::default()).await {
                let found = names(results.iter().map(|result| &result.session_id));
                assert_eq!(found, visible, "{name} {way} {round}");
                assert!(results.iter().all(|result| result.user_id.as_str() == "olga"), "{name} {way}");
            }
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Events are found in sessions that one may see.
pub async fn events_are_found_where_one_may_see_them(subject: &dyn Subject) {
    let store = shared_store(subject).await;
    for (name, visible) in LOOKERS {
        let found = store.storage.search_events(&sight(name), &EventSearchOptions::default()).await.unwrap();
        assert_eq!(names(found.iter().map(|event| &event.session_id)), visible, "{name}");
        let first = EventSearchOptions::default().with_limit(1);
        assert_eq!(store.storage.search_events(&sight(name), &first).await.unwrap().len(), 1, "{name}");
    }
}

/// Counts of any kind are those of the sessions that one may see.
pub async fn counts_are_of_what_one_may_see(subject: &dyn Subject) {
    let store = shared_store(subject).await;
    for (name, visible) in LOOKERS {
        let (scope, count) = (sight(name), visible.len() as u64);
        let statistics = store.storage.get_statistics(&scope, &StatisticsOptions::default()).await.unwrap();
        let totals = statistics.totals;
        assert_eq!((totals.sessions, totals.messages, totals.events), (count, 2 * count, count), "{name}");
        assert_eq!((statistics.projects.len(), statistics.projects[0].counts.sessions), (1, count), "{name}");
        assert_eq!((statistics.event_types[0].events, statistics.tools[0].uses), (count, count), "{name}");
        let days = &statistics.days;
        assert_eq!(days.iter().map(|day| day.messages).sum::<u64>(), 2 * count, "{name}");
        assert_eq!(days.iter().map(|day| day.events).sum::<u64>(), count, "{name}");
        let counts = store.storage.get_session_statistics(&scope, None).await.unwrap();
        assert_eq!(counts, totals, "{name}");
        let users = store.storage.list_users(&scope, None, None).await.unwrap();
        assert_eq!((users.len(), users[0].of.as_str(), users[0].sessions), (1, "olga", count), "{name}");
        let projects = store.storage.list_projects(&scope, None, None).await.unwrap();
        assert_eq!(
            (projects.len(), projects[0].sessions, projects[0].messages),
            (1, count, 2 * count),
            "{name}"
        );
    }
}

/// A tree shows the sessions that one may see; where its top is hidden it begins below.
pub async fn trees_show_what_one_may_see(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for (session, parent) in
        [("public", None), ("team", Some("public")), ("org", Some("team")), ("private", Some("public"))]
    {
        let target = olgas(session);
        let created = Timestamp::parse("2026-01-05T08:00:00Z").unwrap();
        let mut row = Session::new(target.key, target.host_id, target.project_slug, created);
        row.parent_id = parent.map(id);
        store.storage.create_session(row).await.unwrap();
        share(&store, session).await;
    }
    let tree = async |name: &str, of: &str| {
        let tree = store.storage.session_tree(&sight(name), &id(of)).await.unwrap();
        let all = tree.flattened().into_iter();
        all.map(|(depth, tree)| format!("{depth} {}", tree.session.session_id)).collect::<Vec<_>>()
    };
    for of in SESSIONS {
        assert_eq!(tree("olga", of).await, ["0 public", "1 private", "1 team", "2 org"], "{of}");
    }
    assert_eq!(tree("both", "org").await, ["0 public", "1 team", "2 org"]);
    assert_eq!(tree("teammate", "team").await, ["0 public", "1 team"]);
    assert_eq!(tree("stranger", "public").await, ["0 public"]);
    assert_eq!(tree("colleague", "org").await, ["0 org"]);
    let hidden = store.storage.session_tree(&sight("stranger"), &id("team")).await;
    assert_eq!(kind(hidden), ErrorKind::SessionNotFound);
}

/// A session that is shared after it was indexed is found at once, and is gone as soon as it is not shared any more.
pub async fn sharing_takes_effect_at_once(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let again = Store::open_again(subject).await;
    fill(&store, &olgas("team")).await;
    store.storage.update_index().await.unwrap();
    let everything = SearchFilter::default();
    for round in 0..2 {
        for handle in [&store, &again] {
            assert!(searched(handle, &sight("teammate"), &everything).await.is_empty(), "{round}");
        }
        share(&store, "team").await;
        for handle in [&store, &again] {
            assert_eq!(searched(handle, &sight("teammate"), &everything).await, ["team"], "{round}");
        }
        assert!(searched(&store, &sight("colleague"), &everything).await.is_empty());
        assert_eq!(count_events(&store, "teammate").await, 1);
        store.storage.share_session(&olgas("team").key, &Sharing::org("acme")).await.unwrap();
        assert!(searched(&store, &sight("teammate"), &everything).await.is_empty());
        assert_eq!(searched(&again, &sight("colleague"), &everything).await, ["team"]);
        store.storage.share_session(&olgas("team").key, &Sharing::private()).await.unwrap();
        assert!(searched(&again, &sight("colleague"), &everything).await.is_empty());
        assert_eq!(count_events(&store, "colleague").await, 0);
        assert_eq!(searched(&store, &sight("olga"), &everything).await, ["team"]);
        store.storage.update_index().await.unwrap();
    }
}

/// What is written into a shared session afterwards is found by those who may see it.
pub async fn what_follows_in_a_shared_session_is_found(subject: &dyn Subject) {
    let store = shared_store(subject).await;
    store.storage.update_index().await.unwrap();
    for session in SESSIONS {
        store.sync_from(&olgas(session), 2, vec![lines::user("another needle")]).await.unwrap();
    }
    for (name, visible) in LOOKERS {
        for (way, results) in all_searches(&store, &sight(name), &SearchFilter::default()).await {
            let later: Vec<_> = results.iter().filter(|result| result.sequence == 2).collect();
            assert_eq!(names(later.iter().map(|result| &result.session_id)), visible, "{name} {way}");
        }
    }
}

/// Where others share a session of the same id, a viewer's own one counts.
pub async fn a_viewers_own_session_wins(subject: &dyn Subject) {
    let store = shared_store(subject).await;
    for name in ["teammate", "stranger"] {
        let own = target_of(name, "shop", "public");
        fill(&store, &own).await;
        let scope = sight(name);
        let session = store.storage.get_session(&scope, &id("public")).await.unwrap().unwrap();
        assert_eq!(session.user_id.as_str(), name);
        assert_eq!(store.storage.find_session(&scope, "public").await.unwrap().user_id.as_str(), name);
        let lines = store.storage.get_transcript_lines(&scope, &id("public"), None, 10).await.unwrap();
        assert!(lines.iter().all(|line| line.user_id.as_str() == name));
    }
    // To others, the id stands for one session of several.
    let other = target_of("ben", "shop", "public");
    fill(&store, &other).await;
    store.storage.share_session(&other.key, &Sharing::public()).await.unwrap();
    assert_eq!(kind(store.storage.get_session(&sight("loner"), &id("public")).await), ErrorKind::Validation);
}

/// The scope of a user is what they own, whatever others share with them.
pub async fn the_scope_of_a_user_is_what_they_own(subject: &dyn Subject) {
    let store = shared_store(subject).await;
    let (olga, stranger) = (Scope::User(user("olga")), Scope::User(user("stranger")));
    assert_eq!(searched(&store, &olga, &SearchFilter::default()).await, SESSIONS);
    assert!(searched(&store, &stranger, &SearchFilter::default()).await.is_empty());
    assert_eq!(searched(&store, &Scope::Everyone, &SearchFilter::default()).await, SESSIONS);
    assert_eq!(store.storage.get_session(&stranger, &id("public")).await.unwrap(), None);
    assert!(store.storage.search_events(&stranger, &EventSearchOptions::default()).await.unwrap().is_empty());
    assert!(store.storage.list_users(&stranger, None, None).await.unwrap().is_empty());
}

/// A team or an organisation without a name is none: it matches nothing by accident.
pub async fn groups_without_a_name_match_nothing(subject: &dyn Subject) {
    let store = shared_store(subject).await;
    let hidden =
        [(Visibility::Team, "blank-team"), (Visibility::Org, "blank-org"), (Visibility::Org, "no-org")];
    for (visibility, session) in hidden {
        fill(&store, &olgas(session)).await;
        let stored = store.stored(&olgas(session)).await;
        let mut change =
            amplifier_session_core::backend::SessionChange::new(stored.session, Some(stored.version));
        change.session.visibility = visibility;
        change.session.team_ids = vec![String::new()];
        change.session.org_id = (session != "no-org").then(String::new);
        store.backend.write_one(change).await.unwrap();
    }
    let blank = Viewer::new(user("stranger")).with_teams([""]).with_org(Some(String::new()));
    let nothing: [&str; 0] = [];
    let none = Viewer::new(user("stranger")).with_teams(nothing).with_org(None);
    for viewer in [blank, none] {
        let scope = Scope::Visible(viewer);
        assert_eq!(searched(&store, &scope, &SearchFilter::default()).await, ["public"]);
        let listed = store.storage.search_sessions(&SessionQuery::new(scope)).await.unwrap();
        assert_eq!(names(listed.iter().map(|session| &session.session_id)), ["public"]);
    }
}

/// A team matters only where a session is shared with teams, an organisation where it is shared with that.
pub async fn a_group_counts_for_its_own_visibility_alone(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for (visibility, session) in [(Visibility::Private, "p"), (Visibility::Team, "t"), (Visibility::Org, "o")]
    {
        fill(&store, &olgas(session)).await;
        let stored = store.stored(&olgas(session)).await;
        let mut change =
            amplifier_session_core::backend::SessionChange::new(stored.session, Some(stored.version));
        change.session.visibility = visibility;
        (change.session.team_ids, change.session.org_id) = (vec!["red".to_owned()], Some("acme".to_owned()));
        store.backend.write_one(change).await.unwrap();
    }
    let everything = SearchFilter::default();
    assert_eq!(searched(&store, &sight("teammate"), &everything).await, ["t"]);
    assert_eq!(searched(&store, &sight("colleague"), &everything).await, ["o"]);
    assert_eq!(searched(&store, &sight("both"), &everything).await, ["o", "t"]);
    assert!(searched(&store, &sight("stranger"), &everything).await.is_empty());
}

/// Names of groups are plain text, compared in full.
pub async fn names_of_groups_are_plain_text(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let groups = ["a", "A", "a_b", "axb", "a%", "o'brien", "\"a\"", "[\"a\"]", "a,b", "a\\", "é", "🦀"];
    for (n, group) in groups.iter().enumerate() {
        for (kind, sharing) in [("team", Sharing::teams(["other", group])), ("org", Sharing::org(*group))] {
            let target = olgas(&format!("{kind}{n:02}"));
            fill(&store, &target).await;
            store.storage.share_session(&target.key, &sharing).await.unwrap();
        }
    }
    for (n, group) in groups.iter().enumerate() {
        let teams = Viewer::new(user("stranger")).with_teams([*group]);
        let org = Viewer::new(user("stranger")).with_org(Some((*group).to_owned()));
        for (viewer, expected) in [(teams, [format!("team{n:02}")]), (org, [format!("org{n:02}")])] {
            let scope = Scope::Visible(viewer);
            let listed = store.storage.search_sessions(&SessionQuery::new(scope.clone())).await.unwrap();
            assert_eq!(names(listed.iter().map(|session| &session.session_id)), expected, "{group}");
            let words = words("needle").with_mode(SearchMode::FullText);
            let found = store.storage.search_transcripts(&scope, &words).await.unwrap().results;
            assert_eq!(names(found.iter().map(|result| &result.session_id)), expected, "{group}");
        }
    }
    for text in ["%", "_", "*", "oth", "other,a"] {
        let scope =
            Scope::Visible(Viewer::new(user("stranger")).with_teams([text]).with_org(Some(text.to_owned())));
        assert!(store.storage.search_sessions(&SessionQuery::new(scope)).await.unwrap().is_empty(), "{text}");
    }
}

/// A filter on a session's id finds nothing of another user's private session of that id.
pub async fn a_filter_on_a_session_shows_no_private_one(subject: &dyn Subject) {
    let store = shared_store(subject).await;
    for session in ["private", "public"] {
        fill(&store, &target_of("ben", "blog", session)).await;
    }
    let sessions = |session: &str| SessionFilter::default().with_session(id(session));
    for (name, private, public) in [("ben", 2, 4), ("stranger", 0, 2), ("olga", 2, 2)] {
        for (session, expected) in [("private", private), ("public", public)] {
            let filter = SearchFilter::default().with_sessions(sessions(session));
            for (way, results) in all_searches(&store, &sight(name), &filter).await {
                // Full text finds the one message that holds the word, the others both.
                let expected = if way == "full_text" { expected / 2 } else { expected };
                assert_eq!(results.len(), expected, "{name} {session} {way}");
            }
            let filter = EventFilter::default().with_sessions(sessions(session));
            let events = store.storage.search_events(&sight(name), &EventSearchOptions::new(filter)).await;
            assert_eq!(events.unwrap().len(), expected / 2, "{name} {session}");
        }
    }
}
