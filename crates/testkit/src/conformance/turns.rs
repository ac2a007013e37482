//! Vectors and summaries of turns.

use std::collections::BTreeMap;

use super::generations::{other, rebuild};
use crate::prelude::*;

/// Syncs a session of three turns: messages 0 to 5, of the user and the assistant. Only their texts get vectors.
async fn three_turns(store: &Store, target: &IngestTarget) {
    let name = target.key.session_id.as_str();
    let turn = |n: u32| {
        let at = format!("2026-01-{:02}T08:00:00Z", 10 + n);
        [lines::user(&format!("{name} question {n}")), lines::assistant(&format!("{name} answer {n}"))]
            .map(|line| line.at(&at))
    };
    store.sync(target, (0..3).flat_map(turn).collect()).await;
}

/// A vector of unit length with this similarity to that of [`nearest_to`].
fn near(similarity: f32) -> Vec<f32> {
    let mut vector = vec![0.0; 64];
    (vector[0], vector[1]) = (similarity, (1.0 - similarity * similarity).sqrt());
    vector
}

async fn digest(store: &Store, target: &IngestTarget, sequence: u32) -> Digest {
    store.backend.message_states(&target.key).await.unwrap()[sequence as usize].digest
}

/// The vector of the turn of a user message and the answer after it.
fn turn(target: &IngestTarget, user: u32, vector: Vec<f32>) -> VectorRecord {
    let created_at = time("2026-01-20T10:00:00.000001Z");
    let content_used = format!("User: é \0 {user}\nAssistant: …");
    let turn = EmbeddedTurn {
        id: EmbeddedTurn::new_id(&target.key, user, "local", "fake-words", created_at),
        assistant_sequence: Some(user + 1),
        provider: "local".to_owned(),
        content_hash: EmbeddedTurn::hash(&content_used),
        content_used,
        used_turn_summary: user == 2,
        created_at,
    };
    VectorRecord::of_turn(turn, vector)
}

/// Vectors of a message, made from its turn as it is.
async fn made(store: &Store, target: &IngestTarget, user: u32, records: Vec<VectorRecord>) -> MessageVectors {
    let messages = store.messages(target).await;
    let line = |message: &Message| TurnLine {
        sequence: message.sequence,
        turn: message.turn,
        role: message.role,
        digest: message.digest,
    };
    let turn = TurnLines::of(messages.iter().map(line)).begun_by(user);
    MessageVectors { turn, ..MessageVectors::new(user, messages[user as usize].digest, day(1), records) }
}

/// Stores vectors of turns with these similarities.
async fn embed(store: &Store, target: &IngestTarget, turns: &[(u32, f32)]) -> Vec<(u32, VectorRecord)> {
    let mut records = Vec::new();
    for (user, similarity) in turns {
        let record = turn(target, *user, near(*similarity));
        let vectors = vec![made(store, target, *user, vec![record.clone()]).await];
        assert_eq!(store.backend.write_vectors(&target.key, 0, vectors).await.unwrap(), 1);
        records.push((*user, record));
    }
    records
}

async fn three_embedded_turns(store: &Store, target: &IngestTarget) -> Vec<(u32, VectorRecord)> {
    three_turns(store, target).await;
    embed(store, target, &[(0, 0.5), (2, 0.9), (4, -0.5)]).await
}

/// The vectors of the turns of a session.
async fn stored(store: &Store, key: &SessionKey) -> Vec<(u32, VectorRecord)> {
    let texts: Vec<_> = (0..9).map(|of| (MessageRef::new(key.clone(), of), VectorText::Turn)).collect();
    let mut found = store.backend.vectors_of(0, &texts).await.unwrap();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found.into_iter().map(|(message, record)| (message.sequence, record)).collect()
}

/// The user messages of turns with vectors.
async fn embedded(store: &Store, target: &IngestTarget) -> Vec<u32> {
    stored(store, &target.key).await.into_iter().map(|(user, _)| user).collect()
}

/// Messages with pending vectors, including those of which only the vector of the turn is.
async fn pending(store: &Store, target: &IngestTarget) -> Vec<(u32, VectorState)> {
    let query = pending_query(&target.key.user_id, Some(&target.key.session_id), None, 100);
    let places = store.pending_of(PendingQuery { turns: true, ..query }).await;
    let found = store.backend.messages_at(&places).await.unwrap();
    let states: BTreeMap<_, _> =
        found.iter().map(|message| (message.message_ref(), message.vectors)).collect();
    places.iter().map(|place| (place.sequence, states[place])).collect()
}

fn nearest_to(scope: impl Into<Scope>) -> VectorQuery {
    VectorQuery {
        scope: scope.into(),
        filter: SearchFilter::default(),
        content_types: ContentTypes::NONE,
        tools: Vec::new(),
        turns: true,
        vector: near(1.0),
        generation: 0,
        limit: 100,
    }
}

/// The nearest turns, as `user/session#sequence`.
async fn nearest(store: &Store, query: &VectorQuery) -> Vec<String> {
    let found = store.backend.vector_candidates(query).await.unwrap().items;
    assert!(found.is_sorted_by(|a, b| a.similarity >= b.similarity), "{found:?}");
    let place = |of: &MessageRef| format!("{}/{}#{}", of.session.user_id, of.session.session_id, of.sequence);
    found.iter().map(|candidate| place(&candidate.message_ref)).collect()
}

async fn summary(store: &Store, target: &IngestTarget, user: u32, text: &str) -> TurnSummary {
    TurnSummary {
        session: target.key.clone(),
        user_sequence: user,
        digest: digest(store, target, user).await,
        text: text.to_owned(),
        is_stated: user == 2,
        set_at: time("2026-01-21T10:00:00Z"),
    }
}

async fn summarise(store: &Store, target: &IngestTarget, users: &[u32]) -> Vec<TurnSummary> {
    let mut summaries = Vec::new();
    for user in users {
        summaries.push(summary(store, target, *user, &format!("é \0 summary of {user}")).await);
    }
    let written = store.backend.write_summaries(&target.key, summaries.clone()).await.unwrap();
    assert_eq!(written, users.len());
    summaries
}

/// All summaries of a query, page by page.
async fn listed(store: &Store, query: &SummaryQuery) -> Vec<TurnSummary> {
    let (mut query, mut summaries) = (query.clone(), Vec::new());
    loop {
        let page = store.backend.list_summaries(&query).await.unwrap();
        let Some(last) = page.last() else { return summaries };
        assert!(page.len() <= query.limit);
        query.after = Some(last.message_ref());
        summaries.extend(page);
    }
}

async fn summarised(store: &Store, target: &IngestTarget) -> Vec<u32> {
    let query = SummaryQuery::new(scope(target));
    listed(store, &query).await.iter().map(|summary| summary.user_sequence).collect()
}

/// All fields of the vector of a turn come back, and the message has it besides those of its texts.
pub async fn all_fields_of_the_vector_of_a_turn_come_back(store: Store) {
    let target = target("s");
    let mut expected = three_embedded_turns(&store, &target).await;
    let mut without_answer = turn(&target, 4, near(0.1));
    without_answer.turn.as_mut().unwrap().assistant_sequence = None;
    let vectors = vec![made(&store, &target, 4, vec![without_answer.clone()]).await];
    store.backend.write_vectors(&target.key, 0, vectors).await.unwrap();
    expected[2].1 = without_answer;
    for handle in [&store, &store.again().await] {
        let found = stored(handle, &target.key).await;
        assert_eq!(found.len(), 3);
        for ((user, record), (of, expected)) in found.into_iter().zip(&expected) {
            assert!(user == *of && is_kept(&record.vector, &expected.vector), "{user}");
            assert_eq!(VectorRecord { vector: expected.vector.clone(), ..record }, *expected);
        }
        let texts = handle.backend.vector_texts(0, &target.key, range(3, 2)).await.unwrap();
        assert_eq!(texts, [(3, vec![ContentType::AssistantResponse.into()]), (4, vec![VectorText::Turn])]);
    }
    let rows = store.rows(&target).await;
    assert_eq!((rows.vectors, rows.turn_vectors), (3, 3), "those of the questions were replaced");
}

/// The vector of a turn is pending until it is made from all lines of the turn. Then, the message is done. It can be
/// made pending again without the vectors of texts.
pub async fn the_vector_of_a_turn_is_pending_until_it_is_made(store: Store) {
    let target = target("s");
    three_turns(&store, &target).await;
    let of_turn = VectorState::TurnPending;
    assert_eq!(pending(&store, &target).await, [(0, of_turn), (2, of_turn), (4, of_turn)]);
    assert!(store.pending(&target).await.is_empty(), "no vector of a text is pending");
    embed(&store, &target, &[(0, 0.5)]).await;
    assert_eq!(pending(&store, &target).await, [(2, of_turn), (4, of_turn)]);
    // Made before the last line was there, or not made at all.
    let record = turn(&target, 2, near(0.5));
    for turn in [Some(Digest::of(b"other")), None] {
        let vectors = MessageVectors { turn, ..made(&store, &target, 2, vec![record.clone()]).await };
        store.backend.write_vectors(&target.key, 0, vec![vectors]).await.unwrap();
        assert_eq!(pending(&store, &target).await, [(2, of_turn), (4, of_turn)]);
    }
    // The stored vectors are right.
    let unchanged = MessageVectors { records: None, ..made(&store, &target, 2, Vec::new()).await };
    assert_eq!(store.backend.write_vectors(&target.key, 0, vec![unchanged]).await.unwrap(), 0);
    assert_eq!(pending(&store, &target).await, [(4, of_turn)]);
    assert_eq!(embedded(&store, &target).await, [0, 2]);
    let again = MessagesToEmbed::TurnsAt(vec![0, 1]);
    assert_eq!(store.backend.mark_pending(&target.key, again).await.unwrap(), 1 + 1, "and an answer");
    assert_eq!(pending(&store, &target).await, [(0, of_turn), (1, of_turn), (4, of_turn)]);
}

/// The vector of a turn is pending after a line of the turn is added, changed or removed. It is removed with its user's
/// message, and with the answer that it was made from. Other turns stay as they are.
pub async fn the_vector_of_a_changed_turn_is_pending(store: Store) {
    let target = target("s");
    three_embedded_turns(&store, &target).await;
    let of_turn = VectorState::TurnPending;
    assert!(pending(&store, &target).await.is_empty());
    store.write(&target, |change| change.session.name = Some("a name".to_owned())).await;
    assert!(pending(&store, &target).await.is_empty());
    let messages = store.messages(&target).await;
    let added = |turn: u32| {
        let mut message = Message { sequence: 6, turn: Some(turn), ..messages[5].clone() };
        message.vectors = VectorState::Pending;
        message
    };
    store
        .write(&target, |change| {
            change.messages.put = vec![added(3)];
            change.session.message_count = 7;
        })
        .await;
    assert_eq!(pending(&store, &target).await, [(4, of_turn), (6, VectorState::Pending)]);
    assert_eq!(embedded(&store, &target).await, [0, 2, 4]);
    // The answer of the second turn changes.
    let mut changed = messages[3].clone();
    changed.raw = lines::assistant("another answer").raw();
    (changed.digest, changed.vectors) = (Digest::of(changed.raw.as_bytes()), VectorState::Pending);
    store.write(&target, |change| change.messages.put = vec![changed]).await;
    assert_eq!(pending(&store, &target).await[..2], [(2, of_turn), (3, VectorState::Pending)]);
    assert_eq!(embedded(&store.again().await, &target).await, [0, 4]);
    // Only the question of the last turn stays.
    store
        .write(&target, |change| {
            change.session.message_count = 5;
            change.messages.truncate = Some(5);
        })
        .await;
    assert_eq!(embedded(&store, &target).await, [0]);
    store
        .write(&target, |change| {
            change.session.message_count = 0;
            change.messages.truncate = Some(0);
        })
        .await;
    assert!(embedded(&store, &target).await.is_empty());
}

/// Vectors and summaries of turns are deleted with their session, and move with a renamed user and with their session
/// to another project.
pub async fn turns_follow_their_session(store: Store) {
    let (gone, kept) = (target("gone"), target("kept"));
    for target in [&gone, &kept] {
        three_embedded_turns(&store, target).await;
        summarise(&store, target, &[0, 2]).await;
    }
    assert!(store.backend.delete_session(&gone.key).await.unwrap());
    three_turns(&store, &gone).await;
    assert!(embedded(&store, &gone).await.is_empty());
    let session = SummaryQuery::new(ana())
        .with_filter(SessionFilter::default().with_session(gone.key.session_id.clone()));
    assert!(listed(&store, &session).await.is_empty());
    assert_eq!(nearest(&store, &nearest_to(ana())).await, ["ana/kept#2", "ana/kept#0", "ana/kept#4"]);

    let eve = target_of("eve", "new", "kept");
    let project = eve.project_slug.clone();
    store.write(&kept, |change| change.session.project_slug = project.clone()).await;
    let before = stored(&store, &kept.key).await;
    assert_eq!(before.len(), 3);
    store.storage.users().rename_user(&kept.key.user_id, &eve.key.user_id).await.unwrap();
    for handle in [&store, &store.again().await] {
        assert!(embedded(handle, &kept).await.is_empty() && summarised(handle, &kept).await.is_empty());
        assert_eq!(stored(handle, &eve.key).await, before);
        assert_eq!(summarised(handle, &eve).await, [0, 2]);
        let mut query = nearest_to(scope(&eve));
        query.filter.sessions = SessionFilter::default().with_project(project.clone());
        assert_eq!(nearest(handle, &query).await, ["eve/kept#2", "eve/kept#0", "eve/kept#4"]);
    }
}

/// The nearest turns are exact, nearest first, whichever are indexed. Every filter applies before the limit. No search
/// for texts finds them.
pub async fn the_nearest_turns_are_exact(store: Store) {
    let (one, other) = (target("one"), target_of("ana", "kitchen", "other"));
    three_embedded_turns(&store, &one).await;
    store.storage.update_index().await.unwrap();
    three_turns(&store, &other).await;
    embed(&store, &other, &[(0, 0.1)]).await;
    for _ in 0..2 {
        let query = nearest_to(ana());
        assert_eq!(nearest(&store, &query).await, ["ana/one#2", "ana/one#0", "ana/other#0", "ana/one#4"]);
        let first = VectorQuery { limit: 1, ..query.clone() };
        let found = store.backend.vector_candidates(&first).await.unwrap().items;
        assert!(matches!(found.as_slice(), [one] if (one.similarity - 0.9).abs() < 1e-2), "{found:?}");
        let filter = SearchFilter::default;
        let eleventh = time("2026-01-11T00:00:00Z");
        let filters: [(SearchFilter, &[&str]); 4] = [
            (filter().with_project(other.project_slug.clone()), &["ana/other#0"]),
            (filter().with_since(eleventh), &["ana/one#2", "ana/one#4"]),
            (filter().with_until(eleventh), &["ana/one#0", "ana/other#0"]),
            (filter().with_role(Role::Assistant), &[]),
        ];
        for (filter, expected) in filters {
            let query = VectorQuery { filter, ..query.clone() };
            assert_eq!(nearest(&store, &query).await, expected, "{query:?}");
        }
        let texts = VectorQuery { turns: false, content_types: ContentTypes::embedded(), ..query };
        // Those of the answers, and of two questions: the vectors of the others were replaced.
        assert_eq!(nearest(&store, &texts).await.len(), 3 + 3 + 2);
        store.storage.update_index().await.unwrap();
    }
}

/// A rebuild with another model also makes the vectors of turns. They are searched when it is complete; a turn that
/// changes meanwhile is made again.
pub async fn turns_are_rebuilt_with_another_model(store: Store) {
    let target = target("s");
    let with_turns = |storage: SessionStorage| {
        let settings = storage.settings().clone().with_turns(true);
        storage.with_settings(settings)
    };
    three_turns(&store, &target).await;
    let old = with_turns(store.storage.clone());
    old.vectors().embed_pending(&target.key.user_id, None).await.unwrap();
    assert_eq!(embedded(&store, &target).await, [0, 2, 4]);
    let new = with_turns(store.storage_with(Some(other())));
    let options = meaning("s question 1").with_limit(1);
    assert!(new.search().search_turns(&ana(), &options).await.is_err());
    let report = rebuild(&new).await;
    assert_eq!((report.messages, report.turns), (6, 3));
    assert_eq!(new.search().search_turns(&ana(), &options).await.unwrap().results[0].turn, 2);
    assert!(pending(&store, &target).await.is_empty() && embedded(&store, &target).await.is_empty());
    // Without turns, a rebuild leaves them pending.
    let plain = store.storage_with(Some(FakeEmbedding::new()));
    assert_eq!(rebuild(&plain).await.turns, 0);
    let query =
        PendingQuery { generation: 2, turns: true, ..pending_query(&target.key.user_id, None, None, 9) };
    assert_eq!(store.pending_of(query).await.len(), 3);
}

/// Vectors and summaries of turns are found within a scope: only those of sessions that a reader may see. Two users
/// with the same session id have separate ones.
pub async fn turns_stay_in_scope(store: Store) {
    let (anas, bens) = (target("s"), target_of("ben", "p", "s"));
    three_embedded_turns(&store, &anas).await;
    three_turns(&store, &bens).await;
    embed(&store, &bens, &[(0, 0.7)]).await;
    let (mine, others) = (summarise(&store, &anas, &[0]).await, summarise(&store, &bens, &[2]).await);
    let ben = Scope::Visible(Viewer::new(bens.key.user_id.clone()));
    let of_ana = ["ana/s#2", "ana/s#0", "ana/s#4"];
    assert_eq!(nearest(&store, &nearest_to(ana())).await, of_ana);
    assert_eq!(nearest(&store, &nearest_to(ben.clone())).await, ["ben/s#0"]);
    assert_eq!(listed(&store, &SummaryQuery::new(ana())).await, mine);
    assert_eq!(listed(&store, &SummaryQuery::new(ben.clone())).await, others);
    store.storage.sessions().share_session(&anas.key, &Sharing::public()).await.unwrap();
    let all = ["ana/s#2", "ben/s#0", "ana/s#0", "ana/s#4"];
    for scope in [ben, Scope::Everyone] {
        assert_eq!(nearest(&store, &nearest_to(scope.clone())).await, all);
        assert_eq!(listed(&store, &SummaryQuery::new(scope)).await.len(), 2);
    }
    // A filter reveals no private session.
    let mut query = nearest_to(ana());
    query.filter.sessions = SessionFilter::default().with_project(bens.project_slug.clone());
    assert!(nearest(&store, &query).await.is_empty());
}

/// Summaries are listed in pages, in order of user, session and message. A later one replaces the one of the same
/// message.
pub async fn summaries_are_listed_in_pages(store: Store) {
    let mut expected = Vec::new();
    for (user, session) in [("ana", "a"), ("ana", "b"), ("ben", "a")] {
        let target = target_of(user, &format!("{session}-project"), session);
        three_turns(&store, &target).await;
        expected.extend(summarise(&store, &target, &[0, 2, 4]).await);
    }
    let everyone = || SummaryQuery::new(Scope::Everyone);
    for handle in [&store, &store.again().await] {
        for limit in [1, 2, 1_000] {
            assert_eq!(listed(handle, &everyone().with_limit(limit)).await, expected);
        }
    }
    let in_project = SessionFilter::default().with_project(ProjectSlug::new("b-project").unwrap());
    assert_eq!(listed(&store, &everyone().with_filter(in_project)).await, expected[3..6]);
    let target = target_of("ana", "a-project", "a");
    let (first, last) =
        (summary(&store, &target, 2, "first").await, summary(&store, &target, 2, "last").await);
    assert_eq!(store.backend.write_summaries(&target.key, vec![first, last.clone()]).await.unwrap(), 1);
    expected[1] = last;
    assert_eq!(listed(&store, &everyone()).await, expected);
}

/// A summary belongs to a line: it is not stored if the message has another line, is removed if the line changes, and
/// stays if the same line is written again.
pub async fn summaries_belong_to_a_line(store: Store) {
    let target = target("s");
    three_turns(&store, &target).await;
    let mut stale = summary(&store, &target, 0, "stale").await;
    stale.digest = Digest::of(b"other");
    let gone = TurnSummary { user_sequence: 99, ..stale.clone() };
    assert_eq!(store.backend.write_summaries(&target.key, vec![stale.clone(), gone]).await.unwrap(), 0);
    let unknown = target_of("ana", "shop", "unknown").key;
    let of_unknown = TurnSummary { session: unknown.clone(), ..stale };
    assert_eq!(store.backend.write_summaries(&unknown, vec![of_unknown]).await.unwrap(), 0);
    summarise(&store, &target, &[0, 2, 4]).await;
    let messages = store.messages(&target).await;
    let mut changed = messages[2].clone();
    changed.raw = lines::user("another question").raw();
    changed.digest = Digest::of(changed.raw.as_bytes());
    store
        .write(&target, |change| {
            change.messages.truncate = Some(0);
            change.messages.put = messages[..4].to_vec();
            change.messages.put[2] = changed;
            change.session.message_count = 4;
        })
        .await;
    assert_eq!(summarised(&store, &target).await, [0]);
    assert_eq!(summarised(&store.again().await, &target).await, [0]);
}
