//! Queries: a line with the query, and the text to search.

use std::{
    collections::{BTreeSet, HashSet},
    sync::LazyLock,
};

use amplifier_session_core::{
    Scope, SessionStorage,
    model::ContentType,
    search::{SearchMode, SearchOptions, TypedQuery},
    text::{MAX_QUERY_TERMS, Snippets, query_terms},
};
use amplifier_session_sqlite::Sqlite;
use tempfile::TempDir;

use crate::{
    Target,
    workplace::{found, samples, storage, storage_on, synced, wait},
};

pub(super) const TARGET: Target = Target {
    name: "query",
    seeds: || {
        let queries = [
            "Why is the basket empty after login?",
            "100% \"exact\" foo* AND bar_baz",
            "naïve café 東京 don't",
            "\"connection pool\" time* -postgres role:assistant rm -rf",
        ];
        let texts = samples("transcript.jsonl");
        queries.iter().zip(texts).map(|(query, text)| [query.as_bytes(), b"\n", &text].concat()).collect()
    },
    tokens: &[
        "\n",
        " AND ",
        "\"",
        "*",
        "* ",
        " -",
        " \"",
        "role:",
        "the ",
        "ß",
        "İ",
        "ﬁ",
        "\u{301}",
        "\u{200d}",
        "👍🏽",
        "東京",
        "Ω",
        "_",
        "getUserName",
        "don't",
        "\u{feff}",
        "\0",
        "a ",
    ],
    caught: &[],
    check,
};

/// The same sessions in two stores: one searches its index, the other its rows.
struct Stores {
    indexed: SessionStorage,
    plain: SessionStorage,
    _folder: TempDir,
}

static STORES: LazyLock<Stores> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let backend = wait(Sqlite::open(folder.path().join("sessions.sqlite"))).unwrap();
    let (indexed, plain) = (storage_on(std::sync::Arc::new(backend)), storage());
    let transcript = samples("transcript.jsonl").concat();
    for storage in [&indexed, &plain] {
        synced(storage, &[("metadata.json", b"{}"), ("transcript.jsonl", &transcript)]);
    }
    Stores { indexed, plain, _folder: folder }
});

fn check(input: &[u8]) {
    let input = String::from_utf8_lossy(input);
    let (query, text) = input.split_once('\n').unwrap_or((&input, ""));
    let terms = query_terms(query);
    assert!(terms.len() <= MAX_QUERY_TERMS);
    assert_eq!(terms.iter().collect::<HashSet<_>>().len(), terms.len(), "{terms:?}");
    for chars in [0, 1, 20, 240] {
        let snippet = Snippets::new(&terms).cut(text, ContentType::ToolOutput, None, chars);
        let length = snippet.text.chars().count();
        assert!(length <= chars + 2, "{length} characters of {chars}: {snippet:?}");
        let mut end = 0;
        for (from, to) in snippet.highlights {
            assert!(end <= from && from < to && to as usize <= length);
            end = to;
        }
    }
    if query.trim().is_empty() {
        return;
    }
    let stores = &*STORES;
    let answer = |storage| {
        let mut keys: Vec<_> = found(storage, query, SearchMode::FullText)
            .unwrap()
            .into_iter()
            .map(|result| (result.sequence, result.content_type.as_str()))
            .collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(answer(&stores.indexed), answer(&stores.plain), "{query:?}");
    found(&stores.indexed, query, SearchMode::Hybrid).unwrap();
    let parsed = TypedQuery::parse(query);
    if !parsed.is_plain() {
        let answer = |storage| messages(storage, &parsed, SearchMode::FullText);
        assert_eq!(answer(&stores.indexed), answer(&stores.plain), "{parsed:?}");
        messages(&stores.indexed, &parsed, SearchMode::Hybrid);
    }
}

/// The messages that a query with operators finds, with those that repeat them.
fn messages(storage: &SessionStorage, query: &TypedQuery, mode: SearchMode) -> BTreeSet<u32> {
    let options = SearchOptions::parsed(query).with_mode(mode).with_limit(1_000);
    let results = wait(storage.search().search_transcripts(&Scope::Everyone, &options)).unwrap().results;
    let repeats = results.iter().flat_map(|result| &result.also_in).map(|repeat| repeat.sequence);
    results.iter().map(|result| result.sequence).chain(repeats).collect()
}
