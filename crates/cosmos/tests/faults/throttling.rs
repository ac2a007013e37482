//! An account that has run out of request units.

use std::time::Duration;

use amplifier_session_core::ErrorKind;
use amplifier_session_cosmos::CosmosBackend;
use amplifier_session_testkit::cosmos::{Calls, Fault, Kind};

use crate::support::{
    account, assert_complete, config, host, log, storage, stored_events, sync, sync_events, transcript,
};

/// Long enough to distinguish a throttling server from others.
const WAIT: Duration = Duration::from_millis(20);

#[tokio::test]
async fn repeated_throttling_loses_nothing_and_is_waited_out() {
    let account = account().await;
    let host = host(&account).await;
    account.fail_every(3, Calls::any(), Fault::throttled(WAIT));
    let (transcript, log) = (transcript("ana", 40), log(40));
    sync(&host, &transcript).await.unwrap();
    sync_events(&host, &log).await.unwrap();
    assert!(account.faults() > 3, "{}", account.faults());
    assert_eq!(account.too_early(), 0, "a call came again before its time");
    let usage = host.backend().info().usage.unwrap();
    assert!(usage.throttled_requests > 3 && usage.requests > usage.throttled_requests, "{usage:?}");
    assert_complete(&account, &transcript).await;
    assert_eq!(stored_events(&account).await, log.len());
}

#[tokio::test]
async fn endless_throttling_reports_when_to_retry() {
    let account = account().await;
    let mut impatient = config(&account);
    impatient.throttle_patience = Duration::from_millis(50);
    let host = storage(CosmosBackend::connect(impatient).await.unwrap());
    let wait = Duration::from_millis(2);
    account.fail_every(1, Calls::of(Kind::Batch), Fault::throttled(wait));
    let error = sync(&host, &transcript("ana", 3)).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::StorageIo, true), "{error:?}");
    assert_eq!(error.retry_after(), Some(wait), "{error:?}");
    assert_eq!(error.context("status"), Some("429"));
    account.heal();
    sync(&host, &transcript("ana", 3)).await.unwrap();
    assert_complete(&account, &transcript("ana", 3)).await;
}
