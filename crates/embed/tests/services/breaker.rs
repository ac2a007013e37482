//! The circuit breaker around a provider: it stops calls to a service that is down, and probes it once.

use std::{sync::Arc, time::Duration};

use amplifier_session_embed::{
    clock::ManualClock,
    wrappers::{BreakerState, RetryOptions, Stack, StackOptions},
};
use amplifier_session_testkit::http::{Fault, MockEmbeddings};

use crate::{assert_vectors, embed, provider, server, small};

/// Calls to the server with one attempt each, and the clock that the breaker reads.
fn stack(mock: &MockEmbeddings) -> (Stack, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let options = StackOptions::default()
        .with_memory_entries(0)
        .with_retry(RetryOptions::default().with_attempts(1))
        .with_clock(Arc::clone(&clock) as _);
    (options.wrap(Arc::new(provider(mock, small()))).unwrap(), clock)
}

#[tokio::test]
async fn it_opens_probes_once_and_closes() {
    let mock = server().await;
    let (stack, clock) = stack(&mock);
    let model = stack.provider();
    for fault in [Fault::status(500), Fault::CutBefore, Fault::CutInside, Fault::Garbage, Fault::status(503)]
    {
        assert_eq!(stack.statistics().breaker, BreakerState::Closed);
        mock.script([fault]);
        embed(&*model, &["one"]).await.unwrap_err();
    }
    assert_eq!((stack.statistics().breaker, mock.calls()), (BreakerState::Open, 5));

    clock.advance(Duration::from_secs(59));
    let error = embed(&*model, &["one"]).await.unwrap_err();
    // It names the address and the last failure.
    let message = error.to_string();
    assert!(message.starts_with(&mock.openai_url()), "{message}");
    assert!(message.contains("fails as scripted. Calls to the service are paused"), "{message}");
    assert_eq!((error.context("status"), model.address()), (Some("503"), Some(mock.openai_url())));
    assert_eq!(mock.calls(), 5, "the service was called");

    clock.advance(Duration::from_secs(1));
    mock.hold();
    let asking = tokio::spawn({
        let model = Arc::clone(&model);
        async move { embed(&*model, &["one"]).await }
    });
    mock.until_calls(6).await;
    for _ in 0..3 {
        embed(&*model, &["two"]).await.unwrap_err();
    }
    mock.release();
    assert_vectors(&asking.await.unwrap().unwrap(), &["one"]);
    assert_eq!((stack.statistics().breaker, mock.calls()), (BreakerState::Closed, 6));
    assert_vectors(&embed(&*model, &["two"]).await.unwrap(), &["two"]);
}
