//! Embeddings and summaries of turns.

use crate::prelude::*;

const MODEL: &str = "m";

/// Syncs a session of three turns: messages 0 to 5, of the user and the assistant.
async fn three_turns(store: &Store, target: &IngestTarget) {
    let name = target.key.session_id.as_str();
    let turn = |n: u32| {
        let at = format!("2026-01-{:02}T08:00:00Z", 10 + n);
        [lines::user(&format!("{name} question {n}")), lines::assistant(&format!("{name} answer {n}"))]
            .map(|line| line.at(&at))
    };
    store.sync_text(target, (0..3).flat_map(turn).collect()).await;
}

/// A vector of unit length with this similarity to `[1, 0]`.
fn near(similarity: f32) -> Vec<f32> {
    vec![similarity, (1.0 - similarity * similarity).sqrt()]
}

async fn digest(store: &Store, target: &IngestTarget, sequence: u32) -> Digest {
    store.backend.message_states(&target.key).await.unwrap()[sequence as usize].digest
}

/// The embedding of a user message and the answer after it.
async fn turn(store: &Store, target: &IngestTarget, user: u32, vector: Vec<f32>) -> NewTurn {
    let created_at = time("2026-01-20T10:00:00.000001Z");
    let content_used = format!("User: é \0 {user}\nAssistant: …");
    let embedding = TurnEmbedding {
        id: TurnEmbedding::new_id(&target.key, user, "local", MODEL, created_at),
        user_sequence: user,
        assistant_sequence: Some(user + 1),
        provider: "local".to_owned(),
        model: MODEL.to_owned(),
        dimensions: vector.len(),
        content_hash: TurnEmbedding::hash(&content_used),
        content_used,
        used_turn_summary: user == 2,
        vector,
        created_at,
    };
    NewTurn {
        session: target.key.clone(),
        embedding,
        user_digest: digest(store, target, user).await,
        assistant_digest: Some(digest(store, target, user + 1).await),
    }
}

/// The same embedding, made by another model.
fn by_model(turn: &NewTurn, provider: &str, model: &str) -> NewTurn {
    let mut turn = turn.clone();
    turn.embedding.id = format!("{}-{provider}-{model}", turn.embedding.id);
    (turn.embedding.provider, turn.embedding.model) = (provider.to_owned(), model.to_owned());
    turn
}

async fn three_embedded_turns(store: &Store, target: &IngestTarget) -> Vec<TurnEmbedding> {
    three_turns(store, target).await;
    let mut turns = Vec::new();
    for (user, similarity) in [(0, 0.5), (2, 0.9), (4, -0.5)] {
        turns.push(turn(store, target, user, near(similarity)).await);
    }
    assert_eq!(store.backend.write_turns(turns.clone()).await.unwrap(), 3);
    turns.into_iter().map(|turn| turn.embedding).collect()
}

/// All embeddings of a session by a model, page by page.
async fn read_by(
    store: &Store,
    key: &SessionKey,
    (provider, model): (&str, &str),
    limit: usize,
) -> Vec<TurnEmbedding> {
    let mut query = TurnQuery::new(key.clone(), provider, model).with_content(true);
    query.range.limit = limit;
    let mut read = Vec::new();
    loop {
        let page = store.backend.read_turns(&query).await.unwrap();
        let Some(last) = page.last() else { return read };
        assert!(page.len() <= limit);
        query.range.start = last.user_sequence + 1;
        read.extend(page);
    }
}

async fn read(store: &Store, key: &SessionKey) -> Vec<TurnEmbedding> {
    read_by(store, key, ("local", MODEL), 1_000).await
}

/// The user messages of the stored embeddings.
async fn embedded(store: &Store, target: &IngestTarget) -> Vec<u32> {
    read(store, &target.key).await.iter().map(|turn| turn.user_sequence).collect()
}

fn vector_query(scope: impl Into<Scope>) -> TurnVectorQuery {
    TurnVectorQuery {
        scope: scope.into(),
        filter: SearchFilter::default(),
        provider: "local".to_owned(),
        space: EmbeddingSpace { model: MODEL.to_owned(), dimensions: 2 },
        vector: vec![1.0, 0.0],
        limit: 100,
    }
}

/// The nearest turns, as `user/session#sequence`.
async fn nearest(store: &Store, query: &TurnVectorQuery) -> Vec<String> {
    let found = store.backend.nearest_turns(query).await.unwrap();
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

/// All fields of an embedding come back, in order of the user's messages. Texts and vectors are read only on request.
pub async fn all_fields_of_an_embedding_come_back(store: Store) {
    let target = target("s");
    let mut expected = three_embedded_turns(&store, &target).await;
    let mut without_answer = turn(&store, &target, 4, near(0.1)).await;
    (without_answer.embedding.assistant_sequence, without_answer.assistant_digest) = (None, None);
    expected[2] = without_answer.embedding.clone();
    store.backend.write_turns(vec![without_answer]).await.unwrap();
    for handle in [&store, &store.again().await] {
        for limit in [1, 2, 1_000] {
            assert_eq!(read_by(handle, &target.key, ("local", MODEL), limit).await, expected);
        }
        let query = TurnQuery::new(target.key.clone(), "local", MODEL).with_range(range(1, 10));
        let bare = |turn: &TurnEmbedding| TurnEmbedding {
            content_used: String::new(),
            vector: Vec::new(),
            ..turn.clone()
        };
        let read = handle.backend.read_turns(&query).await.unwrap();
        assert_eq!(read, expected[1..].iter().map(bare).collect::<Vec<_>>());
    }
}

/// A user message has one embedding per model of a provider: a later one replaces it, even in the same write.
pub async fn embeddings_replace_those_of_the_same_model(store: Store) {
    let target = target("s");
    let mut expected = three_embedded_turns(&store, &target).await;
    let (first, last) =
        (turn(&store, &target, 2, near(0.2)).await, turn(&store, &target, 2, near(0.3)).await);
    let mut written = vec![first.clone(), last.clone()];
    for (provider, model) in [("service", MODEL), ("local", "other")] {
        written.push(by_model(&first, provider, model));
    }
    assert_eq!(store.backend.write_turns(written.clone()).await.unwrap(), 3);
    expected[1] = last.embedding;
    assert_eq!(read(&store, &target.key).await, expected);
    for turn in &written[2..] {
        let by = (turn.embedding.provider.as_str(), turn.embedding.model.as_str());
        assert_eq!(read_by(&store, &target.key, by, 9).await, std::slice::from_ref(&turn.embedding));
    }
}

/// Embeddings of messages that are gone or have another line are not stored.
pub async fn embeddings_of_changed_messages_are_not_stored(store: Store) {
    let target = target("s");
    three_turns(&store, &target).await;
    let good = turn(&store, &target, 0, near(0.5)).await;
    let mut stale = [good.clone(), good.clone(), good.clone()];
    stale[0].user_digest = Digest::of(b"other");
    stale[1].assistant_digest = Some(Digest::of(b"other"));
    stale[2].embedding.user_sequence = 99;
    assert_eq!(store.backend.write_turns(stale.to_vec()).await.unwrap(), 0);
    let unknown = target_of("ana", "shop", "unknown").key;
    let lost = NewTurn { session: unknown.clone(), ..good };
    assert_eq!(store.backend.write_turns(vec![lost]).await.unwrap(), 0);
    assert_eq!(store.backend.write_turns(Vec::new()).await.unwrap(), 0);
    // They do not keep those of another session from being stored.
    let of_other = target_of("ben", "shop", "s");
    three_turns(&store, &of_other).await;
    let current = turn(&store, &of_other, 2, near(0.5)).await;
    let [outdated, ..] = stale;
    assert_eq!(store.backend.write_turns(vec![current.clone(), outdated]).await.unwrap(), 1);
    assert_eq!(read(&store, &of_other.key).await, [current.embedding]);
    assert!(embedded(&store, &target).await.is_empty() && read(&store, &unknown).await.is_empty());
}

/// If a vector does not have the stated length, or has a number that is not finite, it is rejected, and nothing of the
/// write is stored.
pub async fn embeddings_with_a_wrong_vector_are_refused(store: Store) {
    let target = target("s");
    three_turns(&store, &target).await;
    let good = turn(&store, &target, 0, near(0.5)).await;
    for vector in [vec![1.0], vec![1.0, 0.0, 0.0], Vec::new(), vec![f32::NAN, 0.0]] {
        let mut wrong = turn(&store, &target, 2, near(0.5)).await;
        wrong.embedding.vector = vector;
        let written = store.backend.write_turns(vec![good.clone(), wrong]).await;
        assert_eq!(kind(written), ErrorKind::Validation);
        assert!(embedded(&store, &target).await.is_empty());
    }
}

/// An embedding is removed if its user's or its assistant's message is removed or changes. Others stay.
pub async fn embeddings_are_removed_with_their_messages(store: Store) {
    let target = target("s");
    three_embedded_turns(&store, &target).await;
    let others = by_model(&turn(&store, &target, 2, near(0.5)).await, "service", "other");
    store.backend.write_turns(vec![others]).await.unwrap();
    // The answer of the last turn.
    let truncate = |length: u32| {
        move |change: &mut SessionChange| {
            change.session.message_count = length;
            change.messages.truncate = Some(length);
        }
    };
    store.write(&target, truncate(5)).await;
    assert_eq!(embedded(&store, &target).await, [0, 2]);
    let messages = store.messages(&target).await;
    let mut changed = messages[3].clone();
    changed.raw = lines::assistant("another answer").raw();
    changed.digest = Digest::of(changed.raw.as_bytes());
    store.write(&target, |change| change.messages.put = vec![changed]).await;
    assert_eq!(embedded(&store, &target).await, [0]);
    assert!(read_by(&store, &target.key, ("service", "other"), 9).await.is_empty());
    store.write(&target, |change| change.session.name = Some("a name".to_owned())).await;
    assert_eq!(embedded(&store.again().await, &target).await, [0]);
    store.write(&target, truncate(0)).await;
    assert!(embedded(&store, &target).await.is_empty());
}

/// Embeddings and summaries are deleted with their session, and move with a renamed user and with their session to
/// another project.
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
    assert_eq!(nearest(&store, &vector_query(ana())).await, ["ana/kept#2", "ana/kept#0", "ana/kept#4"]);

    let eve = target_of("eve", "new", "kept");
    let project = eve.project_slug.clone();
    store.write(&kept, |change| change.session.project_slug = project.clone()).await;
    let before = read(&store, &kept.key).await;
    assert_eq!(before.len(), 3);
    store.storage.users().rename_user(&kept.key.user_id, &eve.key.user_id).await.unwrap();
    for handle in [&store, &store.again().await] {
        assert!(embedded(handle, &kept).await.is_empty() && summarised(handle, &kept).await.is_empty());
        assert_eq!(read(handle, &eve.key).await, before);
        assert_eq!(summarised(handle, &eve).await, [0, 2]);
        let mut query = vector_query(scope(&eve));
        query.filter.sessions = SessionFilter::default().with_project(project.clone());
        assert_eq!(nearest(handle, &query).await, ["eve/kept#2", "eve/kept#0", "eve/kept#4"]);
    }
}

/// The nearest turns are exact, nearest first, and only those of the model and its dimensions. Every filter applies
/// before the limit.
pub async fn the_nearest_turns_are_exact(store: Store) {
    let (one, other) = (target("one"), target_of("ana", "kitchen", "other"));
    three_embedded_turns(&store, &one).await;
    three_turns(&store, &other).await;
    let zero = turn(&store, &other, 4, vec![0.0, 0.0]).await;
    let longer = turn(&store, &other, 2, vec![1.0, 0.0, 0.0]).await;
    let best = by_model(&turn(&store, &other, 0, near(1.0)).await, "service", MODEL);
    let far = turn(&store, &other, 0, near(0.1)).await;
    store.backend.write_turns(vec![zero, longer, best, far]).await.unwrap();
    let query = vector_query(ana());
    assert_eq!(nearest(&store, &query).await, ["ana/one#2", "ana/one#0", "ana/other#0", "ana/one#4"]);
    let found = store.backend.nearest_turns(&TurnVectorQuery { limit: 1, ..query.clone() }).await.unwrap();
    assert!(matches!(found.as_slice(), [one] if (one.similarity - 0.9).abs() < 1e-5), "{found:?}");
    let filter = SearchFilter::default;
    let eleventh = time("2026-01-11T00:00:00Z");
    let filters: [(SearchFilter, &[&str]); 4] = [
        (filter().with_project(other.project_slug.clone()), &["ana/other#0"]),
        (filter().with_since(eleventh), &["ana/one#2", "ana/one#4"]),
        (filter().with_until(eleventh), &["ana/one#0", "ana/other#0"]),
        (filter().with_role(Role::Assistant), &[]),
    ];
    for (filter, expected) in filters {
        let query = TurnVectorQuery { filter, ..query.clone() };
        assert_eq!(nearest(&store, &query).await, expected, "{query:?}");
    }
}

/// Embeddings and summaries are found within a scope: only those of sessions that a reader may see. Two users with the
/// same session id have separate ones.
pub async fn turns_stay_in_scope(store: Store) {
    let (anas, bens) = (target("s"), target_of("ben", "p", "s"));
    three_embedded_turns(&store, &anas).await;
    three_turns(&store, &bens).await;
    let his = turn(&store, &bens, 0, near(0.7)).await;
    store.backend.write_turns(vec![his]).await.unwrap();
    let (mine, others) = (summarise(&store, &anas, &[0]).await, summarise(&store, &bens, &[2]).await);
    let ben = Scope::Visible(Viewer::new(bens.key.user_id.clone()));
    let of_ana = ["ana/s#2", "ana/s#0", "ana/s#4"];
    assert_eq!(nearest(&store, &vector_query(ana())).await, of_ana);
    assert_eq!(nearest(&store, &vector_query(ben.clone())).await, ["ben/s#0"]);
    assert_eq!(listed(&store, &SummaryQuery::new(ana())).await, mine);
    assert_eq!(listed(&store, &SummaryQuery::new(ben.clone())).await, others);
    store.storage.sessions().share_session(&anas.key, &Sharing::public()).await.unwrap();
    let all = ["ana/s#2", "ben/s#0", "ana/s#0", "ana/s#4"];
    for scope in [ben, Scope::Everyone] {
        assert_eq!(nearest(&store, &vector_query(scope.clone())).await, all);
        assert_eq!(listed(&store, &SummaryQuery::new(scope)).await.len(), 2);
    }
    // A filter reveals no private session.
    let mut query = vector_query(ana());
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
