//! Rewinds: where a turn ends, what is derived again, and what is refused.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    the_prompt_of_the_next_turn_ends_a_turn,
    messages_without_times_are_enough,
    without_any_time_events_are_kept_only_on_request,
    a_session_without_later_turns_is_not_changed,
    a_dry_run_reports_and_changes_nothing,
    no_more_is_removed_than_a_dry_run_reported,
    turns_out_of_order_are_refused,
    a_missing_session_is_not_rewound,
    title_model_and_dates_are_derived_again,
    times_are_derived_again_from_the_events_that_are_left,
    messages_before_the_first_turn_stay,
    sub_agents_are_not_rewound,
    a_rewind_is_stored_with_the_sync_state,
    a_rewound_session_goes_on,
    edits_during_a_rewind_are_kept,
];

async fn rewind(store: &Store, turn: u32) -> RewindReport {
    try_rewind(store, &RewindOptions::to_turn(turn)).await.unwrap()
}

async fn try_rewind(store: &Store, options: &RewindOptions) -> Result<RewindReport> {
    store.storage.ingestion().rewind(&target("s").key, options).await
}

/// The texts of the messages and the types of the events that are left.
async fn left(store: &Store) -> (Vec<String>, Vec<String>) {
    let (_, (messages, events, _)) = store.everything(&target("s")).await;
    let text = |message: &Message| message.content().as_str().unwrap_or_default().to_owned();
    (messages.iter().map(text).collect(), events.into_iter().map(|line| line.event.event_type).collect())
}

fn at(second: u32) -> String {
    format!("2026-01-05T08:00:{second:02}Z")
}

fn prompt(text: &str, second: u32) -> Line {
    lines::logger_event("prompt:submit").data(json!({"prompt": text})).at(at(second))
}

fn event(kind: &str, second: u32) -> Line {
    lines::logger_event(kind).at(at(second))
}

/// Two turns, whose messages state their times a little after the events.
async fn fill(store: &Store) {
    let transcript = vec![
        lines::user("one").at(at(2)),
        lines::assistant("first").at(at(5)),
        lines::user("two").at(at(21)),
        lines::assistant("second").at(at(25)),
    ];
    store.sync(&target("s"), transcript).await;
    let events = vec![
        event("session:start", 0),
        prompt("one", 1),
        event("llm:response", 4),
        event("prompt:complete", 6),
        event("session:resume", 15),
        prompt("two", 20),
        event("execution:start", 20),
        event("llm:response", 24),
        event("prompt:complete", 26),
    ];
    store.sync_events(&target("s"), events).await;
}

/// Events stay up to the prompt of the next turn, also those between the turns.
async fn the_prompt_of_the_next_turn_ends_a_turn(store: Store) {
    fill(&store).await;
    let report = rewind(&store, 1).await;
    assert_eq!((report.last_turn, report.turns, report.messages, report.events), (Some(2), 1, 2, 4));
    let (texts, events) = left(&store).await;
    assert_eq!(texts, ["one", "first"]);
    let types = ["session:start", "prompt:submit", "llm:response", "prompt:complete", "session:resume"];
    assert_eq!(events, types);
    assert_eq!(rewind(&store, 0).await.events, 4);
    assert_eq!(left(&store).await, (vec![], vec!["session:start".to_owned()]));
}

/// Prompts are matched with messages that state no time, by their text and by their order.
async fn messages_without_times_are_enough(store: Store) {
    for texts in [["one", "two", "three"], ["x", "y", "z"]] {
        let transcript = texts.iter().flat_map(|text| [lines::user(text), lines::assistant("ok")]);
        store.sync(&target("s"), transcript.collect()).await;
        let events = vec![
            prompt("one", 1),
            event("llm:response", 3),
            prompt("two", 11),
            event("llm:response", 13),
            prompt("three", 21),
            event("llm:response", 23),
        ];
        store.sync_events(&target("s"), events).await;
        assert_eq!(rewind(&store, 2).await.events, 2);
        assert_eq!(rewind(&store, 1).await.events, 2);
        assert_eq!(left(&store).await.1, ["prompt:submit", "llm:response"]);
    }
}

/// If no time says which events belong to a turn, the rewind is refused, unless all events are to stay.
async fn without_any_time_events_are_kept_only_on_request(store: Store) {
    store.sync(&target("s"), vec![lines::user("one"), lines::user("two")]).await;
    assert_eq!(rewind(&store, 1).await.messages, 1, "there are no events");
    store.sync(&target("s"), vec![lines::user("one"), lines::user("two")]).await;
    store.sync_events(&target("s"), vec![event("a", 1), event("b", 2)]).await;
    let before = store.everything(&target("s")).await;
    let error = try_rewind(&store, &RewindOptions::to_turn(1)).await.unwrap_err();
    assert_eq!((error.kind(), error.option()), (ErrorKind::Rewind, Some(ErrorOption::KeepEvents)));
    assert!(error.to_string().starts_with("rewind: can't tell which events to remove"), "{error}");
    assert_eq!(store.everything(&target("s")).await, before);
    let report = try_rewind(&store, &RewindOptions::to_turn(1).with_keep_events(true)).await.unwrap();
    assert_eq!((report.messages, report.events), (1, 0));
    assert_eq!(left(&store).await.1, ["a", "b"]);
    assert_eq!(store.stored(&target("s")).await.session.event_count, 2);
}

/// If a session has no later turn, nothing is written. The report has its last turn.
async fn a_session_without_later_turns_is_not_changed(store: Store) {
    fill(&store).await;
    let before = store.everything(&target("s")).await;
    for turn in [2, 3, u32::MAX] {
        let report = rewind(&store, turn).await;
        assert!(report.is_empty());
        assert_eq!(report.last_turn, Some(2));
    }
    assert_eq!(store.everything(&target("s")).await, before);
    store.sync(&target("s"), vec![lines::system("be brief")]).await;
    let report = rewind(&store, 0).await;
    assert_eq!((report.is_empty(), report.last_turn), (true, None));
}

/// A dry run reports what a rewind removes, and writes nothing.
async fn a_dry_run_reports_and_changes_nothing(store: Store) {
    fill(&store).await;
    let before = store.everything(&target("s")).await;
    let options = RewindOptions::to_turn(1);
    store.backend.fail_after(Operation::Write, 0);
    let planned = try_rewind(&store, &options.clone().with_dry_run(true)).await.unwrap();
    store.backend.recover();
    assert_eq!(store.everything(&target("s")).await, before);
    assert_eq!(try_rewind(&store, &options).await.unwrap(), planned);
    assert_eq!((planned.messages, planned.messages_with_vectors, planned.events), (2, 2, 4));
}

/// The session may have grown since the dry run.
async fn no_more_is_removed_than_a_dry_run_reported(store: Store) {
    fill(&store).await;
    let options = RewindOptions::to_turn(1);
    let planned = try_rewind(&store, &options.clone().with_dry_run(true)).await.unwrap();
    let before = store.everything(&target("s")).await;
    let (mut fewer_messages, mut fewer_events) = (planned.clone(), planned.clone());
    fewer_messages.messages -= 1;
    fewer_events.events -= 1;
    for fewer in [fewer_messages, fewer_events] {
        let refused = try_rewind(&store, &options.clone().with_at_most(fewer)).await;
        assert_eq!(kind(refused), ErrorKind::Rewind);
    }
    assert_eq!(store.everything(&target("s")).await, before);
    assert_eq!(try_rewind(&store, &options.with_at_most(planned.clone())).await.unwrap(), planned);
}

/// If a message of an earlier turn follows one of a later turn, removing the end would remove too much.
async fn turns_out_of_order_are_refused(store: Store) {
    let turns = [1, 2, 1, 3].map(|turn| lines::user("x").with("turn", json!(turn)));
    store.sync(&target("s"), turns.to_vec()).await;
    let before = store.everything(&target("s")).await;
    let error = try_rewind(&store, &RewindOptions::to_turn(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rewind);
    assert!(error.message().contains("message 2 belongs to turn 1"), "{error}");
    assert_eq!(store.everything(&target("s")).await, before);
    assert_eq!((rewind(&store, 2).await.messages, rewind(&store, 0).await.messages), (1, 3));
}

async fn a_missing_session_is_not_rewound(store: Store) {
    let bens = target_of("ben", "shop", "s");
    store.sync(&bens, vec![lines::user("one"), lines::user("two")]).await;
    for options in [RewindOptions::to_turn(1), RewindOptions::to_turn(1).with_dry_run(true)] {
        assert_eq!(kind(try_rewind(&store, &options).await), ErrorKind::SessionNotFound);
    }
    assert_eq!(store.messages(&bens).await.len(), 2);
}

/// Nothing of the removed turns is left in the fields of the session. Fields that a person set stay.
async fn title_model_and_dates_are_derived_again(store: Store) {
    let summary = "This session is being continued from a previous conversation.\n\nIt was long.";
    let transcript = vec![
        lines::user(summary).at(at(1)),
        lines::assistant("ok").at(at(4)),
        lines::user("the secret request").at(at(11)),
        lines::assistant("done").at(at(14)),
    ];
    let events = vec![
        event("llm:response", 3).data(json!({"model": "small"})),
        event("llm:response", 13).data(json!({"model": "large"})),
        event("llm:response", 14).data(json!({"model": "large"})),
    ];
    store.sync(&target("s"), transcript).await;
    store.sync_events(&target("s"), events).await;
    let edit = SessionEdit::default().set_description("mine").add_tags(["kept"]);
    let before = store.storage.sessions().update_session(&target("s").key, &edit).await.unwrap();
    assert_eq!(before.first_prompt.as_deref(), Some("the secret request"));
    assert_eq!((before.model.as_deref(), before.updated), (Some("large"), time(&at(14))));
    assert_eq!(before.turn_count, 2);

    rewind(&store, 1).await;
    let after = store.stored(&target("s")).await.session;
    assert!(!after.first_prompt.as_deref().unwrap().contains("secret"));
    assert_eq!((after.model.as_deref(), after.updated), (Some("small"), time(&at(4))));
    assert_eq!((after.created, after.turn_count, after.message_count), (before.created, 1, 2));
    assert_eq!((after.event_count, after.description, after.tags), (1, before.description, before.tags));
    rewind(&store, 0).await;
    assert_eq!(store.stored(&target("s")).await.session.first_prompt, None);
}

/// The messages that are left have the times that they would have if the removed turns had never been there.
async fn times_are_derived_again_from_the_events_that_are_left(store: Store) {
    let messages = |turns: u32| (1..=turns).flat_map(|n| [lines::user(&format!("q{n}")), lines::tool("x")]);
    let events = |turns: u32| (1..=turns).map(|n| prompt(&format!("q{n}"), n * 10));
    for (session, turns) in [("s", 3), ("t", 2)] {
        store.sync(&target(session), messages(turns).collect()).await;
        store.sync_events(&target(session), events(turns).collect()).await;
    }
    let times = async |session: &str| -> Vec<(Timestamp, TimeSource)> {
        let messages = store.messages(&target(session)).await;
        messages.iter().map(|message| (message.ts, message.ts_source)).collect()
    };
    assert_ne!(times("s").await[3], times("t").await[3]);
    rewind(&store, 2).await;
    assert_eq!(times("s").await, times("t").await);
}

async fn messages_before_the_first_turn_stay(store: Store) {
    let transcript =
        [lines::system("be brief"), lines::assistant("hi"), lines::user("one"), lines::user("two")];
    store.sync(&target("s"), transcript.to_vec()).await;
    assert_eq!(rewind(&store, 0).await.messages, 2);
    assert_eq!(left(&store).await.0, ["be brief", "hi"]);
}

/// Sessions of sub-agents stay, also those that a removed turn started.
async fn sub_agents_are_not_rewound(store: Store) {
    fill(&store).await;
    store.sync_metadata(&target("child"), r#"{"parent_id":"s"}"#).await;
    store.sync(&target("child"), vec![lines::user("explore").at(at(22))]).await;
    let before = store.everything(&target("child")).await;
    rewind(&store, 0).await;
    assert_eq!(store.everything(&target("child")).await, before);
}

/// For the next sync, the number of rows that are left is stored with the state of the files, which stays. What was
/// settled no longer is. Without files, there is nothing to tell a sync.
async fn a_rewind_is_stored_with_the_sync_state(store: Store) {
    fill(&store).await;
    rewind(&store, 1).await;
    assert_eq!(store.stored(&target("s")).await.sync_state, None);
    fill(&store).await;
    let read = StoredSyncState { settled: Some("{}".to_owned()), ..StoredSyncState::of("read") };
    store.write(&target("s"), |change| change.sync_state = Some(read)).await;
    let left = |messages, events| StoredSyncState {
        rewound: Some(RewoundTo { messages, events }),
        ..StoredSyncState::of("read")
    };
    rewind(&store, 1).await;
    assert_eq!(store.stored(&target("s")).await.sync_state, Some(left(2, 5)));
    rewind(&store, 0).await;
    assert_eq!(store.stored(&target("s")).await.sync_state, Some(left(0, 1)));
}

/// After a rewind, turns are counted on from the last one that is left.
async fn a_rewound_session_goes_on(store: Store) {
    fill(&store).await;
    rewind(&store, 1).await;
    store.sync_from(&target("s"), 2, vec![lines::user("another").at(at(40))]).await.unwrap();
    store.sync_events_from(&target("s"), 5, vec![prompt("another", 39)]).await.unwrap();
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.turn_count, session.message_count, session.event_count), (2, 3, 6));
    assert_eq!(
        (store.find(&target("s"), "another").await, store.find(&target("s"), "two").await),
        (vec![2], vec![])
    );
    assert_eq!((rewind(&store, 1).await.messages, left(&store).await.1.len()), (1, 5));
}

/// A rewind retries conflicts, like other edits.
async fn edits_during_a_rewind_are_kept(store: Store) {
    fill(&store).await;
    let (storage, again) = (store.storage.clone(), store.again().await);
    let tags = tokio::spawn(async move {
        for n in 0..5 {
            let edit = SessionEdit::default().add_tags([format!("t{n}")]);
            again.storage.sessions().update_session(&target("s").key, &edit).await.unwrap();
        }
    });
    storage.ingestion().rewind(&target("s").key, &RewindOptions::to_turn(1)).await.unwrap();
    tags.await.unwrap();
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.tags.len(), session.message_count, session.event_count), (5, 2, 5));
}
