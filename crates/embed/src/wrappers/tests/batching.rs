use super::*;
use crate::wrappers::Batching;

#[tokio::test]
async fn any_number_of_texts_comes_back_in_order() {
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
async fn so_many_calls_are_made_at_once_as_the_limits_say() {
    let provider = Scripted::new().shared();
    let batching = Batching::new(Arc::clone(&provider) as _);
    embed(&batching, &texts(0..100)).await.unwrap();
    assert_eq!(provider.most_running.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn one_failed_batch_fails_the_whole() {
    let provider = Scripted::new().with_script([Ok(()), Err(refused())]).shared();
    let batching = Batching::new(Arc::clone(&provider) as _);
    let error = embed(&batching, &texts(0..100)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Validation);
    assert!(provider.calls() < 13);
    // Nothing of it is left for the next call.
    assert_eq!(embed(&batching, &texts(0..20)).await.unwrap(), vectors(&texts(0..20)));
}

#[tokio::test]
async fn a_wrong_count_is_an_error_and_never_a_shifted_list() {
    use amplifier_session_testkit::{Answer, FakeEmbedding};
    for answer in [Answer::TooFew, Answer::TooMany] {
        let provider = FakeEmbedding::new();
        provider.answer_with(answer);
        let batching = Batching::new(Arc::new(provider));
        let error = embed(&batching, &texts(0..40)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Embedding);
    }
}
