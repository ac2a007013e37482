//! Turns: their embeddings, and searches for them.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    a_turn_is_embedded_once,
    only_turns_that_changed_are_embedded_again,
    a_long_turn_is_embedded_again_from_its_question,
    turns_with_an_empty_side_are_not_embedded,
    a_rewound_turn_loses_its_embedding,
    a_failure_of_the_model_is_reported_and_made_up_for,
    turns_of_an_interrupted_sync_are_embedded_by_the_next,
    turns_are_found_by_words_and_by_meaning,
    embeddings_and_summaries_are_copied,
    embeddings_and_summaries_are_in_archives,
    turns_of_others_are_not_found,
    a_turn_is_read_by_its_number,
];

/// The store, embedding turns while it syncs.
pub(super) fn with_turns(mut store: Store) -> Store {
    let settings = store.storage.settings().clone().with_turns(true);
    store.storage = store.storage.with_settings(settings);
    store
}

pub(super) fn summarised(text: &str, summary: &str) -> Line {
    lines::user(text).with("metadata", json!({"turn_summary": summary}))
}

/// The stored vectors of the turns of a session, by user message.
pub(super) async fn embeddings(store: &Store, target: &IngestTarget) -> Vec<(u32, VectorRecord)> {
    let vectors = store.vectors(target).await.into_iter();
    vectors.filter(|(_, record)| record.text == VectorText::Turn).collect()
}

/// How the text of a turn was made.
pub(super) fn made_of((_, record): &(u32, VectorRecord)) -> &EmbeddedTurn {
    record.turn.as_ref().unwrap()
}

/// The texts that were embedded of the turns of a session.
pub(super) async fn contents(store: &Store, target: &IngestTarget) -> Vec<String> {
    embeddings(store, target).await.iter().map(|turn| made_of(turn).content_used.clone()).collect()
}

/// The texts of turns that the model was asked for since the last call.
pub(super) fn texts_asked_for(store: &Store) -> Vec<String> {
    let texts = store.embedding.texts().into_iter().filter(|text| text.starts_with("User: ")).collect();
    store.embedding.reset_counts();
    texts
}

pub(super) async fn embed_turns(store: &Store) -> EmbedReport {
    let of = VectorsOf::user(target("s").key.user_id);
    let storage = store.storage.clone();
    let settings = storage.settings().clone().with_turns(true);
    storage.with_settings(settings).vectors().backfill(&of, &mut |_| {}).await.unwrap()
}

/// The turns that a search finds, as `session turn`.
pub(super) async fn found(store: &Store, options: &SearchOptions) -> Vec<String> {
    let found = store.storage.search().search_turns(&ana(), options).await.unwrap();
    found.results.iter().map(|result| format!("{} {}", result.session_id, result.turn)).collect()
}

pub(super) async fn set(store: &Store, message: &str, text: &str) -> Result<SummaryReport> {
    set_in(&store.storage, message, text).await
}

pub(super) async fn set_in(storage: &SessionStorage, message: &str, text: &str) -> Result<SummaryReport> {
    let given = GivenSummary { message: message.to_owned(), text: text.to_owned() };
    let summary = storage.turns().resolve_summary(&target("s").key.user_id, &given).await?;
    storage.turns().set_summaries(vec![summary]).await
}

/// A sync embeds each turn once: the user's text and the last text of the assistant. A further run asks for nothing.
async fn a_turn_is_embedded_once(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let transcript = vec![
        lines::user("where is the quokka"),
        lines::assistant("I will look"),
        lines::tool_call("bash", json!({"command": "ls"})),
        lines::tool("quokka.txt"),
        lines::thinking("it is there", "in the garden"),
        lines::tool_result("nothing else"),
        lines::user("and the numbat"),
        lines::assistant("in the kitchen"),
    ];
    store.sync(&target, transcript.clone()).await;
    let expected = [
        "User: where is the quokka\nAssistant: in the garden",
        "User: and the numbat\nAssistant: in the kitchen",
    ];
    assert_eq!(texts_asked_for(&store), expected);
    let stored = embeddings(&store, &target).await;
    let places: Vec<_> = stored.iter().map(|turn| (turn.0, made_of(turn).assistant_sequence)).collect();
    assert_eq!(places, [(0, Some(4)), (6, Some(7))]);
    for (turn, content) in stored.iter().zip(expected) {
        let of = made_of(turn);
        assert_eq!((of.content_used.as_str(), of.used_turn_summary), (content, false));
        assert_eq!(of.content_hash, EmbeddedTurn::hash(content));
        assert!(is_kept(&turn.1.vector, &store.embedding.vector(content)));
    }
    for _ in 0..2 {
        store.sync(&target, transcript.clone()).await;
        assert_eq!(embed_turns(&store).await.turns, 0);
        assert_eq!(store.embedding.calls(), 0);
    }
    assert_eq!(embeddings(&store.again().await, &target).await, stored);
    // Without the setting, they stay pending.
    let plain = store.again().await;
    plain.sync_from(&target, 8, vec![lines::user("next"), lines::assistant("last")]).await.unwrap();
    assert_eq!(embeddings(&store, &target).await.len(), 2);
    assert_eq!((embed_turns(&plain).await.turns, embeddings(&store, &target).await.len()), (1, 3));
}

/// If the last answer of a turn changes, only this turn is embedded again.
async fn only_turns_that_changed_are_embedded_again(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let ask = |n: u32| [lines::user(&format!("question {n}")), lines::assistant(&format!("answer {n}"))];
    let mut transcript: Vec<Line> = (0..3).flat_map(ask).collect();
    store.sync(&target, transcript.clone()).await;
    let before = embeddings(&store, &target).await;
    store.embedding.reset_counts();
    transcript.push(lines::assistant("a better answer"));
    store.sync(&target, transcript.clone()).await;
    assert_eq!(texts_asked_for(&store), ["User: question 2\nAssistant: a better answer"]);
    transcript[3] = lines::assistant("another answer");
    store.sync(&target, transcript.clone()).await;
    // All lines from the first that differs were written again, and so were their embeddings.
    let asked = texts_asked_for(&store);
    assert!(asked.contains(&"User: question 1\nAssistant: another answer".to_owned()), "{asked:?}");
    assert!(!asked.iter().any(|text| text.contains("question 0")), "{asked:?}");
    let after = embeddings(&store, &target).await;
    assert_eq!((after.len(), &after[0]), (3, &before[0]));
    assert_eq!(made_of(&after[2]).assistant_sequence, Some(6));
    assert_eq!(contents(&store, &target).await[1], "User: question 1\nAssistant: another answer");
}

/// A sync reads a session only from the question of the turn that it continues.
async fn a_long_turn_is_embedded_again_from_its_question(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let mut transcript = vec![lines::user("short"), lines::assistant("answer"), lines::user("long")];
    transcript.extend((0..100).map(|n| lines::tool(&format!("output {n}"))));
    store.sync(&target, transcript.clone()).await;
    store.embedding.reset_counts();
    transcript.push(lines::assistant("the end"));
    store.sync(&target, transcript).await;
    assert_eq!(texts_asked_for(&store), ["User: long\nAssistant: the end"]);
    assert_eq!(contents(&store, &target).await.len(), 2);
}

/// A turn without a text of the user or the assistant is skipped.
async fn turns_with_an_empty_side_are_not_embedded(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let transcript = vec![
        lines::assistant("before the first turn"),
        lines::user("no answer"),
        lines::user("only a tool"),
        lines::tool_call("bash", json!({"command": "ls"})),
        lines::tool("a.txt"),
        lines::user("an empty answer"),
        lines::assistant("  \n"),
        summarised("a summary only", "what was done"),
        lines::user("both"),
        lines::assistant("sides"),
    ];
    store.sync(&target, transcript).await;
    let expected = ["User: a summary only\nAssistant: what was done", "User: both\nAssistant: sides"];
    assert_eq!(contents(&store, &target).await, expected);
    assert_eq!(made_of(&embeddings(&store, &target).await[0]).assistant_sequence, None);
}

/// The embedding of a turn is removed by a rewind, and so is that of a turn whose answer was cut off.
async fn a_rewound_turn_loses_its_embedding(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let ask = |n: u32| [lines::user(&format!("question {n}")), lines::assistant(&format!("answer {n}"))];
    store.sync(&target, (0..3).flat_map(ask).collect::<Vec<_>>()).await;
    store.storage.ingestion().rewind(&target.key, &RewindOptions::to_turn(2)).await.unwrap();
    assert_eq!(contents(&store, &target).await.len(), 2);
    assert_eq!(found(&store, &words("question")).await, ["s 1", "s 2"]);
    store.backend.delete_session(&target.key).await.unwrap();
    assert!(embeddings(&store, &target).await.is_empty());
}

/// If the model fails, the report says so, the messages are stored, and a backfill embeds the turns.
async fn a_failure_of_the_model_is_reported_and_made_up_for(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    store.sync_text(&target, vec![lines::user("one"), lines::assistant("two")]).await;
    store.embedding.fail_always(true);
    let report = embed_turns(&store).await;
    assert!(report.failure.is_some() && report.turns == 0, "{report:?}");
    let texts = store.storage.search().search_turns(&ana(), &words("two")).await.unwrap();
    assert_eq!(texts.results.len(), 1);
    store.embedding.fail_always(false);
    assert_eq!((embed_turns(&store).await.turns, embed_turns(&store).await.turns), (1, 0));
}

/// If a program is stopped before it has stored vectors, or the model fails, the next sync makes those of turns too,
/// and only this user's.
async fn turns_of_an_interrupted_sync_are_embedded_by_the_next(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    store.sync_text(&target, vec![lines::user("one"), lines::assistant("two")]).await;
    store.backend.fail_after(Operation::WriteVectors, 0);
    store.storage.vectors().embed_pending(&target.key.user_id, None).await.unwrap_err();
    store.backend.recover();
    let ben = UserId::new("ben").unwrap();
    assert_eq!(store.storage.vectors().embed_pending(&ben, None).await.unwrap().turns, 0);
    for turns in [1, 0] {
        assert_eq!(
            store.storage.vectors().embed_pending(&target.key.user_id, None).await.unwrap().turns,
            turns
        );
    }
    store.embedding.fail_always(true);
    store.sync_text(&target, vec![lines::user("one"), lines::assistant("three")]).await;
    assert!(
        store.storage.vectors().embed_pending(&target.key.user_id, None).await.unwrap().failure.is_some()
    );
    store.embedding.fail_always(false);
    assert_eq!(store.storage.vectors().embed_pending(&target.key.user_id, None).await.unwrap().turns, 1);
}

/// Turns are found by words of both sides and by their vectors. A result has both sides and both ids, and no vector.
async fn turns_are_found_by_words_and_by_meaning(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let transcript = vec![
        lines::user("where is the quokka"),
        lines::assistant("in the garden of quokka street"),
        lines::user("what about retries"),
        lines::assistant("they use an outbox"),
        lines::user("good"),
        lines::thinking("the outbox is enough", "yes"),
    ];
    store.sync(&target, transcript).await;
    for (query, expected) in
        [("quokka", &["s 1"][..]), ("outbox", &["s 2"]), ("good", &["s 3"]), ("absent", &[])]
    {
        assert_eq!(found(&store, &words(query)).await, expected, "{query}");
    }
    // Thoughts are no side of a turn.
    assert_eq!(found(&store, &meaning("they use an outbox").with_limit(1)).await, ["s 2"]);
    let hybrid = SearchOptions::new("retries outbox");
    let answer = store.storage.search().search_turns(&ana(), &hybrid).await.unwrap();
    let best = &answer.results[0];
    assert_eq!(
        (answer.mode, best.turn, best.sequence, best.source),
        (SearchMode::Hybrid, 2, 2, SearchSource::Both)
    );
    assert_eq!(best.user_message_id, "s_msg_2");
    assert_eq!(best.assistant_message_id.as_deref(), Some("s_msg_3"));
    assert_eq!(best.user.text, "what about retries");
    assert_eq!(best.assistant.as_ref().map(|side| side.text.as_str()), Some("they use an outbox"));
    assert!(best.summary.is_none() && best.similarity.is_some() && best.text_score.is_some());
    let json = serde_json::to_value(&answer).unwrap();
    for field in
        ["user_id", "session_id", "project", "sequence", "turn", "role", "content_type", "score", "snippet"]
    {
        assert!(json["results"][0].get(field).is_some(), "{field}: {json}");
    }
    assert!(!json.to_string().contains("vector"), "{json}");
    // Each content type is a side.
    let of_users = words("outbox").with_content_types(only(ContentType::UserQuery));
    assert!(found(&store, &of_users).await.is_empty());
    // Without a model, words remain.
    let storage = store.storage_with(None);
    let answer = storage.search().search_turns(&ana(), &SearchOptions::new("outbox")).await.unwrap();
    assert_eq!((answer.mode, answer.results.len()), (SearchMode::FullText, 1));
    assert!(answer.notices.iter().any(|notice| notice.contains("words only")), "{:?}", answer.notices);
}

/// Neither words nor vectors nor summaries of other users are found.
async fn turns_of_others_are_not_found(store: Store) {
    let (store, theirs) = (with_turns(store), target_of("ben", "p", "s"));
    store.sync(&theirs, vec![summarised("the quokka", "a zebra"), lines::assistant("in the garden")]).await;
    store.sync(&target("mine"), vec![lines::user("hello"), lines::assistant("world")]).await;
    for query in ["quokka", "zebra", "garden"] {
        for options in [words(query), SearchOptions::new(query), meaning(query).with_min_similarity(0.2)] {
            let found = found(&store, &options).await;
            assert!(found.iter().all(|turn| turn.starts_with("mine ")), "{query}: {found:?}");
        }
    }
    let ben = Scope::User(theirs.key.user_id.clone());
    assert_eq!(store.storage.search().search_turns(&ben, &words("zebra")).await.unwrap().results.len(), 1);
}

/// A turn is read by its number, and named by any of its messages.
async fn a_turn_is_read_by_its_number(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let transcript = vec![
        lines::system("rules"),
        lines::user("one"),
        lines::tool("result"),
        lines::assistant("two"),
        lines::user("three"),
    ];
    store.sync(&target, transcript).await;
    let session = store.stored(&target).await.session;
    let turn = store.storage.turns().get_turn(&session, 1).await.unwrap();
    assert_eq!((turn.user.message_id.as_str(), turn.user.text.as_str()), ("s_msg_1", "one"));
    assert_eq!(turn.assistant.as_ref().map(|side| (side.sequence, side.text.as_str())), Some((3, "two")));
    let embedding = store.storage.turns().turn_embedding(&turn).await.unwrap().unwrap();
    assert_eq!((embedding.dim, embedding.content_used.as_str()), (64, "User: one\nAssistant: two"));
    let second = store.storage.turns().get_turn(&session, 2).await.unwrap();
    assert!(
        second.assistant.is_none() && store.storage.turns().turn_embedding(&second).await.unwrap().is_none()
    );
    let error = store.storage.turns().get_turn(&session, 3).await.unwrap_err();
    assert!(error.to_string().contains("no turn 3") && error.to_string().contains("2 turns"), "{error}");
    let number = async |sequence| {
        store
            .storage
            .turns()
            .turn_of_message(&ana(), &target.key.session_id, sequence)
            .await
            .map_err(|error| error.kind())
    };
    assert_eq!((number(2).await, number(4).await), (Ok(1), Ok(2)));
    assert_eq!((number(0).await, number(5).await), (Err(ErrorKind::Validation), Err(ErrorKind::Validation)));
}

/// A session of three turns, the second with a summary in its line and the third with one that a person set.
async fn fill(store: &Store) {
    let transcript = vec![
        lines::user("one"),
        lines::assistant("first answer"),
        summarised("two", "stated"),
        lines::assistant("second answer"),
        lines::user("three \0"),
        lines::assistant("third answer"),
    ];
    store.sync(&target("s"), transcript).await;
    set(store, "s#4", "by hand").await.unwrap();
    store.embedding.reset_counts();
}

/// The vectors of turns of a session, and its summaries.
async fn turns_of(store: &Store, target: &IngestTarget) -> (Vec<(u32, VectorRecord)>, Vec<TurnSummary>) {
    let embeddings = embeddings(store, target).await;
    (embeddings, store.backend.list_summaries(&SummaryQuery::new(Scope::Everyone)).await.unwrap())
}

/// A copy has the embeddings and summaries of the source, and a second copy only what is new. Nothing is embedded
/// again.
async fn embeddings_and_summaries_are_copied(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    fill(&store).await;
    let to = with_turns(Store::open(std::sync::Arc::new(MemoryBackend::new())).await);
    let copy = async || {
        let options = CopyOptions::new(Scope::Everyone);
        let report = store.storage.copying().copy_to(&to.storage, &options, &|_| {}).await.unwrap();
        assert!(report.is_complete(), "{report:?}");
        (report.sessions, report.turns, report.summaries)
    };
    assert_eq!(copy().await, (1, 3, 2));
    assert_eq!(turns_of(&to, &target).await, turns_of(&store, &target).await);
    assert_eq!((embed_turns(&to).await.turns, to.embedding.calls()), (0, 0));
    assert_eq!(copy().await, (0, 0, 0));
    set(&store, "s#0", "later").await.unwrap();
    assert_eq!(copy().await, (0, 1, 1));
    assert_eq!(turns_of(&to, &target).await, turns_of(&store, &target).await);
    assert_eq!(found(&to, &words("later")).await, ["s 1"]);
}

/// An archive has the summaries of turns, and with vectors the embeddings. Nothing is embedded again.
async fn embeddings_and_summaries_are_in_archives(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    fill(&store).await;
    let before = turns_of(&store, &target).await;
    for with_vectors in [true, false] {
        let mut archive = Vec::new();
        let mut writer = JsonLinesWriter::new(&mut archive).with_vectors(with_vectors);
        let everything = SessionFilter::default();
        let report = store.storage.archive().export_sessions(&ana(), everything, &mut writer).await.unwrap();
        let turns = if with_vectors { 3 } else { 0 };
        assert_eq!((report.turns, report.summaries), (turns, 2));
        assert!(store.backend.delete_session(&target.key).await.unwrap());
        let mut reader = JsonLinesReader::new(archive.as_slice());
        let report =
            store.storage.archive().import_sessions(&mut reader, &ImportOptions::default()).await.unwrap();
        assert_eq!((report.sessions, report.turns, report.summaries), (1, turns, 2), "{report:?}");
        let after = turns_of(&store, &target).await;
        assert_eq!(after.1, before.1);
        assert_eq!(after.0, if with_vectors { before.0.clone() } else { Vec::new() });
        let made = embed_turns(&store).await.turns;
        assert_eq!((made, store.embedding.calls() > 0), (3 - turns, !with_vectors));
    }
}
