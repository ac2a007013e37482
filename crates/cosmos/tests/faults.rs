//! What becomes of a write when the account, or the way to it, fails.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use amplifier_session_core::{
    Error, ErrorKind, Result, Scope, SessionStorage,
    backend::StorageBackend,
    embedding::EmbeddingProvider,
    model::{HostId, ProjectSlug, RawJson, SessionId, SessionKey, UserId},
    storage::{EventLines, IngestTarget, SyncLines},
};
use amplifier_session_cosmos::{Authentication, CosmosBackend, CosmosConfig};
use amplifier_session_testkit::{
    FakeEmbedding,
    cosmos::{AccountOptions, Calls, CosmosAccount, Fault, Kind},
    lines,
};
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_data_cosmos::{
    AccountReference, CosmosClient, CosmosRuntimeBuilder, FeedScope, Query, RoutingStrategy,
    options::ConnectionPoolOptions,
};
use futures_util::TryStreamExt as _;
use serde_json::Value;

/// Long enough for a server that throttles to be told from one that doesn't.
const WAIT: Duration = Duration::from_millis(20);

/// Any fault is over after so many attempts.
const ATTEMPTS: usize = 10;

async fn account() -> CosmosAccount {
    CosmosAccount::start(AccountOptions::default()).await.unwrap()
}

fn config(account: &CosmosAccount) -> CosmosConfig {
    CosmosConfig::new(account.endpoint())
        .with_authentication(Authentication::Key(account.key().to_owned()))
        .with_vector_dimensions(64)
        .with_takeover_after(Duration::from_millis(100))
}

/// A host: a client of its own.
async fn host(account: &CosmosAccount) -> SessionStorage {
    storage(CosmosBackend::connect(config(account)).await.unwrap())
}

fn storage(backend: CosmosBackend) -> SessionStorage {
    let embedding: Arc<dyn EmbeddingProvider> = Arc::new(FakeEmbedding::new());
    SessionStorage::new(Arc::new(backend)).with_embedding(Some(embedding))
}

fn target() -> IngestTarget {
    IngestTarget {
        key: SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap()),
        host_id: HostId::new("laptop").unwrap(),
        project_slug: ProjectSlug::new("shop").unwrap(),
    }
}

/// Lines of a transcript that `who` wrote.
fn transcript(who: &str, count: usize) -> Vec<RawJson> {
    (0..count).map(|n| lines::user(&format!("{who} says {n}")).raw()).collect()
}

fn log(count: usize) -> Vec<RawJson> {
    (0..count).map(|n| lines::hook_event(&format!("tool:call{n}")).raw()).collect()
}

async fn sync(storage: &SessionStorage, lines: &[RawJson]) -> Result<()> {
    storage.sync_transcript_lines(&target(), SyncLines::whole(lines.to_vec())).await.map(drop)
}

async fn sync_events(storage: &SessionStorage, lines: &[RawJson]) -> Result<()> {
    storage.sync_event_lines(&target(), SyncLines::whole(lines.to_vec())).await.map(drop)
}

/// Syncs until no fault is left in the way: each one has to be worth another attempt.
async fn sync_until_done(storage: &SessionStorage, lines: &[RawJson]) {
    for _ in 0..ATTEMPTS {
        match sync(storage, lines).await {
            Ok(()) => return,
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
    }
    panic!("not done after {ATTEMPTS} attempts");
}

/// The lines that are stored, as a host sees them that was not there before.
async fn stored(account: &CosmosAccount) -> Vec<RawJson> {
    let scope = Scope::User(target().key.user_id);
    let reader = host(account).await;
    let read = reader.get_transcript_lines(&scope, &target().key.session_id, None, 100_000).await;
    read.unwrap().into_iter().map(|message| message.raw).collect()
}

async fn stored_events(account: &CosmosAccount) -> usize {
    let scope = Scope::User(target().key.user_id);
    let every = EventLines::default().with_limit(100_000);
    host(account).await.get_event_lines(&scope, &target().key.session_id, every).await.unwrap().len()
}

/// Whether all that was synced is there: lines, and a vector of each.
async fn assert_complete(account: &CosmosAccount, lines: &[RawJson]) {
    account.heal();
    assert_eq!(stored(account).await, lines);
    let backend = CosmosBackend::connect(config(account)).await.unwrap();
    let counts = backend.count_vectors(&Scope::User(target().key.user_id)).await.unwrap();
    let made = &counts.generations[&0];
    assert_eq!((made.messages, made.owing), (counts.embeddable, 0), "{counts:?}");
    assert_eq!(account.refused_queries(), Vec::<String>::new());
}

#[tokio::test]
async fn a_storm_of_throttling_loses_nothing_and_is_waited_out() {
    let account = account().await;
    let host = host(&account).await;
    account.fail_every(3, Calls::any(), Fault::throttled(WAIT));
    let (transcript, log) = (transcript("ana", 40), log(40));
    sync(&host, &transcript).await.unwrap();
    sync_events(&host, &log).await.unwrap();
    assert!(account.faults() > 3, "{}", account.faults());
    assert_eq!(account.too_early(), 0, "a call came again before its time");
    let usage = host.backend().service_usage().unwrap();
    assert!(usage.throttled_requests > 3 && usage.requests > usage.throttled_requests, "{usage:?}");
    assert_complete(&account, &transcript).await;
    assert_eq!(stored_events(&account).await, log.len());
}

#[tokio::test]
async fn throttling_without_an_end_says_when_to_come_again() {
    let account = account().await;
    let impatient = config(&account).with_throttle_patience(Duration::from_millis(50));
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

/// Lets each batch of a write meet `fault` in turn, one in each session.
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
async fn a_server_that_is_away_for_a_moment_loses_nothing() {
    assert_survives(&Fault::status(503)).await;
}

#[tokio::test]
async fn a_connection_that_is_cut_before_the_write_loses_nothing() {
    assert_survives(&Fault::CutBefore).await;
}

#[tokio::test]
async fn a_connection_that_is_cut_behind_the_write_loses_nothing() {
    assert_survives(&Fault::CutInside).await;
}

#[tokio::test]
async fn a_document_that_was_changed_meanwhile_loses_nothing() {
    for status in [404, 409, 412] {
        assert_survives(&Fault::operation(1, status)).await;
    }
}

#[tokio::test]
async fn a_batch_that_is_throttled_half_way_loses_nothing() {
    for status in [429, 449, 503] {
        assert_survives(&Fault::operation(1, status)).await;
    }
}

/// Lets each batch of `write` fail for good in turn, each time in an account of its own that `prepare` made ready, until one
/// write comes to its end; hands `check` each account.
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
async fn a_first_write_that_breaks_off_is_completed_by_the_same_again() {
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
async fn a_line_in_pieces_is_never_joined_with_another() {
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
async fn a_rename_that_breaks_off_loses_nothing_that_is_written_before_it_is_repeated() {
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
                let lines = host.get_transcript_lines(&scope, &target().key.session_id, None, 100).await;
                found.push(lines.unwrap_or_default().into_iter().map(|line| line.raw).collect::<Vec<_>>());
            }
            assert!(found.contains(&more), "{repeated:?} {found:?}");
            // Two that differ are told, not made one.
            let kind = repeated.as_ref().err().map(Error::kind);
            assert!(kind.is_none_or(|kind| kind == ErrorKind::Conflict), "{repeated:?}");
        },
    )
    .await;
}

#[tokio::test]
async fn reads_survive_a_cut_and_a_server_that_is_away() {
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
async fn a_batch_with_an_operation_that_is_no_good_is_refused_for_good() {
    let account = account().await;
    let host = host(&account).await;
    sync(&host, &transcript("before", 3)).await.unwrap();
    let rows = Calls::of(Kind::Batch).in_container("transcript_messages");
    account.fail_next(1, rows, Fault::operation(2, 413));
    let error = sync(&host, &transcript("after", 3)).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Validation, false), "{error:?}");
    assert_complete(&account, &transcript("before", 3)).await;
}

/// Two hosts that write one session, `first` of which is held when so many batches of `container` are through.
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
    // The first one does not come on: the second takes the session over.
    let overtaken = sync(&second, &theirs).await;
    account.release();
    let came_on = held.await.unwrap();
    for ended in [&overtaken, &came_on] {
        assert!(ended.as_ref().err().is_none_or(Error::is_retryable), "{ended:?}");
    }
    let there = stored(&account).await;
    assert!(there == ours || there == theirs, "{there:?}");
    // Whoever comes again finds the session free.
    sync(&second, &theirs).await.unwrap();
    assert_complete(&account, &theirs).await;
}

#[tokio::test]
async fn a_host_that_stops_before_its_mark_is_overtaken() {
    race(true, "sessions", 0).await;
}

#[tokio::test]
async fn a_host_that_stops_before_its_rows_is_overtaken() {
    race(true, "transcript_messages", 0).await;
}

#[tokio::test]
async fn a_host_that_stops_before_its_vectors_is_overtaken() {
    race(true, "transcript_messages", 1).await;
}

#[tokio::test]
async fn a_host_that_stops_before_its_end_is_overtaken() {
    race(true, "sessions", 1).await;
}

#[tokio::test]
async fn two_hosts_that_begin_a_session_do_not_mix() {
    race(false, "sessions", 0).await;
    race(false, "transcript_messages", 0).await;
    race(false, "transcript_messages", 1).await;
    race(false, "sessions", 1).await;
}

#[tokio::test]
async fn two_hosts_that_meet_at_the_same_document_do_not_mix() {
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
        // Both have read the session: one of them is refused with 409 or 412.
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

/// Gives one token after the other, the last one again and again.
#[derive(Debug)]
struct Tokens(Mutex<Vec<&'static str>>);

#[async_trait::async_trait]
impl TokenCredential for Tokens {
    async fn get_token(
        &self,
        _scopes: &[&str],
        _options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let mut tokens = self.0.lock().unwrap();
        let token = if tokens.len() > 1 { tokens.remove(0) } else { tokens[0] };
        let expires = SystemTime::now() + Duration::from_secs(3_600);
        Ok(AccessToken::new(token, expires.into()))
    }
}

fn entra(account: &CosmosAccount) -> CosmosConfig {
    config(account).with_authentication(Authentication::DefaultCredential)
}

#[tokio::test]
async fn a_token_that_expires_is_told_and_the_next_one_goes_on() {
    let account = account().await;
    // With Entra ID the containers have to be there.
    host(&account).await;
    account.accept_tokens(&["morning"]);
    let credential = Arc::new(Tokens(Mutex::new(vec!["morning"])));
    let backend = CosmosBackend::connect_with(entra(&account), credential.clone()).await.unwrap();
    let storage = storage(backend);
    sync(&storage, &transcript("before", 3)).await.unwrap();
    account.accept_tokens(&["noon"]);
    account.reset_counts();
    credential.0.lock().unwrap().push("noon");
    let error = sync(&storage, &transcript("after", 4)).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Authentication, false), "{error:?}");
    assert_eq!(account.count(&Calls::any()), 1);
    sync(&storage, &transcript("after", 4)).await.unwrap();
    assert_complete(&account, &transcript("after", 4)).await;
}

#[tokio::test]
async fn a_container_that_is_missing_is_not_made_with_a_token() {
    let account = account().await;
    account.accept_tokens(&["good"]);
    let credential = Arc::new(Tokens(Mutex::new(vec!["good"])));
    let error = CosmosBackend::connect_with(entra(&account), credential).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageConnection);
    assert!(error.to_string().contains("have it made first"), "{error}");
}

#[tokio::test]
async fn a_wrong_key_is_told_at_once() {
    let account = account().await;
    let wrong = Authentication::Key("YW5vdGhlciBrZXk=".to_owned());
    let error = CosmosBackend::connect(config(&account).with_authentication(wrong)).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Authentication, false), "{error:?}");
    assert_eq!(account.count(&Calls::any()), 1, "{:?}", account.calls());
    assert!(!format!("{error:?}").contains("YW5vdGhlciBrZXk="));
}

#[tokio::test]
async fn an_account_that_is_not_there_is_told() {
    let gone = account().await;
    let config = config(&gone);
    drop(gone);
    let error = CosmosBackend::connect(config).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
}

#[tokio::test]
async fn a_container_for_vectors_of_another_length_is_refused() {
    let account = account().await;
    host(&account).await;
    let error = CosmosBackend::connect(config(&account).with_vector_dimensions(32)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Validation);
    let message = error.to_string();
    assert!(message.contains("vectors of 64 dimensions, where 32 dimensions are expected"), "{message}");
}

#[tokio::test]
async fn a_message_grows_over_the_limit_of_a_document_and_shrinks_again() {
    let account = account().await;
    let host = host(&account).await;
    let of = |text: &str| vec![lines::user("first").raw(), lines::tool_result(text).raw()];
    for length in [10, 3_000_000, 20, 5_000_000] {
        let lines = of(&"x".repeat(length));
        sync(&host, &lines).await.unwrap();
        assert_complete(&account, &lines).await;
    }
}

/// What the testkit's account promises to those who rely on it: it guesses no answers.
#[tokio::test]
async fn the_account_refuses_queries_that_this_crate_does_not_send() {
    let account = account().await;
    host(&account).await;
    let pool = ConnectionPoolOptions::builder().with_is_http2_allowed(false).build().unwrap();
    let runtime = CosmosRuntimeBuilder::new().with_connection_pool(pool).build().await.unwrap();
    let key = account.key().to_owned();
    let reference = AccountReference::with_authentication_key(account.endpoint().parse().unwrap(), key);
    let builder = CosmosClient::builder().with_runtime(runtime);
    let client = builder.build(reference, RoutingStrategy::PreferredRegions(Vec::new())).await.unwrap();
    let database = client.database_client("amplifier-db".to_owned());
    let container = database.container_client("transcript_messages".to_owned(), None).await.unwrap();
    for text in [
        "SELECT TOP 5 * FROM c ORDER BY RANK FullTextScore(c.terms, 'a')",
        "SELECT TOP 5 c.id FROM c ORDER BY VectorDistance(c.vector, [1.0])",
        "SELECT * FROM c WHERE FullTextContains(c.terms, 'a')",
    ] {
        account.reset_counts();
        let answered =
            container.query_items::<Value>(Query::from(text), FeedScope::partition("p"), None).await;
        let failed = match answered {
            Ok(answers) => answers.into_pages().try_next().await.is_err(),
            Err(_) => true,
        };
        assert!(failed, "{text}");
        assert_eq!(account.refused_queries().last().map(String::as_str), Some(text));
    }
}
