use futures_util::{FutureExt, future::join_all};

use super::*;
use crate::wrappers::Limiting;

#[tokio::test]
async fn further_calls_wait_for_their_turn() {
    let provider = Scripted::new().shared();
    let limiting = Limiting::with_calls(Arc::clone(&provider) as _, 2);
    let answers = join_all((0..20).map(|_| call(&limiting))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(provider.most_running.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn the_default_limit_is_the_providers_and_at_least_one() {
    let provider = Scripted::new().shared();
    assert_describes(&Limiting::new(Arc::clone(&provider) as _), &provider);
    let limiting = Limiting::with_calls(Arc::clone(&provider) as _, 0);
    assert_eq!(limiting.limits().concurrent_calls, 1);
    call(&limiting).await.unwrap();
}

#[tokio::test]
async fn a_dropped_call_gives_up_its_turn() {
    let provider = Scripted::new().gated().shared();
    let limiting = Limiting::with_calls(Arc::clone(&provider) as _, 1);
    assert!(call(&limiting).now_or_never().is_none());
    provider.gate.as_ref().unwrap().add_permits(1);
    call(&limiting).await.unwrap();
}
