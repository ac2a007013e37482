//! Statistics count what is stored twice once: copies of sessions, and repeated events.

use amplifier_session_testkit::prelude::*;

use super::statistics::{all, at, cost, counts, day, event, event_types, statistics, tokens};

on_both_stores![
    copies_of_a_session_count_once,
    parents_of_earlier_forks_are_found_later,
    similar_sessions_are_no_copies,
    events_of_a_session_with_a_log_count_there,
    a_model_call_counts_once,
];

/// A transcript with two turns, and the log with their calls, which cost 0.50. `session` is the id in the log.
fn two_turns(session: &str) -> (Vec<Line>, Vec<Line>) {
    let transcript = vec![
        lines::user("fix the tests").at(at(1, 10)),
        lines::assistant("which?").at(at(1, 11)),
        lines::user("all of them").at(at(2, 10)),
        lines::assistant("done").at(at(2, 11)),
    ];
    let call = |n: u32| {
        let data = json!({"model": "m", "usage": {"input_tokens": 10, "cost_usd": "0.25"}, "raw": {"id": n}});
        event("llm:response", n, data).with("session_id", session.into())
    };
    (transcript, vec![call(1), event("tool:pre", 1, json!({"tool_name": "bash"})), call(2)])
}

/// What forks, forks of forks and copies have of another session counts once, in whatever order they were stored and
/// however it is known that they are copies. A session by itself has all of it.
async fn copies_of_a_session_count_once(store: Store) {
    let more = |n: u32| {
        let data = json!({"model": "m", "usage": {"input_tokens": 1, "cost_usd": "0.125"}});
        (lines::user(&format!("more {n}")).at(at(n, 10)), event("llm:response", n, data))
    };
    let put = async |id: &str, transcript: Vec<Line>, events: Vec<Line>, metadata: &str| {
        store.sync(&target(id), transcript).await;
        store.sync_events(&target(id), events).await;
        if !metadata.is_empty() {
            store.sync_metadata(&target(id), metadata).await;
        }
    };
    // The fork of the fork comes first. Its host wrote the lines in another form, and its own session in the log.
    let (transcript, events) = two_turns("fork of fork");
    let other_form = transcript.iter().map(|line| line.clone().with("kept", json!(true))).collect::<Vec<_>>();
    let (line, call) = more(6);
    let metadata = r#"{"fork":{"source_session_id":"fork","through_user_turn":2}}"#;
    put("fork of fork", [other_form, vec![line]].concat(), [events, vec![call]].concat(), metadata).await;
    let (transcript, events) = two_turns("original");
    put("original", transcript.clone(), events.clone(), "").await;
    let ((line, call), metadata) =
        (more(5), r#"{"fork":{"source_session_id":"original","before_user_turn":3}}"#);
    put("fork", [transcript.clone(), vec![line]].concat(), [events.clone(), vec![call]].concat(), metadata)
        .await;
    put("plain copy", transcript.clone(), events.clone(), "").await;

    let found = statistics(&store, ana(), all()).await;
    assert_eq!((tokens(&found.usage)[0], cost(&found.usage).as_str()), (4, "0.75"));
    assert_eq!(counts(&found.totals), [4, 6, 4, 5]);
    assert_eq!(counts(&found.projects[0].counts), [4, 6, 4, 5]);
    assert_eq!(event_types(&found), [("llm:response", 4, 0), ("tool:pre", 1, 0)]);
    assert_eq!(found.days.iter().map(|day| day.messages).sum::<u64>(), 6);
    let left_out = found.left_out;
    assert_eq!([left_out.sessions, left_out.messages, left_out.turns, left_out.events], [3, 12, 6, 9]);
    assert_eq!((left_out.usage.calls, cost(&left_out.usage).as_str()), (6, "1.5"));

    // In a period, and without the original.
    let second = statistics(&store, ana(), all().with_period(day(2), day(3))).await;
    assert_eq!(
        (second.days.iter().map(|day| day.messages).sum::<u64>(), cost(&second.usage).as_str()),
        (2, "0.25")
    );
    for (id, expected) in [("fork", "0.625"), ("fork of fork", "0.625"), ("plain copy", "0.5")] {
        let filter = SessionFilter::default().with_session(SessionId::new(id).unwrap());
        let found = statistics(&store, ana(), all().with_sessions(filter)).await;
        assert_eq!((cost(&found.usage).as_str(), found.left_out), (expected, LeftOut::default()), "{id}");
    }
    store
        .storage
        .sessions()
        .delete_session(
            &UserId::new("ana").unwrap(),
            &target("original").project_slug,
            &SessionId::new("original").unwrap(),
        )
        .await
        .unwrap();
    assert_eq!(cost(&statistics(&store, ana(), all()).await.usage), "0.75");
}

/// Sessions that begin with the same words and then differ are no copies.
async fn similar_sessions_are_no_copies(store: Store) {
    let (transcript, events) = two_turns("a");
    store.sync(&target("a"), transcript.clone()).await;
    store.sync_events(&target("a"), events.clone()).await;
    let answer = lines::assistant("another answer").at(at(1, 11));
    store.sync(&target("b"), [transcript[..1].to_vec(), vec![answer]].concat()).await;
    store.sync_events(&target("b"), two_turns("b").1).await;
    // They begin with the same words, and nothing says when.
    for id in ["c", "d"] {
        store.sync(&target(id), vec![lines::user("hello"), lines::assistant("Hello!")]).await;
    }
    // A copy of another user's session is another session.
    store.sync(&target_of("ben", "p", "a"), transcript).await;
    store.sync_events(&target_of("ben", "p", "a"), events).await;
    let found = statistics(&store, Scope::Everyone, all()).await;
    assert_eq!((cost(&found.usage).as_str(), found.totals.messages), ("1.5", 14));
}

/// An event of a sub-agent that is in the log of its parent too counts in its own log, if it has one.
async fn events_of_a_session_with_a_log_count_there(store: Store) {
    let (_, events) = two_turns("child");
    store.sync_events(&target("parent"), events.clone()).await;
    let found = statistics(&store, ana(), all()).await;
    assert_eq!((cost(&found.usage).as_str(), found.left_out.events), ("0.5", 0));
    store.sync_events(&target("child"), events).await;
    let found = statistics(&store, ana(), all()).await;
    assert_eq!((cost(&found.usage).as_str(), found.totals.events, found.left_out.events), ("0.5", 4, 2));
}

/// A model call counts once. The content blocks of a response repeat its usage; they count only in sessions in which no
/// response has usage, and then once for each response.
async fn a_model_call_counts_once(store: Store) {
    let usage = json!({"input_tokens": 100, "output_tokens": 10, "cost_usd": "0.25"});
    let block = |day, index: u32| {
        event("content_block:end", day, json!({"block_index": index, "total_blocks": 3, "usage": usage}))
    };
    let answer = |day| {
        let response = event("llm:response", day, json!({"model": "m", "usage": usage}));
        vec![
            block(day, 0),
            response,
            block(day, 1),
            block(day, 2),
            event("llm:response:debug", day, json!({"usage": usage})),
        ]
    };
    store.sync_events(&target("both"), [answer(1), answer(2)].concat()).await;
    let expected = [2, 200, 20, 0, 0];
    let found = statistics(&store, ana(), all()).await;
    assert_eq!((tokens(&found.usage), cost(&found.usage).as_str()), (expected, "0.5"));
    assert_eq!(found.models.len(), 1);
    assert_eq!(
        event_types(&found),
        [("content_block:end", 6, 0), ("llm:response", 2, 0), ("llm:response:debug", 2, 0)]
    );
    // Whether there is a response depends on the session, and not on the counted events.
    let blocks = EventFilter::default().with_category("content_block".to_owned());
    let counts = store.backend.count_events(&ana(), &blocks).await.unwrap();
    assert!(
        counts.groups.iter().all(|count| count.once.usage.calls == 0)
            && counts.groups.iter().map(|count| count.once.events).sum::<u64>() == 6
    );

    // The same session id of another user, and another session, have only blocks.
    let blocks = || [1, 2].map(|day| [0, 1, 2].map(|index| block(day, index))).concat();
    for target in [target("blocks"), target_of("ben", "p", "both")] {
        store.sync_events(&target, blocks()).await;
    }
    let ben = statistics(&store, scope(&target_of("ben", "p", "x")), all()).await;
    assert_eq!((tokens(&ben.usage), ben.models[0].model.as_str()), (expected, "unknown"));
    let found = statistics(&store, ana(), all()).await;
    assert_eq!((tokens(&found.usage), cost(&found.usage).as_str()), ([4, 400, 40, 0, 0], "1"));
}

/// A fork that was stored by rules that did not read its parent gets it before the store is written to, even if its
/// files do not change any more. A name that a person gave it stays.
async fn parents_of_earlier_forks_are_found_later(store: Store) {
    store.sync(&target("fork"), two_turns("fork").0).await;
    let metadata = r#"{"name":"A","fork":{"source_session_id":"original","through_user_turn":2}}"#;
    store.sync_metadata(&target("fork"), metadata).await;
    let right = store.stored(&target("fork")).await.session;
    assert_eq!(right.forked_from_turn, Some(2));
    store
        .write(&target("fork"), |of| {
            (of.session.parent_id, of.session.forked_from_turn) = (None, None);
            of.session.name = Some("B".to_owned());
        })
        .await;
    let now = amplifier_session_core::content::EXTRACTION.to_string();
    assert!(store.backend.replace_meta(meta::EXTRACTION, &now, "2").await.unwrap());
    SessionStorage::new(store.backend.clone()).rederivation().rederive().await.unwrap();
    assert_eq!(store.stored(&target("fork")).await.session, Session { name: Some("B".to_owned()), ..right });
}
