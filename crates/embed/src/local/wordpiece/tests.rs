//! The tokens are those of the `tokenizers` crate.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use proptest::prelude::*;
use tokenizers::Tokenizer;

use super::*;
use crate::local::tests::any_text;

/// Only files with these extensions are compared.
const ENDINGS: [&str; 6] = ["json", "jsonl", "md", "rs", "toml", "txt"];

static REFERENCE: LazyLock<Tokenizer> = LazyLock::new(|| {
    Tokenizer::from_bytes(include_bytes!(concat!(env!("MODEL_FOLDER"), "/tokenizer.json"))).unwrap()
});

fn tokens(text: &str) -> Vec<u32> {
    let mut tokens = Vec::new();
    tokenize(text, &mut tokens);
    tokens.into_iter().map(u32::from).collect()
}

fn expected(text: &str) -> Vec<u32> {
    REFERENCE.encode_fast(text, false).unwrap().get_ids().to_vec()
}

/// Compares line by line first, so that a difference is easy to find.
fn assert_same(text: &str) {
    for line in text.lines() {
        assert_eq!(tokens(line), expected(line), "{line:?}");
    }
    assert!(tokens(text) == expected(text), "{text:?}");
}

/// All text files below `folder`.
fn text_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_dir() {
            files.extend(text_files(&path));
        } else if ENDINGS.contains(&ending) {
            files.push(path);
        }
    }
    files
}

fn compare_files_below(folder: &Path) {
    let files = text_files(folder);
    assert!(!files.is_empty(), "{} has no texts", folder.display());
    for file in files {
        assert_same(&String::from_utf8_lossy(&fs::read(file).unwrap()));
    }
}

#[test]
fn the_whole_vocabulary_is_the_same() {
    for (token, number) in REFERENCE.get_vocab(true) {
        let found = match token.strip_prefix("##") {
            Some(rest) => longest_token(Root::Continuation, rest.as_bytes()),
            None => longest_token(Root::Beginning, token.as_bytes()),
        };
        let bytes = token.strip_prefix("##").unwrap_or(&token).len();
        assert_eq!(found, Some((number as u16, bytes)), "{token:?}");
        assert_same(&token);
    }
}

#[test]
fn every_character_is_treated_the_same() {
    // No characters are assigned in the planes between, and the last two are for private use.
    let assigned = ('\0'..='\u{2ffff}').chain('\u{e0000}'..='\u{e01ff}').chain('\u{ffff0}'..='\u{10000f}');
    for some in assigned.collect::<Vec<_>>().chunks(512) {
        let alone: String = some.iter().flat_map(|c| [*c, ' ']).collect();
        let in_words: String =
            some.iter().flat_map(|c| ['a', *c, '\u{301}', '\u{1d165}', 'e', ' ']).collect();
        for text in [alone, in_words] {
            assert_eq!(tokens(&text), expected(&text), "{text:?}");
        }
    }
}

#[test]
fn samples_sources_and_documentation_have_the_same_tokens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for folder in
        ["docs", "crates/cli/samples", "crates/secrets/rules", "crates/embed/src", "crates/core/src/text"]
    {
        compare_files_below(&root.join(folder));
    }
}

#[test]
fn unusual_texts_have_the_same_tokens() {
    let long_words =
        [99, 100, 101, 300].map(|length| ["e", "é", "漢", "각"].map(|c| c.repeat(length)).join(" "));
    let literals = [
        "[UNK]",
        "[PAD]",
        "[[PAD]]",
        "a[UNK]b",
        "[PAD][UNK]",
        "[pad] [unk] [CLS] [MASK]",
        "[P[PAD]AD]",
        "[UNK",
        "é[PAD]é",
        "[UN\u{301}K]",
        "[",
        "[]",
    ];
    let unicode = [
        "naïve Café ŚÞÅ ΣΊΣΥΦΟΣ ǅ İ ı ß ẞ ﬁ Å \u{212b} \u{1e9b}\u{323}",
        "a\u{b}b\u{c}c\u{85}d\u{a0}e\u{2028}f\u{200b}g\u{feff}h\u{ad}i\0j\u{7f}k\u{fffd}l",
        "日本語のテキスト 한국어 문장 豈更車 中文，标点。「引号」",
        "नमस्ते مرحبا שָׁלוֹם ไทย 🦀🦀 👩‍👩‍👧‍👦 𝕳𝖊𝖑𝖑𝖔 🇩🇪",
        "“quotes” — dashes – … ‹› «» ¿¡ § ° € £ × ÷ ½ ² ™ →",
        "e\u{301}\u{327}\u{301} q\u{307}\u{323} \u{344} \u{1D16D}\u{1}\u{1D165} \u{1133e}\u{11357}",
        "snake_case camelCase kebab-case path/to/file.rs:42 0xDEADBEEF 1_000.5e-7 ##ing #[cfg(test)]",
        "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0MTIzNDU2Nzg5 5e884898da28047151d0e56f8dc6292773603d0d",
    ];
    for text in literals.into_iter().chain(unicode).chain(long_words.iter().map(String::as_str)) {
        assert_same(text);
        assert_same(&format!("{text} and {text}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn any_text_has_the_same_tokens(text in any_text()) {
        prop_assert_eq!(tokens(&text), expected(&text));
    }
}
