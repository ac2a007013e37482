//! One batch of a write fails once. Repeating the write completes it.

use amplifier_session_core::ErrorKind;
use amplifier_session_testkit::cosmos::{Calls, Fault, Kind};

use crate::support::{account, assert_complete, host, sync, sync_until_done, transcript};

/// Applies `fault` to each batch of a write in turn, each in another session.
async fn assert_survives(fault: &Fault) {
    let account = account().await;
    let host = host(&account).await;
    let (before, after) = (transcript("before", 6), transcript("after", 4));
    sync(&host, &before).await.unwrap();
    account.reset_counts();
    sync(&host, &after).await.unwrap();
    let batches = account.count(&Calls::of(Kind::Batch));
    assert!(batches >= 3, "a mark, rows and an end: {batches}");
    for position in 0..batches {
        sync(&host, &before).await.unwrap();
        account.reset_counts();
        account.fail_after(position, 1, Calls::of(Kind::Batch), fault.clone());
        sync_until_done(&host, &after).await;
        assert_eq!(account.faults(), 1, "{fault:?} of batch {position}");
        assert_complete(&account, &after).await;
    }
}

#[tokio::test]
async fn an_unavailable_server_and_a_cut_connection_lose_nothing() {
    for fault in [Fault::status(503), Fault::CutBefore, Fault::CutInside] {
        assert_survives(&fault).await;
    }
}

#[tokio::test]
async fn a_batch_refused_or_throttled_midway_loses_nothing() {
    for status in [404, 409, 412, 429, 449, 503] {
        assert_survives(&Fault::operation(1, status)).await;
    }
}

#[tokio::test]
async fn reads_survive_a_cut_connection_and_an_unavailable_server() {
    let account = account().await;
    let host = host(&account).await;
    let transcript = transcript("ana", 5);
    sync(&host, &transcript).await.unwrap();
    for kind in [Kind::Read, Kind::Query] {
        for fault in [Fault::CutBefore, Fault::CutInside, Fault::status(503), Fault::status(408)] {
            account.reset_counts();
            account.fail_next(1, Calls::of(kind), fault.clone());
            sync_until_done(&host, &transcript).await;
            assert_eq!(account.faults(), 1, "{fault:?} of a {kind:?}");
            assert_complete(&account, &transcript).await;
        }
    }
}

#[tokio::test]
async fn a_batch_with_an_invalid_operation_is_refused_permanently() {
    let account = account().await;
    let host = host(&account).await;
    sync(&host, &transcript("before", 3)).await.unwrap();
    let rows = Calls::of(Kind::Batch).in_container("transcript_messages");
    account.fail_next(1, rows, Fault::operation(2, 413));
    let error = sync(&host, &transcript("after", 3)).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Validation, false), "{error:?}");
    assert_complete(&account, &transcript("before", 3)).await;
}
