//! Keys are never shown.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use amplifier_session_core::ErrorKind;
use amplifier_session_embed::{
    AzureOpenAiConfig, AzureOpenAiEmbedding, AzureSignIn, OpenAiEmbedding, Secret,
};
use amplifier_session_testkit::http::Fault;

use crate::{KEY, config, embed, provider, server, small};

/// Everything that an error shows, including its causes.
fn shown(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    if let Some(source) = error.source() {
        text += &shown(source);
    }
    text
}

#[tokio::test]
async fn debug_shows_no_key() {
    let mock = server().await;
    let config = config(&mock);
    let model = OpenAiEmbedding::new(&config).unwrap();
    let azure = AzureOpenAiConfig::new(mock.azure_endpoint(), AzureSignIn::Key(Secret::new(KEY)));
    let azure_model = AzureOpenAiEmbedding::new(&azure).unwrap();
    for text in [
        format!("{config:?} {config:#?}"),
        format!("{model:?} {model:#?}"),
        format!("{azure:?} {azure:#?}"),
        format!("{azure_model:?} {azure_model:#?}"),
    ] {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[tokio::test]
async fn no_error_shows_the_key_whatever_the_service_says() {
    let mock = server().await;
    let model = provider(&mock, small());
    let quoting = format!(r#"{{"error":{{"message":"key {KEY} is bad","code":"{KEY}","param":"{KEY}"}}}}"#);
    for status in [200, 302, 400, 401, 403, 404, 408, 413, 422, 429, 500, 501, 503] {
        for body in [quoting.clone(), format!("<html>{KEY}</html>"), format!(r#"{{"error":"{KEY}"}}"#)] {
            mock.script([Fault::saying(status, &body).with_header("x-request-id", KEY)]);
            let error = embed(&model, &["a text"]).await.unwrap_err();
            assert!(!shown(&error).contains(KEY), "{status} {body}: {}", shown(&error));
        }
    }
    for fault in [Fault::CutBefore, Fault::CutInside, Fault::Garbage, Fault::TooFew] {
        mock.script([fault]);
        let error = embed(&model, &["a text"]).await.unwrap_err();
        assert!(!shown(&error).contains(KEY));
    }
    drop(mock);
    let error = embed(&model, &["a text"]).await.unwrap_err();
    assert!(!shown(&error).contains(KEY));
}

#[tokio::test]
async fn a_wrong_key_is_an_authentication_error_that_does_not_repeat_it() {
    let mock = server().await;
    let wrong = "sk-also-made-up-77aa";
    let config = config(&mock).with_api_key(Some(Secret::new(wrong)));
    let error = embed(&OpenAiEmbedding::new(&config).unwrap(), &["a text"]).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Authentication, false));
    assert!(error.to_string().contains("invalid_api_key"), "{error}");
    assert!(!shown(&error).contains(wrong), "{}", shown(&error));
    assert_eq!(mock.calls(), 1);
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_key_is_logged_at_any_level() {
    let log = Log::default();
    let writer = log.clone();
    // Set for the whole process, since connections have their own threads.
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .try_init()
        .unwrap();
    let mock = server().await;
    let model = provider(&mock, small());
    let azure = AzureOpenAiConfig::new(mock.azure_endpoint(), AzureSignIn::Key(Secret::new(KEY)));
    let azure = AzureOpenAiEmbedding::new(&azure.with_model(small())).unwrap();
    for fault in [Fault::None, Fault::CutInside, Fault::status(401), Fault::status(503)] {
        mock.script([fault.clone(), fault]);
        let _ = embed(&model, &["a text"]).await;
        let _ = embed(&azure, &["a text"]).await;
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!log.is_empty(), "nothing was logged, so this test proves nothing");
    assert!(!log.contains(KEY), "{log}");
}
