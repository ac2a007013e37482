//! OpenAI, and servers with the same API.

use amplifier_session_core::{
    ErrorKind,
    embedding::{EmbeddingProvider, ModelStrength},
};
use amplifier_session_embed::{ModelConfig, OpenAiConfig, OpenAiEmbedding};
use amplifier_session_testkit::http::{Credential, Fault, MockEmbeddings, MockOptions};
use serde_json::{Value, json};

use crate::{KEY, assert_vectors, config, embed, provider, server, small};

const TEXTS: [&str; 3] = ["the connection pool", "green apples", "naïve café ☕"];

#[tokio::test]
async fn a_request_has_only_the_required_parameters() {
    let mock = server().await;
    let model = provider(&mock, ModelConfig::new("text-embedding-3-small"));
    let vectors = embed(&model, &TEXTS).await.unwrap();
    assert_vectors(&vectors, &TEXTS);
    assert_eq!(vectors[0].len(), 1536);

    let [call] = &mock.recorded()[..] else { panic!("more than one call") };
    assert_eq!(call.path, "/v1/embeddings");
    assert_eq!(call.query, None);
    assert_eq!(call.credential, Credential::Bearer(KEY.to_owned()));
    assert_eq!(call.texts, TEXTS);
    let body = json!({"model": "text-embedding-3-small", "encoding_format": "base64"});
    assert_eq!(Value::Object(call.body.clone()), body);
}

#[tokio::test]
async fn no_call_is_made_without_texts() {
    let mock = server().await;
    assert!(embed(&provider(&mock, small()), &[]).await.unwrap().is_empty());
    assert_eq!(mock.calls(), 0);
}

#[tokio::test]
async fn vectors_are_returned_in_the_order_of_the_texts() {
    let mock = server().await;
    mock.script([Fault::Reversed]);
    assert_vectors(&embed(&provider(&mock, small()), &TEXTS).await.unwrap(), &TEXTS);
}

#[tokio::test]
async fn compatible_servers_need_no_key_and_may_send_decimals() {
    let options = MockOptions::default().with_model("nomic-embed-text", 16).with_decimals().with_length(7.5);
    let mock = MockEmbeddings::start(options).await.unwrap();
    let config = OpenAiConfig::default()
        .with_base_url(mock.openai_url())
        .with_model(ModelConfig::new("nomic-embed-text").with_dimensions(16));
    let model = OpenAiEmbedding::new(&config).unwrap();
    assert!(model.is_local());
    assert_eq!(model.strength(), ModelStrength::Contextual);
    assert_vectors(&embed(&model, &TEXTS).await.unwrap(), &TEXTS);

    let [call] = &mock.recorded()[..] else { panic!("more than one call") };
    assert_eq!(call.credential, Credential::None);
    assert_eq!(call.member("dimensions"), &Value::Null);
}

#[tokio::test]
async fn compatible_servers_are_asked_for_shorter_vectors_if_configured() {
    let mock = MockEmbeddings::start(MockOptions::default().with_model("nested", 16)).await.unwrap();
    let base = OpenAiConfig::default().with_base_url(mock.openai_url());
    let model = ModelConfig::new("nested").with_dimensions(4);
    let asking = base.clone().with_model(model.clone().with_request_dimensions(true));
    assert_vectors(&embed(&OpenAiEmbedding::new(&asking).unwrap(), &TEXTS).await.unwrap(), &TEXTS);
    assert_eq!(mock.recorded()[0].member("dimensions"), &json!(4));

    let silent = OpenAiEmbedding::new(&base.with_model(model)).unwrap();
    let error = embed(&silent, &TEXTS).await.unwrap_err();
    assert!(error.to_string().contains("with 16 dimensions, but 4 are configured"), "{error}");
}

#[tokio::test]
async fn concurrent_calls_get_their_own_vectors() {
    let mock = server().await;
    let model = provider(&mock, small());
    mock.hold();
    let ask = async |text: &str| embed(&model, &[text]).await.unwrap();
    let release = async {
        mock.until_in_flight(3).await;
        mock.release();
    };
    let (one, two, three, ()) = tokio::join!(ask(TEXTS[0]), ask(TEXTS[1]), ask(TEXTS[2]), release);
    assert_vectors(&[one, two, three].concat(), &TEXTS);
    assert_eq!((mock.calls(), mock.texts(), mock.most_in_flight()), (3, 3, 3));
}

#[tokio::test]
async fn the_error_about_an_unknown_model_names_model_and_address() {
    let mock = server().await;
    let model = config(&mock).with_model(ModelConfig::new("text-embedding-9").with_dimensions(8));
    let error = embed(&OpenAiEmbedding::new(&model).unwrap(), &TEXTS).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Embedding, false));
    assert!(error.to_string().contains("has no such model"), "{error}");
    assert!(error.to_string().contains("model text-embedding-9"), "{error}");
    assert_eq!(error.context("service"), Some("OpenAI-compatible"));
    assert_eq!(error.context("request"), Some("req_mock"));
}
