//! Tests with all-MiniLM-L6-v2, which `.ci/model` downloads and `./test` names in the environment.

use std::sync::LazyLock;

use super::*;

/// The folder of the weights.
const VARIABLE: &str = "AMPLIFIER_TEST_MODEL";

static MINILM: LazyLock<TransformerEmbedding> = LazyLock::new(|| {
    let Some(folder) = std::env::var_os(VARIABLE) else {
        panic!("{VARIABLE} has to name what .ci/model prints")
    };
    TransformerEmbedding::open(Path::new(&folder)).unwrap()
});

/// The first eight numbers of vectors that another implementation computed from the same weights: 60 lines of Python
/// and numpy in double precision, with its own tokenizer.
const EXPECTED: [(&str, [f32; 8]); 5] = [
    (
        "The quick brown fox jumps over the lazy dog.",
        [0.043934, 0.058934, 0.048178, 0.077548, 0.026744, -0.037630, -0.002605, -0.059943],
    ),
    (
        "how do I fix a failing database connection",
        [0.050294, -0.048255, -0.011267, 0.025021, -0.125591, -0.001011, 0.021197, -0.011685],
    ),
    (
        "the postgres connection pool was exhausted, so the query timed out",
        [0.070554, -0.011708, -0.022577, 0.059561, -0.058185, -0.040892, -0.000963, -0.029158],
    ),
    (
        "the recipe needs two eggs, flour and a pinch of salt",
        [-0.059499, -0.012760, 0.030185, -0.004801, -0.056493, 0.003302, -0.000776, 0.006257],
    ),
    (
        "fn main() { println!(\"hello\"); }",
        [-0.016161, 0.044020, -0.065554, -0.001717, -0.045118, -0.051583, 0.026928, 0.081610],
    ),
];

/// The vector of `"Retry the payment with an idempotency key; "` 60 times, which is truncated to 256 tokens.
const EXPECTED_LONG: [f32; 8] =
    [-0.027349, 0.034873, -0.025843, -0.029535, -0.094139, 0.005657, 0.014632, -0.037724];

#[tokio::test]
#[ignore = "needs real weights: AMPLIFIER_TEST_MODEL, see .ci/model"]
async fn vectors_agree_with_another_implementation() {
    let long = "Retry the payment with an idempotency key; ".repeat(60);
    let texts = EXPECTED.map(|(text, _)| text);
    let vectors = documents(&MINILM, &[&texts[..], &[&long]].concat()).await;
    let expected = EXPECTED.iter().map(|(_, numbers)| numbers).chain([&EXPECTED_LONG]);
    for (vector, numbers) in vectors.iter().zip(expected) {
        assert_unit(vector);
        assert_eq!(vector.len(), 384);
        assert_same(&vector[..8], numbers);
    }
    for (a, b, expected) in [(1, 2, 0.390175), (1, 3, -0.005663), (0, 1, 0.032810)] {
        let cosine = dot(&vectors[a], &vectors[b]);
        assert!((cosine - expected).abs() < 1e-5, "{cosine} is not {expected}");
    }
}

#[tokio::test]
#[ignore = "needs real weights: AMPLIFIER_TEST_MODEL, see .ci/model"]
async fn a_text_has_the_same_vector_alone_and_in_a_batch() {
    let texts = ["a", EXPECTED[2].0, "", "<|endoftext|> the build failed", "🦀 a\0b", &"tokens ".repeat(120)];
    let together = documents(&MINILM, &texts).await;
    for (text, vector) in texts.iter().zip(&together) {
        assert_same(vector, &documents(&MINILM, &[text]).await[0]);
    }
    assert!(together[2].iter().all(|x| *x == 0.0));
}

#[test]
#[ignore = "needs real weights: AMPLIFIER_TEST_MODEL, see .ci/model"]
fn limits_follow_the_real_model() {
    let space = MINILM.space();
    assert!(space.model.starts_with("all-minilm-l6-v2@"), "{}", space.model);
    assert_eq!(space.dimensions, 384);
    assert_eq!(MINILM.limits().chunk_threshold_tokens, 190);
}
