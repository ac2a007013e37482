//! The context of a message or a turn.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    a_message_comes_with_its_neighbours,
    a_turn_comes_with_its_neighbours,
    a_missing_position_is_refused,
    context_stays_in_scope,
];

/// A system message, then `turns` turns of a question, a tool result and an answer.
fn conversation(turns: u32) -> Vec<Line> {
    let turn = |n: u32| {
        [
            lines::user(&format!("question {n}")),
            lines::tool("output"),
            lines::assistant(&format!("answer {n}")),
        ]
    };
    std::iter::once(lines::system("rules")).chain((1..=turns).flat_map(turn)).collect()
}

fn sequences(messages: &[Message]) -> Vec<u32> {
    messages.iter().map(|message| message.sequence).collect()
}

/// A message is returned with its neighbours, up to the ends of the transcript.
async fn a_message_comes_with_its_neighbours(store: Store) {
    store.sync(&target("s"), conversation(10)).await;
    let around = async |sequence: u32, before: u32, after: u32| {
        let session = target("s").key.session_id;
        let context = store
            .storage
            .reading()
            .get_message_context(&ana(), &session, sequence, before, after)
            .await
            .unwrap();
        assert_eq!(context.session.message_count, 31);
        (sequences(&context.messages), context.has_more_before, context.has_more_after)
    };
    assert_eq!(around(10, 2, 3).await, ((8..=13).collect(), true, true));
    assert_eq!(around(0, 2, 1).await, (vec![0, 1], false, true));
    assert_eq!(around(30, 1, 5).await, (vec![29, 30], true, false));
    assert_eq!(around(7, 0, 0).await, (vec![7], true, true));
    assert_eq!(around(15, u32::MAX, u32::MAX).await, ((0..31).collect(), false, false));
}

/// A turn is returned with whole turns before and after it.
async fn a_turn_comes_with_its_neighbours(store: Store) {
    store.sync(&target("s"), conversation(10)).await;
    let around = async |turn: u32, before: u32, after: u32| {
        let session = target("s").key.session_id;
        let context =
            store.storage.reading().get_turn_context(&ana(), &session, turn, before, after).await.unwrap();
        assert_eq!(context.session.turn_count, 10);
        (sequences(&context.messages), context.has_more_before, context.has_more_after)
    };
    assert_eq!(around(5, 0, 0).await, (vec![13, 14, 15], true, true));
    assert_eq!(around(5, 1, 1).await, ((10..=18).collect(), true, true));
    assert_eq!(around(10, 1, 7).await, ((25..=30).collect(), true, false));
    let (messages, _, after) = around(1, 3, 0).await;
    assert!(messages.ends_with(&[1, 2, 3]) && after);
    assert_eq!(around(5, u32::MAX, u32::MAX).await.0.last(), Some(&30));
}

/// A position that the session does not have is refused, and the error names the field.
async fn a_missing_position_is_refused(store: Store) {
    store.sync(&target("s"), conversation(2)).await;
    let (scope, session) = (ana(), target("s").key.session_id);
    for turn in [0, 3, u32::MAX] {
        let error = store.storage.reading().get_turn_context(&scope, &session, turn, 1, 1).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::Turn)));
    }
    for sequence in [7, u32::MAX] {
        let error =
            store.storage.reading().get_message_context(&scope, &session, sequence, 1, 1).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Validation, Some(ErrorField::Sequence)));
    }
}

/// Context is read from the session in scope, never from another user's session with the same id.
async fn context_stays_in_scope(store: Store) {
    let ben = target_of("ben", "p", "s");
    store.sync(&target("s"), vec![lines::user("ana's question")]).await;
    store.sync(&ben, conversation(3)).await;
    store.sync(&target_of("ben", "p", "own"), conversation(1)).await;
    let session = &ben.key.session_id;
    let context = store.storage.reading().get_turn_context(&ana(), session, 1, 9, 9).await.unwrap();
    assert_eq!((sequences(&context.messages), context.session.user_id.as_str()), (vec![0], "ana"));
    assert_eq!(
        kind(store.storage.reading().get_turn_context(&ana(), session, 2, 0, 0).await),
        ErrorKind::Validation
    );
    let own = target("own").key.session_id;
    let foreign = store.storage.reading().get_message_context(&ana(), &own, 0, 1, 1).await;
    assert_eq!(kind(foreign), ErrorKind::SessionNotFound);
    let all = store.storage.reading().get_message_context(&Scope::Everyone, &own, 0, 1, 1).await.unwrap();
    assert_eq!(all.session.user_id.as_str(), "ben");
}
