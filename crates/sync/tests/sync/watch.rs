//! A watcher keeps stores up to date with the folders.
//!
//! The folders and notifications are real. A test waits until the watcher reports what it expects; the time limit only
//! ends a test that would wait for ever.

use std::{fs, path::Path, sync::Arc, time::Duration};

use amplifier_session_core::{
    Error, ErrorKind, Result, SessionStorage,
    backend::StorageBackendExt as _,
    model::{HostId, Timestamp},
};
use amplifier_session_sync::{
    SyncOptions, SyncReport, WatcherState,
    watch::{Intervals, WatchEvent, WatchOptions, WatchTarget, watch},
    watchers,
};
use amplifier_session_testkit::{
    AmplifierHome, FakeEmbedding, Operation, SessionFolder as Folder, TestClock, lines,
};
use futures_util::{FutureExt as _, future::ready};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::timeout,
};

use crate::fixture::{Fixture, user};

const PATIENCE: Duration = Duration::from_secs(60);
const MINUTE: i64 = 60_000_000;

/// What a test waits for.
#[derive(Debug)]
enum Seen {
    Following,
    Polling(String),
    RootGone,
    Synced { target: String, complete: bool, report: Box<SyncReport> },
    StoreDown(String),
    StoreUp,
    Embedded(u64),
    Other,
}

impl Seen {
    fn of(event: &WatchEvent<'_>) -> Self {
        match *event {
            WatchEvent::Following { .. } => Self::Following,
            WatchEvent::Polling { reason, .. } => Self::Polling(reason.to_owned()),
            WatchEvent::RootGone { .. } => Self::RootGone,
            WatchEvent::Synced { target, complete, report, .. } => {
                Self::Synced { target: target.to_owned(), complete, report: Box::new(report.clone()) }
            }
            WatchEvent::StoreDown { error, .. } => Self::StoreDown(error.to_string()),
            WatchEvent::StoreUp { .. } => Self::StoreUp,
            WatchEvent::Embedded { report, .. } => Self::Embedded(report.messages),
            _ => Self::Other,
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self, Self::Synced { complete: true, .. })
    }

    /// Whether these are the messages of a sync of single sessions.
    fn wrote(&self, messages: u64) -> bool {
        matches!(self, Self::Synced { complete: false, report, .. } if report.messages.written == messages)
    }
}

/// A watcher that runs.
struct Watching {
    events: mpsc::UnboundedReceiver<Seen>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<()>>,
}

impl Watching {
    fn start(targets: Vec<WatchTarget>, options: WatchOptions) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let observer = Arc::new(move |event: &WatchEvent<'_>| drop(sender.send(Seen::of(event))));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(watch(targets, options, observer, stopped.map(drop)));
        Self { events, stop, task }
    }

    /// Watches the fixture's folder for its store.
    fn of(fixture: &Fixture) -> Self {
        Self::start(vec![target("memory", &fixture.storage)], options(fixture))
    }

    /// Waits for an event.
    async fn until(&mut self, is_expected: impl Fn(&Seen) -> bool) -> Seen {
        let mut passed = Vec::new();
        loop {
            match timeout(PATIENCE, self.events.recv()).await {
                Ok(Some(event)) if is_expected(&event) => return event,
                Ok(Some(event)) => passed.push(event),
                Ok(None) => panic!("the watcher ended after {passed:?}"),
                Err(_) => panic!("nothing more happens after {passed:?}"),
            }
        }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }

    async fn error(self) -> Error {
        timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap_err()
    }
}

fn target(name: &str, storage: &SessionStorage) -> WatchTarget {
    let storage = storage.clone();
    WatchTarget::new(name, move || ready(Ok(storage.clone())).boxed())
}

fn options(fixture: &Fixture) -> WatchOptions {
    let millis = Duration::from_millis;
    let intervals = Intervals::default()
        .with_retries(millis(5), millis(50))
        .with_check(millis(20))
        .with_heartbeat(millis(20));
    let uptime = fixture.clock.function();
    WatchOptions::new([fixture.options()])
        .with_intervals(intervals)
        .with_clock(fixture.clock.function())
        .with_uptime(move || u64::try_from(uptime().as_micros()).ok())
}

/// A fixture with session `s`, and a watcher that has read it.
async fn watched() -> (Fixture, Watching) {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap();
    let mut watching = Watching::of(&fixture);
    watching.until(|event| matches!(event, Seen::Following)).await;
    watching.until(Seen::is_complete).await;
    assert_eq!(fixture.texts().await, ["one"]);
    (fixture, watching)
}

async fn state(fixture: &Fixture) -> WatcherState {
    watchers(&fixture.storage).await.unwrap().pop().unwrap()
}

#[tokio::test]
async fn only_sessions_that_change_are_read() {
    let (fixture, mut watching) = watched().await;
    for n in 0..20 {
        fixture.session("q", &format!("s{n}")).transcript([lines::user("hello")]).unwrap();
    }
    fixture.backend.reset_counts();
    fixture.folder().append_transcript([lines::user("two")]).unwrap();
    let mut written = 0;
    while written < 21 {
        match watching.until(|event| matches!(event, Seen::Synced { .. })).await {
            Seen::Synced { complete: false, report, .. } => written += report.messages.written,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fixture.texts().await, ["one", "two"]);
    assert_eq!(fixture.messages("s19").await.len(), 1);
    assert_eq!(fixture.backend.calls(Operation::SyncStates), 0);
    watching.stop().await;
}

#[tokio::test]
async fn replaced_files_and_events_are_noticed() {
    let (fixture, mut watching) = watched().await;
    let folder = fixture.folder();
    folder.file(".transcript_1.tmp", "{\"role\":\"user\",\"content\":\"uno\"}\n").unwrap();
    fs::rename(folder.path().join(".transcript_1.tmp"), folder.path().join("transcript.jsonl")).unwrap();
    watching.until(|event| event.wrote(1)).await;
    assert_eq!(fixture.texts().await, ["uno"]);
    let event = "{\"ts\":\"2026-01-05T08:00:00Z\",\"event\":\"a\",\"data\":{}}\n";
    folder.file("context-intelligence/events.jsonl", event).unwrap();
    let events = |event: &Seen| matches!(event, Seen::Synced { report, .. } if report.events.written == 1);
    watching.until(events).await;
    assert_eq!(fixture.event_types().await, ["a"]);
    watching.stop().await;
}

#[tokio::test]
async fn sessions_of_the_agent_and_captures_elsewhere_are_followed() {
    let (fixture, captures) = (Fixture::with_files("agent"), tempfile::tempdir().unwrap());
    let syncs = fixture.options().with_captures(Some(captures.path().to_owned()));
    let mut options = options(&fixture);
    options.roots = vec![syncs];
    let mut watching = Watching::start(vec![target("memory", &fixture.storage)], options);
    watching.until(Seen::is_complete).await;
    let stored = fixture.stored("chat-42").await.unwrap().session;
    assert_eq!((stored.message_count, stored.event_count), (6, 20));
    let place = captures.path().join("-srv-bakery/sessions/chat-42/context-intelligence");
    let inside =
        fixture.home.path().join("state/workspaces/-srv-bakery/sessions/chat-42/context-intelligence");
    let mut log = fs::read_to_string(inside.join("events.jsonl")).unwrap();
    log += "{\"event\":\"session:end\",\"workspace\":\"bakery\",\"timestamp\":\"2026-09-14T06:02:00Z\",\"data\":{}}\n";
    let other = captures.path().join("new.jsonl");
    fs::write(&other, log).unwrap();
    fs::create_dir_all(&place).unwrap();
    fs::rename(other, place.join("events.jsonl")).unwrap();
    let event = |event: &Seen| matches!(event, Seen::Synced { report, .. } if report.events.written == 1);
    watching.until(event).await;
    assert_eq!(fixture.stored("chat-42").await.unwrap().session.event_count, 21);
    watching.stop().await;
}

#[tokio::test]
async fn a_store_that_is_down_loses_nothing() {
    let (fixture, mut watching) = watched().await;
    fixture.backend.break_operation(Operation::Write, ErrorKind::StorageConnection);
    fixture.folder().append_transcript([lines::user("two")]).unwrap();
    for _ in 0..3 {
        watching.until(|event| matches!(event, Seen::StoreDown(error) if error.contains("broken"))).await;
    }
    fixture.session("p", "t").transcript([lines::user("three")]).unwrap();
    watching.until(|event| matches!(event, Seen::StoreDown(_))).await;
    fixture.backend.recover();
    watching.until(|event| matches!(event, Seen::StoreUp)).await;
    while fixture.stored("t").await.is_none() {
        watching.until(|event| matches!(event, Seen::Synced { .. })).await;
    }
    assert_eq!(fixture.texts().await, ["one", "two"]);
    watching.stop().await;
}

#[tokio::test]
async fn a_store_that_is_down_does_not_hold_up_another() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap();
    let other = Fixture::new();
    fixture.backend.break_operation(Operation::Meta, ErrorKind::StorageConnection);
    fixture.backend.break_operation(Operation::SwapMeta, ErrorKind::StorageConnection);
    let targets = vec![target("down", &fixture.storage), target("up", &other.storage)];
    let mut watching = Watching::start(targets, options(&fixture));
    let of = |event: &Seen, name| matches!(event, Seen::Synced { target, .. } if target == name);
    watching.until(|event| of(event, "up")).await;
    assert_eq!(other.texts().await, ["one"]);
    fixture.backend.recover();
    watching.until(|event| of(event, "down")).await;
    assert_eq!(fixture.texts().await, ["one"]);
    watching.stop().await;
}

#[tokio::test]
async fn several_roots_are_watched() {
    let fixture = Fixture::new();
    let second = AmplifierHome::new().unwrap();
    second.session("q", "t").unwrap().transcript([lines::user("one")]).unwrap();
    let roots = [fixture.options(), SyncOptions::new(second.path(), user(), HostId::new("host").unwrap())];
    let intervals = options(&fixture).intervals;
    let options = WatchOptions::new(roots).with_intervals(intervals).with_clock(fixture.clock.function());
    let mut watching = Watching::start(vec![target("memory", &fixture.storage)], options);
    // The first has no sessions yet, so it is awaited.
    watching.until(|event| matches!(event, Seen::RootGone)).await;
    fixture.folder().transcript([lines::user("one")]).unwrap();
    while fixture.stored("s").await.is_none() || fixture.stored("t").await.is_none() {
        watching.until(|event| matches!(event, Seen::Synced { .. })).await;
    }
    assert_eq!(watchers(&fixture.storage).await.unwrap().len(), 2);
    watching.stop().await;
}

#[tokio::test]
async fn a_root_may_vanish_and_return() {
    let (fixture, mut watching) = watched().await;
    let (projects, away) = (fixture.home.path().join("projects"), fixture.home.path().join("away"));
    // The same folder, then another one.
    for text in ["two", "three"] {
        fs::rename(&projects, &away).unwrap();
        watching.until(|event| matches!(event, Seen::RootGone)).await;
        append(&away, text);
        match text {
            "two" => fs::rename(&away, &projects).unwrap(),
            _ => copy(&away, &projects),
        }
        watching.until(|event| matches!(event, Seen::Following)).await;
        watching.until(Seen::is_complete).await;
    }
    assert_eq!(fixture.texts().await, ["one", "two", "three"]);
    append(&projects, "four");
    // Under load, the watcher may lose the root once more, and then reads everything.
    let wrote = |event: &Seen| matches!(event, Seen::Synced { report, .. } if report.messages.written == 1);
    watching.until(wrote).await;
    assert_eq!(fixture.texts().await.len(), 4);
    watching.stop().await;
}

fn append(projects: &Path, text: &str) {
    let folder = Folder::create(projects.join("p/sessions/s")).unwrap();
    folder.append_transcript([lines::user(text)]).unwrap();
}

fn copy(from: &Path, to: &Path) {
    let file = "p/sessions/s/transcript.jsonl";
    fs::create_dir_all(to.join(file).parent().unwrap()).unwrap();
    fs::copy(from.join(file), to.join(file)).unwrap();
}

#[tokio::test]
async fn a_second_watcher_is_refused_until_the_first_stops() {
    let (fixture, first) = watched().await;
    let error = Watching::of(&fixture).error().await;
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, false));
    let process = std::process::id().to_string();
    assert_eq!(error.context("watcher"), Some(process.as_str()));
    assert!(state(&fixture).await.is_running(fixture.clock.now()));
    first.stop().await;
    assert!(!state(&fixture).await.is_running(fixture.clock.now()));
    let mut second = Watching::of(&fixture);
    second.until(Seen::is_complete).await;
    second.stop().await;
}

#[tokio::test]
async fn the_claim_of_a_killed_watcher_expires() {
    let (fixture, first) = watched().await;
    first.task.abort();
    assert!(first.task.await.unwrap_err().is_cancelled());
    Watching::of(&fixture).error().await;
    fixture.clock.advance(MINUTE);
    assert!(!state(&fixture).await.is_running(fixture.clock.now()));
    let mut second = Watching::of(&fixture);
    second.until(Seen::is_complete).await;
    second.stop().await;
}

#[tokio::test]
async fn a_change_of_the_wall_clock_does_not_expire_the_claim_of_a_watcher() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap();
    let uptime = TestClock::fixed("1970-01-01T02:00:00Z");
    let start = || {
        let uptime = uptime.clone();
        let options = options(&fixture).with_uptime(move || u64::try_from(uptime.now().as_micros()).ok());
        Watching::start(vec![target("memory", &fixture.storage)], options)
    };
    let mut first = start();
    first.until(Seen::is_complete).await;
    // It does not renew its claim.
    first.task.abort();
    assert!(first.task.await.unwrap_err().is_cancelled());
    for change in [60 * MINUTE, -120 * MINUTE] {
        fixture.clock.advance(change);
        assert_eq!(start().error().await.kind(), ErrorKind::Conflict);
    }
    uptime.advance(MINUTE);
    let mut second = start();
    second.until(Seen::is_complete).await;
    // The machine is restarted.
    second.task.abort();
    assert!(second.task.await.unwrap_err().is_cancelled());
    uptime.advance(-MINUTE / 2);
    let mut third = start();
    third.until(Seen::is_complete).await;
    third.stop().await;
}

#[tokio::test]
async fn after_sleep_everything_is_compared() {
    let (fixture, mut watching) = watched().await;
    fixture.clock.advance(60 * MINUTE);
    watching.until(Seen::is_complete).await;
    watching.stop().await;
}

#[tokio::test]
async fn everything_is_compared_at_intervals() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap();
    let millis = Duration::from_millis;
    for polls in [false, true] {
        let intervals = options(&fixture).intervals.with_complete(millis(30)).with_poll(millis(30));
        let options = options(&fixture).with_intervals(intervals).with_polls(polls);
        let mut watching = Watching::start(vec![target("memory", &fixture.storage)], options);
        let followed = watching.until(|event| matches!(event, Seen::Following | Seen::Polling(_))).await;
        assert_eq!(matches!(followed, Seen::Polling(reason) if reason.contains("requested")), polls);
        for _ in 0..3 {
            watching.until(Seen::is_complete).await;
        }
        watching.stop().await;
    }
}

#[tokio::test]
async fn failed_sessions_are_listed_until_they_can_be_read() {
    let (fixture, mut watching) = watched().await;
    let folder = fixture.session("p", "bad");
    fs::create_dir(folder.path().join("transcript.jsonl")).unwrap();
    let failed = |event: &Seen| matches!(event, Seen::Synced { report, .. } if report.sessions.failed == 1);
    watching.until(failed).await;
    let failures = loop {
        let failures = state(&fixture).await.failures;
        if !failures.is_empty() {
            break failures;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((failures[0].project.as_str(), failures[0].session.as_deref()), ("p", Some("bad")));
    fs::remove_dir(folder.path().join("transcript.jsonl")).unwrap();
    folder.transcript([lines::user("mended")]).unwrap();
    watching.until(|event| event.wrote(1)).await;
    watching.stop().await;
    assert!(state(&fixture).await.failures.is_empty());
}

#[tokio::test]
async fn sessions_that_failed_are_tried_again_although_nothing_changes() {
    let (fixture, mut watching) = watched().await;
    fs::create_dir(fixture.session("p", "bad").path().join("transcript.jsonl")).unwrap();
    for _ in 0..4 {
        let failed =
            |event: &Seen| matches!(event, Seen::Synced { report, .. } if report.sessions.failed == 1);
        watching.until(failed).await;
    }
    watching.stop().await;
}

#[tokio::test]
async fn an_exclusive_store_is_closed_while_there_is_nothing_to_do() {
    let fixture = Fixture::new();
    fixture.folder().transcript([lines::user("one")]).unwrap();
    // The watcher has the storage only while a clone of this exists.
    let (open, storage) = (Arc::new(()), fixture.storage.clone());
    let held = Arc::clone(&open);
    let backend = move || {
        let clock = Arc::clone(&held);
        let storage = storage.clone().with_clock(move || {
            let _held = &clock;
            Timestamp::now()
        });
        ready(Ok::<_, Error>(storage)).boxed()
    };
    let target = WatchTarget::new("exclusive", backend).with_exclusive(true);
    let mut watching = Watching::start(vec![target], options(&fixture));
    watching.until(Seen::is_complete).await;
    for text in ["two", "three"] {
        // Only this and the closure hold it.
        while Arc::strong_count(&open) > 2 {
            tokio::task::yield_now().await;
        }
        fixture.folder().append_transcript([lines::user(text)]).unwrap();
        watching.until(|event| event.wrote(1)).await;
    }
    assert_eq!(fixture.texts().await, ["one", "two", "three"]);
    watching.stop().await;
}

#[tokio::test]
async fn vectors_are_made_beside_the_syncs() {
    let fixture = Fixture::new().with_embedding(Arc::new(FakeEmbedding::new()));
    fixture.folder().transcript([lines::user("one")]).unwrap();
    let mut watching = Watching::of(&fixture);
    watching.until(|event| matches!(event, Seen::Embedded(1))).await;
    fixture.folder().append_transcript([lines::user("two")]).unwrap();
    watching.until(|event| matches!(event, Seen::Embedded(1))).await;
    let key = fixture.stored("s").await.unwrap().session.key();
    assert_eq!(fixture.storage.backend().session_rows(&key).await.unwrap().vectors, 2);
    watching.stop().await;
}

#[tokio::test]
async fn deleted_and_excluded_sessions_and_older_copies_are_left_out() {
    let fixture = Fixture::new();
    for session in ["s", "gone", "out"] {
        fixture.session("p", session).transcript([lines::user("one")]).unwrap();
    }
    let excluding = WatchOptions::new([fixture.options().with_exclude(["p/out"])])
        .with_intervals(options(&fixture).intervals)
        .with_clock(fixture.clock.function());
    let mut watching = Watching::start(vec![target("memory", &fixture.storage)], excluding);
    watching.until(Seen::is_complete).await;
    let key = fixture.stored("gone").await.unwrap().session.key();
    assert!(fixture.storage.backend().delete_session(&key).await.unwrap());
    let copy = fixture.session("a-copy", "s");
    copy.transcript([lines::user("old"), lines::user("copy")]).unwrap();
    crate::fixture::set_modified(&copy.path().join("transcript.jsonl"), "2020-01-01T00:00:00Z");
    for session in ["gone", "out"] {
        fixture.session("p", session).append_transcript([lines::user("two")]).unwrap();
    }
    // Changes are taken in any order, so wait for one that came last.
    fixture.session("z", "last").transcript([lines::user("one")]).unwrap();
    while fixture.stored("last").await.is_none() {
        watching.until(|event| matches!(event, Seen::Synced { .. })).await;
    }
    watching.stop().await;
    assert!(fixture.stored("gone").await.is_none() && fixture.stored("out").await.is_none());
    fixture.sync_with(fixture.options()).await;
    assert_eq!(fixture.texts().await, ["one"]);
    assert_eq!(user(), fixture.storage.users().pinned_user().await.unwrap().unwrap());
}
