//! Two hosts that write the same session.

use std::sync::Arc;

use amplifier_session_core::Error;
use amplifier_session_testkit::cosmos::{Calls, Fault, Kind};

use crate::support::{account, assert_complete, host, stored, sync, transcript};

/// Two hosts write the same session. The first one is held after `after` batches to `container`.
async fn race(exists: bool, container: &str, after: usize) {
    let account = Arc::new(account().await);
    let (first, second) = (host(&account).await, host(&account).await);
    if exists {
        sync(&first, &transcript("before", 3)).await.unwrap();
    }
    let (ours, theirs) = (transcript("ours", 5), transcript("theirs", 4));
    let batches = Calls::of(Kind::Batch).in_container(container);
    account.fail_after(after, 1, batches, Fault::Hold);
    let held = tokio::spawn({
        let ours = ours.clone();
        async move { sync(&first, &ours).await }
    });
    account.until_held(1).await;
    // The first host makes no progress, so the second one takes over the session.
    let overtaken = sync(&second, &theirs).await;
    account.release();
    let came_on = held.await.unwrap();
    for ended in [&overtaken, &came_on] {
        assert!(ended.as_ref().err().is_none_or(Error::is_retryable), "{container} {after}: {ended:?}");
    }
    let there = stored(&account).await;
    assert!(there == ours || there == theirs, "{container} {after}: {there:?}");
    // Later writes find the session unlocked.
    sync(&second, &theirs).await.unwrap();
    assert_complete(&account, &theirs).await;
}

/// Where a host stops: before its mark, before its rows, before its vectors, and before the end of its write.
const STOPS: [(&str, usize); 4] =
    [("sessions", 0), ("transcript_messages", 0), ("transcript_messages", 1), ("sessions", 1)];

#[tokio::test]
async fn a_host_that_stops_is_overtaken() {
    for (container, after) in STOPS {
        race(true, container, after).await;
    }
}

#[tokio::test]
async fn two_hosts_that_create_the_same_session_do_not_mix() {
    for (container, after) in STOPS {
        race(false, container, after).await;
    }
}

#[tokio::test]
async fn two_hosts_that_write_the_same_document_do_not_mix() {
    let account = Arc::new(account().await);
    let sides = [transcript("ours", 5), transcript("theirs", 4)];
    for exists in [false, true] {
        let hosts = [host(&account).await, host(&account).await];
        if exists {
            sync(&hosts[0], &transcript("before", 3)).await.unwrap();
        }
        account.fail_next(2, Calls::of(Kind::Batch).in_container("sessions"), Fault::Hold);
        let written = hosts
            .into_iter()
            .zip(sides.clone())
            .map(|(host, lines)| tokio::spawn(async move { sync(&host, &lines).await }));
        let written: Vec<_> = written.collect();
        // Both hosts have read the session, so one of them is refused with 409 or 412.
        account.until_held(2).await;
        account.release();
        for one in written {
            let ended = one.await.unwrap();
            assert!(ended.as_ref().err().is_none_or(Error::is_retryable), "{ended:?}");
        }
        let there = stored(&account).await;
        assert!(sides.contains(&there), "{there:?}");
    }
}
