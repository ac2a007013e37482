//! Messages, events and turns of one session.

use amplifier_session_api::{
    ApiAnswer, PlaceFields,
    lines::LinesRequest,
    operations::{
        context::{ContextRequest, ContextResponse},
        messages::{MessagesRequest, MessagesResponse},
        session::SessionRequest,
        session_events::SessionEventsRequest,
        turn::TurnRequest,
    },
    views::MessageView,
};

use super::*;

/// A store with a session of three turns and three events.
async fn with_events() -> SessionStorage {
    let storage = storage().await;
    let target = target_of("ana", "shop", "first-1");
    let turns = 1..=3;
    let text = turns.flat_map(|turn| {
        [lines::user(&format!("question {turn}")), lines::assistant(&format!("answer {turn}"))]
    });
    storage.ingestion().sync_transcript_lines(&target, whole(text.collect())).await.unwrap();
    let events = (1..=3).map(|_| lines::logger_event("tool:pre")).collect();
    storage.ingestion().sync_event_lines(&target, whole(events)).await.unwrap();
    storage
}

fn lines_of(session: &str) -> LinesRequest {
    LinesRequest { scope: Reach::Own, session: session.to_owned(), from: None, limit: None, range: true }
}

fn messages_of(session: &str) -> MessagesRequest {
    MessagesRequest { lines: lines_of(session), vectors: true, short_ids: true }
}

fn context_of(session: &str) -> ContextRequest {
    ContextRequest {
        scope: Reach::Own,
        session: session.to_owned(),
        turn: None,
        message: None,
        before: None,
        after: None,
        short_ids: true,
    }
}

fn numbers(messages: &[MessageView]) -> Vec<u32> {
    messages.iter().map(|message| message.sequence).collect()
}

#[tokio::test]
async fn what_is_read_of_a_session_can_be_written_and_read() {
    let (storage, caller, now) = (with_events().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let session = SessionRequest { scope: Reach::Own, session: "first".to_owned(), short_ids: true };
    assert_written_and_read(&session);
    let details = api.session(&session).await.unwrap().response;
    assert_eq!((details.session.session.message_count, details.short_ids.len()), (6, 1));
    assert_written_and_read(&details);
    let messages = messages_of("first#2");
    assert_written_and_read(&messages);
    let read = api.messages(&messages).await.unwrap().response;
    assert_eq!((numbers(&read.messages), read.has_more_before, read.has_more_after), (vec![2], true, true));
    assert_eq!(read.messages[0].line().texts()[0].text, "question 2");
    assert_written_and_read(&read);
    let context = ContextRequest { turn: Some(2), ..context_of("first") };
    assert_written_and_read(&context);
    let read = api.context(&context).await.unwrap().response;
    assert_eq!((numbers(&read.messages), read.has_more_before), ((0..6).collect(), false));
    assert_written_and_read(&read);
    let turn = TurnRequest {
        scope: Reach::Own,
        session: "first#3".to_owned(),
        turn: None,
        embedding: true,
        turn_count: true,
    };
    assert_written_and_read(&turn);
    let read = api.turn(&turn).await.unwrap().response;
    assert_eq!((read.turn.turn, read.turn_count, read.address.as_str()), (2, Some(3), "first-1#2"));
    assert_eq!(read.address_of(3), "first-1#3");
    assert_written_and_read(&read);
    let events = SessionEventsRequest { lines: lines_of("first-1_evt_1"), full: false };
    assert_written_and_read(&events);
    let read = api.session_events(&events).await.unwrap().response;
    assert!(read.events.len() == 1 && read.events[0].line.is_some() && read.has_more_after, "{read:?}");
    assert_read_and_written(&read);
}

#[tokio::test]
async fn sessions_of_others_are_not_read() {
    let (storage, caller, now) = (with_events().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let unknown = api.messages(&messages_of("fourth-1")).await.unwrap_err();
    assert!(
        matches!(&unknown, ApiError::Storage(error) if error.kind() == ErrorKind::SessionNotFound),
        "{unknown}"
    );
    let mut lines = lines_of("fourth-1");
    lines.scope = Reach::All;
    let refused = api.session_events(&SessionEventsRequest { lines, full: true }).await.unwrap_err();
    assert!(matches!(refused, ApiError::BeyondReach { .. }), "{refused}");
}

#[tokio::test]
async fn messages_and_events_have_different_addresses() {
    let (storage, caller, now) = (with_events().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let refused = api.messages(&messages_of("first-1_evt_1")).await.unwrap_err();
    let is_event = |refused: &ApiError, wanted: PlaceFields| matches!(refused, ApiError::Invalid(InvalidRequest::NamesEvent { fields, .. }) if *fields == wanted);
    assert!(is_event(&refused, PlaceFields::First), "{refused}");
    let refused = api.context(&context_of("first-1_evt_1")).await.unwrap_err();
    assert!(is_event(&refused, PlaceFields::TurnOrMessage), "{refused}");
    let request = SessionEventsRequest { lines: lines_of("first#1"), full: false };
    let refused = api.session_events(&request).await.unwrap_err();
    assert!(
        matches!(refused, ApiError::Invalid(InvalidRequest::NamesMessage { sequence: 1, .. })),
        "{refused}"
    );
}

#[tokio::test]
async fn a_page_beyond_the_end_is_empty_and_has_a_notice() {
    let (storage, caller, now) = (with_events().await, ana_asks(), now());
    let request = messages_of("first#9");
    let ApiAnswer { response, notices } = api(&storage, &caller, &now).messages(&request).await.unwrap();
    assert_eq!(
        (response.messages.len(), response.has_more_before, response.has_more_after),
        (0, true, false)
    );
    assert_eq!(notices, [Notice::NoLine { kind: LineKind::Message, sequence: 9, count: 6 }]);
}

#[tokio::test]
async fn a_portion_of_messages_ends_where_the_next_one_begins() {
    let (storage, caller, now) = (with_events().await, ana_asks(), now());
    let mut request = messages_of("first");
    (request.lines.from, request.lines.limit) = (Some(1), Some(5));
    let read = api(&storage, &caller, &now).messages(&request).await.unwrap().response;
    let limits = AnswerLimits { max_chars: None, budget: Some(1_000) };
    let part = |portion| {
        let MessagesResponse { messages, left_out, has_more_after, range, .. } =
            read.portion(portion, limits);
        let cut = messages.last().is_some_and(|last| last.truncated.is_some());
        (messages.len(), left_out, has_more_after, range.unwrap().next, cut)
    };
    assert_eq!(part(Portion::all(5)), (5, Some(0), false, 6, false));
    assert_eq!(part(Portion { items: 2, last_chars: Some(4) }), (2, Some(3), true, 3, true));
    assert_eq!(part(Portion::all(0)), (0, Some(5), true, 1, false));
    assert_eq!(read.portion(Portion::all(5), AnswerLimits::default()), read);
}

#[tokio::test]
async fn a_portion_of_a_context_has_the_nearest_messages() {
    let (storage, caller, now) = (with_events().await, ana_asks(), now());
    let request = context_of("first#3");
    let read = api(&storage, &caller, &now).context(&request).await.unwrap().response;
    assert_eq!(numbers(&read.messages), (0..6).collect::<Vec<_>>());
    let limits = AnswerLimits { max_chars: None, budget: Some(1_000) };
    let ContextResponse { messages, has_more_before, has_more_after, left_out, .. } =
        read.portion(Portion { items: 2, last_chars: Some(4) }, limits);
    assert_eq!((numbers(&messages), left_out), (vec![2, 3], Some(4)));
    assert!(has_more_before && has_more_after);
    // The requested message is complete.
    assert!(messages[0].truncated.is_some() && messages[1].truncated.is_none(), "{messages:?}");
}
