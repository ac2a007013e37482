use std::time::Duration;

use futures_util::FutureExt;

use super::*;
use crate::{
    clock::{Clock, ManualClock},
    wrappers::{RetryOptions, Retrying},
};

fn retrying(provider: &Arc<Scripted>, options: RetryOptions) -> (Retrying, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let retrying = Retrying::new(Arc::clone(provider) as _, options);
    (retrying.with_clock(Arc::clone(&clock) as _).with_seed(7), clock)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn asks_to_wait(wait: Duration) -> Error {
    Error::new(ErrorKind::Embedding, "too many requests").retryable_after(wait)
}

#[tokio::test]
async fn retryable_errors_are_retried_until_success() {
    let provider = Scripted::new().with_script([Err(down()), Err(down())]).shared();
    let (retrying, clock) = retrying(&provider, RetryOptions::default());
    assert_describes(&retrying, &provider);
    assert_eq!(call(&retrying).await.unwrap(), vectors(&texts(0..1)));
    assert_eq!((provider.calls(), retrying.retries(), clock.slept().len()), (3, 2, 2));
}

#[tokio::test]
async fn other_errors_are_not_retried() {
    let errors = [
        refused(),
        Error::new(ErrorKind::Authentication, "wrong key"),
        Error::new(ErrorKind::Embedding, "no such model"),
    ];
    for error in errors {
        let kind = error.kind();
        let provider = Scripted::new().with_script([Err(error)]).shared();
        let (retrying, clock) = retrying(&provider, RetryOptions::default());
        assert_eq!(call(&retrying).await.unwrap_err().kind(), kind);
        assert_eq!((provider.calls(), clock.slept().len()), (1, 0));
    }
}

#[tokio::test]
async fn the_last_error_is_returned_after_the_last_attempt() {
    let provider = Scripted::new().failing(100, 0).shared();
    let (retrying, clock) = retrying(&provider, RetryOptions::default());
    let error = call(&retrying).await.unwrap_err();
    assert_eq!(error.to_string(), "the service is overloaded (attempts 6)");
    assert!(error.is_retryable());
    assert_eq!((provider.calls(), retrying.retries(), clock.slept().len()), (6, 5, 5));
}

#[tokio::test]
async fn waits_double_up_to_the_longest_and_cover_the_whole_range() {
    let options = RetryOptions { attempts: 9, total: seconds(1_000_000), ..RetryOptions::default() };
    let provider = Scripted::new().failing(100, 0).shared();
    let (retrying, clock) = retrying(&provider, options);
    for _ in 0..200 {
        call(&retrying).await.unwrap_err();
    }
    let slept = clock.slept();
    for (place, longest) in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 20_000, 20_000].into_iter().enumerate()
    {
        let waits = || {
            slept.iter().skip(place).step_by(8).map(|wait| wait.as_secs_f64() * 1_000.0 / f64::from(longest))
        };
        assert_eq!(waits().count(), 200);
        assert!(waits().all(|wait| (0.0..=1.0).contains(&wait)));
        assert!(waits().any(|wait| wait < 0.1) && waits().any(|wait| wait > 0.9));
    }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_waits() {
    let slept = async || {
        let provider = Scripted::new().failing(100, 0).shared();
        let (retrying, clock) = retrying(&provider, RetryOptions::default());
        call(&retrying).await.unwrap_err();
        clock.slept()
    };
    assert_eq!(slept().await, slept().await);
}

#[tokio::test]
async fn no_retry_is_earlier_than_the_service_asks() {
    let asked = [seconds(0), Duration::from_millis(1_500), seconds(120)];
    for wait in asked {
        let provider = Scripted::new().with_script([Err(asks_to_wait(wait))]).shared();
        let (retrying, clock) = retrying(&provider, RetryOptions::default());
        call(&retrying).await.unwrap();
        let slept = clock.slept();
        assert!(slept[0] >= wait && slept[0] <= wait + Duration::from_millis(500), "{slept:?}");
    }
}

#[tokio::test]
async fn a_service_that_asks_for_too_long_a_wait_is_given_up() {
    let provider = Scripted::new().with_script([Err(asks_to_wait(seconds(86_400)))]).shared();
    let (retrying, clock) = retrying(&provider, RetryOptions::default());
    let error = call(&retrying).await.unwrap_err();
    let expected = "too many requests: the service asks to wait 86400 s, which is too long (attempts 1)";
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.retry_after(), Some(seconds(86_400)));
    assert_eq!((provider.calls(), clock.slept().len()), (1, 0));
}

#[tokio::test]
async fn no_attempt_starts_after_the_total_time() {
    let script =
        [Err(asks_to_wait(seconds(100))), Err(asks_to_wait(seconds(100))), Err(asks_to_wait(seconds(100)))];
    let provider = Scripted::new().with_script(script).shared();
    let options = RetryOptions { total: seconds(250), ..RetryOptions::default() };
    let (retrying, clock) = retrying(&provider, options);
    let begun = clock.now();
    let error = call(&retrying).await.unwrap_err();
    assert_eq!(error.context("attempts"), Some("3"));
    assert!(clock.now() - begun <= seconds(250));
}

#[tokio::test]
async fn queries_have_a_shorter_total_time() {
    let provider = Scripted::new().failing(100, 0).shared();
    let options = RetryOptions::default().with_attempts(1_000);
    let (retrying, clock) = retrying(&provider, options);
    let begun = clock.now();
    let query = retrying.embed(&texts(0..1), EmbeddingPurpose::Query).await;
    assert!(query.unwrap_err().is_retryable());
    assert!(provider.calls() > 1 && clock.now() - begun <= seconds(1));
    let document = retrying.embed(&texts(0..1), EmbeddingPurpose::Document).await;
    assert!(document.is_err() && clock.now() - begun > seconds(100));
}

#[tokio::test]
async fn extreme_options_do_not_overflow() {
    let options = RetryOptions {
        attempts: 40,
        first_wait: Duration::MAX,
        longest_wait: Duration::MAX,
        ..RetryOptions::default()
    };
    let provider = Scripted::new().failing(100, 0).shared();
    let (retrying_long, _) = retrying(&provider, options);
    call(&retrying_long).await.unwrap_err();
    let (never, clock) = retrying(&provider, RetryOptions::default().with_attempts(0));
    call(&never).await.unwrap_err();
    assert!(clock.slept().is_empty());
}

#[tokio::test]
async fn a_dropped_call_is_not_retried() {
    let provider = Scripted::new().gated().shared();
    let (retrying, clock) = retrying(&provider, RetryOptions::default());
    assert!(call(&retrying).now_or_never().is_none());
    tokio::task::yield_now().await;
    assert_eq!((provider.calls(), clock.slept().len()), (1, 0));
}
