//! Writes that fail permanently at one of their batches.

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope, SessionStorage,
    model::{RawJson, UserId},
};
use amplifier_session_testkit::{
    cosmos::{Calls, CosmosAccount, Fault, Kind},
    lines,
};

use crate::support::{account, assert_complete, host, stored, sync, target, transcript};

/// Makes each batch of `write` fail permanently in turn, until the write succeeds. Each attempt uses a new account with
/// the transcript `prepare`, and ends with `check`.
async fn break_at_each_batch<W: Future<Output = Result<()>>, C: Future<Output = ()>>(
    prepare: &[RawJson],
    write: impl Fn(SessionStorage) -> W,
    check: impl Fn(CosmosAccount) -> C,
) {
    for position in 0.. {
        let account = account().await;
        if !prepare.is_empty() {
            sync(&host(&account).await, prepare).await.unwrap();
        }
        let writer = host(&account).await;
        account.fail_after(position, 1, Calls::of(Kind::Batch), Fault::operation(0, 413));
        let written = write(writer).await;
        account.heal();
        check(account).await;
        if written.is_ok() {
            assert!(position > 2, "{position}");
            return;
        }
    }
}

#[tokio::test]
async fn repeating_an_interrupted_first_write_completes_it() {
    let lines = transcript("ana", 6);
    break_at_each_batch(
        &[],
        async |host| sync(&host, &transcript("ana", 6)).await,
        async |account| {
            sync(&host(&account).await, &lines).await.unwrap();
            assert_complete(&account, &lines).await;
        },
    )
    .await;
}

#[tokio::test]
async fn pieces_of_different_lines_are_never_joined() {
    let long =
        |text: &str| vec![lines::user("first").raw(), lines::tool_result(&text.repeat(3_000_000)).raw()];
    let (before, after) = (long("a"), long("b"));
    break_at_each_batch(
        &before,
        async |host| sync(&host, &long("b")).await,
        async |account| {
            let there = stored(&account).await;
            assert!(there == before || there == after, "a mixture of {} lines", there.len());
            sync(&host(&account).await, &before).await.unwrap();
            assert_complete(&account, &before).await;
        },
    )
    .await;
}

#[tokio::test]
async fn writes_between_an_interrupted_rename_and_its_repetition_are_kept() {
    let (old, new) = (target().key.user_id, UserId::new("anna").unwrap());
    let (before, more) = (transcript("ana", 3), transcript("ana", 5));
    break_at_each_batch(
        &before,
        async |host| {
            let (old, new) = (target().key.user_id, UserId::new("anna").unwrap());
            host.backend().rename_user(&old, &new).await.map(drop)
        },
        async |account| {
            let host = host(&account).await;
            sync(&host, &more).await.unwrap();
            let repeated = host.backend().rename_user(&old, &new).await;
            let mut found = Vec::new();
            for user in [&old, &new] {
                let scope = Scope::User(user.clone());
                let lines =
                    host.reading().get_transcript_lines(&scope, &target().key.session_id, None, 100).await;
                found.push(lines.unwrap_or_default().into_iter().map(|line| line.raw).collect::<Vec<_>>());
            }
            assert!(found.contains(&more), "{repeated:?} {found:?}");
            // Different sessions of the two names are reported, and not merged.
            let kind = repeated.as_ref().err().map(Error::kind);
            assert!(kind.is_none_or(|kind| kind == ErrorKind::Conflict), "{repeated:?}");
        },
    )
    .await;
}
