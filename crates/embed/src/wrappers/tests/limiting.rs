use futures_util::{FutureExt, future::join_all};

use super::*;
use crate::wrappers::Limiting;

fn limiting(provider: Scripted, concurrent_calls: usize) -> (Arc<Scripted>, Limiting) {
    let limits = EmbeddingLimits { concurrent_calls, ..provider.limits };
    let provider = Scripted { limits, ..provider }.shared();
    (Arc::clone(&provider), Limiting::new(provider))
}

#[tokio::test]
async fn further_calls_wait_for_their_turn() {
    let (provider, limiting) = limiting(Scripted::new(), 2);
    assert_describes(&limiting, &provider);
    let answers = join_all((0..20).map(|_| call(&limiting))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(provider.most_running.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn at_least_one_call_is_made() {
    let (_, limiting) = limiting(Scripted::new(), 0);
    call(&limiting).await.unwrap();
}

#[tokio::test]
async fn a_dropped_call_gives_up_its_turn() {
    let (provider, limiting) = limiting(Scripted::new().gated(), 1);
    assert!(call(&limiting).now_or_never().is_none());
    provider.gate.as_ref().unwrap().add_permits(1);
    call(&limiting).await.unwrap();
}
