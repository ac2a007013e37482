//! Tests that apply to any model, with a tiny one.

use std::{fs, path::Path};

use amplifier_session_testkit::write_json;
use futures_util::FutureExt as _;
use serde_json::json;

use super::*;

/// Texts of many lengths, some longer than the model reads.
fn texts() -> Vec<String> {
    let words = ["a", "bc def", "42 (x)", "why, then?", "z"];
    (0..90)
        .map(|i| words.iter().cycle().skip(i).take(1 + i * 7 % 23).copied().collect::<Vec<_>>().join(" "))
        .collect()
}

#[tokio::test]
async fn a_text_has_the_same_vector_alone_and_in_a_batch() {
    let model = Folder::named("tiny").open();
    let texts = texts();
    let together = model.embed(&texts, EmbeddingPurpose::Document).await.unwrap();
    assert_eq!(together.len(), texts.len());
    for (text, vector) in texts.iter().zip(&together) {
        assert_unit(vector);
        assert_same(vector, &documents(&model, &[text]).await[0]);
    }
    assert!(documents(&model, &[]).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_calls_get_the_same_vectors() {
    let model = Folder::named("tiny").open();
    let expected = documents(&model, &["one", "another text"]).await;
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let model = model.clone();
            tokio::spawn(async move { documents(&model, &["one", "another text"]).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), expected);
    }
}

#[test]
fn it_works_without_a_runtime_of_tokio() {
    let model = Folder::named("tiny").open();
    assert!(documents(&model, &["one"]).now_or_never().is_some());
}

#[tokio::test]
async fn texts_without_a_token_are_zeros() {
    for name in ["tiny", "e5-tiny"] {
        let model = Folder::named(name).open();
        for (at, vector) in documents(&model, &["", " \n\t", "\0", "\u{200b}", "a"]).await.iter().enumerate()
        {
            assert_eq!(vector.len(), model.space().dimensions);
            assert_eq!(vector.iter().all(|x| *x == 0.0), at < 4, "{name} {at}");
        }
    }
}

#[tokio::test]
async fn any_text_can_be_embedded() {
    let model = Folder::named("tiny").open();
    let long = "a long story ".repeat(50_000);
    let odd = [
        "a\0b",
        "<|endoftext|>",
        "[CLS] [SEP] [PAD] [MASK]",
        "🦀🦀",
        "👩‍👩‍👧‍👦 family",
        "日本語",
        "\u{202e}x",
        &long,
    ];
    for vector in documents(&model, &odd).await {
        assert_unit(&vector);
    }
    // Special tokens are plain text.
    let vectors = documents(&model, &["a [SEP] b", "a [ sep ] b"]).await;
    assert_same(&vectors[0], &vectors[1]);
}

#[tokio::test]
async fn long_texts_are_truncated() {
    let model = Folder::named("tiny").open();
    // The model reads 30 tokens of text and two that mark beginning and end.
    let text = |tokens: usize| vec!["a"; tokens].join(" ");
    let vectors = documents(&model, &[&text(29), &text(30), &text(31), &text(500)]).await;
    assert_same(&vectors[1], &vectors[2]);
    assert_same(&vectors[1], &vectors[3]);
    assert!(dot(&vectors[0], &vectors[1]) < 0.999_99);
}

#[tokio::test]
async fn prompts_come_before_texts() {
    let (e5, plain) = (Folder::named("e5-tiny").open(), Folder::named("tiny").open());
    assert_same(&documents(&e5, &["why"]).await[0], &documents(&plain, &["passage: why"]).await[0]);
    assert_same(&query(&e5, "why").await, &documents(&plain, &["query: why"]).await[0]);
    assert_same(&query(&plain, "why").await, &documents(&plain, &["why"]).await[0]);
    assert!(e5.limits().chunk_threshold_tokens < plain.limits().chunk_threshold_tokens);
}

#[tokio::test]
async fn the_folder_decides_the_pooling() {
    let mut vectors = Vec::new();
    for mode in ["cls", "mean", "max"] {
        let folder = Folder::named("tiny");
        let config = json!({ "pooling_mode": mode });
        write_json(&folder.path.join("1_Pooling/config.json"), &config).unwrap();
        let model = folder.open();
        let together = documents(&model, &["one two", "three four five six"]).await;
        assert_unit(&together[0]);
        assert_same(&together[0], &documents(&model, &["one two"]).await[0]);
        vectors.push(together[0].clone());
    }
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        assert!(dot(&vectors[a], &vectors[b]) < 0.999);
    }
}

#[test]
fn the_space_depends_on_the_folders_name_and_the_model() {
    let name = |folder: &Folder| folder.open().space().model.clone();
    let (one, same) = (Folder::named("tiny"), Folder::named("tiny"));
    assert_eq!(name(&one), name(&same));
    let (before, hash) = name(&one).split_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!((before.as_str(), hash.len()), ("tiny", 8));
    let changed: [fn(&Path); 4] = [
        |folder| TinyModel::with_seed(2).write(folder).unwrap(),
        |folder| {
            write_json(&folder.join("1_Pooling/config.json"), &json!({ "pooling_mode": "max" })).unwrap()
        },
        |folder| {
            write_json(&folder.join("sentence_bert_config.json"), &json!({ "max_seq_length": 20 })).unwrap()
        },
        |folder| {
            let prompts = json!({ "prompts": { "query": "q: " } });
            write_json(&folder.join("config_sentence_transformers.json"), &prompts).unwrap();
        },
    ];
    for change in changed {
        let other = Folder::named("tiny");
        change(&other.path);
        assert_ne!(name(&one), name(&other));
    }
}

#[test]
fn the_provider_describes_the_model() {
    let model = Folder::named("tiny").open();
    assert_eq!(model.space().dimensions, TinyModel::DIMENSIONS);
    assert_eq!((model.strength(), model.is_local()), (ModelStrength::Contextual, true));
    let limits = model.limits();
    assert!(limits.chunk_threshold_tokens < TinyModel::MAX_TOKENS);
    assert_eq!(limits.batch_tokens, limits.batch_texts * limits.chunk_target_tokens);
    assert_eq!(limits.concurrent_calls, 1);
    assert!(format!("{model:?}").contains("tiny@"));
}

#[test]
fn errors_about_a_folder_name_the_file() {
    /// A function that damages the folder, and the expected error.
    type Case = (fn(&Path), &'static str);
    let cases: [Case; 7] = [
        (|folder| fs::remove_file(folder.join("tokenizer.json")).unwrap(), "tokenizer.json is missing"),
        (
            |folder| write_json(&folder.join("tokenizer.json"), &json!({})).unwrap(),
            "tokenizer.json can't be used",
        ),
        // There are no weights for a third layer.
        (|folder| change_config(folder, "num_hidden_layers", json!(3)), "model.safetensors can't be used"),
        (|folder| change_config(folder, "intermediate_size", json!(5)), "model.safetensors can't be used"),
        (|folder| change_config(folder, "hidden_act", json!("swish")), "config.json can't be used"),
        (|folder| change_config(folder, "model_type", json!("gpt2")), "config.json has the model type"),
        (|folder| change_config(folder, "vocab_size", json!(9)), "model.safetensors has a tensor"),
    ];
    for (change, expected) in cases {
        let folder = Folder::named("tiny");
        change(&folder.path);
        let message = folder.refused();
        assert!(message.starts_with(expected), "{message}");
    }
}

fn change_config(folder: &Path, key: &str, value: serde_json::Value) {
    let file = folder.join("config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    config[key] = value;
    write_json(&file, &config).unwrap();
}

#[tokio::test]
async fn weights_that_are_not_finite_are_an_error() {
    let folder = Folder::named("tiny");
    let file = folder.path.join("model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let length = bytes.len();
    bytes[length - 400..].fill(0xff);
    fs::write(file, bytes).unwrap();
    let error = folder.open().embed(&owned(&["a b c"]), EmbeddingPurpose::Document).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Embedding);
    assert!(error.to_string().contains("not finite"), "{error}");
}

#[test]
fn changed_weights_are_refused() {
    let folder = Folder::named("tiny");
    let models = crate::models::InstalledModels::at(folder.path.parent().unwrap().join("installed"));
    let installed = models.install_from(&folder.path, None).unwrap();
    let name = |path: &Path| TransformerEmbedding::open(path).unwrap().space().model.clone();
    assert_eq!(name(&installed.folder), name(&folder.path));
    TinyModel::with_seed(2).write(&installed.folder).unwrap();
    let error = TransformerEmbedding::open(&installed.folder).unwrap_err();
    assert!(error.to_string().contains("since it was installed"), "{error}");
}
