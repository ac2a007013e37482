//! Summaries of turns, which a person sets or a line states.

use amplifier_session_core::content::Redaction;
use amplifier_session_testkit::{WordRedactor, prelude::*};

use super::turns::{
    contents, embed_turns, embeddings, found, made_of, set, set_in, summarised, texts_asked_for, with_turns,
};

on_both_stores![
    a_summary_takes_the_place_of_the_answer,
    summaries_refresh_only_their_turns,
    wrong_summaries_are_refused,
    turns_are_found_by_their_summaries,
    summaries_in_lines_are_found_without_a_model,
    secrets_in_summaries_are_masked,
];

/// A summary that a person set stands for the answer, before one that the line states.
async fn a_summary_takes_the_place_of_the_answer(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let transcript = vec![summarised("why", "because of the cache"), lines::assistant("a very long answer")];
    store.sync(&target, transcript.clone()).await;
    assert_eq!(contents(&store, &target).await, ["User: why\nAssistant: because of the cache"]);
    assert!(made_of(&embeddings(&store, &target).await[0]).used_turn_summary);
    let session = store.stored(&target).await.session;
    let turn = store.storage.turns().get_turn(&session, 1).await.unwrap();
    assert_eq!(turn.summary_source, Some(SummarySource::Metadata));
    store.embedding.reset_counts();
    let report = set(&store, "s#1", "  set by hand ").await.unwrap();
    assert_eq!((report.summaries, report.unchanged, report.embedded.turns), (1, 0, 1));
    assert_eq!(texts_asked_for(&store), ["User: why\nAssistant: set by hand"]);
    // A sync keeps it.
    store.sync(&target, transcript).await;
    let turn = store.storage.turns().get_turn(&session, 1).await.unwrap();
    assert_eq!(
        (turn.summary.as_deref(), turn.summary_source),
        (Some("set by hand"), Some(SummarySource::Imported))
    );
    assert_eq!(contents(&store, &target).await, ["User: why\nAssistant: set by hand"]);
    assert_eq!(store.embedding.calls(), 0);
}

/// Summaries refresh the embeddings of their turns and no others. Setting the same ones again does nothing.
async fn summaries_refresh_only_their_turns(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let ask = |n: u32| [lines::user(&format!("question {n}")), lines::assistant(&format!("answer {n}"))];
    store.sync(&target, (0..3).flat_map(ask).collect::<Vec<_>>()).await;
    store.embedding.reset_counts();
    for (message, calls) in [("s_msg_2", 1), ("s#3", 0)] {
        let report = set(&store, message, "about one").await.unwrap();
        assert_eq!((report.embedded.turns, report.unchanged), (calls, 1 - calls), "{message}");
    }
    assert_eq!(texts_asked_for(&store), ["User: question 1\nAssistant: about one"]);
    // Without a model, they are stored, and a backfill refreshes the embedding.
    set_in(&store.storage_with(None), "s#0", "about zero").await.unwrap();
    assert_eq!(embed_turns(&store).await.turns, 1);
    assert_eq!(texts_asked_for(&store), ["User: question 0\nAssistant: about zero"]);
}

/// A summary of an unknown message, of none of the user's, or without a text is refused.
async fn wrong_summaries_are_refused(store: Store) {
    let target = target("s");
    store
        .sync_text(&target, vec![lines::assistant("before"), lines::user("one"), lines::assistant("two")])
        .await;
    store.sync_text(&target_of("ben", "p", "theirs"), vec![lines::user("one")]).await;
    let too_long = "x".repeat(10_001);
    for (message, text, expected) in [
        ("s#1", " \n ", "1 to 10000 characters"),
        ("s#1", too_long.as_str(), "1 to 10000 characters"),
        ("s#99", "text", "99"),
        ("s#0", "text", "before the first turn"),
        ("s", "text", "not the id of a message"),
        ("unknown_msg_1", "text", "unknown_msg_1"),
        ("theirs_msg_0", "text", "theirs_msg_0"),
    ] {
        let error = set(&store, message, text).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{message}: {error}");
    }
    let all = store.backend.list_summaries(&SummaryQuery::new(Scope::Everyone)).await.unwrap();
    assert!(all.is_empty());
}

/// Turns are found by the words of a summary that a person set or that the line states, and no longer by one that was
/// replaced.
async fn turns_are_found_by_their_summaries(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let transcript = vec![
        summarised("why", "the cache was cold"),
        lines::assistant("a long answer"),
        lines::user("and now"),
        lines::assistant("another"),
    ];
    store.sync(&target, transcript).await;
    assert_eq!(found(&store, &words("cold cache")).await, ["s 1"]);
    set(&store, "s_msg_3", "warmed by a zebra").await.unwrap();
    assert_eq!(found(&store, &words("zebras")).await, ["s 2"]);
    let result =
        store.storage.search().search_turns(&ana(), &words("zebra")).await.unwrap().results.swap_remove(0);
    assert_eq!(result.summary.as_ref().map(|summary| summary.text.as_str()), Some("warmed by a zebra"));
    set(&store, "s_msg_0", "warm already").await.unwrap();
    assert!(found(&store, &words("cold")).await.is_empty());
    assert_eq!(found(&store, &meaning("warm already").with_limit(1)).await, ["s 1"]);
}

/// A summary that a line states is found by its words in a store without a model, and goes with its line.
async fn summaries_in_lines_are_found_without_a_model(store: Store) {
    let target = target("s");
    let answer = || lines::assistant("a long answer");
    store.sync_text(&target, vec![summarised("why", "the cache was cold"), answer()]).await;
    assert_eq!(found(&store, &words("cold cache")).await, ["s 1"]);
    set_in(&store.storage_with(None), "s#0", "a zebra").await.unwrap();
    store.sync_text(&target, vec![summarised("why", "the cache was cold"), answer(), answer()]).await;
    assert_eq!(found(&store, &words("zebra")).await, ["s 1"]);
    store.sync_text(&target, vec![summarised("why", "all is warm"), answer()]).await;
    assert_eq!(
        (found(&store, &words("warm")).await.len(), found(&store, &words("zebra")).await.len()),
        (1, 0)
    );
}

/// A store that begins to mask secrets masks summaries too, keeps them with lines that change, and removes embeddings
/// of secrets. Later summaries are masked at once.
async fn secrets_in_summaries_are_masked(store: Store) {
    let (store, target) = (with_turns(store), target("s"));
    let ask = |text: &str| [lines::user(text), lines::assistant("an answer")];
    store.sync(&target, ["a swordfish", "two", "three"].into_iter().flat_map(ask).collect::<Vec<_>>()).await;
    set(&store, "s#0", "nothing secret").await.unwrap();
    set(&store, "s#2", "the swordfish").await.unwrap();
    let settings = store.storage.settings().clone().with_secrets(Some(SecretsAtRest::Mask));
    let redactor = std::sync::Arc::new(WordRedactor::new(["swordfish"]));
    let masking = store.storage.clone().with_redactor(Redaction::Remote, redactor).with_settings(settings);
    masking.secrets().apply_secrets_setting().await.unwrap();
    let summaries = async || -> Vec<String> {
        let summaries = store.backend.list_summaries(&SummaryQuery::new(ana())).await.unwrap();
        summaries.into_iter().map(|summary| summary.text).collect()
    };
    let masked = summaries().await;
    assert!(
        masked.len() == 2 && masked[0] == "nothing secret" && !masked[1].contains("swordfish"),
        "{masked:?}"
    );
    assert_eq!(contents(&store, &target).await, ["User: three\nAssistant: an answer"]);
    set_in(&masking, "s#4", "another swordfish").await.unwrap();
    assert!(!summaries().await.concat().contains("swordfish"));
    assert!(!contents(&store, &target).await.concat().contains("swordfish"));
}
