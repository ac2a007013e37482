//! Concurrent access: to different sessions, to the same session, and through several handles.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::prelude::*;

const TASKS: usize = 8;

fn transcript(label: &str, count: usize) -> Vec<Line> {
    (0..count).map(|n| lines::user(&format!("{label} message number{n}"))).collect()
}

async fn sync(storage: &SessionStorage, target: &IngestTarget, lines: Vec<Line>) {
    storage.ingestion().sync_transcript_lines(target, SyncLines::whole(raw(lines))).await.unwrap();
}

/// Runs `task` concurrently for each number below [`TASKS`]: even numbers on the first handle, odd ones on the second.
async fn at_once<F>(handles: [&Store; 2], task: impl Fn(SessionStorage, usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for n in 0..TASKS {
        tasks.spawn(task(handles[n % 2].storage.clone(), n));
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
}

/// Concurrent writes, searches and reads of different sessions all succeed.
pub async fn concurrent_writes_to_different_sessions_succeed(store: Store) {
    let again = store.again().await;
    at_once([&store, &again], |storage, n| async move {
        let target = target_of(if n % 3 == 0 { "ben" } else { "ana" }, "shop", &format!("s{n}"));
        for round in 1..=2 {
            sync(&storage, &target, transcript(&format!("task{n}"), round * 5)).await;
            let events = (0..round * 3).map(|e| lines::logger_event(&format!("e:{e}"))).collect::<Vec<_>>();
            storage.ingestion().sync_event_lines(&target, SyncLines::whole(raw(events))).await.unwrap();
            let query = words(&format!("task{n}")).with_limit(100);
            let found = storage.search().search_transcripts(&scope(&target), &query).await.unwrap().results;
            assert_eq!(found.len(), round * 5);
            storage
                .search()
                .search_transcripts(&scope(&target), &SearchOptions::new("message"))
                .await
                .unwrap();
        }
    })
    .await;
    for n in 0..TASKS {
        let target = target_of(if n % 3 == 0 { "ben" } else { "ana" }, "shop", &format!("s{n}"));
        let session = store.stored(&target).await.session;
        assert_eq!((session.message_count, session.event_count), (10, 6));
        let (_, (messages, events, vectors)) = store.everything(&target).await;
        assert_eq!((messages.len(), events.len(), vectors.len()), (10, 6, 10));
        assert_eq!(store.find(&target, &format!("task{n}")).await.len(), 10);
    }
}

/// Concurrent syncs of the same lines store each line and its vector once.
pub async fn concurrent_syncs_of_the_same_lines_store_them_once(store: Store) {
    let again = store.again().await;
    at_once([&store, &again], |storage, _| async move {
        sync(&storage, &target("s"), transcript("same", 20)).await;
        storage
            .ingestion()
            .sync_session_metadata(&target("s"), RawJson::from(r#"{"name":"same"}"#))
            .await
            .unwrap();
    })
    .await;
    let messages = store.messages(&target("s")).await;
    assert!(messages.iter().map(|message| message.raw.clone()).eq(raw(transcript("same", 20))));
    assert!(store.vectors(&target("s")).await.iter().map(|(n, _)| *n).eq(0..20));
    assert!(store.pending(&target("s")).await.is_empty());
    let session = store.stored(&target("s")).await.session;
    assert_eq!((session.message_count, session.name.as_deref()), (20, Some("same")));
    assert_eq!(store.find(&target("s"), "same").await.len(), 20);
}

/// Concurrent syncs of different lines to the same session retry conflicts, and leave one of the transcripts complete.
pub async fn concurrent_syncs_of_different_lines_keep_one_transcript(store: Store) {
    let again = store.again().await;
    at_once([&store, &again], |storage, n| async move {
        sync(&storage, &target("s"), transcript(&format!("task{n}"), 10 + n)).await;
    })
    .await;
    let messages = store.messages(&target("s")).await;
    let winner = messages.len() - 10;
    assert!(
        messages.iter().map(|m| m.raw.clone()).eq(raw(transcript(&format!("task{winner}"), 10 + winner)))
    );
    assert_eq!(store.stored(&target("s")).await.session.message_count as usize, messages.len());
    store.embed().await;
    let vectors = store.vectors(&target("s")).await;
    assert_eq!(vectors.len(), messages.len());
    for (sequence, record) in vectors {
        let text = format!("task{winner} message number{sequence}");
        assert!(is_kept(&record.vector, &store.embedding.vector(&text)), "{text}");
    }
    assert_eq!(store.find(&target("s"), "message").await.len(), messages.len());
    assert_eq!(store.find(&target("s"), &format!("task{winner}")).await.len(), messages.len());
}

/// Concurrent appends lose no line.
pub async fn concurrent_appends_lose_no_line(store: Store) {
    let store = Arc::new(store);
    let again = store.again().await;
    store.sync(&target("s"), transcript("first", 1)).await;
    at_once([&store, &again], |storage, n| async move { append(&storage, &format!("task{n}")).await }).await;
    let messages = store.messages(&target("s")).await;
    assert!(messages.iter().map(|message| message.sequence).eq(0..=TASKS as u32));
    for n in 0..TASKS {
        assert_eq!(store.find(&target("s"), &format!("task{n}")).await.len(), 1);
    }
}

/// Appends one line at the current end of the transcript.
async fn append(storage: &SessionStorage, text: &str) {
    loop {
        let mut ingest = storage.ingestion().ingest(target("s")).await.unwrap();
        let end = ingest.stored().unwrap().session.message_count;
        ingest.begin_transcript(end).await.unwrap();
        ingest.transcript_line(lines::user(text).raw(), Timestamp::from_micros(0)).await.unwrap();
        ingest.end_transcript(Extent::Part);
        match ingest.commit().await {
            Ok(_) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
        }
    }
}

/// If two writers start from the same state, the second one gets a conflict and changes nothing.
pub async fn the_second_of_two_writers_gets_a_conflict(store: Store) {
    let again = store.again().await;
    for round in 0..2 {
        let mut ingests = Vec::new();
        for (handle, label) in [(&store, "first"), (&again, "second")] {
            let mut ingest = handle.storage.ingestion().ingest(target("s")).await.unwrap();
            ingest.begin_transcript(0).await.unwrap();
            for line in transcript(&format!("{label}{round}"), 8) {
                ingest.transcript_line(line.raw(), Timestamp::from_micros(0)).await.unwrap();
            }
            ingest.end_transcript(Extent::Whole);
            ingests.push(ingest);
        }
        let second = ingests.remove(1);
        ingests.remove(0).commit().await.unwrap();
        let stored = store.stored(&target("s")).await;
        let error = second.commit().await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Conflict, true));
        assert_eq!(store.stored(&target("s")).await, stored);
        assert_eq!(store.find(&target("s"), &format!("first{round}")).await.len(), 8);
        assert!(again.find(&target("s"), &format!("second{round}")).await.is_empty());
    }
}

/// If writes are atomic, a reader sees the state before or after a write. On other backends, it eventually sees the
/// last state.
pub async fn readers_see_whole_writes(store: Store) {
    let store = Arc::new(store);
    let reader = store.again().await;
    let atomic = store.backend.info().atomic_writes;
    let states = [transcript("one", 12), transcript("two", 25)];
    store.sync(&target("s"), states[0].clone()).await;
    let writer = tokio::spawn({
        let (store, states) = (store.clone(), states.clone());
        async move {
            for round in 1..=10 {
                sync(&store.storage_with(None), &target("s"), states[round % 2].clone()).await;
            }
        }
    });
    let digests =
        states.map(|lines| raw(lines).iter().map(|line| Digest::of(line.as_bytes())).collect::<Vec<_>>());
    while !writer.is_finished() {
        let seen = reader.backend.message_states(&target("s").key).await.unwrap();
        let seen: Vec<_> = seen.iter().map(|state| state.digest).collect();
        assert!(!atomic || digests.contains(&seen), "half of a write was seen: {} messages", seen.len());
        reader.search(&target("s"), &words("message")).await;
    }
    writer.await.unwrap();
    let last = reader.backend.message_states(&target("s").key).await.unwrap();
    assert!(last.iter().map(|state| state.digest).eq(digests[0].iter().copied()));
}

/// Searches and index updates succeed while others write.
pub async fn searches_succeed_during_writes(store: Store) {
    let again = store.again().await;
    at_once([&store, &again], |storage, n| async move {
        let target = target(&format!("s{}", n % 2));
        for round in 0..5 {
            match n / 2 {
                0 => sync(&storage, &target, transcript(&format!("round{round}"), 6)).await,
                1 => storage.update_index().await.unwrap(),
                2 => {
                    let query = SearchOptions::new("message number3").with_limit(50);
                    let results =
                        storage.search().search_transcripts(&scope(&target), &query).await.unwrap().results;
                    assert!(results.len() <= 12);
                }
                _ => {
                    let (user, session) = (&target.key.user_id, &target.key.session_id);
                    storage.sessions().delete_session(user, &target.project_slug, session).await.unwrap();
                }
            }
        }
    })
    .await;
    for n in 0..2 {
        let target = target(&format!("s{n}"));
        sync(&store.storage, &target, transcript("last", 6)).await;
        assert_eq!(store.messages(&target).await.len(), 6);
    }
    assert_eq!(again.find(&target("s0"), "last").await.len(), 12);
    assert!(again.find(&target("s0"), "round0 round1 round2 round3 round4").await.is_empty());
}

/// The next sync completes a sync that was abandoned at any point.
pub async fn an_abandoned_sync_is_completed_by_the_next(store: Store) {
    for round in 0..8_u64 {
        let lines = transcript(&format!("round{round}"), 10 + (round as usize * 7) % 13);
        let (storage, abandoned) = (store.storage.clone(), lines.clone());
        let task = tokio::spawn(async move { sync(&storage, &target("s"), abandoned).await });
        for _ in 0..round * 5 {
            tokio::task::yield_now().await;
        }
        task.abort();
        let _ = task.await;
        store.sync(&target("s"), lines.clone()).await;
        let messages = store.messages(&target("s")).await;
        assert!(messages.iter().map(|message| message.raw.clone()).eq(raw(lines)), "round {round}");
        assert_eq!(store.stored(&target("s")).await.session.message_count as usize, messages.len());
        assert_eq!(store.find(&target("s"), "message").await.len(), messages.len());
        assert!(store.pending(&target("s")).await.is_empty());
        assert_eq!(store.vectors(&target("s")).await.len(), messages.len());
    }
}
