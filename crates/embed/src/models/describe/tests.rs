use std::path::PathBuf;

use amplifier_session_core::ErrorKind;
use amplifier_session_testkit::{TinyModel, write_json};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A folder with a model, and further files with the given content.
fn folder(files: &[(&str, Value)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    TinyModel::default().write(folder.path()).unwrap();
    for (file, value) in files {
        write_json(&folder.path().join(file), value).unwrap();
    }
    folder
}

fn described(name: &str, files: &[(&str, Value)]) -> ModelDescription {
    describe(folder(files).path(), name).unwrap()
}

#[track_caller]
fn refused(files: &[(&str, Value)], words: &[&str]) {
    let error = describe(folder(files).path(), "model").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Embedding);
    for word in words {
        assert!(error.to_string().contains(word), "{error}");
    }
}

fn config(changes: Value) -> (&'static str, Value) {
    let folder = folder(&[]);
    let mut config: Value = serde_json::from_slice(&fs::read(folder.path().join(CONFIG)).unwrap()).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    (CONFIG, config)
}

fn module(path: &str, kind: &str) -> Value {
    json!({ "idx": 0, "name": "0", "path": path, "type": format!("sentence_transformers.models.{kind}") })
}

#[test]
fn without_configuration_the_mean_is_used() {
    let expected = ModelDescription {
        dimensions: TinyModel::DIMENSIONS,
        max_tokens: TinyModel::MAX_TOKENS,
        vocabulary: described("model", &[]).vocabulary,
        pooling: Pooling::Mean,
        prompts: Prompts::default(),
    };
    assert_eq!(described("model", &[]), expected);
}

#[test]
fn the_folder_decides_the_pooling() {
    for (flag, pooling) in [
        ("pooling_mode_cls_token", Pooling::Cls),
        ("pooling_mode_mean_tokens", Pooling::Mean),
        ("pooling_mode_mean_sqrt_len_tokens", Pooling::Mean),
        ("pooling_mode_max_tokens", Pooling::Max),
    ] {
        let says = json!({ "word_embedding_dimension": 8, "pooling_mode_other": false, "include_prompt": true, flag: true });
        assert_eq!(described("e5-small", &[(POOLING, says.clone())]).pooling, pooling, "{flag}");
        let modules =
            json!([module("", "Transformer"), module("pooling", "Pooling"), module("2", "Normalize")]);
        assert_eq!(described("m", &[(MODULES, modules), ("pooling/config.json", says)]).pooling, pooling);
    }
    assert_eq!(described("m", &[(POOLING, json!({ "pooling_mode": "cls" }))]).pooling, Pooling::Cls);
}

#[test]
fn unsupported_configurations_are_refused() {
    refused(&[(POOLING, json!({ "pooling_mode_lasttoken": true }))], &[POOLING, "lasttoken"]);
    let two = json!({ "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true });
    refused(&[(POOLING, two)], &["cls_token and mean_tokens"]);
    refused(&[(POOLING, json!({}))], &["no pooling mode"]);
    refused(&[(POOLING, json!({ "pooling_mode": "mean", "include_prompt": false }))], &["prompts"]);
    let dense =
        json!([module("", "Transformer"), module("1_Pooling", "Pooling"), module("2_Dense", "Dense")]);
    refused(&[(MODULES, dense)], &[MODULES, "\"Dense\""]);
    refused(&[(MODULES, json!([module("", "Transformer")]))], &["no pooling module"]);
    refused(&[(MODULES, json!([module("1_Pooling", "Pooling")]))], &["1_Pooling/config.json is missing"]);
    for outside in ["../other", "/etc", ""] {
        refused(&[(MODULES, json!([module(outside, "Pooling")]))], &["outside the folder"]);
    }
    refused(&[config(json!({ "model_type": "mpnet" }))], &[CONFIG, "\"mpnet\"", "BERT"]);
    refused(&[config(json!({ "num_attention_heads": 0 }))], &["0 attention heads"]);
    refused(&[config(json!({ "num_attention_heads": 3 }))], &["8 dimensions for 3"]);
    refused(&[config(json!({ "hidden_size": "many" }))], &[CONFIG, "is invalid"]);
    refused(&[config(json!({ "max_position_embeddings": 4 }))], &[CONFIG, "4 tokens"]);
    refused(&[(LENGTH, json!({ "max_seq_length": 0 }))], &[LENGTH, "0 tokens"]);
}

#[test]
fn errors_name_the_missing_or_invalid_file() {
    let error = describe(&PathBuf::from("/nowhere/at-all"), "model").unwrap_err();
    assert_eq!(error.to_string(), "config.json is missing (folder /nowhere/at-all)");
    let folder = folder(&[]);
    fs::write(folder.path().join(CONFIG), r#"{"model_type": "be"#).unwrap();
    let error = describe(folder.path(), "model").unwrap_err();
    assert!(error.to_string().starts_with("config.json is invalid"), "{error}");
}

#[test]
fn the_shorter_length_applies() {
    let of = |length: Value| described("m", &[(LENGTH, json!({ "max_seq_length": length }))]).max_tokens;
    assert_eq!(of(json!(20)), 20);
    assert_eq!(of(json!(100)), TinyModel::MAX_TOKENS);
    assert_eq!(of(Value::Null), TinyModel::MAX_TOKENS);
}

#[test]
fn prompts_come_from_the_folder_or_the_name() {
    let prompts = |name: &str, files: &[(&str, Value)]| {
        let Prompts { query, document } = described(name, files).prompts;
        (query, document)
    };
    let pair = |query: &str, document: &str| (query.to_owned(), document.to_owned());
    let says = |prompts: Value, default: Value| {
        (PROMPTS, json!({ "prompts": prompts, "default_prompt_name": default, "__version__": {} }))
    };
    let own = says(json!({ "query": "Q: ", "passage": "P: " }), Value::Null);
    assert_eq!(prompts("e5-small-v2", &[own]), pair("Q: ", "P: "));
    let default = says(json!({ "retrieval": "R: ", "query": "Q: " }), json!("retrieval"));
    assert_eq!(prompts("model", &[default]), pair("Q: ", "R: "));
    let empty = says(json!({ "query": "", "document": "" }), Value::Null);
    assert_eq!(prompts("e5-small-v2", &[empty]), pair("query: ", "passage: "));
    assert_eq!(prompts("model", &[(PROMPTS, json!({ "__version__": {} }))]), pair("", ""));
    let named = config(json!({ "_name_or_path": "intfloat/multilingual-e5-small" }));
    assert_eq!(prompts("model", &[named]), pair("query: ", "passage: "));
    let (query, document) = prompts("bge-small-en-v1.5", &[]);
    assert!(query.starts_with("Represent this sentence") && document.is_empty());
}

#[test]
fn the_name_decides_the_pooling_if_the_folder_does_not() {
    assert_eq!(described("bge-small-en-v1.5", &[]).pooling, Pooling::Cls);
    let mean = json!({ "pooling_mode_mean_tokens": true });
    assert_eq!(described("bge-small-en-v1.5", &[(POOLING, mean)]).pooling, Pooling::Mean);
}
