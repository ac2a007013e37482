//! Keys, tokens, and accounts that differ from the configuration.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use amplifier_session_core::{ErrorKind, Secret};
use amplifier_session_cosmos::{Authentication, CosmosBackend, CosmosConfig};
use amplifier_session_testkit::cosmos::{Calls, CosmosAccount};
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};

use crate::support::{account, assert_complete, config, host, storage, sync, transcript};

/// Returns the tokens in order, and then the last one repeatedly.
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
    let mut config = config(account);
    config.authentication = Authentication::DefaultCredential;
    config
}

#[tokio::test]
async fn an_expired_token_is_reported_and_a_new_one_continues() {
    let account = account().await;
    // With Entra ID, the containers must exist.
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
async fn a_missing_container_is_not_created_with_a_token() {
    let account = account().await;
    account.accept_tokens(&["good"]);
    let credential = Arc::new(Tokens(Mutex::new(vec!["good"])));
    let error = CosmosBackend::connect_with(entra(&account), credential).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageConnection);
    assert!(error.to_string().contains("create it first"), "{error}");
}

#[tokio::test]
async fn a_wrong_key_is_reported_at_once() {
    let account = account().await;
    let wrong = Authentication::Key(Secret::new("YW5vdGhlciBrZXk="));
    let mut config = config(&account);
    config.authentication = wrong;
    let error = CosmosBackend::connect(config).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Authentication, false), "{error:?}");
    assert_eq!(account.count(&Calls::any()), 1, "{:?}", account.calls());
    assert!(!format!("{error:?}").contains("YW5vdGhlciBrZXk="));
}

#[tokio::test]
async fn a_missing_account_is_reported() {
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
    let mut config = config(&account);
    config.vector_dimensions = Some(32);
    let error = CosmosBackend::connect(config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Validation);
    let message = error.to_string();
    assert!(message.contains("vectors of 64 dimensions instead of 32"), "{message}");
}
