use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;

use super::*;
use crate::{
    clock::ManualClock,
    wrappers::{BreakerOptions, BreakerState, RetryOptions, Stack, StackOptions},
};

fn stack(provider: &Arc<Scripted>, options: StackOptions) -> (Stack, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let options = options.with_clock(Arc::clone(&clock) as _).with_seed(3);
    (options.wrap(Arc::clone(provider) as _).unwrap(), clock)
}

#[tokio::test]
async fn without_failures_there_is_one_call_per_batch() {
    let provider = Scripted::new().shared();
    let (stack, clock) = stack(&provider, StackOptions::default());
    assert_describes(&*stack.provider(), &provider);
    for _ in 0..2 {
        assert_eq!(embed(&*stack.provider(), &texts(0..100)).await.unwrap(), vectors(&texts(0..100)));
    }
    assert_eq!((provider.calls(), clock.slept().len()), (13, 0));
    let statistics = stack.statistics();
    assert_eq!((statistics.cache.misses, statistics.cache.memory_hits), (100, 100));
    assert_eq!((statistics.retries, statistics.breaker), (0, BreakerState::Closed));
}

#[tokio::test]
async fn no_vector_is_lost_or_repeated_if_three_of_ten_calls_fail() {
    for seed in 0..20 {
        let provider = Scripted::new().failing(30, seed).shared();
        // Five consecutive failures happen about once in 600 calls. The breaker has its own tests.
        let options = StackOptions::default()
            .with_memory_entries(10_000)
            .with_retry(RetryOptions::default().with_attempts(20))
            .with_breaker(BreakerOptions::default().with_failures(20));
        let (stack, _) = stack(&provider, options);
        let stacked = stack.provider();
        let parts: Vec<_> = (0..10).map(|part| texts(part * 100..(part + 1) * 100)).collect();
        let answers = join_all(parts.iter().map(|part| embed(&*stacked, part))).await;
        for (part, answer) in parts.iter().zip(answers) {
            assert_eq!(answer.unwrap(), vectors(part));
        }
        let statistics = stack.statistics();
        assert_eq!((statistics.cache.misses, statistics.cache.entries), (1_000, 1_000));
        assert_eq!(provider.calls() as u64, 10 * 13 + statistics.retries);
        let asked: HashSet<String> = provider.calls.lock().unwrap().iter().flatten().cloned().collect();
        assert_eq!(asked.len(), 1_000);
    }
}

#[tokio::test]
async fn an_open_breaker_ends_retries() {
    let provider = Scripted::new().failing(100, 0).shared();
    let (stack, clock) = stack(&provider, StackOptions::default());
    let error = call(&*stack.provider()).await.unwrap_err();
    assert!(!error.is_retryable());
    assert_eq!((provider.calls(), stack.statistics().breaker), (5, BreakerState::Open));
    call(&*stack.provider()).await.unwrap_err();
    assert_eq!(provider.calls(), 5);
    clock.advance(Duration::from_secs(60));
    assert_eq!(stack.statistics().breaker, BreakerState::HalfOpen);
    *provider.script.lock().unwrap() = [Ok(())].into();
    call(&*stack.provider()).await.unwrap();
    assert_eq!(stack.statistics().breaker, BreakerState::Closed);
}

#[tokio::test]
async fn a_call_that_waits_for_a_retry_does_not_count_as_concurrent() {
    let provider = Scripted::new().failing(50, 1).shared();
    let options = StackOptions::default()
        .with_retry(RetryOptions::default().with_attempts(50))
        .with_breaker(BreakerOptions::default().with_failures(50));
    let (stack, _) = stack(&provider, options);
    let stacked = stack.provider();
    let answers = join_all((0..20).map(|text| {
        let stacked = Arc::clone(&stacked);
        async move { embed(&*stacked, &texts(text..text + 1)).await }
    }));
    assert!(answers.await.iter().all(Result::is_ok));
    assert_eq!(provider.most_running.load(Ordering::SeqCst), provider.limits.concurrent_calls);
}

#[cfg(feature = "redact")]
#[tokio::test]
async fn redaction_depends_on_the_option_and_the_provider() {
    use amplifier_session_core::content::Redaction;
    let key = ["gh", "p_", "9aB3xK7mQ2wE5rT8yU", "1iO4pL6zC0vN3sD7fG"].concat();
    for (redaction, is_local, masked) in [
        (Redaction::Remote, false, 1),
        (Redaction::Remote, true, 0),
        (Redaction::Always, true, 1),
        (Redaction::Off, false, 0),
    ] {
        let provider = Arc::new(Scripted { is_local, ..Scripted::new() });
        let (stack, _) = stack(&provider, StackOptions::default().with_redaction(redaction));
        embed(&*stack.provider(), std::slice::from_ref(&key)).await.unwrap();
        assert_eq!(stack.statistics().masked_secrets, masked);
        assert_eq!(provider.calls.lock().unwrap()[0][0] == key, masked == 0);
    }
}
