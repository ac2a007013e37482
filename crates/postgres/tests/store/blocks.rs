//! The blocks of the index of texts.

use std::sync::Arc;

use amplifier_session_core::{backend::prelude::*, model::UserId, search::SearchResults};
use amplifier_session_testkit::{
    Store, lines,
    store::{target, target_of, words},
};

use crate::support::Schema;

async fn open() -> Store {
    Store::open(Arc::new(Schema::new())).await
}

async fn assert_clean(store: &Store) {
    let check = store.backend.check_index().await.unwrap();
    assert_eq!(check.problems, []);
}

async fn found(store: &Store, query: &str) -> Vec<(u32, f32)> {
    let SearchResults { results, .. } = store.search(&target("s"), &words(query).with_limit(1_000)).await;
    results.iter().map(|result| (result.sequence, result.score)).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn merged_blocks_find_the_same() {
    let store = open().await;
    for at in 0..30 {
        let line = lines::user(&format!("needle {at} number{}", at % 3));
        store.sync_from(&target("s"), at, vec![line]).await.unwrap();
    }
    let (all, some) = (found(&store, "needle").await, found(&store, "number1").await);
    assert_eq!((all.len(), some.len()), (30, 10));
    for _ in 0..3 {
        store.storage.update_index().await.unwrap();
        assert_clean(&store).await;
        assert_eq!(found(&store, "needle").await, all);
        assert_eq!(found(&store, "number1").await, some);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn an_index_is_updated_while_others_write() {
    let store = Arc::new(open().await);
    let writers = (0..3).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let target = target(&format!("s{writer}"));
            for at in 0..15 {
                store.sync_from(&target, at, vec![lines::user(&format!("needle{at}"))]).await.unwrap();
                store
                    .sync_text(&target_of("ben", "shop", &format!("s{writer}")), vec![lines::user("again")])
                    .await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    for _ in 0..20 {
        store.storage.update_index().await.unwrap();
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_clean(&store).await;
    store.storage.update_index().await.unwrap();
    assert_clean(&store).await;
    assert_eq!(found(&store, "needle7").await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn blocks_move_with_a_renamed_user() {
    let store = open().await;
    store.sync_text(&target("s"), vec![lines::user("needle")]).await;
    let (ana, ben) = (UserId::new("ana").unwrap(), UserId::new("ben").unwrap());
    assert_eq!(store.backend.rename_user(&ana, &ben).await.unwrap(), 1);
    assert_clean(&store).await;
    assert_eq!(store.find(&target_of("ben", "shop", "s"), "needle").await, [0]);
    store.backend.delete_session(&target_of("ben", "shop", "s").key).await.unwrap();
    assert_clean(&store).await;
}
