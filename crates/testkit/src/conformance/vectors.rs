//! Vectors: made of every text, owed where making them failed, never shifted, never of two models.

use amplifier_session_core::{
    ErrorKind,
    backend::{meta, prelude::*},
    content::{EXTRACTION, extract},
    embedding::EmbeddingLimits,
    model::{ContentType, VectorState},
    search::{SearchMode, SearchOptions},
    storage::{SessionStorage, StorageSettings, SyncLines},
};
use serde_json::json;

use super::{
    Subject,
    store::{Store, kind, meaning, raw, says_words_alone, scope, target, target_of, words},
};
use crate::{Answer, FakeEmbedding, lines, lines::Line};

fn every_kind() -> Vec<Line> {
    vec![
        lines::user("a question"),
        lines::thinking("a thought", "an answer"),
        lines::tool("an output"),
        lines::tool_result("a result"),
        lines::system("a rule"),
    ]
}

/// A small model: texts above 40 tokens are cut into chunks of at most 20.
fn small() -> FakeEmbedding {
    FakeEmbedding::new().with_limits(EmbeddingLimits {
        chunk_threshold_tokens: 40,
        chunk_target_tokens: 20,
        batch_texts: 3,
        batch_tokens: 50,
        concurrent_calls: 1,
    })
}

/// Every text of a message has its vector; a message of two texts has two. System messages have none.
pub async fn every_text_has_its_vector(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), every_kind()).await;
    let vectors = store.vectors(&target("s")).await;
    let found: Vec<_> =
        vectors.iter().map(|(n, record)| (*n, record.content_type, record.vector.clone())).collect();
    let vector = |text: &str| store.embedding.vector(text);
    let expected = [
        (0, ContentType::UserQuery, vector("a question")),
        (1, ContentType::AssistantResponse, vector("an answer")),
        (1, ContentType::AssistantThinking, vector("a thought")),
        (2, ContentType::ToolOutput, vector("an output")),
        (3, ContentType::ToolOutput, vector("a result")),
    ];
    assert_eq!(found, expected);
    for (_, record) in &vectors {
        record.validate(&store.storage.embedding_space().await.unwrap().unwrap()).unwrap();
    }
    let states: Vec<_> = store.messages(&target("s")).await.iter().map(|message| message.vectors).collect();
    assert_eq!(
        states,
        [
            VectorState::Stored,
            VectorState::Stored,
            VectorState::Stored,
            VectorState::Stored,
            VectorState::Nothing
        ]
    );
}

/// A long text has a vector for each chunk; the characters of a chunk's span are what was embedded.
pub async fn a_long_text_has_a_vector_a_chunk(subject: &dyn Subject) {
    let store = Store::open_with(subject, small()).await;
    let text = (0..60).map(|n| format!("Satz {n} über café 👍 und Größe.")).collect::<Vec<_>>().join(" ");
    store.sync(&target("s"), vec![lines::user(&text), lines::user("short")]).await;
    let vectors = store.vectors(&target("s")).await;
    let chunks: Vec<_> =
        vectors.iter().filter(|(sequence, _)| *sequence == 0).map(|(_, record)| record).collect();
    assert!(chunks.len() > 10);
    let characters: Vec<char> = text.chars().collect();
    for (index, chunk) in chunks.iter().enumerate() {
        assert_eq!((chunk.chunk_index as usize, chunk.total_chunks as usize), (index, chunks.len()));
        assert!(chunk.token_count > 0 && chunk.token_count <= 20);
        let source: String = characters[chunk.span_start as usize..chunk.span_end as usize].iter().collect();
        assert_eq!(chunk.vector, store.embedding.vector(&source));
        assert!(store.embedding.texts().contains(&source));
    }
    assert_eq!(store.backend.session_rows(&target("s").key).await.unwrap().vectors, chunks.len() as u64 + 1);
    assert!(store.owing(&target("s")).await.is_empty());
}

/// A text that becomes shorter leaves no chunk behind.
pub async fn a_shorter_text_leaves_no_chunk_behind(subject: &dyn Subject) {
    let store = Store::open_with(subject, small()).await;
    let long = "a sentence of several words. ".repeat(50);
    store.sync(&target("s"), vec![lines::user(&long), lines::user(&long)]).await;
    let before = store.backend.session_rows(&target("s").key).await.unwrap().vectors;
    store.sync(&target("s"), vec![lines::user("short now"), lines::user(&long)]).await;
    let vectors = store.vectors(&target("s")).await;
    assert_eq!(vectors.iter().filter(|(sequence, _)| *sequence == 0).count(), 1);
    assert_eq!(store.backend.session_rows(&target("s").key).await.unwrap().vectors, before / 2 + 1);
}

/// Of a tool's output, as much is embedded as the settings say; full text finds the rest too.
pub async fn tool_output_is_embedded_up_to_its_limit(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let settings = StorageSettings::default().with_tool_output_chars(20);
    let storage = store.storage.clone().with_settings(settings);
    let lines = SyncLines::whole(raw(vec![
        lines::tool("twenty characters, then farbehind"),
        lines::user("a text of more than twenty"),
    ]));
    storage.sync_transcript_lines(&target("s"), lines).await.unwrap();
    assert_eq!(store.embedding.texts(), ["twenty characters, t", "a text of more than twenty"]);
    assert_eq!(store.find(&target("s"), "farbehind").await, [0]);
}

/// A store that was written by other rules for the texts of lines is brought up to those of the library before it is
/// written to: texts that come out otherwise are embedded again, others are not.
pub async fn texts_that_are_read_otherwise_are_embedded_again(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let answer = r#"{"success": true, "output": "a basket"}"#;
    let mut lines = every_kind();
    lines.extend([
        lines::tool(answer),
        lines::tool_result(answer),
        lines::tool_call("bash", json!({"command": "ls"})),
    ]);
    store.sync(&target("s"), lines).await;
    let now = EXTRACTION.to_string();
    assert_eq!(store.backend.meta().await.unwrap().get(meta::EXTRACTION), Some(&now));
    assert!(store.backend.replace_meta(meta::EXTRACTION, &now, "1").await.unwrap());
    store.embedding.reset_counts();

    let again = SessionStorage::new(store.backend.clone());
    assert_eq!((again.renew().await.unwrap(), store.owing(&target("s")).await), (2, vec![5, 6]));
    assert_eq!(store.find(&target("s"), "basket").await, [5, 6]);
    assert_eq!(store.find(&target("s"), "ls").await, [7]);
    let report = store.storage.embed_owed(&target("s").key.user_id, None).await.unwrap();
    assert_eq!((report.messages, store.embedding.texts()), (2, vec!["a basket".to_owned(); 2]));
    assert_eq!(store.backend.meta().await.unwrap().get(meta::EXTRACTION), Some(&now));
    assert_eq!(SessionStorage::new(store.backend.clone()).renew().await.unwrap(), 0);
}

/// When embedding fails, the message is stored, found by full text, and owed; the next sync makes its
/// vectors.
pub async fn a_failed_embedding_is_made_up_for(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.embedding.fail_always(true);
    let report = store.sync(&target("s"), every_kind()).await;
    assert_eq!(report.messages_written, 5);
    assert_eq!(store.messages(&target("s")).await.len(), 5);
    assert_eq!(store.owing(&target("s")).await, [0, 1, 2, 3]);
    assert_eq!(store.backend.session_rows(&target("s").key).await.unwrap().vectors, 0);
    assert_eq!(store.find(&target("s"), "question thought").await, [0, 1]);
    assert!(store.find(&target("s"), "rule").await.is_empty());

    // The same lines again: nothing is written but what is owed.
    store.embedding.fail_always(false);
    let versions = store.stored(&target("s")).await.session;
    assert_eq!(store.sync(&target("s"), every_kind()).await, Default::default());
    assert_eq!(store.stored(&target("s")).await.session, versions);
    assert!(store.owing(&target("s")).await.is_empty());
    assert_eq!(store.vectors(&target("s")).await.len(), 5);
    assert_eq!(store.search(&target("s"), &meaning("question")).await.results[0].sequence, 0);
}

/// A provider that fails in the midst of many messages leaves none with half of its vectors.
pub async fn a_provider_that_fails_midway_leaves_whole_messages(subject: &dyn Subject) {
    let store = Store::open_with(subject, small()).await;
    let lines = || {
        (0..30).map(|n| lines::thinking(&format!("thought{n}"), &format!("answer{n}"))).collect::<Vec<_>>()
    };
    store.embedding.fail_on(Some("thought17"));
    store.sync(&target("s"), lines()).await;
    let owing = store.owing(&target("s")).await;
    assert!(owing.contains(&17));
    let vectors = store.vectors(&target("s")).await;
    assert_eq!(vectors.len(), 2 * (30 - owing.len()));
    assert!(vectors.iter().all(|(sequence, _)| !owing.contains(sequence)));
    store.embedding.fail_on(None);
    store.sync(&target("s"), lines()).await;
    let vectors = store.vectors(&target("s")).await;
    assert_eq!((vectors.len(), store.owing(&target("s")).await.len()), (60, 0));
    for (sequence, record) in vectors {
        let kind = if record.content_type == ContentType::AssistantThinking { "thought" } else { "answer" };
        assert_eq!(record.vector, store.embedding.vector(&format!("{kind}{sequence}")));
    }
}

/// A provider that answers with too few or too many vectors, of another length, or with no numbers, stores
/// nothing.
pub async fn a_wrong_answer_stores_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for answer in [Answer::TooFew, Answer::TooMany, Answer::WrongDimensions, Answer::NotFinite] {
        store.embedding.answer_with(answer);
        store.sync(&target("s"), every_kind()).await;
        assert_eq!(store.backend.session_rows(&target("s").key).await.unwrap().vectors, 0, "{answer:?}");
        assert_eq!(store.owing(&target("s")).await, [0, 1, 2, 3], "{answer:?}");
        let report = store.storage.embed_owed(&target("s").key.user_id, None).await.unwrap();
        assert!(report.failure.is_some(), "{answer:?}");
        assert_eq!((report.messages, report.total()), (0, 0), "{answer:?}");
    }
    store.embedding.answer_with(Answer::Right);
    store.sync(&target("s"), every_kind()).await;
    assert_eq!(store.vectors(&target("s")).await[0].1.vector, store.embedding.vector("a question"));
    assert!(store.owing(&target("s")).await.is_empty());
}

/// A wrong answer to a query is an error of the semantic search, and full text goes on in a hybrid one.
pub async fn a_wrong_answer_to_a_query_is_no_result(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), every_kind()).await;
    for answer in [Answer::TooFew, Answer::WrongDimensions, Answer::NotFinite] {
        store.embedding.answer_with(answer);
        let result = store.storage.search_transcripts(&scope(&target("s")), &meaning("question")).await;
        assert_eq!(kind(result), ErrorKind::Embedding, "{answer:?}");
        let results = store.search(&target("s"), &SearchOptions::new("question")).await;
        assert_eq!((results.mode, results.results.len()), (SearchMode::FullText, 1), "{answer:?}");
        assert!(says_words_alone(&results));
    }
}

/// Vectors of another model, or of another length, are refused; full text goes on, and the store keeps its
/// space.
pub async fn another_space_is_refused(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), every_kind()).await;
    let space = store.storage.embedding_space().await.unwrap();
    for other in [FakeEmbedding::new().with_model("another"), FakeEmbedding::new().with_dimensions(32)] {
        let storage = store.storage_with(Some(other));
        let lines = SyncLines::starting_at(5, raw(vec![lines::user("a basket")]));
        storage.sync_transcript_lines(&target("s"), lines).await.unwrap();
        let report = storage.embed_owed(&target("s").key.user_id, None).await.unwrap();
        assert_eq!(report.failure.map(|error| error.kind()), Some(ErrorKind::Embedding));
        assert_eq!(store.owing(&target("s")).await, [5]);
        assert_eq!(storage.embedding_space().await.unwrap(), space);

        let scope = scope(&target("s"));
        assert_eq!(kind(storage.search_transcripts(&scope, &meaning("basket")).await), ErrorKind::Embedding);
        let results = storage.search_transcripts(&scope, &SearchOptions::new("basket")).await.unwrap();
        assert_eq!((results.mode, results.results.len()), (SearchMode::FullText, 1));
        assert!(says_words_alone(&results));
        let results = storage.search_transcripts(&scope, &words("basket")).await.unwrap();
        assert_eq!((results.results.len(), says_words_alone(&results)), (1, false));
    }
    store.sync_from(&target("s"), 6, vec![lines::user("more")]).await.unwrap();
    assert!(store.owing(&target("s")).await.is_empty());
}

/// Without a provider nothing is embedded; what is owed is made once there is one, in all sessions.
pub async fn vectors_are_made_once_there_is_a_provider(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let without = store.storage_with(None);
    for session in ["a", "b", "c"] {
        without.sync_transcript_lines(&target(session), SyncLines::whole(raw(every_kind()))).await.unwrap();
    }
    let ben = target_of("ben", "p", "a");
    without.sync_transcript_lines(&ben, SyncLines::whole(raw(every_kind()))).await.unwrap();
    assert_eq!(without.embed_owed(&ben.key.user_id, None).await.unwrap().messages, 0);
    assert_eq!(without.embedding_space().await.unwrap(), None);
    assert_eq!(store.backend.session_rows(&target("a").key).await.unwrap().vectors, 0);

    let ana = &target("a").key.user_id;
    let report = store.storage.embed_owed(ana, Some(&target("b").key.session_id)).await.unwrap();
    assert_eq!((report.messages, report.total()), (4, 5));
    let report = store.storage.embed_owed(ana, None).await.unwrap();
    assert_eq!((report.messages, report.total()), (8, 10));
    assert_eq!(report.vectors.get(&ContentType::ToolOutput), Some(&4));
    let report = store.storage.embed_owed(ana, None).await.unwrap();
    assert_eq!((report.messages, report.total()), (0, 0));
    assert_eq!(store.owing(&ben).await, [0, 1, 2, 3]);
}

/// A text that the model knows no word of has a vector of zeros, is not owed again, and is near to nothing.
pub async fn a_text_of_no_words_is_near_to_nothing(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), vec![lines::user("?!"), lines::user("a basket")]).await;
    assert!(store.owing(&target("s")).await.is_empty());
    let results = store.search(&target("s"), &meaning("basket")).await.results;
    assert_eq!(results[0].sequence, 1);
    assert!(results[1..].iter().all(|result| result.similarity == Some(0.0)));
}

/// A message that is changed while its vectors are made does not get those of its old line.
pub async fn vectors_of_a_message_changed_meanwhile_are_dropped(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("other"), every_kind()).await;
    let without = store.storage_with(None);
    without.sync_transcript_lines(&target("s"), SyncLines::whole(raw(every_kind()))).await.unwrap();
    // What was read to be embedded …
    let user = &target("s").key.user_id;
    let mut read = Vec::new();
    while read.len() < 4 {
        let after = read.last().map(amplifier_session_core::model::Message::place);
        read.extend(
            store
                .backend
                .messages_owing_vectors(&super::store::owing_query(user, None, after.as_ref(), 4))
                .await
                .unwrap(),
        );
    }
    // … is another line by the time the vectors are there.
    let mut lines = every_kind();
    lines[1] = lines::assistant("changed").with("x", json!(1));
    without.sync_transcript_lines(&target("s"), SyncLines::whole(raw(lines))).await.unwrap();
    let vectors = read.iter().map(|message| {
        let line = message.raw.parse_object().unwrap();
        let records = extract(&line, message.role).into_iter().map(|text| {
            amplifier_session_core::model::VectorRecord {
                content_type: text.content_type,
                chunk_index: 0,
                total_chunks: 1,
                span_start: 0,
                span_end: text.text.chars().count() as u32,
                token_count: 1,
                vector: store.embedding.vector(&text.text),
            }
        });
        amplifier_session_core::backend::MessageVectors {
            sequence: message.sequence,
            digest: message.digest,
            created_at: message.ts,
            records: records.collect(),
            failure: None,
        }
    });
    store.backend.write_vectors(&target("s").key, 0, vectors.collect()).await.unwrap();
    assert_eq!(store.owing(&target("s")).await, [1]);
    store.storage.embed_owed(user, None).await.unwrap();
    let vectors = store.vectors(&target("s")).await;
    assert!(vectors.iter().any(|(n, record)| *n == 1 && record.vector == store.embedding.vector("changed")));
}
