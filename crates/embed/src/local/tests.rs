use futures_util::FutureExt as _;
use proptest::prelude::*;

use super::*;

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn vector(text: &str) -> Vec<f32> {
    vectors_of(&texts([text])).remove(0)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn similarity(a: &str, b: &str) -> f32 {
    dot(&vector(a), &vector(b))
}

/// Checks that a vector has unit length or is all zeros.
fn assert_well_formed(vector: &[f32]) {
    assert_eq!(vector.len(), DIMENSIONS);
    assert!(vector.iter().all(|x| x.is_finite()));
    let length = dot(vector, vector).sqrt();
    assert!(length == 0.0 || (length - 1.0).abs() < 1e-4, "length {length}");
}

#[test]
fn similar_texts_have_similar_vectors() {
    let query = "how do I fix a failing database connection";
    let ranked = [
        "the postgres connection pool was exhausted, so the query timed out",
        "we changed the colour of the submit button on the sign-up page",
        "the recipe needs two eggs, flour and a pinch of salt",
    ];
    let scores = ranked.map(|text| similarity(query, text));
    assert!(scores[0] > scores[1] && scores[0] > scores[2], "{scores:?}");

    assert!(
        similarity("delete the file", "remove a document") > similarity("delete the file", "a sunny day")
    );
    assert!(similarity("car", "automobile") > similarity("car", "banana"));
}

#[test]
fn vectors_have_not_changed_under_this_name() {
    // If this fails, vectors in existing stores no longer match. Give the changed model another name.
    let found = vector("The quick brown fox jumps over the lazy dog.");
    for (index, expected) in [(0, -0.025196), (1, -0.081231), (2, 0.101327), (100, 0.017427), (255, 0.009012)]
    {
        assert!((found[index] - expected).abs() < 1e-4, "[{index}] {} is not {expected}", found[index]);
    }
}

#[test]
fn case_and_accents_are_ignored() {
    assert!(similarity("Café Société", "cafe societe") > 0.9999);
}

#[test]
fn texts_without_known_tokens_are_zeros() {
    for text in
        ["", " ", "\n\t\r\n", "\0", "\0\0\0", "\u{200b}\u{feff}", "\u{fffd}", "\u{301}\u{302}", "[UNK]"]
    {
        let vector = vector(text);
        assert_well_formed(&vector);
        assert!(vector.iter().all(|x| *x == 0.0), "{text:?}");
    }
}

#[test]
fn special_tokens_are_plain_text() {
    assert!(similarity("<|endoftext|> the build failed", "the build failed") > 0.5);
}

#[test]
fn long_texts_are_not_truncated() {
    let beginning = "the cat sat on the mat. ".repeat(300);
    let end = "the kubernetes ingress certificate expired. ".repeat(300);
    assert!(similarity(&beginning, &format!("{beginning}{end}")) < 0.95);
    assert!(similarity(&end, &format!("{beginning}{end}")) > similarity(&end, &beginning));
}

#[test]
fn a_megabyte_can_be_embedded() {
    let prose = "Retry the payment with an idempotency key; ".repeat(25_000);
    let base64 = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0MTIzNDU2Nzg5".repeat(22_000);
    for text in [prose, base64, "漢字".repeat(180_000), "[".repeat(1_000_000), " ".repeat(1_000_000)] {
        assert!(text.len() >= 1_000_000);
        assert_well_formed(&vector(&text));
    }
}

#[tokio::test]
async fn batches_keep_their_order_and_length() {
    let provider = LocalEmbedding::new();
    let texts: Vec<String> =
        (0..300).map(|i| format!("message {i} about {}", ["tea", "rust", "rain"][i % 3])).collect();
    let vectors = provider.embed(&texts, EmbeddingPurpose::Document).await.unwrap();
    assert_eq!(vectors.len(), texts.len());
    for (text, embedded) in texts.iter().zip(&vectors) {
        assert_eq!(*embedded, vector(text));
    }
    assert!(provider.embed(&[], EmbeddingPurpose::Query).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_tasks_get_the_same_vectors() {
    let texts = texts(["one text", "another, longer text about a cache", ""]);
    let expected = vectors_of(&texts);
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let texts = texts.clone();
            tokio::spawn(async move { LocalEmbedding::new().embed(&texts, EmbeddingPurpose::Document).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap(), expected);
    }
}

#[tokio::test]
async fn documents_and_queries_are_embedded_alike() {
    let provider = LocalEmbedding::new();
    let texts = texts(["where is the retry logic"]);
    let document = provider.embed(&texts, EmbeddingPurpose::Document).await.unwrap();
    assert_eq!(document, provider.embed(&texts, EmbeddingPurpose::Query).await.unwrap());
}

#[test]
fn it_works_without_a_runtime_of_tokio() {
    let texts = texts(["one", "two"]);
    let vectors = LocalEmbedding::new().embed(&texts, EmbeddingPurpose::Document).now_or_never();
    assert_eq!(vectors.unwrap().unwrap().len(), 2);
}

#[test]
fn limits_are_in_proportion() {
    let limits = LocalEmbedding::default().limits();
    assert!(limits.chunk_target_tokens <= limits.chunk_threshold_tokens);
    assert!(limits.batch_texts * limits.chunk_target_tokens <= limits.batch_tokens);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_has_a_well_formed_vector(text in any_text()) {
        assert_well_formed(&vector(&text));
    }

    #[test]
    fn a_text_has_the_same_vector_alone_and_in_a_batch(text in any_text()) {
        let together = vectors_of(&[text.clone(), "company".to_owned(), text.clone()]);
        prop_assert_eq!(&together[0], &together[2]);
        prop_assert_eq!(&together[0], &vector(&text));
    }
}

/// Any text, mixed with parts that tokenizers treat specially.
pub(super) fn any_text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        "<|endoftext|>",
        "[UNK]",
        "[PAD]",
        "[",
        "##",
        "\0",
        "\u{feff}",
        "\u{301}",
        "각",
        "漢",
        "İ",
        "🦀",
        "\r\n",
        "error ",
    ]);
    let piece = prop_oneof![any::<String>(), special.prop_map(str::to_owned), "[a-z ]{0,40}"];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}
