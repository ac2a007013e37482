use super::*;
use crate::wrappers::Batching;

#[tokio::test]
async fn vectors_are_in_the_order_of_the_texts() {
    let provider = Scripted::new().shared();
    let batching = Batching::new(Arc::clone(&provider) as _);
    assert_describes(&batching, &provider);
    for count in [0, 1, 8, 9, 100] {
        let texts = texts(0..count);
        assert_eq!(embed(&batching, &texts).await.unwrap(), vectors(&texts));
    }
    assert!(provider.calls.lock().unwrap().iter().all(|texts| (1..=8).contains(&texts.len())));
    assert_eq!(provider.calls(), 1 + 1 + 2 + 13);
}

#[tokio::test]
async fn concurrent_calls_are_limited() {
    let provider = Scripted::new().shared();
    let batching = Batching::new(Arc::clone(&provider) as _);
    embed(&batching, &texts(0..100)).await.unwrap();
    assert_eq!(provider.most_running.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn one_failed_batch_fails_the_call() {
    let provider = Scripted::new().with_script([Ok(()), Err(refused())]).shared();
    let batching = Batching::new(Arc::clone(&provider) as _);
    let error = embed(&batching, &texts(0..100)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Validation);
    assert!(provider.calls() < 13);
    // The next call is not affected.
    assert_eq!(embed(&batching, &texts(0..20)).await.unwrap(), vectors(&texts(0..20)));
}

#[tokio::test]
async fn a_wrong_number_of_vectors_is_an_error() {
    use amplifier_session_testkit::{Answer, FakeEmbedding};
    for answer in [Answer::TooFew, Answer::TooMany] {
        let provider = FakeEmbedding::new();
        provider.answer_with(answer);
        let batching = Batching::new(Arc::new(provider));
        let error = embed(&batching, &texts(0..40)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Embedding);
    }
}
