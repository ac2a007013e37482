//! Azure OpenAI, with a key and with Microsoft Entra ID.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use amplifier_session_core::{ErrorKind, embedding::EmbeddingProvider};
use amplifier_session_embed::{AzureOpenAiConfig, AzureOpenAiEmbedding, AzureSignIn, EntraIdentity, Secret};
use amplifier_session_testkit::http::{Credential, Fault, MockEmbeddings, MockOptions};
use azure_core::{
    credentials::{AccessToken, TokenCredential, TokenRequestOptions},
    error::ErrorKind as AzureErrorKind,
    time::OffsetDateTime,
};
use serde_json::json;

use crate::{KEY, assert_vectors, embed, server, small};

const TOKEN: &str = "made-up-token-b81d";

fn config(endpoint: String) -> AzureOpenAiConfig {
    AzureOpenAiConfig::new(endpoint, AzureSignIn::Key(Secret::new(KEY))).with_model(small())
}

#[tokio::test]
async fn both_forms_of_the_endpoint_reach_the_deployment() {
    let options = MockOptions::default().with_key(KEY).with_deployment("mine", "text-embedding-3-small");
    let mock = MockEmbeddings::start(options).await.unwrap();
    let full = mock.azure_endpoint() + "/openai/deployments/mine";
    for config in [
        config(mock.azure_endpoint()).with_deployment("mine"),
        config(full.clone()),
        config(full + "/embeddings?api-version=2024-10-21"),
    ] {
        let model = AzureOpenAiEmbedding::new(&config).unwrap();
        assert_vectors(&embed(&model, &["a text"]).await.unwrap(), &["a text"]);
        let call = mock.recorded().pop().unwrap();
        assert_eq!(call.path, "/openai/deployments/mine/embeddings");
        assert_eq!(call.query.as_deref(), Some("api-version=2024-10-21"));
        assert_eq!(call.credential, Credential::ApiKey(KEY.to_owned()));
        assert_eq!(call.member("encoding_format"), &json!("base64"));
        assert_eq!(call.member("dimensions"), &json!(8));
    }
}

#[tokio::test]
async fn a_wrong_key_is_an_authentication_error_at_once() {
    let mock = server().await;
    let wrong = AzureOpenAiConfig::new(mock.azure_endpoint(), AzureSignIn::Key(Secret::new("sk-wrong")));
    let model = AzureOpenAiEmbedding::new(&wrong.with_model(small())).unwrap();
    let error = embed(&model, &["a text"]).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Authentication, false));
    assert!(!format!("{error:?}").contains("sk-wrong"));
    assert_eq!(mock.calls(), 1);
}

#[tokio::test]
async fn azures_throttling_headers_are_read() {
    let mock = server().await;
    let model = AzureOpenAiEmbedding::new(&config(mock.azure_endpoint())).unwrap();
    mock.script([Fault::saying(
        429,
        r#"{"error":{"code":"429","message":"Requests have exceeded the rate limit."}}"#,
    )
    .with_header("x-ratelimit-reset-requests", "12")]);
    let error = embed(&model, &["a text"]).await.unwrap_err();
    assert!(error.is_retryable());
    assert_eq!(error.retry_after().unwrap().as_secs(), 12);
}

/// Returns tokens or fails.
#[derive(Debug, Default)]
struct Tokens {
    asked: AtomicUsize,
    failure: Option<AzureErrorKind>,
}

#[async_trait::async_trait]
impl TokenCredential for Tokens {
    async fn get_token(
        &self,
        scopes: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        assert_eq!(scopes, ["https://cognitiveservices.azure.com/.default"]);
        self.asked.fetch_add(1, Ordering::SeqCst);
        match &self.failure {
            None => Ok(AccessToken::new(TOKEN, OffsetDateTime::now_utc())),
            Some(kind) => Err(azure_core::Error::with_message(kind.clone(), "no token\nlong advice")),
        }
    }
}

/// A provider that signs in with `tokens`, and a server that accepts them.
async fn signed_in(tokens: &Arc<Tokens>) -> (MockEmbeddings, AzureOpenAiEmbedding) {
    let options = MockOptions::default().with_key(KEY).with_token(TOKEN);
    let mock = MockEmbeddings::start(options).await.unwrap();
    let config =
        AzureOpenAiConfig::new(mock.azure_endpoint(), AzureSignIn::Entra(EntraIdentity::DeveloperTools));
    let config = config.with_model(small());
    let model = AzureOpenAiEmbedding::with_credential(&config, Arc::clone(tokens) as _).unwrap();
    (mock, model)
}

#[tokio::test]
async fn every_call_has_a_token() {
    let tokens = Arc::new(Tokens::default());
    let (mock, model) = signed_in(&tokens).await;
    assert!(embed(&model, &[]).await.unwrap().is_empty());
    for _ in 0..2 {
        assert_vectors(&embed(&model, &["a text"]).await.unwrap(), &["a text"]);
    }
    assert_eq!(tokens.asked.load(Ordering::SeqCst), 2);
    assert_eq!(mock.recorded()[1].credential, Credential::Bearer(TOKEN.to_owned()));
    assert!(model.is_local());
    assert!(!format!("{model:?}").contains(TOKEN));
}

#[tokio::test]
async fn without_a_token_nothing_is_sent() {
    for (failure, kind, retryable) in [
        (AzureErrorKind::Credential, ErrorKind::Authentication, false),
        (AzureErrorKind::Connection, ErrorKind::Embedding, true),
    ] {
        let (mock, model) =
            signed_in(&Arc::new(Tokens { failure: Some(failure), ..Tokens::default() })).await;
        let error = embed(&model, &["a text"]).await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (kind, retryable));
        assert!(
            error.to_string().contains("did not issue a token") && !error.to_string().contains("advice"),
            "{error}"
        );
        assert_eq!(mock.calls(), 0);
    }
}
