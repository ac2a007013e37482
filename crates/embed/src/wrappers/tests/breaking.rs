use std::{error::Error as _, time::Duration};

use futures_util::{FutureExt, future::join_all};

use super::*;
use crate::{
    clock::ManualClock,
    wrappers::{BreakerOptions, BreakerState, CircuitBreaking},
};

fn breaking(provider: &Arc<Scripted>) -> (CircuitBreaking, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let breaking = CircuitBreaking::new(Arc::clone(provider) as _, BreakerOptions::default());
    (breaking.with_clock(Arc::clone(&clock) as _), clock)
}

/// A breaker opened by five failures.
async fn opened(
    script: impl IntoIterator<Item = Result<()>>,
) -> (Arc<Scripted>, CircuitBreaking, Arc<ManualClock>) {
    let failures = std::iter::repeat_with(|| Err(down())).take(5);
    let provider = Scripted::new().with_script(failures.chain(script)).shared();
    let (breaking, clock) = breaking(&provider);
    for _ in 0..5 {
        call(&breaking).await.unwrap_err();
    }
    assert_eq!((breaking.state(), provider.calls()), (BreakerState::Open, 5));
    (provider, breaking, clock)
}

#[tokio::test]
async fn an_open_breaker_fails_at_once_and_names_the_end_of_the_pause() {
    let (provider, breaking, clock) = opened([]).await;
    assert_describes(&breaking, &provider);
    clock.advance(Duration::from_secs(59));
    let error = call(&breaking).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Embedding);
    assert!(!error.is_retryable());
    assert_eq!(error.context("since"), Some("2026-01-05T08:00:00.000000Z"));
    assert_eq!(error.context("until"), Some("2026-01-05T08:01:00.000000Z"));
    assert_eq!(error.source().unwrap().to_string(), "the service is overloaded");
    assert_eq!(provider.calls(), 5);
}

#[tokio::test]
async fn an_answered_probe_closes_the_breaker() {
    let (provider, breaking, clock) = opened([]).await;
    clock.advance(Duration::from_secs(60));
    assert_eq!(breaking.state(), BreakerState::HalfOpen);
    call(&breaking).await.unwrap();
    assert_eq!(breaking.state(), BreakerState::Closed);
    // Earlier failures no longer count.
    provider.script.lock().unwrap().extend([Err(down()), Err(down()), Err(down()), Err(down())]);
    for _ in 0..4 {
        call(&breaking).await.unwrap_err();
    }
    assert_eq!(breaking.state(), BreakerState::Closed);
}

#[tokio::test]
async fn a_failed_probe_starts_another_pause() {
    let (provider, breaking, clock) = opened([Err(down())]).await;
    clock.advance(Duration::from_secs(60));
    assert!(call(&breaking).await.unwrap_err().is_retryable());
    let error = call(&breaking).await.unwrap_err();
    assert_eq!(error.context("since"), Some("2026-01-05T08:00:00.000000Z"));
    assert_eq!(error.context("until"), Some("2026-01-05T08:02:00.000000Z"));
    assert_eq!((breaking.state(), provider.calls()), (BreakerState::Open, 6));
    clock.advance(Duration::from_secs(60));
    call(&breaking).await.unwrap();
}

#[tokio::test]
async fn exactly_one_of_many_calls_is_the_probe() {
    let (provider, breaking, clock) = opened([]).await;
    clock.advance(Duration::from_secs(60));
    let answers = join_all((0..10).map(|_| call(&breaking))).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!((provider.calls(), breaking.state()), (6, BreakerState::Closed));
}

#[tokio::test]
async fn after_a_dropped_probe_the_next_call_is_the_probe() {
    let failures = std::iter::repeat_with(|| Err(down())).take(5);
    let provider = Scripted::new().gated().with_script(failures).shared();
    let (breaking, clock) = breaking(&provider);
    provider.gate.as_ref().unwrap().add_permits(5);
    for _ in 0..5 {
        call(&breaking).await.unwrap_err();
    }
    clock.advance(Duration::from_secs(60));
    for _ in 0..3 {
        assert!(call(&breaking).now_or_never().is_none());
        assert_eq!(breaking.state(), BreakerState::HalfOpen);
    }
    provider.gate.as_ref().unwrap().add_permits(1);
    call(&breaking).await.unwrap();
    assert_eq!((provider.calls(), breaking.state()), (9, BreakerState::Closed));
}

#[tokio::test]
async fn errors_of_a_service_that_is_up_do_not_count() {
    let answers = [
        refused as fn() -> Error,
        || Error::new(ErrorKind::Authentication, "wrong key"),
        || Error::new(ErrorKind::Embedding, "no such model"),
    ];
    for answer in answers {
        let provider = Scripted::new().with_script((0..20).map(|_| Err(answer()))).shared();
        let (breaking, _) = breaking(&provider);
        for _ in 0..20 {
            call(&breaking).await.unwrap_err();
        }
        assert_eq!((breaking.state(), provider.calls()), (BreakerState::Closed, 20));

        let (_, breaking, clock) = opened([Err(answer())]).await;
        clock.advance(Duration::from_secs(60));
        call(&breaking).await.unwrap_err();
        assert_eq!(breaking.state(), BreakerState::Closed);
    }
}

#[tokio::test]
async fn only_consecutive_failures_count() {
    let script = (0..40).map(|call| if call % 5 == 4 { Ok(()) } else { Err(down()) });
    let provider = Scripted::new().with_script(script).shared();
    let (breaking, _) = breaking(&provider);
    for _ in 0..40 {
        let _ = call(&breaking).await;
    }
    assert_eq!((breaking.state(), provider.calls()), (BreakerState::Closed, 40));
}

#[tokio::test]
async fn earlier_calls_neither_close_it_nor_prolong_the_pause() {
    let script = std::iter::repeat_with(|| Err(down())).take(6).chain([Ok(())]);
    let provider = Scripted::new().gated().with_script(script).shared();
    let (breaking, _) = breaking(&provider);
    let calls = join_all((0..7).map(|_| call(&breaking)));
    let release = async {
        tokio::task::yield_now().await;
        provider.gate.as_ref().unwrap().add_permits(7);
    };
    let (answers, ()) = tokio::join!(calls, release);
    assert!(answers[6].is_ok());
    assert_eq!((breaking.state(), provider.calls()), (BreakerState::Open, 7));
}
