//! Every way in which a service can fail, and the error for it.

use std::time::Duration;

use amplifier_session_core::{Error, ErrorKind, embedding::EmbeddingPurpose};
use amplifier_session_embed::{OpenAiConfig, OpenAiEmbedding, wrappers::StackOptions};
use amplifier_session_testkit::http::{Fault, MockEmbeddings};

use crate::{assert_vectors, config, embed, provider, server, small};

/// The error of a call that meets `fault`. The next call succeeds.
async fn error_of(fault: Fault) -> Error {
    let mock = server().await;
    let model = provider(&mock, small());
    mock.script([fault.clone()]);
    let error = match embed(&model, &["one", "two"]).await {
        Ok(vectors) => panic!("{fault:?} went unnoticed: {vectors:?}"),
        Err(error) => error,
    };
    assert_vectors(&embed(&model, &["one", "two"]).await.unwrap(), &["one", "two"]);
    assert_eq!(mock.calls(), 2, "a provider makes one attempt per call");
    error
}

#[tokio::test]
async fn temporary_failures_are_retryable() {
    for (fault, says) in [
        (Fault::CutBefore, ""),
        (Fault::CutInside, "the connection was lost"),
        (Fault::Garbage, "contains no vectors"),
        (Fault::status(429), "too many requests"),
        (Fault::saying(502, "<html>Bad Gateway</html>"), "the service failed"),
    ] {
        let error = error_of(fault.clone()).await;
        assert_eq!(error.kind(), ErrorKind::Embedding, "{fault:?}");
        assert!(error.is_retryable(), "{fault:?}: {error}");
        assert!(error.to_string().contains(says), "{fault:?}: {error}");
        assert_eq!(error.retry_after(), None);
    }
}

#[tokio::test]
async fn rejected_texts_differ_from_rejected_requests() {
    let mock = server().await;
    let model = provider(&mock, small());
    mock.refuse_text(Some("bad"));
    let error = embed(&model, &["good", "a bad one"]).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Validation, false));
    assert!(embed(&model, &["good"]).await.is_ok());
    // These are checked by the server itself.
    for refused in [String::new(), "word ".repeat(9_000)] {
        let error = embed(&model, &["good", &refused]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Validation, "{error}");
    }
    let body = r#"{"error":{"message":"Invalid value for 'dimensions' = 9","param":"dimensions"}}"#;
    assert_eq!(error_of(Fault::saying(400, body)).await.kind(), ErrorKind::Embedding);
}

/// There is no other attempt, neither in the provider nor in its wrappers: no service starts within a second.
#[tokio::test]
async fn a_refused_connection_is_reported_at_once() {
    // Reserves a port without listening there.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let address = format!("http://127.0.0.1:{port}/v1");
    let url = format!("{address}?secret=hunter2");
    let config = OpenAiConfig::default().with_base_url(url).with_model(small());
    let model = OpenAiEmbedding::new(&config).unwrap();
    let stack = StackOptions::default().wrap(std::sync::Arc::new(model)).unwrap();
    let texts = ["a text".to_owned()];
    let error = stack.provider().embed(&texts, EmbeddingPurpose::Document).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Embedding, false));
    assert!(error.to_string().starts_with(&format!("{address}: connection refused")), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert_eq!(stack.statistics().retries, 0);
}

#[tokio::test]
async fn a_call_times_out() {
    let mock = server().await;
    mock.hold();
    // The server never answers, so any timeout will do.
    let config = config(&mock).with_model(small().with_timeout(Duration::from_millis(1)));
    let error = embed(&OpenAiEmbedding::new(&config).unwrap(), &["a text"]).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Embedding, true));
    assert!(error.to_string().contains("did not answer in time"), "{error}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let mock = server().await;
    let other = MockEmbeddings::start(Default::default()).await.unwrap();
    for status in [301, 302, 307, 308] {
        mock.script([Fault::status(status).with_header("location", &(other.openai_url() + "/embeddings"))]);
        let error = embed(&provider(&mock, small()), &["a text"]).await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Embedding, false), "{status}");
    }
    assert_eq!(other.calls(), 0);
}

#[tokio::test]
async fn an_endless_response_is_not_read_to_the_end() {
    let error = error_of(Fault::saying(200, &" ".repeat(2 << 20))).await;
    assert!(error.to_string().contains("longer than"), "{error}");
}

#[tokio::test]
async fn random_failures_leave_no_wrong_vector() {
    let mock = server().await;
    let model = provider(&mock, small());
    mock.fail_share(0.3, 11);
    let (mut failed, mut made) = (0, 0);
    for number in 0..60 {
        let text = format!("text number {number}");
        loop {
            match embed(&model, &[&text]).await {
                Ok(vectors) => break assert_vectors(&vectors, &[&text]),
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            failed += 1;
        }
        made += 1;
    }
    assert_eq!((made, mock.texts()), (60, 60));
    assert!(failed > 10, "{failed}");
}
