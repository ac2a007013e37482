//! Makes the vocabulary of the compiled-in model: a trie over the tokens of its `tokenizer.json`, which
//! `src/local/vocabulary.rs` reads from the program's bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a build script fails by panicking"
)]

use std::{collections::VecDeque, env, fs, path::Path};

/// The folder of the compiled-in model.
const MODEL_FOLDER: &str = "models/static-256-v2";

/// The prefix of tokens that continue a word.
const CONTINUATION: &str = "##";

/// The token of nodes where no token ends.
const NO_TOKEN: u16 = u16::MAX;

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join(MODEL_FOLDER);
    let tokenizer = folder.join("tokenizer.json");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", tokenizer.display());
    println!("cargo::rustc-env=MODEL_FOLDER={}", folder.display());

    let tokens = vocabulary(&fs::read_to_string(tokenizer).unwrap());
    let trie = Path::new(&env::var("OUT_DIR").unwrap()).join("vocabulary.trie");
    fs::write(trie, trie_of(&tokens)).unwrap();
}

/// The tokens in the order of their numbers: the keys of `vocab` in the model of a `tokenizer.json`.
fn vocabulary(json: &str) -> Vec<String> {
    let (_, mut rest) = json.split_once(r#""vocab":{"#).expect("a vocabulary");
    let mut tokens = Vec::new();
    while let Some(entry) = rest.strip_prefix('"') {
        let (token, after) = string(entry);
        let number = format!(":{}", tokens.len());
        rest = after.strip_prefix(&number).expect("tokens are sorted by their numbers");
        rest = rest.strip_prefix(',').unwrap_or(rest);
        tokens.push(token);
    }
    assert!(rest.starts_with('}') && tokens.len() < usize::from(NO_TOKEN));
    tokens
}

/// The JSON string that `text` begins with, its first quote left out, and what comes after it.
fn string(text: &str) -> (String, &str) {
    let mut token = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next() {
            Some('"') => return (token, characters.as_str()),
            Some('\\') => match characters.next() {
                Some(escaped @ ('"' | '\\' | '/')) => token.push(escaped),
                other => panic!("unexpected escape {other:?}"),
            },
            Some(other) => token.push(other),
            None => panic!("a string without an end"),
        }
    }
}

/// The nodes of the trie, level by level, 8 bytes each: the number of the first child (`u32`), the byte that leads to
/// the node, a zero, and the token that ends here (`u16`). The children of a node end where those of the next one begin.
///
/// Node 0 is the root of tokens that begin a word, node 1 that of tokens that continue one.
fn trie_of(tokens: &[String]) -> Vec<u8> {
    let (mut beginnings, mut continuations) = (Vec::new(), Vec::new());
    for (token, number) in tokens.iter().zip(0..) {
        match token.strip_prefix(CONTINUATION) {
            Some(rest) => continuations.push((rest.as_bytes(), number)),
            None => beginnings.push((token.as_bytes(), number)),
        }
    }
    beginnings.sort_unstable();
    continuations.sort_unstable();

    let mut trie = Vec::new();
    let mut nodes = VecDeque::from([(0, 0, &beginnings[..]), (0, 0, &continuations[..])]);
    let mut first_child = nodes.len() as u32;
    while let Some((label, depth, entries)) = nodes.pop_front() {
        let (token, longer) = match entries {
            [(bytes, token), longer @ ..] if bytes.len() == depth => (*token, longer),
            _ => (NO_TOKEN, entries),
        };
        push_node(&mut trie, first_child, label, token);
        for below in longer.chunk_by(|(a, _), (b, _)| a[depth] == b[depth]) {
            nodes.push_back((below[0].0[depth], depth + 1, below));
            first_child += 1;
        }
    }
    // Marks the end of the last node's children.
    push_node(&mut trie, first_child, 0, NO_TOKEN);
    trie
}

fn push_node(trie: &mut Vec<u8>, first_child: u32, label: u8, token: u16) {
    trie.extend(first_child.to_le_bytes());
    trie.extend([label, 0]);
    trie.extend(token.to_le_bytes());
}
