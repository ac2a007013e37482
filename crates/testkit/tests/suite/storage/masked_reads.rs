//! Secrets in what is read, for readers that must not learn them.

use std::sync::Arc;

use amplifier_session_core::content::Redaction;
use amplifier_session_testkit::{WordRedactor, prelude::*};

on_both_stores![
    everything_that_is_read_is_masked,
    only_the_owner_reads_secrets_of_shared_sessions,
    a_passage_never_has_a_part_of_a_secret,
    without_a_redactor_nothing_is_masked
];

const KEY: &str = "hunter2hunter2";

fn masked(store: &Store) -> SessionStorage {
    let redactor = Arc::new(WordRedactor::new([KEY]));
    store.storage.clone().with_redactor(Redaction::Off, redactor).with_masked_reads()
}

/// Messages, results, turns, summaries of events and titles are masked. The rows are not.
async fn everything_that_is_read_is_masked(store: Store) {
    let target = target("s");
    let text = vec![lines::user(&format!("is {KEY} the key")), lines::assistant(&format!("{KEY} opens it"))];
    store.sync_text(&target, text).await;
    let failed = lines::hook_event("tool:error").data(json!({"error": format!("denied: {KEY}")})).raw();
    store.storage.ingestion().sync_event_lines(&target, SyncLines::whole(vec![failed])).await.unwrap();

    let (storage, id) = (masked(&store), &target.key.session_id);
    assert!(storage.masks_reads());
    let reading = storage.reading();
    let session = storage.sessions().find_session(&ana(), "s").await.unwrap();
    let searched = SearchOptions::new("key opens").with_mode(SearchMode::FullText).with_message(true);
    let read = [
        format!("{session:?}"),
        format!("{:?}", storage.sessions().search_sessions(&SessionQuery::new(ana())).await.unwrap()),
        format!("{:?}", reading.get_transcript_lines(&ana(), id, None, 9).await.unwrap()),
        format!("{:?}", reading.get_message_context(&ana(), id, 0, 0, 9).await.unwrap()),
        format!("{:?}", reading.get_turn_context(&ana(), id, 1, 0, 0).await.unwrap()),
        format!("{:?}", storage.turns().get_turn(&session, 1).await.unwrap()),
        format!("{:?}", storage.search().search_transcripts(&ana(), &searched).await.unwrap()),
        format!("{:?}", storage.search().search_turns(&ana(), &searched).await.unwrap()),
        format!(
            "{:?}",
            reading.readable_events(&ana(), &EventSearchOptions::new(EventFilter::default())).await.unwrap()
        ),
        format!(
            "{:?}",
            reading.search_events(&ana(), &EventSearchOptions::new(EventFilter::default())).await.unwrap()
        ),
        reading.get_event_lines(&ana(), id, EventLines::default().with_payload(true)).await.unwrap()[0]
            .raw
            .as_ref()
            .unwrap()
            .to_text()
            .into_owned(),
    ];
    for text in read {
        assert!(text.contains(&"*".repeat(KEY.len())) && !text.contains(KEY), "{text}");
    }
    let begun = storage.changes().begin(&ana()).await.unwrap();
    store
        .storage
        .sessions()
        .update_session(&target.key, &SessionEdit::default().add_tags(["x"]))
        .await
        .unwrap();
    let page = storage.changes().after(&ana(), &begun, 9).await.unwrap();
    assert!(page.changes.len() == 1 && !format!("{page:?}").contains(KEY), "{page:?}");
    let stored = store.storage.reading().get_transcript_lines(&ana(), id, None, 9).await.unwrap();
    assert!(stored[0].raw.to_text().contains(KEY));
}

/// Others who may see a session read it without its secrets: lines, results, turns, events with their lines, titles. What
/// could not be masked, or is not shared, is not exported.
async fn only_the_owner_reads_secrets_of_shared_sessions(store: Store) {
    for user in ["ana", "ben"] {
        let target = target_of(user, "shop", user);
        // The same text in two sessions would be one result.
        let asked = lines::user(&format!("is {KEY} the key of {user}"));
        let text = vec![asked, lines::assistant(&format!("{user}: {KEY} opens it"))];
        store.sync_text(&target, text).await;
        let failed = lines::hook_event("tool:error").data(json!({"error": format!("denied: {KEY}")})).raw();
        store.storage.ingestion().sync_event_lines(&target, SyncLines::whole(vec![failed])).await.unwrap();
        let key = target.key;
        store.storage.sessions().share_session(&key, &Sharing::public()).await.unwrap();
    }
    let (redactor, reader) = (Arc::new(WordRedactor::new([KEY])), UserId::new("ana").unwrap());
    let storage = store.storage.clone().with_redactor(Redaction::Off, redactor);
    let storage = storage.with_masked_reads_of_others(reader.clone());
    let scope = Scope::Visible(Viewer::new(reader));
    let searched = SearchOptions::new("key opens").with_mode(SearchMode::FullText).with_message(true);
    let found = storage.search().search_transcripts(&scope, &searched).await.unwrap().results;
    let turns = storage.search().search_turns(&scope, &searched).await.unwrap().results;
    for (user, is_clear) in [("ana", true), ("ben", false)] {
        let (id, reading) = (SessionId::new(user).unwrap(), storage.reading());
        let session = storage.sessions().find_session(&scope, user).await.unwrap();
        let events =
            reading.get_event_lines(&scope, &id, EventLines::default().with_payload(true)).await.unwrap();
        let payload = reading.readable_event_payload(&scope, &events[0].event).await.unwrap().unwrap();
        let read = [
            format!("{session:?}"),
            reading.get_transcript_lines(&scope, &id, None, 9).await.unwrap()[0].raw.to_text().into_owned(),
            format!("{:?}", storage.turns().get_turn(&session, 1).await.unwrap()),
            format!("{:?} {}", events[0].event, events[0].raw.as_ref().unwrap().to_text()),
            payload.unwrap().to_text().into_owned(),
            format!(
                "{:?}",
                found.iter().filter(|result| result.user_id.as_str() == user).collect::<Vec<_>>()
            ),
            format!(
                "{:?}",
                turns.iter().filter(|result| result.user_id.as_str() == user).collect::<Vec<_>>()
            ),
        ];
        for text in read {
            assert_eq!((text.contains(KEY), text.contains("********")), (is_clear, !is_clear), "{text}");
        }
        let mut archive = JsonLinesWriter::new(Vec::new());
        let filter = SessionFilter::default().with_session(id);
        let exported = storage.archive().export_sessions(&scope, filter, &mut archive).await;
        match is_clear {
            true => assert_eq!(exported.unwrap().sessions, 1),
            false => assert_eq!(exported.unwrap_err().kind(), ErrorKind::Unsupported),
        }
    }
}

/// Texts are masked before they are cut, and a title that was cut when it was stored ends with a whole word.
async fn a_passage_never_has_a_part_of_a_secret(store: Store) {
    let before = "word ".repeat(30);
    let text = (110..130).map(|chars| lines::user(&format!("{} {KEY}", &before[..chars])));
    let target = target("s");
    store.sync_text(&target, text.collect()).await;
    let storage = masked(&store);
    for chars in 20..160 {
        let options = SearchOptions::new("word").with_mode(SearchMode::FullText).with_snippet_chars(chars);
        let found = storage.search().search_transcripts(&ana(), &options).await.unwrap();
        for result in found.results {
            assert!(!result.snippet.contains("hunt"), "{}", result.snippet);
        }
    }
    let session = storage.sessions().find_session(&ana(), "s").await.unwrap();
    assert!(session.title().ends_with('…') && !session.title().contains("hun"), "{}", session.title());
}

/// A face must not rely on masking that can't be done.
async fn without_a_redactor_nothing_is_masked(store: Store) {
    assert!(!store.storage.clone().with_masked_reads().masks_reads());
}
