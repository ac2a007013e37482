//! Vectors: the lines and the space to which they belong, and pending ones.

use super::sessions::three_messages;
use crate::prelude::*;

fn record(content_type: ContentType, chunk_index: u32, total_chunks: u32, vector: Vec<f32>) -> VectorRecord {
    let (span_start, span_end) = (chunk_index * 2, chunk_index * 2 + 3);
    let text = content_type.into();
    VectorRecord { text, chunk_index, total_chunks, span_start, span_end, token_count: 1, vector, turn: None }
}

fn of(sequence: u32, digest: Digest, records: Vec<VectorRecord>) -> MessageVectors {
    MessageVectors::new(sequence, digest, day(1), records)
}

/// Putting a message again removes its vectors. Removing a message removes them too.
pub async fn a_rewritten_message_loses_its_vectors(store: Store) {
    let target = target("s");
    store.sync(&target, three_messages()).await;
    assert_eq!(store.rows(&target).await.vectors, 3);
    let mut again = store.messages(&target).await.remove(1);
    assert_eq!(again.vectors, VectorState::Stored);
    again.vectors = VectorState::Pending;
    let messages = RowChange { put: vec![again], truncate: Some(2) };
    store.write(&target, |change| change.messages = messages).await;
    assert_eq!(store.vectors(&target).await.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0]);
    assert_eq!((store.rows(&target).await.vectors, store.pending(&target).await), (1, vec![1]));
}

/// Vectors of a removed or changed message are not stored.
pub async fn vectors_of_changed_messages_are_not_stored(store: Store) {
    let target = target("s");
    store.sync_text(&target, three_messages()).await;
    let messages = store.messages(&target).await;
    // This sets the space of the store. Vectors cannot be written before.
    store.sync(&target_of("ana", "shop", "other"), three_messages()).await;
    let records = vec![record(ContentType::UserQuery, 0, 1, store.embedding.vector("x"))];
    let of = |sequence: u32, line: usize| of(sequence, messages[line].digest, records.clone());
    let vectors = vec![of(0, 0), of(2, 1), of(3, 0)];
    assert_eq!(store.backend.write_vectors(&target.key, 0, vectors.clone()).await.unwrap(), 1);
    assert_eq!((store.pending(&target).await, store.rows(&target).await.vectors), (vec![1, 2], 1));
    let elsewhere = target_of("ana", "shop", "elsewhere");
    assert_eq!(store.backend.write_vectors(&elsewhere.key, 0, vectors).await.unwrap(), 0);
    assert_eq!(store.rows(&elsewhere).await.vectors, 0);
}

/// Vectors are rejected before the store has a space, and if they do not fit it. Nothing is stored then.
pub async fn vectors_that_do_not_fit_the_space_are_refused(store: Store) {
    let target = target("s");
    store.sync_text(&target, three_messages()).await;
    let messages = store.messages(&target).await;
    let vector = store.embedding.vector("x");
    let of = |n: usize, vector: &[f32]| {
        of(n as u32, messages[n].digest, vec![record(ContentType::UserQuery, 0, 1, vector.to_vec())])
    };
    let early = store.backend.write_vectors(&target.key, 0, vec![of(0, &vector)]).await;
    assert_eq!(kind(early), ErrorKind::Validation);
    store.sync(&target_of("ana", "shop", "other"), three_messages()).await;
    let mixed = vec![of(0, &vector), of(2, &vector[1..])];
    assert_eq!(kind(store.backend.write_vectors(&target.key, 0, mixed).await), ErrorKind::Validation);
    assert_eq!((store.rows(&target).await.vectors, store.pending(&target).await), (0, vec![0, 1, 2]));
}

/// Vectors replace the earlier ones of the message. The call can be repeated.
pub async fn vectors_replace_those_of_the_message(store: Store) {
    let target = target("s");
    store.sync(&target, three_messages()).await;
    let digest = store.messages(&target).await[1].digest;
    let chunk = |index: u32, total: u32| {
        let vector = store.embedding.vector(&format!("chunk {index} {total}"));
        record(ContentType::AssistantResponse, index, total, vector)
    };
    // A text without any word that the model knows has a vector of zeros.
    let zeros = record(ContentType::AssistantThinking, 0, 1, vec![0.0; 64]);
    let first = vec![chunk(0, 3), chunk(1, 3), chunk(2, 3), zeros];
    for records in [first.clone(), first, vec![chunk(0, 2), chunk(1, 2)]] {
        let vectors = vec![of(1, digest, records.clone())];
        assert_eq!(store.backend.write_vectors(&target.key, 0, vectors).await.unwrap(), records.len());
        let stored = store.vectors(&target).await.into_iter().filter(|(sequence, _)| *sequence == 1);
        let stored: Vec<VectorRecord> = stored.map(|(_, record)| record).collect();
        assert_eq!(stored.len(), records.len());
        for (stored, record) in stored.into_iter().zip(records.clone()) {
            assert!(is_kept(&stored.vector, &record.vector), "{stored:?}");
            assert_eq!(VectorRecord { vector: record.vector.clone(), ..stored }, record);
        }
        assert_eq!(store.rows(&target).await.vectors, 2 + records.len() as u64);
    }
}

/// Vectors are returned for the requested texts, the chunks of each in order, bit for bit.
pub async fn vectors_come_back_bit_for_bit(store: Store) {
    let target = target("s");
    let lines = vec![lines::thinking("a deep thought", "a short answer"), lines::user("a question")];
    store.sync(&target, lines).await;
    let wanted = [
        (0, ContentType::AssistantThinking),
        (1, ContentType::UserQuery),
        (1, ContentType::ToolOutput),
        (9, ContentType::UserQuery),
    ];
    let wanted = wanted.map(|(sequence, of)| (MessageRef::new(target.key.clone(), sequence), of.into()));
    let mut records = store.backend.vectors_of(0, &wanted).await.unwrap();
    records.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(records.len(), 2);
    for (sequence, text) in [(0, "a deep thought"), (1, "a question")] {
        let (message_ref, record) = &records[sequence];
        assert_eq!(message_ref.sequence as usize, sequence);
        assert!(is_kept(&record.vector, &store.embedding.vector(text)), "{text}");
    }
    assert_eq!((records[1].1.span_start, records[1].1.span_end), (0, 10));
}

/// Texts of several sessions are asked for at once. Only their vectors are returned, not those of other messages of
/// these sessions or of another user's session with the same id.
pub async fn vectors_of_texts_of_several_sessions_are_returned(store: Store) {
    let [ana, ben, other] =
        [("ana", "s"), ("ben", "s"), ("ana", "t")].map(|(user, id)| target_of(user, "p", id));
    for target in [&ana, &ben, &other] {
        store.sync(target, three_messages()).await;
    }
    let text = |target: &IngestTarget, sequence, of: ContentType| {
        (MessageRef::new(target.key.clone(), sequence), VectorText::from(of))
    };
    let wanted = [
        text(&ana, 2, ContentType::UserQuery),
        text(&ben, 0, ContentType::UserQuery),
        text(&other, 1, ContentType::AssistantResponse),
        text(&other, 2, ContentType::AssistantResponse),
    ];
    let records = store.backend.vectors_of(0, &wanted).await.unwrap();
    let mut found: Vec<_> = records.into_iter().map(|(message, record)| (message, record.text)).collect();
    let [mut expected @ .., _] = wanted;
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

/// Messages of a user with pending vectors are listed by session and sequence, in pages, and counted in each scope.
pub async fn messages_with_pending_vectors_are_listed_in_order(store: Store) {
    let message = |n: u32| {
        if n.is_multiple_of(2) { lines::user("text") } else { lines::tool_call("bash", "ls".into()) }
    };
    for (user, session) in [("ben", "a"), ("ana", "b"), ("ana", "a"), ("ana", "c")] {
        store.sync_text(&target_of(user, "p", session), (0..20).map(message).collect()).await;
    }
    let pending = |session| (0..20).step_by(2).map(move |n| MessageRef::new(target(session).key, n));
    let expected: Vec<MessageRef> = ["a", "b", "c"].into_iter().flat_map(pending).collect();
    let user = target("a").key.user_id;
    assert_eq!(store.pending_of(pending_query(&user, None, None, 4)).await, expected);
    assert_eq!(store.pending(&target("b")).await.len(), 10);
    let viewer = Scope::Visible(Viewer::new(user.clone()));
    let scopes = [Scope::User(user), viewer, Scope::Everyone, Scope::User(UserId::new("nobody").unwrap())];
    for (scope, (messages, of)) in scopes.iter().zip([(30, 60), (30, 60), (40, 80), (0, 0)]) {
        let missing = store.backend.missing_vectors(scope).await.unwrap();
        assert_eq!(missing, MissingVectors { messages, of }, "{scope:?}");
    }
}

/// Texts with vectors are listed by sequence, in pages. Messages without vectors are skipped.
pub async fn texts_with_vectors_are_listed_in_order(store: Store) {
    let key = target("s").key;
    let line = |n: u32| match n % 4 {
        0 => lines::user(&format!("question {n}")),
        1 => lines::thinking(&format!("thought {n}"), &format!("answer {n}")),
        2 => lines::tool(&format!("output {n}")),
        _ => lines::system("rules"),
    };
    store.sync(&target("s"), (0..30).map(line).collect()).await;
    let of = |types: &[ContentType]| types.iter().copied().map(VectorText::from).collect::<Vec<_>>();
    let types = |n: u32| match n % 4 {
        0 => of(&[ContentType::UserQuery]),
        1 => of(&[ContentType::AssistantResponse, ContentType::AssistantThinking]),
        _ => of(&[ContentType::ToolOutput]),
    };
    let expected: Vec<_> = (0..30).filter(|n| n % 4 != 3).map(|n| (n, types(n))).collect();
    for limit in [1, 5, 100] {
        let (mut all, mut start) = (Vec::new(), 0);
        loop {
            let page = store.backend.vector_texts(0, &key, range(start, limit)).await.unwrap();
            assert!(page.len() <= limit);
            let Some((last, _)) = page.last() else { break };
            start = last + 1;
            all.extend(page);
        }
        assert_eq!(all, expected);
    }
    let page = store.backend.vector_texts(0, &key, range(3, 1)).await.unwrap();
    assert_eq!(page, [(4, of(&[ContentType::UserQuery]))]);
}

/// A vector of zeros is stored and not pending, and no search finds it.
pub async fn a_zero_vector_is_stored_but_not_found(store: Store) {
    store.sync(&target("s"), vec![lines::user("?!"), lines::user("a basket")]).await;
    assert!(store.pending(&target("s")).await.is_empty());
    for _ in 0..2 {
        let results = store.search(&target("s"), &meaning("basket")).await.results;
        assert_eq!(results[0].sequence, 1);
        assert!(results[1..].iter().all(|result| result.similarity == Some(0.0)));
        store.storage.update_index().await.unwrap();
    }
}

/// A message that had nothing to embed by the rules under which the store was written is embedded if it has a text by
/// the current ones.
pub async fn texts_found_by_new_rules_are_embedded(store: Store) {
    let lines = vec![
        lines::user("a question"),
        lines::message("assistant", json!([{"type": "output_text", "text": "a basket"}])),
        lines::message("assistant", json!([{"type": "image"}])),
    ];
    store.sync(&target("s"), lines).await;
    let mut message = store.messages(&target("s")).await.remove(1);
    message.vectors = VectorState::Nothing;
    store.write(&target("s"), |change| change.messages.put = vec![message]).await;
    let now = amplifier_session_core::content::EXTRACTION.to_string();
    assert!(store.backend.replace_meta(meta::EXTRACTION, &now, "3").await.unwrap());
    store.embedding.reset_counts();

    let again = SessionStorage::new(store.backend.clone());
    assert_eq!(
        (again.rederivation().rederive().await.unwrap(), store.pending(&target("s")).await),
        (1, vec![1])
    );
    assert_eq!((store.embed().await.messages, store.embedding.texts()), (1, vec!["a basket".to_owned()]));
    assert_eq!(store.find(&target("s"), "basket").await, [1]);
}

/// A store written under other text extraction rules is updated before it is written to. Only texts that the current
/// rules change are embedded again.
pub async fn texts_changed_by_new_rules_are_embedded_again(store: Store) {
    let output = json!([{"type": "output_text", "text": "a basket"}]);
    let lines = vec![
        lines::user("a question"),
        lines::thinking("a thought", "an answer"),
        lines::message("tool", output.clone()),
        lines::message("user", json!([{"type": "tool_result", "tool_use_id": "1", "content": output}])),
        lines::tool_call("bash", json!({"command": "ls"})),
    ];
    store.sync(&target("s"), lines).await;
    let now = amplifier_session_core::content::EXTRACTION.to_string();
    let rules = async || store.backend.meta().await.unwrap().remove(meta::EXTRACTION);
    assert_eq!(rules().await.as_ref(), Some(&now));
    assert!(store.backend.replace_meta(meta::EXTRACTION, &now, "3").await.unwrap());
    store.embedding.reset_counts();

    let again = SessionStorage::new(store.backend.clone());
    assert_eq!(
        (again.rederivation().rederive().await.unwrap(), store.pending(&target("s")).await),
        (2, vec![2, 3])
    );
    assert_eq!(store.find(&target("s"), "basket").await, [2, 3]);
    assert_eq!(store.find(&target("s"), "ls").await, [4]);
    assert_eq!((store.embed().await.messages, store.embedding.texts()), (2, vec!["a basket".to_owned(); 2]));
    assert_eq!(rules().await, Some(now));
    assert_eq!(SessionStorage::new(store.backend.clone()).rederivation().rederive().await.unwrap(), 0);
    // The next test may have the same store, and counts what differs.
    store.backend.delete_session(&target("s").key).await.unwrap();
}

/// Version 5 of the rules kept escape sequences, JSON of web searches, and flags of processes. Only texts with these are
/// embedded again. Version 6 took a colour code without its escape character for a part of the word after it.
pub async fn output_by_the_rules_before_the_last_is_embedded_again(store: Store) {
    let links = r#"[{"title":"Baskets","url":"https://a.example"}]"#;
    let lines = vec![
        lines::tool("\u{1b}[31mbasket\u{1b}[0m"),
        lines::tool("a [31mbasket[0m"),
        lines::tool(&format!("Web search results\n\nLinks: {links}")),
        lines::tool(&json!({"stdout": "a basket", "interrupted": false}).to_string()),
        lines::tool_call("bash", json!({"command": "ls basket", "description": "List it"})),
    ];
    store.sync(&target("s"), lines).await;
    let now = amplifier_session_core::content::EXTRACTION.to_string();
    assert!(store.backend.replace_meta(meta::EXTRACTION, &now, "5").await.unwrap());
    store.embedding.reset_counts();

    let again = SessionStorage::new(store.backend.clone());
    assert_eq!(
        (again.rederivation().rederive().await.unwrap(), store.pending(&target("s")).await),
        (3, vec![0, 2, 3])
    );
    assert_eq!(store.embed().await.messages, 3);
    let mut embedded = store.embedding.texts();
    embedded.sort_unstable();
    assert_eq!(
        embedded,
        ["Web search results\n\nLinks:\n- Baskets: https://a.example", "a basket", "basket"]
    );
    let mut found = store.find(&target("s"), "basket").await;
    found.sort_unstable();
    // The terms of message 1 differ, but not the text that is embedded.
    assert_eq!(found, [0, 1, 2, 3, 4]);
    // The next test may have the same store, and counts what differs.
    store.backend.delete_session(&target("s").key).await.unwrap();
}

/// Base64 in texts is neither found nor embedded. The lines are stored unchanged.
pub async fn base64_is_neither_found_nor_embedded(store: Store) {
    let data: String = (0..400).map(|n| format!("Qz{n:05}Ab")).collect();
    let lines = [
        lines::user(&format!("a basket {data}")),
        lines::tool(&json!({"output": {"name": "basket", "image": data}}).to_string()),
        lines::tool_call("save", json!({"path": "basket", "content": data})),
        lines::user(&data),
    ];
    let lines = lines.map(RawJson::from).to_vec();
    store.sync(&target("s"), lines.clone()).await;
    assert_eq!(store.find(&target("s"), "basket").await, [0, 1, 2]);
    assert!(store.find(&target("s"), &data).await.is_empty());
    store.embed().await;
    let embedded = store.embedding.texts();
    assert!(embedded.len() == 2 && embedded.iter().all(|text| !text.contains("Qz00001")), "{embedded:?}");
    let stored: Vec<RawJson> =
        store.messages(&target("s")).await.into_iter().map(|message| message.raw).collect();
    assert_eq!(stored, lines);
}
