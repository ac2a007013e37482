//! Makes the vocabulary of the compiled-in model: a trie over the tokens of its `tokenizer.json`, which
//! `src/local/vocabulary.rs` reads from the program's bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a build script fails by panicking"
)]

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    env, fs,
    path::Path,
};

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

/// A slot of the double array: a node of the trie, or nothing.
#[derive(Clone, Default)]
struct Slot {
    /// The child by a byte is in slot `base` plus byte. No two nodes have the same base; 0 has no children.
    base: u32,
    /// The byte that leads to the node; `None` if no byte does.
    label: Option<u8>,
    token: u16,
}

/// The trie as a double array (Aoe, 1989), so that a byte leads to its node without a search. Slots are 8 bytes each: the
/// base (`u32`), the label, 1 if the slot has a label, and the token that ends at the node (`u16`).
///
/// Slot 0 is the root of tokens that begin a word, slot 1 that of tokens that continue one.
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

    let mut slots = vec![Slot { token: NO_TOKEN, ..Slot::default() }; 2];
    let mut bases = HashSet::new();
    let mut nodes = VecDeque::from([(0, 0, &beginnings[..]), (1, 0, &continuations[..])]);
    // Slots without a node, below the last one. Few are left between nodes, so that a base is found soon.
    let mut free: BTreeSet<usize> = BTreeSet::new();
    while let Some((slot, depth, entries)) = nodes.pop_front() {
        let longer = match entries {
            [(bytes, token), longer @ ..] if bytes.len() == depth => {
                slots[slot].token = *token;
                longer
            }
            _ => entries,
        };
        let children: Vec<_> = longer.chunk_by(|(a, _), (b, _)| a[depth] == b[depth]).collect();
        let labels: Vec<u8> = children.iter().map(|below| below[0].0[depth]).collect();
        let Some(least) = labels.first().map(|label| usize::from(*label)) else { continue };
        let is_free = |slot: usize| slot >= slots.len() || free.contains(&slot);
        let base = free
            .range(least + 1..)
            .copied()
            .chain(slots.len().max(least + 1)..)
            .map(|slot| slot - least)
            .find(|base| {
                !bases.contains(base) && labels.iter().all(|label| is_free(base + usize::from(*label)))
            })
            .unwrap();
        bases.insert(base);
        slots[slot].base = base as u32;
        for (label, below) in labels.into_iter().zip(children) {
            let child = base + usize::from(label);
            free.extend(slots.len()..=child);
            free.remove(&child);
            slots.resize(slots.len().max(child + 1), Slot { token: NO_TOKEN, ..Slot::default() });
            slots[child].label = Some(label);
            nodes.push_back((child, depth + 1, below));
        }
    }
    slots.iter().flat_map(|slot| slot.bytes()).collect()
}

impl Slot {
    fn bytes(&self) -> [u8; 8] {
        let [a, b, c, d] = self.base.to_le_bytes();
        let [low, high] = self.token.to_le_bytes();
        [a, b, c, d, self.label.unwrap_or(0), u8::from(self.label.is_some()), low, high]
    }
}
