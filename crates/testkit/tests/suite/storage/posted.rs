//! Events that a program posts before its log comes, in stores that are moved meanwhile.

use amplifier_session_testkit::prelude::*;

use super::exchange::{ana_id, other_store, pull, push, superseded};

on_both_stores![
    every_event_is_there_once_wherever_the_session_was_moved,
    an_event_that_was_lost_comes_back_with_the_log,
    a_store_that_takes_posted_events_gets_the_log_too,
    machines_that_take_posted_events_have_each_once,
    a_log_whose_ingest_is_killed_loses_no_posted_event,
];

fn data(at: usize) -> Value {
    json!({"timestamp": format!("2026-01-05T08:00:{at:02}.000Z"), "tool_name": "bash", "n": at})
}

fn name(at: usize) -> String {
    format!("tool:{at:02}")
}

/// The line that the program writes to its log.
fn logged(at: usize) -> RawJson {
    let data = data(at);
    let line = json!({"data": data, "event": name(at), "timestamp": data["timestamp"]});
    RawJson::from(line.to_string().as_str())
}

async fn post(store: &Store, target: &IngestTarget, at: usize) -> PostResult {
    let Value::Object(data) = data(at) else { unreachable!() };
    let posted = PostedEvent {
        session: target.key.clone(),
        project_slug: target.project_slug.clone(),
        working_dir: None,
        event: name(at),
        data,
    };
    store.storage.exchange().post_event(&posted).await.unwrap()
}

/// Adds lines to the log of a session on the laptop.
async fn log(laptop: &Store, target: &IngestTarget, numbers: impl IntoIterator<Item = usize>) {
    let start = events_of_logs(laptop, target).await;
    let lines = SyncLines::starting_at(start, numbers.into_iter().map(logged).collect());
    laptop.storage.ingestion().sync_event_lines(target, lines).await.unwrap();
}

async fn events_of_logs(store: &Store, target: &IngestTarget) -> u32 {
    let stored = store.backend.get_session(&target.key).await.unwrap();
    stored.map_or(0, |stored| stored.events_of_logs())
}

async fn follow(store: &Store, server: &OtherStore) {
    let options = PullOptions::new(ana_id()).with_follow(true);
    let report = store.storage.exchange().pull(server, &options, &|_| {}).await.unwrap();
    assert!(report.failed.is_empty(), "{:?}", report.failed);
}

/// The names of all events, read in pages.
async fn event_names(store: &Store, target: &IngestTarget) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let range = SequenceRange { start: names.len() as u32, limit: 100 };
        let page = store.backend.read_events(&target.key, range).await.unwrap();
        if page.is_empty() {
            return names;
        }
        names.extend(page.into_iter().map(|event| event.event_type));
    }
}

/// Another store with the sessions of this one.
async fn exported(from: &Store) -> Store {
    let to = other_store().await;
    let mut archive = Vec::new();
    let mut writer = JsonLinesWriter::new(&mut archive);
    let exported =
        from.storage.archive().export_sessions(&Scope::Everyone, SessionFilter::default(), &mut writer);
    exported.await.unwrap();
    let mut reader = JsonLinesReader::new(&archive[..]);
    let report = to.storage.archive().import_sessions(&mut reader, &ImportOptions::default()).await.unwrap();
    assert_eq!((report.sessions, report.broken.len()), (1, 0), "{report:?}");
    to
}

async fn copied(from: &Store) -> Store {
    let to = other_store().await;
    let options = CopyOptions::new(Scope::Everyone);
    let report = from.storage.copying().copy_to(&to.storage, &options, &|_| {}).await.unwrap();
    assert_eq!(report.sessions, 1, "{report:?}");
    to
}

/// A part of the log came, then events were posted: some got lost, and they overtook each other. The session is moved to
/// another store, to which the log is pushed.
async fn every_event_is_there_once_wherever_the_session_was_moved(_: Store) {
    for seed in 0..rounds(20, 1_000) {
        let mut random = Random(seed);
        let (laptop, mut server, target) = (other_store().await, other_store().await, target("s"));
        let (total, first) = (6 + random.below(6), random.below(4));
        log(&laptop, &target, 0..first).await;
        push(&laptop, &OtherStore::new(server.storage.clone())).await;
        let mut posted: Vec<usize> = (first..total).filter(|_| random.below(4) > 0).collect();
        if random.below(2) == 0 {
            posted.reverse();
        }
        for at in &posted {
            assert_eq!(post(&server, &target, *at).await, PostResult::Stored);
        }
        if first + posted.len() > 0 {
            for _ in 0..random.below(3) {
                server = if random.below(2) == 0 { exported(&server).await } else { copied(&server).await };
            }
        }
        for at in &posted {
            assert_eq!(post(&server, &target, *at).await, PostResult::Known);
        }
        let middle = first + random.below(total - first);
        for (from, to) in [(first, middle), (middle, total)] {
            log(&laptop, &target, from..to).await;
            push(&laptop, &OtherStore::new(server.storage.clone())).await;
            let mut expected: Vec<String> = (0..to).map(name).collect();
            let ahead = posted.iter().filter(|at| **at >= to);
            expected.extend(ahead.map(|at| name(*at)));
            assert_eq!(event_names(&server, &target).await, expected, "seed {seed}");
        }
        assert!(superseded(&server, &target).await.is_empty(), "seed {seed}");
    }
}

/// A posted event can't be read any more, so that the rows after it are renumbered by an export.
async fn an_event_that_was_lost_comes_back_with_the_log(store: Store) {
    let (laptop, target) = (other_store().await, target("s"));
    log(&laptop, &target, 0..2).await;
    push(&laptop, &OtherStore::new(store.storage.clone())).await;
    for at in [3, 2, 4] {
        post(&store, &target, at).await;
    }
    let mut lost =
        store.backend.read_events(&target.key, SequenceRange { start: 2, limit: 1 }).await.unwrap();
    let lost = StoredEvent::new(lost.remove(0), Payload::Zstd(b"broken".to_vec()));
    store.write(&target, |change| change.events.put.push(lost)).await;
    let moved = exported(&store).await;
    assert_eq!(event_names(&moved, &target).await, [0, 1, 2, 4].map(name));
    log(&laptop, &target, 2..5).await;
    push(&laptop, &OtherStore::new(moved.storage.clone())).await;
    assert_eq!(event_names(&moved, &target).await, [0, 1, 2, 3, 4].map(name));
    assert!(superseded(&moved, &target).await.is_empty());
}

/// A second machine takes posted events from the server, and later their log: each event once.
async fn a_store_that_takes_posted_events_gets_the_log_too(store: Store) {
    let (laptop, server, target) = (other_store().await, other_store().await, target("s"));
    let other = OtherStore::new(server.storage.clone());
    for at in [1, 0, 3] {
        post(&server, &target, at).await;
        pull(&store, &other).await;
    }
    log(&laptop, &target, 0..4).await;
    push(&laptop, &other).await;
    pull(&store, &other).await;
    assert_eq!(event_names(&store, &target).await, [0, 1, 2, 3].map(name));
    assert!(superseded(&server, &target).await.is_empty());
}

/// Events are posted to a server, and two machines take them from it, and read the log, and push it, in any order.
async fn machines_that_take_posted_events_have_each_once(_: Store) {
    for seed in 0..rounds(40, 2_000) {
        let mut random = Random(seed);
        let (server, target) = (other_store().await, target("s"));
        let machines = [other_store().await, other_store().await];
        let other = OtherStore::new(server.storage.clone());
        let (mut happened, mut known) = (0, [0; 3]);
        for step in 0..24 {
            let machine = &machines[random.below(2)];
            match random.below(6) {
                0 | 1 => {
                    let new = happened..happened + 1 + random.below(3);
                    happened = new.end;
                    for at in new {
                        if random.below(4) > 0 {
                            assert_eq!(post(&server, &target, at).await, PostResult::Stored);
                        }
                    }
                }
                2 | 3 => {
                    let start = events_of_logs(machine, &target).await as usize;
                    log(machine, &target, start..happened).await;
                }
                4 => drop(push(machine, &other).await),
                _ => follow(machine, &other).await,
            }
            for (store, known) in [&server, &machines[0], &machines[1]].into_iter().zip(&mut known) {
                let mut names = event_names(store, &target).await;
                let count = names.len();
                names.sort();
                names.dedup();
                assert_eq!(names.len(), count, "seed {seed}, step {step}: twice");
                assert!(count >= *known, "seed {seed}, step {step}: {count} of {known}");
                *known = count;
                let superseded = superseded(store, &target).await;
                assert!(superseded.is_empty(), "seed {seed}, step {step}: {superseded:?}");
            }
        }
        for machine in &machines {
            let start = events_of_logs(machine, &target).await as usize;
            log(machine, &target, start..happened).await;
            push(machine, &other).await;
        }
        follow(&machines[0], &other).await;
        let all: Vec<String> = (0..happened).map(name).collect();
        for store in [&server, &machines[0], &machines[1]] {
            assert_eq!(event_names(store, &target).await, all, "seed {seed}");
        }
    }
}

/// The log lacks posted events, and is so long that it is written in parts. The process ends after one of them.
async fn a_log_whose_ingest_is_killed_loses_no_posted_event(store: Store) {
    let target = target("s");
    for at in [0, 1, 20] {
        post(&store, &target, at).await;
    }
    let mut random = Random(7);
    let mut long = || {
        let text: String = (0..2_000_000).map(|_| char::from(b'!' + random.below(90) as u8)).collect();
        json!({"event": "llm:response", "timestamp": "2026-01-05T07:00:00Z", "data": {"text": text}})
    };
    let log: Vec<RawJson> = (0..12).map(|_| RawJson::from(long().to_string().as_str())).collect();
    let seen = Timestamp::from_micros(0);
    let mut killed = store.storage.ingestion().ingest(target.clone()).await.unwrap();
    killed.begin(LineKind::Event, 0).await.unwrap();
    for line in &log {
        killed.line(LineKind::Event, line.clone(), seen).await.unwrap();
    }
    drop(killed);
    let names = event_names(&store, &target).await;
    assert!(names.len() > 3, "a part was written: {names:?}");
    for at in [0, 1, 20] {
        assert_eq!(post(&store, &target, at).await, PostResult::Known);
    }
    let report = store.storage.ingestion().sync_event_lines(&target, SyncLines::starting_at(0, log)).await;
    assert_eq!(report.unwrap().events_superseded, 0);
    let names = event_names(&store, &target).await;
    assert_eq!((names.len(), &names[12..]), (15, &[0, 1, 20].map(name)[..]));
}
