//! Rewinds: the last turns of a session are removed with their vectors, index entries and events, and nothing else.

use super::events::sized;
use crate::prelude::*;

const TURNS: u32 = 6;
/// The rows of a turn.
const MESSAGES: usize = 3;
const EVENTS: usize = 4;

/// Second `second` of a turn.
fn at(turn: u32, second: u32) -> String {
    format!("2026-01-05T08:{turn:02}:{second:02}Z")
}

fn turn(label: &str, n: u32) -> Vec<Line> {
    vec![
        lines::user(&format!("{label}question{n}")).at(at(n, 10)),
        lines::thinking(&format!("{label}thought{n}"), &format!("{label}answer{n}")).at(at(n, 20)),
        lines::tool(&format!("{label}output{n}")).at(at(n, 30)),
    ]
}

fn log(label: &str, n: u32) -> Vec<Line> {
    let prompt = json!({"prompt": format!("{label}question{n}")});
    vec![
        lines::logger_event("prompt:submit").data(prompt).at(at(n, 9)),
        sized(if n.is_multiple_of(2) { 500_000 } else { 2_000 }).at(at(n, 19)),
        lines::logger_event("tool:post").with("event_id", json!(format!("{label}-{n}"))).at(at(n, 30)),
        lines::logger_event("prompt:complete").at(at(n, 31)),
    ]
}

/// Syncs all turns.
async fn fill(store: &Store, target: &IngestTarget, label: &str) {
    store.sync_metadata(target, &format!("{{\"name\":\"the {label}\"}}")).await;
    store.sync(target, (1..=TURNS).flat_map(|n| turn(label, n)).collect()).await;
    store.sync_events(target, (1..=TURNS).flat_map(|n| log(label, n)).collect()).await;
}

async fn rewind(store: &Store, target: &IngestTarget, turn: u32) -> RewindReport {
    store.storage.ingestion().rewind(&target.key, &RewindOptions::to_turn(turn)).await.unwrap()
}

/// Messages, events and the sequences of all vectors.
type Rows = (Vec<Message>, Vec<EventLine>, Vec<(u32, VectorRecord)>);

/// The rows of the first `turns` turns.
fn first_turns((messages, events, vectors): &Rows, turns: u32) -> Rows {
    let count = turns as usize * MESSAGES;
    let vectors = vectors.iter().filter(|(sequence, _)| (*sequence as usize) < count);
    (messages[..count].to_vec(), events[..turns as usize * EVENTS].to_vec(), vectors.cloned().collect())
}

/// Checks that the session has these rows, and that searches find no others.
async fn check(store: &Store, target: &IngestTarget, rows: &Rows, turns: u32) {
    let (stored, found) = store.everything(target).await;
    assert_eq!(&found, rows);
    let counts = (stored.session.turn_count, stored.session.message_count, stored.session.event_count);
    assert_eq!(counts, (turns, turns * MESSAGES as u32, turns * EVENTS as u32));
    let counted = store.rows(target).await;
    assert_eq!((counted.messages.count, counted.events.count), (rows.0.len() as u64, rows.1.len() as u64));
    assert_eq!(counted.vectors, rows.2.len() as u64);
    for n in 1..=TURNS {
        let first = (n - 1) * MESSAGES as u32;
        let expected: &[u32] = if n <= turns { &[first, first + 1, first + 2] } else { &[] };
        let words = ["question", "thought", "output"].map(|word| format!("ours{word}{n}")).join(" ");
        assert_eq!(store.find(target, &words).await, expected, "{words}");
    }
    let similar =
        store.search(target, &meaning(&format!("oursquestion{TURNS}")).with_limit(100)).await.results;
    let mut of_session = similar.iter().filter(|result| result.session_id == target.key.session_id);
    assert!(of_session.all(|result| result.sequence < turns * MESSAGES as u32));
    let options = EventSearchOptions::default().with_limit(1_000);
    let events = store.backend.search_events(&scope(target), &options).await.unwrap();
    let of_session = events.iter().filter(|event| event.session_id == target.key.session_id);
    assert_eq!(of_session.count(), rows.1.len());
}

/// A rewind removes the messages after a turn with their vectors and index entries, and the events from the prompt of
/// the next turn on. Everything else stays. Repeating it changes nothing, and a sync brings everything back.
pub async fn a_rewind_removes_later_turns_and_nothing_else(store: Store) {
    let others = [target_of("ben", "shop", "s"), target("t")];
    for other in &others {
        fill(&store, other, "other").await;
    }
    fill(&store, &target("s"), "ours").await;
    store.storage.update_index().await.unwrap();
    let mut untouched = Vec::new();
    for other in &others {
        untouched.push(store.everything(other).await);
    }
    let (before, rows) = store.everything(&target("s")).await;
    for turns in [4, 1, 0] {
        let expected = first_turns(&rows, turns);
        let report = rewind(&store, &target("s"), turns).await;
        let stored = store.stored(&target("s")).await;
        assert!(report.turns >= 1 && report.messages == report.turns * MESSAGES as u64);
        assert_eq!(report.messages_with_vectors, report.messages);
        assert_eq!(report.events, report.turns * EVENTS as u64);
        assert_eq!(
            (&stored.metadata_files, &stored.session.name),
            (&before.metadata_files, &before.session.name)
        );
        assert_eq!(rewind(&store, &target("s"), turns).await.messages, 0);
        assert_eq!(store.stored(&target("s")).await, stored, "repeating it changes nothing");
        for handle in [&store, &store.again().await] {
            check(handle, &target("s"), &expected, turns).await;
        }
        store.storage.update_index().await.unwrap();
        check(&store, &target("s"), &expected, turns).await;
        let ids = [format!("ours-{turns}"), format!("ours-{}", turns + 1)];
        let events = store.backend.find_events(&target("s").key.user_id, &ids).await.unwrap();
        assert!(events.iter().map(|(id, _)| id).eq(ids.iter().take(usize::from(turns > 0))));
    }
    for (other, before) in others.iter().zip(untouched) {
        assert_eq!(store.everything(other).await, before);
    }
    fill(&store, &target("s"), "ours").await;
    let (session, (messages, events, vectors)) = store.everything(&target("s")).await;
    assert_eq!(session.session.turn_count, TURNS);
    let lines = |messages: &[Message]| messages.iter().map(|of| of.raw.clone()).collect::<Vec<_>>();
    assert_eq!((lines(&messages), vectors), (lines(&rows.0), rows.2));
    assert!(events.iter().map(|event| &event.raw).eq(rows.1.iter().map(|event| &event.raw)));
}

/// A rewind that was abandoned at any point is completed by repeating it.
pub async fn an_abandoned_rewind_is_completed_by_the_next(store: Store) {
    for round in 0..5 {
        fill(&store, &target("s"), "ours").await;
        let (_, rows) = store.everything(&target("s")).await;
        let storage = store.storage.clone();
        let task = tokio::spawn(async move {
            storage.ingestion().rewind(&target("s").key, &RewindOptions::to_turn(2)).await.unwrap();
        });
        for _ in 0..round * 9 {
            tokio::task::yield_now().await;
        }
        task.abort();
        let _ = task.await;
        if store.backend.info().atomic_writes {
            let (_, (messages, events, vectors)) = store.everything(&target("s")).await;
            let counts = (messages.len(), events.len(), vectors.len());
            let all = (rows.0.len(), rows.1.len(), rows.2.len());
            let rest = first_turns(&rows, 2);
            assert!(counts == all || counts == (rest.0.len(), rest.1.len(), rest.2.len()), "{counts:?}");
        }
        rewind(&store, &target("s"), 2).await;
        check(&store, &target("s"), &first_turns(&rows, 2), 2).await;
    }
}

/// Concurrent rewinds and appends of a session lose no line that was appended last.
pub async fn a_rewind_during_a_sync_leaves_whole_turns(store: Store) {
    let again = store.again().await;
    for _ in 0..4 {
        fill(&store, &target("s"), "ours").await;
        let (rewinder, syncer) = (store.storage.clone(), again.storage.clone());
        let rewound = tokio::spawn(async move {
            rewinder.ingestion().rewind(&target("s").key, &RewindOptions::to_turn(2)).await.unwrap()
        });
        let all = raw((1..=TURNS + 1).flat_map(|n| turn("ours", n)).collect());
        let synced = tokio::spawn(async move {
            syncer.ingestion().sync_transcript_lines(&target("s"), SyncLines::whole(all)).await.unwrap()
        });
        rewound.await.unwrap();
        synced.await.unwrap();
        let session = store.stored(&target("s")).await.session;
        let messages = store.messages(&target("s")).await;
        assert!([2, TURNS + 1].contains(&session.turn_count), "{} turns", session.turn_count);
        assert_eq!(messages.len(), session.turn_count as usize * MESSAGES);
        assert_eq!(session.message_count as usize, messages.len());
        assert_eq!(store.events(&target("s")).await.len(), session.event_count as usize);
    }
}
