//! Sessions that are pushed to another store. `pulls.rs` has those that are pulled from it.

use std::{collections::BTreeMap, sync::Arc};

use amplifier_session_core::content::Redaction;
use amplifier_session_testkit::{WordRedactor, prelude::*};

use super::Atomic;

on_both_stores![
    a_push_sends_everything_once,
    an_appended_line_is_sent_alone,
    nothing_of_a_rewound_session_is_removed,
    replaced_rows_become_superseded_lines,
    lines_of_a_copy_that_goes_on_differently_are_kept,
    fields_that_a_person_set_travel_and_visibility_does_not,
    a_store_that_masks_secrets_goes_on_after_what_was_sent,
    a_broken_push_is_completed_by_the_next_one,
    a_long_session_is_sent_in_parts,
    broken_and_foreign_sessions_fail_alone,
    a_stream_that_is_none_is_refused,
    a_session_that_was_deleted_is_not_stored_again,
    a_rewind_in_the_other_store_stays_until_the_session_goes_on,
    a_plan_says_what_would_be_sent,
    summaries_of_turns_travel_with_their_messages,
    a_summary_from_a_clock_that_is_ahead_can_be_replaced,
];

pub(super) async fn other_store() -> Store {
    Store::open(Arc::new(Atomic(MemoryBackend::new()))).await
}

pub(super) fn ana_id() -> UserId {
    target("s").key.user_id
}

pub(super) async fn try_push(store: &Store, server: &OtherStore) -> Result<PushReport> {
    store.storage.exchange().push(server, &PushOptions::new(ana_id()), &|_| {}).await
}

pub(super) async fn push(store: &Store, server: &OtherStore) -> PushReport {
    let report = try_push(store, server).await.unwrap();
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    report
}

pub(super) async fn pull(store: &Store, server: &OtherStore) -> PullReport {
    let report = store.storage.exchange().pull(server, &PullOptions::new(ana_id()), &|_| {}).await.unwrap();
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    report
}

/// The texts of the stored rows of a session.
pub(super) async fn rows(store: &Store, target: &IngestTarget) -> (Vec<String>, Vec<String>) {
    let messages = store.messages(target).await.into_iter().map(|message| message.raw.to_text().into());
    let events = store.events(target).await.into_iter();
    (messages.collect(), events.filter_map(|event| Some(event.raw?.to_text().into())).collect())
}

/// How often a session has each superseded line, by kind and text.
pub(super) async fn superseded(store: &Store, target: &IngestTarget) -> BTreeMap<(LineKind, String), usize> {
    let query = SupersededQuery::new(scope(target))
        .with_filter(SessionFilter::default().with_session(target.key.session_id.clone()));
    let (mut pages, mut lines) = (store.storage.superseded().superseded_lines(query), BTreeMap::new());
    while let Some(page) = pages.next().await.unwrap() {
        for line in page {
            *lines.entry((line.kind, line.raw.to_text().into())).or_default() += 1;
        }
    }
    lines
}

/// Whether `server` has every line that `store` has of a session, as a row or as a superseded line.
pub(super) async fn assert_has_all(server: &Store, store: &Store, target: &IngestTarget) {
    let mut here: Vec<(LineKind, String)> = superseded(store, target).await.into_keys().collect();
    let mut there: Vec<(LineKind, String)> = superseded(server, target).await.into_keys().collect();
    for (list, of) in [(&mut here, store), (&mut there, server)] {
        let (messages, events) = rows(of, target).await;
        list.extend(messages.into_iter().map(|line| (LineKind::Message, line)));
        list.extend(events.into_iter().map(|line| (LineKind::Event, line)));
    }
    for line in here {
        assert!(there.contains(&line), "{:?} lacks {line:?}", target.key);
    }
}

pub(super) fn texts(numbers: impl IntoIterator<Item = usize>) -> Vec<Line> {
    let line =
        |n| if n % 2 == 0 { lines::user(&format!("ask {n}")) } else { lines::assistant(&format!("say {n}")) };
    numbers.into_iter().map(line).collect()
}

pub(super) fn events(numbers: impl IntoIterator<Item = usize>) -> Vec<Line> {
    let event = |n| lines::logger_event("tool:post").data(json!({ "tool": "bash", "n": n }));
    numbers.into_iter().map(event).collect()
}

/// A push sends all sessions with awkward lines, and the next one sends nothing.
async fn a_push_sends_everything_once(store: Store) {
    let server = other_store().await;
    let awkward = target("awkward");
    store.sync(&awkward, samples::awkward_messages().into_iter().map(|(_, line)| line).collect()).await;
    store.sync_events(&awkward, samples::awkward_events().into_iter().map(|(_, line)| line).collect()).await;
    for session in ["a", "b", "c", "d"] {
        store.sync(&target(session), texts(0..4)).await;
        store.sync_events(&target(session), events(0..3)).await;
    }
    store.sync(&target_of("ben", "p", "a"), texts(0..2)).await;
    let other = OtherStore::new(server.storage.clone());
    let report = push(&store, &other).await;
    assert_eq!((report.sessions, report.unchanged, report.events > 12), (5, 0, true));
    assert_eq!(report.bytes, other.take_bytes());
    for session in ["awkward", "a", "b", "c", "d"] {
        let target = target(session);
        assert_eq!(rows(&server, &target).await, rows(&store, &target).await);
        let (here, there) = (store.stored(&target).await.session, server.stored(&target).await.session);
        assert_eq!((here.first_prompt, here.turn_count), (there.first_prompt, there.turn_count), "{session}");
        assert_eq!((here.updated, here.project_slug), (there.updated, there.project_slug));
    }
    assert!(server.backend.get_session(&target_of("ben", "p", "a").key).await.unwrap().is_none());
    let (writes, report) = (server.backend.writes(), push(&store, &other).await);
    assert_eq!((report.sessions, report.unchanged, other.take_bytes()), (0, 5, 0));
    assert_eq!(server.backend.writes(), writes);
    // Vectors have no part in it.
    store.embed().await;
    assert_eq!((push(&store, &other).await.sessions, other.take_bytes()), (0, 0));
}

/// Of a session that is long, only the appended line is sent.
async fn an_appended_line_is_sent_alone(store: Store) {
    let (server, target) = (other_store().await, target("long"));
    let other = OtherStore::new(server.storage.clone());
    store.sync_text(&target, texts(0..1_500)).await;
    store.sync_events(&target, events(0..1_200)).await;
    push(&store, &other).await;
    assert!(other.take_bytes() > 300_000);
    store
        .storage_with(None)
        .ingestion()
        .sync_transcript_lines(&target, SyncLines::starting_at(1_500, raw(texts(1_500..1_501))))
        .await
        .unwrap();
    let report = push(&store, &other).await;
    assert_eq!((report.sessions, report.messages, report.events), (1, 1, 0));
    let bytes = other.take_bytes();
    assert!(bytes < 3_000, "{bytes}");
    store.sync_events_from(&target, 1_200, events(1_200..1_202)).await.unwrap();
    assert_eq!(push(&store, &other).await.events, 2);
    assert_eq!(rows(&server, &target).await, rows(&store, &target).await);
    assert!(superseded(&server, &target).await.is_empty());
    assert_eq!(server.stored(&target).await.session.turn_count, 751);
}

/// A session that is rewound here keeps its rows in the other store, until it goes on.
async fn nothing_of_a_rewound_session_is_removed(store: Store) {
    let (server, target) = (other_store().await, target("s"));
    let other = OtherStore::new(server.storage.clone());
    store.sync(&target, texts(0..6)).await;
    push(&store, &other).await;
    store.storage.ingestion().rewind(&target.key, &RewindOptions::to_turn(1)).await.unwrap();
    push(&store, &other).await;
    assert_eq!(rows(&server, &target).await.0.len(), 6);
    assert!(superseded(&server, &target).await.is_empty());
    other.take_bytes();
    assert_eq!((push(&store, &other).await.unchanged, other.take_bytes()), (1, 0));
    // It goes on: the old rows are kept as superseded lines.
    store.sync_from(&target, 2, texts(20..22)).await.unwrap();
    push(&store, &other).await;
    assert_eq!(rows(&server, &target).await, rows(&store, &target).await);
    assert_eq!(superseded(&server, &target).await.len(), 4);
    push(&store, &other).await;
    assert_eq!(superseded(&server, &target).await.len(), 4);
}

/// Rows that this store replaces become superseded lines in the other store, and only those.
async fn replaced_rows_become_superseded_lines(store: Store) {
    let (server, target) = (other_store().await, target("s"));
    let other = OtherStore::new(server.storage.clone());
    store.sync(&target, texts(0..8)).await;
    store.sync_events(&target, events(0..8)).await;
    push(&store, &other).await;
    store.sync(&target, texts([0, 1, 100, 3, 4, 5, 6, 7, 8])).await;
    store.sync_events(&target, events([5, 6, 7, 8])).await;
    push(&store, &other).await;
    assert_eq!(rows(&server, &target).await.0, rows(&store, &target).await.0);
    let lines = superseded(&server, &target).await;
    assert_eq!(lines.keys().filter(|(kind, _)| *kind == LineKind::Message).count(), 1, "{lines:?}");
    assert!(lines.values().all(|count| *count == 1));
    other.take_bytes();
    assert_eq!((push(&store, &other).await.unchanged, other.take_bytes()), (1, 0));
}

/// Two machines go on differently: the rows of the first stay, and the lines of the second are kept.
async fn lines_of_a_copy_that_goes_on_differently_are_kept(store: Store) {
    let (server, second, target) = (other_store().await, other_store().await, target("s"));
    let other = OtherStore::new(server.storage.clone());
    store.sync(&target, texts(0..4)).await;
    second.sync(&target, texts([0, 1, 12, 13, 14])).await;
    push(&store, &other).await;
    let report = push(&second, &other).await;
    assert_eq!((report.messages, report.superseded), (0, 3));
    assert_eq!(rows(&server, &target).await, rows(&store, &target).await);
    assert_has_all(&server, &second, &target).await;
    other.take_bytes();
    assert_eq!((push(&second, &other).await.unchanged, other.take_bytes()), (1, 0));
    assert_eq!((push(&store, &other).await.unchanged, other.take_bytes()), (1, 0));
    // Both go on.
    second.sync_from(&target, 5, texts([15])).await.unwrap();
    store.sync_from(&target, 4, texts([4])).await.unwrap();
    let report = push(&second, &other).await;
    assert_eq!((report.messages, report.superseded), (0, 1));
    assert_eq!(push(&store, &other).await.messages, 1);
    assert_eq!(rows(&server, &target).await, rows(&store, &target).await);
    assert_has_all(&server, &second, &target).await;
}

/// Tags and names travel, the newest wins; who may see the session does not.
async fn fields_that_a_person_set_travel_and_visibility_does_not(store: Store) {
    let (server, target) = (other_store().await, target("s"));
    let other = OtherStore::new(server.storage.clone());
    store.sync(&target, texts(0..2)).await;
    let edit = async |of: &Store, edit: SessionEdit| {
        of.storage.sessions().update_session(&target.key, &edit).await.unwrap();
    };
    edit(&store, SessionEdit::default().set_name("here").add_tags(["one"])).await;
    store.write(&target, |change| change.session.visibility = Visibility::Public).await;
    push(&store, &other).await;
    let there = server.stored(&target).await.session;
    assert_eq!((there.name.as_deref(), there.tags.len()), (Some("here"), 1));
    assert_eq!(there.visibility, Visibility::Private);
    // Set there afterwards: it stays until it is set here again.
    edit(&server, SessionEdit::default().set_name("there")).await;
    edit(&store, SessionEdit::default().add_tags(["two"])).await;
    push(&store, &other).await;
    let there = server.stored(&target).await.session;
    assert_eq!((there.name.as_deref(), there.tags.len()), (Some("there"), 2));
    edit(&store, SessionEdit::default().set_name("again")).await;
    push(&store, &other).await;
    assert_eq!(server.stored(&target).await.session.name.as_deref(), Some("again"));
    edit(&store, SessionEdit::default().reset(SessionField::Name)).await;
    push(&store, &other).await;
    let there = server.stored(&target).await.session;
    assert_eq!((there.name, there.edited.contains(&SessionField::Name)), (None, false));
}

/// The other store masks secrets, so its rows have other digests.
async fn a_store_that_masks_secrets_goes_on_after_what_was_sent(store: Store) {
    let (server, target) = (other_store().await, target("s"));
    let masking = server
        .storage
        .clone()
        .with_settings(StorageSettings::default().with_secrets(Some(SecretsAtRest::Mask)))
        .with_redactor(Redaction::Off, Arc::new(WordRedactor::new(["hunter2"])));
    let other = OtherStore::new(masking);
    let secret = |n: usize| lines::user(&format!("the password is hunter2, {n}"));
    store.sync(&target, (0..3).map(secret).collect()).await;
    let report = push(&store, &other).await;
    assert_eq!((report.messages, report.secrets_masked), (3, 3));
    other.take_bytes();
    assert_eq!((push(&store, &other).await.unchanged, other.take_bytes()), (1, 0));
    store.sync_from(&target, 3, vec![secret(3)]).await.unwrap();
    assert_eq!(push(&store, &other).await.messages, 1);
    let (messages, _) = rows(&server, &target).await;
    assert_eq!(messages.len(), 4);
    assert!(
        messages.iter().all(|line| !line.contains("hunter2") && line.contains("the password is *******"))
    );
    assert!(superseded(&server, &target).await.is_empty());
}

/// A connection that breaks after any number of bytes leaves a store that the next push completes.
async fn a_broken_push_is_completed_by_the_next_one(store: Store) {
    for session in ["a", "b", "c"] {
        store.sync(&target(session), texts(0..40)).await;
        store.sync_events(&target(session), events(0..40)).await;
    }
    let whole = OtherStore::new(other_store().await.storage.clone());
    push(&store, &whole).await;
    let total = whole.take_bytes();
    for part in 1..6 {
        let server = other_store().await;
        let other = OtherStore::new(server.storage.clone());
        other.break_after(total * part / 6);
        let error = try_push(&store, &other).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageConnection);
        other.break_after(u64::MAX);
        push(&store, &other).await;
        for session in ["a", "b", "c"] {
            assert_eq!(rows(&server, &target(session)).await, rows(&store, &target(session)).await);
            assert!(superseded(&server, &target(session)).await.is_empty());
        }
        assert_eq!(push(&store, &other).await.unchanged, 3);
    }
}

/// A session that is larger than a stream is sent in parts, each of which is stored before the next one is sent.
async fn a_long_session_is_sent_in_parts(store: Store) {
    let (server, target) = (other_store().await, target("s"));
    let other = OtherStore::new(server.storage.clone());
    store.sync_text(&target, texts(0..200)).await;
    store.sync_events(&target, events(0..200)).await;
    let options = PushOptions::new(ana_id()).with_stream_bytes(20_000);
    let report = store.storage.exchange().push(&other, &options, &|_| {}).await.unwrap();
    assert_eq!((report.sessions, report.messages, report.events, report.failed.len()), (1, 200, 200, 0));
    assert_eq!(rows(&server, &target).await, rows(&store, &target).await);
    // Breaks in the middle: the parts that are stored are not sent again.
    let server = other_store().await;
    let other = OtherStore::new(server.storage.clone());
    other.break_after(70_000);
    store.storage.exchange().push(&other, &options, &|_| {}).await.unwrap_err();
    other.break_after(u64::MAX);
    let rest = store.storage.exchange().push(&other, &options, &|_| {}).await.unwrap();
    assert!(rest.bytes + 40_000 < report.bytes, "{} {}", rest.bytes, report.bytes);
    assert_eq!(rows(&server, &target).await, rows(&store, &target).await);
    assert!(superseded(&server, &target).await.is_empty());
}

/// The stream of a push.
async fn stream_of(store: &Store, sessions: &[&str]) -> Vec<String> {
    let (mut encoder, mut bytes) = (RowEncoder::new().unwrap(), KeptBytes::default());
    for session in sessions {
        let rows = SendRows::new(target(session).key);
        store.storage.exchange().send(&rows, &mut encoder, &mut bytes).await.unwrap();
    }
    encoder.end(&mut bytes).await.unwrap();
    String::from_utf8(bytes.0).unwrap().lines().map(str::to_owned).collect()
}

/// Wrong digests, missing rows, other users, lines that are no records: each fails its session, and the others are
/// stored.
async fn broken_and_foreign_sessions_fail_alone(store: Store) {
    for session in ["a", "b", "c"] {
        store.sync(&target(session), texts(0..3)).await;
        store.sync_events(&target(session), events(0..2)).await;
    }
    let good = stream_of(&store, &["a", "b", "c"]).await;
    // The session `b` begins at line 8.
    assert!(good[8].contains(r#""session_id":"b""#), "{}", good[8]);
    type Change = fn(&mut Vec<String>);
    let cases: [(&str, Change); 10] = [
        ("another digest", |lines| lines[9] = lines[9].replace("ask 0", "ask 9")),
        ("another digest of an event", |lines| lines[12] = lines[12].replace("\\\"n\\\":0", "\\\"n\\\":9")),
        ("a missing row", |lines| drop(lines.remove(10))),
        ("a row twice", |lines| lines.insert(10, lines[9].clone())),
        ("another user", |lines| lines[8] = lines[8].replace(r#""user_id":"ana""#, r#""user_id":"ben""#)),
        ("no record", |lines| lines[10] = "{\"record\":\"spaceship\"}".to_owned()),
        ("half a line", |lines| lines[10] = lines[10][..40].to_owned()),
        ("NUL", |lines| lines[10] = "\0\0\0".to_owned()),
        ("no end", |lines| drop(lines.remove(14))),
        ("no head", |lines| {
            let start = lines[8].find(r#","transfer":"#).unwrap();
            lines[8] = format!("{}}}", &lines[8][..start]);
        }),
    ];
    for (name, change) in cases {
        let server = other_store().await;
        server.sync(&target_of("ben", "p", "b"), texts([50])).await;
        let ben = rows(&server, &target_of("ben", "p", "b")).await;
        let options = ReceiveOptions::default().with_owner(Some(ana_id()));
        let other = OtherStore::new(server.storage.clone()).with_options(options);
        let mut stream = good.clone();
        change(&mut stream);
        let results = other.take(stream.join("\n")).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(results.len(), 3, "{name}: {results:?}");
        for session in ["a", "c"] {
            assert_eq!(rows(&server, &target(session)).await, rows(&store, &target(session)).await, "{name}");
        }
        let failed: Vec<_> =
            results.iter().filter(|of| matches!(of.result, ReceiveResult::Failed { .. })).collect();
        assert_eq!(failed.len(), 1, "{name}: {results:?}");
        assert_eq!(rows(&server, &target_of("ben", "p", "b")).await, ben, "{name}");
        // The next push completes it.
        push(&store, &other).await;
        assert_eq!(rows(&server, &target("b")).await, rows(&store, &target("b")).await, "{name}");
        assert!(superseded(&server, &target("b")).await.is_empty(), "{name}");
    }
}

/// Something that is no stream, or one of another version, is an error.
async fn a_stream_that_is_none_is_refused(store: Store) {
    let other = OtherStore::new(store.storage.clone());
    for (stream, reason) in [
        ("", "empty"),
        ("hello", "not an archive record"),
        ("{\"record\":\"again\"}", "does not begin with its header"),
        ("{\"record\":\"archive\",\"format\":9,\"writer\":\"x 9.0\",\"checksums\":true}", "x 9.0 sends"),
    ] {
        let error = other.take(stream).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Validation, "{stream}");
        assert!(error.message().contains(reason), "{error}");
    }
}

/// A deletion in the other store is not undone by a push.
async fn a_session_that_was_deleted_is_not_stored_again(store: Store) {
    let (server, target) = (other_store().await, target("s"));
    let other = OtherStore::new(server.storage.clone());
    store.sync(&target, texts(0..2)).await;
    push(&store, &other).await;
    assert!(server.backend.delete_session(&target.key).await.unwrap());
    let report = push(&store, &other).await;
    assert_eq!((report.sessions, report.deleted.len()), (0, 1));
    let all = PushOptions::new(target.key.user_id.clone()).with_include_deleted(true);
    let report = store.storage.exchange().push(&other, &all, &|_| ()).await.unwrap();
    assert_eq!((report.sessions, report.deleted.len()), (1, 0));
    // Nor is a deletion here sent.
    assert!(store.backend.delete_session(&target.key).await.unwrap());
    push(&store, &other).await;
    assert_eq!(rows(&server, &target).await.0.len(), 2);
}

/// A rewind in the other store, by a person, stays until the session goes on here.
async fn a_rewind_in_the_other_store_stays_until_the_session_goes_on(store: Store) {
    let (server, target) = (other_store().await, target("s"));
    let other = OtherStore::new(server.storage.clone());
    store.sync(&target, texts(0..6)).await;
    push(&store, &other).await;
    server.storage.ingestion().rewind(&target.key, &RewindOptions::to_turn(1)).await.unwrap();
    assert_eq!(push(&store, &other).await.unchanged, 1);
    assert_eq!(rows(&server, &target).await.0.len(), 2);
    store.sync_from(&target, 6, texts([6])).await.unwrap();
    push(&store, &other).await;
    assert_eq!(rows(&server, &target).await, rows(&store, &target).await);
}

/// A dry run sends nothing, and says what would be sent.
async fn a_plan_says_what_would_be_sent(store: Store) {
    let server = other_store().await;
    let other = OtherStore::new(server.storage.clone());
    store.sync(&target("a"), texts(0..4)).await;
    store.sync(&target("b"), texts(0..2)).await;
    let options = PushOptions::new(ana_id()).with_dry_run(true);
    let planned = async || store.storage.exchange().push(&other, &options, &|_| {}).await.unwrap().planned;
    let plan = planned().await;
    assert_eq!(plan.iter().map(|of| (of.messages, of.is_new)).collect::<Vec<_>>(), [(4, true), (2, true)]);
    assert_eq!((other.take_bytes(), plan[0].title.as_str()), (0, "ask 0"));
    push(&store, &other).await;
    assert!(planned().await.is_empty());
    store.sync_from(&target("a"), 4, texts([4])).await.unwrap();
    let plan = planned().await;
    assert_eq!(plan.iter().map(|of| (of.messages, of.is_new)).collect::<Vec<_>>(), [(1, false)]);
    // The other store can answer for a stream too.
    let dry =
        OtherStore::new(server.storage.clone()).with_options(ReceiveOptions::default().with_dry_run(true));
    let results = dry.take(stream_of(&store, &["a", "b"]).await.join("\n")).await.unwrap();
    let ReceiveResult::Stored { messages, created, .. } = &results[0].result else { panic!("{results:?}") };
    assert_eq!((*messages, *created, &results[1].result), (1, false, &ReceiveResult::Unchanged));
    assert_eq!(rows(&server, &target("a")).await.0.len(), 4);
}

/// A summary that a person set comes with the message that begins its turn, and does not replace a newer one.
async fn summaries_of_turns_travel_with_their_messages(store: Store) {
    let (server, target) = (other_store().await, target("a"));
    let other = OtherStore::new(server.storage.clone());
    let set = async |store: &Store, text: &str| {
        let given = GivenSummary { message: "a#0".to_owned(), text: text.to_owned() };
        let summary = store.storage.turns().resolve_summary(&ana_id(), &given).await.unwrap();
        store.storage.turns().set_summaries(vec![summary]).await.unwrap();
    };
    let there = async || {
        let found = server.backend.list_summaries(&SummaryQuery::new(Scope::Everyone)).await.unwrap();
        found.into_iter().map(|summary| (summary.user_sequence, summary.text)).collect::<Vec<_>>()
    };
    store.sync(&target, texts(0..4)).await;
    set(&store, "set here").await;
    push(&store, &other).await;
    assert_eq!(there().await, [(0, "set here".to_owned())]);
    set(&server, "set there").await;
    store.sync_from(&target, 4, texts([4])).await.unwrap();
    push(&store, &other).await;
    assert_eq!(there().await, [(0, "set there".to_owned())]);
}

/// The clock of a machine is years ahead. A summary that a person sets over that of this machine is newer nevertheless.
async fn a_summary_from_a_clock_that_is_ahead_can_be_replaced(store: Store) {
    let (server, target) = (other_store().await, target("a"));
    let other = OtherStore::new(server.storage.clone());
    let ahead = Timestamp::parse("2099-01-01T00:00:00Z").unwrap();
    let ahead = store.storage.clone().with_clock(move || ahead);
    let set = async |storage: &SessionStorage, text: &str| {
        let given = GivenSummary { message: "a#0".to_owned(), text: text.to_owned() };
        let summary = storage.turns().resolve_summary(&ana_id(), &given).await.unwrap();
        storage.turns().set_summaries(vec![summary]).await.unwrap();
    };
    store.sync(&target, texts(0..2)).await;
    set(&ahead, "of 2099").await;
    push(&store, &other).await;
    set(&server.storage, "afterwards").await;
    // All rows again, as after a conflict.
    let (mut encoder, mut bytes) = (RowEncoder::new().unwrap(), KeptBytes::default());
    let rows = SendRows::new(target.key.clone());
    store.storage.exchange().send(&rows, &mut encoder, &mut bytes).await.unwrap();
    encoder.end(&mut bytes).await.unwrap();
    other.take(bytes.0).await.unwrap();
    let found = server.backend.list_summaries(&SummaryQuery::new(Scope::Everyone)).await.unwrap();
    assert_eq!(found.into_iter().map(|summary| summary.text).collect::<Vec<_>>(), ["afterwards"]);
}
