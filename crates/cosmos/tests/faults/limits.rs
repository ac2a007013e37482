//! Messages that are too large for a document, and queries that the account does not answer.

use amplifier_session_testkit::lines;
use azure_data_cosmos::{
    AccountReference, CosmosClient, CosmosRuntimeBuilder, FeedScope, Query, RoutingStrategy,
    options::ConnectionPoolOptions,
};
use futures_util::TryStreamExt as _;
use serde_json::Value;

use crate::support::{account, assert_complete, host, sync};

#[tokio::test]
async fn a_message_can_grow_beyond_a_document_and_shrink_again() {
    let account = account().await;
    let host = host(&account).await;
    let of = |text: &str| vec![lines::user("first").raw(), lines::tool_result(text).raw()];
    for length in [10, 3_000_000, 20, 5_000_000] {
        let lines = of(&"x".repeat(length));
        sync(&host, &lines).await.unwrap();
        assert_complete(&account, &lines).await;
    }
}

/// The local account answers no query with functions that it knows only partly.
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
