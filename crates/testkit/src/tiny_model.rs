//! A sentence embedder of a few kilobytes, in the files of a real one.

use std::{fs, io, path::Path};

use serde_json::{Map, Value, json};

/// The length of its vectors.
const HIDDEN: usize = 8;
/// The size of the intermediate layer.
const INTERMEDIATE: usize = 16;
const LAYERS: usize = 2;
const POSITIONS: usize = 32;

/// A BERT model with two layers, 8 dimensions and a limit of 32 tokens. Its weights are pseudorandom; its tokens are
/// single letters, digits and punctuation marks.
#[derive(Debug)]
pub struct TinyModel {
    seed: u64,
}

impl Default for TinyModel {
    fn default() -> Self {
        Self { seed: 1 }
    }
}

impl TinyModel {
    /// A model with other weights.
    #[must_use]
    pub fn with_seed(seed: u64) -> Self {
        Self { seed: seed.max(1) }
    }

    /// The length of its vectors.
    pub const DIMENSIONS: usize = HIDDEN;

    /// The maximum number of tokens, including the two that mark beginning and end.
    pub const MAX_TOKENS: usize = POSITIONS;

    /// Writes `config.json`, `tokenizer.json` and `model.safetensors` into `folder`.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let words = vocabulary();
        write_json(&folder.join("config.json"), &config(words.len()))?;
        write_json(&folder.join("tokenizer.json"), &tokenizer(&words))?;
        fs::write(folder.join("model.safetensors"), self.weights(words.len()))
    }

    /// The tensors in the safetensors format: the length of the header, the header, the values.
    fn weights(&self, words: usize) -> Vec<u8> {
        let mut state = self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (mut header, mut values) = (Map::new(), Vec::new());
        for (name, shape) in tensors(words) {
            let begin = values.len();
            for _ in 0..shape.iter().product() {
                let value = match name.as_str() {
                    name if name.ends_with("LayerNorm.weight") => 1.0,
                    name if name.ends_with("bias") => 0.0,
                    _ => random(&mut state),
                };
                values.extend_from_slice(&value.to_le_bytes());
            }
            let place = [begin, values.len()];
            header.insert(name, json!({ "dtype": "F32", "shape": shape, "data_offsets": place }));
        }
        let header = Value::Object(header).to_string();
        let length = header.len() as u64;
        [&length.to_le_bytes()[..], header.as_bytes(), &values].concat()
    }
}

/// Writes `value` to `file` and creates its folder.
///
/// # Errors
///
/// If the file cannot be written.
pub fn write_json(file: &Path, value: &Value) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, value.to_string())
}

/// Returns a number from -0.5 to 0.5 (xorshift by Marsaglia).
fn random(state: &mut u64) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 40) as f32 / (1 << 24) as f32 - 0.5
}

fn tensors(words: usize) -> Vec<(String, Vec<usize>)> {
    let mut tensors = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![words, HIDDEN]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![POSITIONS, HIDDEN]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN]),
    ];
    let mut add = |name: String, shape: Vec<usize>| {
        tensors.push((format!("{name}.bias"), vec![shape[0]]));
        tensors.push((format!("{name}.weight"), shape));
    };
    add("embeddings.LayerNorm".to_owned(), vec![HIDDEN]);
    for layer in (0..LAYERS).map(|layer| format!("encoder.layer.{layer}")) {
        for linear in ["self.query", "self.key", "self.value", "output.dense"] {
            add(format!("{layer}.attention.{linear}"), vec![HIDDEN, HIDDEN]);
        }
        add(format!("{layer}.attention.output.LayerNorm"), vec![HIDDEN]);
        add(format!("{layer}.intermediate.dense"), vec![INTERMEDIATE, HIDDEN]);
        add(format!("{layer}.output.dense"), vec![HIDDEN, INTERMEDIATE]);
        add(format!("{layer}.output.LayerNorm"), vec![HIDDEN]);
    }
    tensors
}

fn config(words: usize) -> Value {
    json!({
        "model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu",
        "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE, "num_hidden_layers": LAYERS,
        "num_attention_heads": 2, "max_position_embeddings": POSITIONS, "vocab_size": words,
        "type_vocab_size": 2, "pad_token_id": 0, "layer_norm_eps": 1e-12, "initializer_range": 0.02,
        "hidden_dropout_prob": 0.1
    })
}

fn vocabulary() -> Vec<String> {
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map(str::to_owned);
    let letters: Vec<String> = ('a'..='z').chain('0'..='9').map(String::from).collect();
    let inner = letters.iter().map(|letter| format!("##{letter}"));
    let marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~".chars().map(String::from);
    special.into_iter().chain(letters.iter().cloned()).chain(inner).chain(marks).collect()
}

fn tokenizer(words: &[String]) -> Value {
    let vocabulary: Map<String, Value> = words.iter().cloned().zip((0..).map(|id: u32| json!(id))).collect();
    let special = |id: u32, content: &str| {
        json!({
            "id": id, "content": content, "special": true, "normalized": false,
            "single_word": false, "lstrip": false, "rstrip": false
        })
    };
    json!({
        "version": "1.0",
        // Truncation is too short and padding is fixed, as in the files of real models.
        "truncation": { "direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0 },
        "padding": {
            "strategy": { "Fixed": 8 }, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"
        },
        "added_tokens": [special(0, "[PAD]"), special(1, "[UNK]"), special(2, "[CLS]"), special(3, "[SEP]")],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": true
        },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                { "SpecialToken": { "id": "[CLS]", "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
                { "SpecialToken": { "id": "[SEP]", "type_id": 0 } }
            ],
            "pair": [
                { "Sequence": { "id": "A", "type_id": 0 } },
                { "Sequence": { "id": "B", "type_id": 1 } }
            ],
            "special_tokens": {
                "[CLS]": { "id": "[CLS]", "ids": [2], "tokens": ["[CLS]"] },
                "[SEP]": { "id": "[SEP]", "ids": [3], "tokens": ["[SEP]"] }
            }
        },
        "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary
        }
    })
}
