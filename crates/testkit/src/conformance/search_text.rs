//! Full-text search.

use amplifier_session_core::{
    Scope,
    backend::{TextQuery, prelude::*},
    model::{ContentType, ContentTypes},
    search::SearchFilter,
    text::query_terms,
};
use serde_json::json;

use super::{
    Subject, samples,
    store::{Store, scope, sequences, target, target_of, words},
};
use crate::lines;

const SHA256: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// Words are found wherever a message says something: in plain and in block content, in thinking, in tool
/// output.
pub async fn words_are_found_wherever_they_stand(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = vec![
        lines::user("needle in a text"),
        lines::user_blocks(json!([{"type": "text", "text": "hay"}, {"type": "text", "text": "a needle"}])),
        lines::assistant("the needle"),
        lines::thinking("needle?", "nothing here"),
        lines::assistant("nothing").with("thinking", json!("beside: needle")),
        lines::tool("output: needle"),
        lines::tool_result("needle"),
        lines::message("tool", json!({"found": "needle"})),
        lines::message("assistant", json!([{"type": "reasoning", "summary": [{"text": "needle"}]}])),
        lines::user("hay"),
    ];
    store.sync(&target("s"), lines).await;
    assert_eq!(store.find(&target("s"), "needle").await, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let results = store.search(&target("s"), &words("needle").with_limit(100)).await.results;
    let content_type =
        |sequence: u32| results.iter().find(|r| r.sequence == sequence).map(|r| r.content_type);
    assert_eq!(content_type(1), Some(ContentType::UserQuery));
    assert_eq!(content_type(2), Some(ContentType::AssistantResponse));
    assert_eq!(content_type(3), Some(ContentType::AssistantThinking));
    assert_eq!(content_type(6), Some(ContentType::ToolOutput));
}

/// The keys and values of JSON that are no text of the message are not found.
pub async fn json_keys_are_not_found(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = vec![
        lines::thinking("mm", "hello")
            .at("2026-01-05T08:00:00Z")
            .with("x_custom", json!({"hidden": "treasure"})),
        lines::user_blocks(
            json!([{"type": "text", "text": "hello", "cache_control": {"kind": "ephemeral"}}]),
        ),
        lines::tool_call("find_files", json!({"pattern": "hello", "deep": 7})),
        lines::tool_result("hello"),
    ];
    store.sync(&target("s"), lines).await;
    let absent = "role content text type thinking metadata timestamp x_custom hidden treasure cache_control ephemeral \
        tool_use_id tool_result tool_call call_1 pattern deep 7 assistant user 2026 null";
    for word in absent.split_whitespace() {
        assert!(store.find(&target("s"), word).await.is_empty(), "{word}");
    }
    assert_eq!(store.find(&target("s"), "hello").await, [0, 1, 2, 3]);
}

/// What an assistant ran is found by the name of the tool and the texts among its arguments, as text of its own; a call
/// that stands in the line twice counts once.
pub async fn what_was_run_is_found_by_its_words(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let command = "terraform destroy -auto-approve";
    let twice = lines::tool_call("bash", json!({"command": command, "timeout": 30}))
        .with("tool_calls", json!([{"id": "call_1", "tool": "bash", "arguments": {"command": command}}]));
    let as_text = json!([{"id": "c", "function": {"name": "edit", "arguments": "{\"path\": \"main.tf\", \"old\": \"a needle\"}"}}]);
    let lines = vec![
        lines::user("what did you run?"),
        twice,
        lines::tool("destroyed"),
        lines::assistant("I edit it.").with("tool_calls", as_text),
    ];
    store.sync(&target("s"), lines).await;
    let found = store.search(&target("s"), &words("terraform destroy")).await.results;
    assert_eq!(sequences(&found)[0], 1);
    assert_eq!(
        (found[0].content_type, found[0].snippet.as_str()),
        (ContentType::ToolCall, "bash: terraform destroy -auto-approve")
    );
    assert_eq!(store.find(&target("s"), "needle main.tf").await, [3]);
    assert_eq!(store.find(&target("s"), "edit").await, [3]);
    let only = |name: &str| words("terraform").with_content_types(ContentTypes::parse(name).unwrap());
    for (name, expected) in
        [("tool", vec![1]), ("tool_call", vec![1]), ("tool_output", vec![]), ("assistant", vec![])]
    {
        assert_eq!(sequences(&store.search(&target("s"), &only(name)).await.results), expected, "{name}");
    }
    assert!(store.vectors(&target("s")).await.iter().all(|(sequence, _)| *sequence != 1));
}

/// A tool's answer in JSON is found, shown and marked as a person reads it; its line stays as it is.
pub async fn answers_of_tools_are_found_as_they_are_read(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let answer = json!({"error": null, "output": {"returncode": 0, "stderr": "", "stdout": "first\nneedle \"quoted\"\n"}, "success": true});
    let failed = json!({"success": false, "error": {"type": "NotFound", "message": "no needle here"}});
    let line = lines::tool(&answer.to_string());
    store
        .sync(
            &target("s"),
            vec![line.clone(), lines::message("tool", failed), lines::tool_result(&answer.to_string())],
        )
        .await;
    let results = store.search(&target("s"), &words("needle")).await.results;
    let snippet = |sequence| {
        results.iter().find(|result| result.sequence == sequence).map(|result| result.snippet.clone())
    };
    assert_eq!(snippet(0).as_deref(), Some("first needle \"quoted\""));
    assert_eq!(snippet(1).as_deref(), Some("NotFound: no needle here"));
    assert_eq!(snippet(2), snippet(0));
    for absent in ["returncode", "stdout", "success", "output", "nneedle"] {
        assert!(store.find(&target("s"), absent).await.is_empty(), "{absent}");
    }
    let messages = store.messages(&target("s")).await;
    assert_eq!(messages[0].raw, line.raw());
    let vectors = store.vectors(&target("s")).await;
    assert_eq!((vectors[0].1.span_start, vectors[0].1.span_end), (0, 22));
    assert_eq!(vectors[0].1.vector, store.embedding.vector("first\nneedle \"quoted\"\n"));
}

/// System messages are found when they are asked for, and only then.
pub async fn system_messages_are_found_when_asked_for(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines = vec![
        lines::system("the needle rules"),
        lines::message("developer", json!("needle")),
        lines::user("needle"),
    ];
    store.sync(&target("s"), lines).await;
    assert_eq!(store.find(&target("s"), "needle").await, [2]);
    let system: ContentTypes = [ContentType::System].into_iter().collect();
    let mut found =
        sequences(&store.search(&target("s"), &words("needle").with_content_types(system)).await.results);
    found.sort_unstable();
    assert_eq!(found, [0, 1]);
}

/// Accents, case and English endings make no difference.
pub async fn accents_and_case_make_no_difference(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines =
        ["Das Café öffnet", "CAFÉ", "cafe\u{301}", "naïve Straße", "Ελληνικά", "東京タワー", "running TESTS"];
    store.sync(&target("s"), lines.map(lines::user).to_vec()).await;
    for query in ["café", "cafe", "CAFE", "Cafe\u{301}"] {
        assert_eq!(store.find(&target("s"), query).await, [0, 1, 2], "{query}");
    }
    for (query, sequence) in
        [("naive", 3), ("strasse", 3), ("ΕΛΛΗΝΙΚΆ", 4), ("東京", 5), ("test", 6), ("runs", 6)]
    {
        assert_eq!(store.find(&target("s"), query).await, [sequence], "{query}");
    }
}

/// Hashes and other long identifiers are words; words of any length do no harm.
pub async fn long_identifiers_are_found(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let identifier = "very_long_function_name".repeat(5).replace('_', "");
    let base64 = "QUJD".repeat(10_000);
    let lines = vec![
        lines::tool(&format!("sha256:{SHA256} image.tar")),
        lines::user(&format!("what is {identifier}?")),
        lines::tool(&format!("{base64} behind")),
        lines::user("3a7c1e90-1f4b-4d2a-9c11-0b2e5d6f7a01"),
    ];
    store.sync(&target("s"), lines).await;
    assert_eq!(store.find(&target("s"), SHA256).await, [0]);
    assert_eq!(store.find(&target("s"), &SHA256.to_uppercase()).await, [0]);
    assert!(store.find(&target("s"), &SHA256[..40]).await.is_empty());
    assert_eq!(store.find(&target("s"), &identifier).await, [1]);
    assert_eq!(store.find(&target("s"), "behind").await, [2]);
    assert_eq!(store.find(&target("s"), "3a7c1e90-1f4b-4d2a-9c11-0b2e5d6f7a01").await, [3]);
}

/// More of the words, and rarer ones, rank higher.
pub async fn better_matches_rank_higher(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let filler = |n: u32| lines::user(if n < 6 { "common filler words" } else { "just filler words" });
    let mut lines: Vec<_> = (0..20).map(filler).collect();
    lines.push(lines::user("common rare words"));
    lines.push(lines::user("rare words"));
    store.sync(&target("s"), lines).await;
    let ranked = sequences(&store.search(&target("s"), &words("rare common")).await.results);
    assert_eq!(ranked[..2], [20, 21]);
    assert_eq!(ranked.len(), 8);
}

/// Candidates are BM25 by the formula in `core`, with the statistics of all texts; best first, up to the
/// limit.
pub async fn candidates_are_scored_by_bm25(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let mut random = samples::Random(7);
    let texts: Vec<String> = (0..120).map(|n| random.words(5 + n % 30, 60)).collect();
    store.sync(&target("s"), texts.iter().map(|text| lines::user(text)).collect()).await;
    store.storage.update_index().await.unwrap();
    for query in ["word1", "word2 word3 word59", "word7 word7 nothing"] {
        let terms = query_terms(query);
        let expected = scores(&texts, &terms);
        for limit in [5, 1_000] {
            let query = TextQuery {
                scope: scope(&target("s")),
                filter: SearchFilter::default(),
                content_types: ContentTypes::embedded(),
                terms: terms.clone(),
                limit,
            };
            let candidates = store.backend.text_candidates(&query).await.unwrap().items;
            assert_eq!(candidates.len(), expected.iter().filter(|score| **score > 0.0).count().min(limit));
            assert!(candidates.windows(2).all(|pair| pair[0].score >= pair[1].score));
            for candidate in &candidates {
                let expected = expected[candidate.place.sequence as usize];
                assert!(
                    (candidate.score - expected).abs() < 0.01 * expected,
                    "{} {expected}",
                    candidate.score
                );
            }
        }
    }
}

fn scores(texts: &[String], terms: &[String]) -> Vec<f32> {
    use amplifier_session_core::text::{
        Analyzer,
        bm25::{CollectionStatistics, count_terms, score},
    };
    let mut analyzer = Analyzer::new();
    let counted: Vec<_> = texts.iter().map(|text| count_terms(&mut analyzer, text, terms)).collect();
    let mut statistics = CollectionStatistics::new(terms.len());
    counted.iter().for_each(|document| statistics.add_document(document));
    counted.iter().map(|document| score(&statistics, document)).collect()
}

/// Each text of a message is a candidate of its own.
pub async fn each_text_of_a_message_is_a_candidate(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), vec![lines::thinking("needle", "needle"), lines::tool("needle")]).await;
    let query = TextQuery {
        scope: Scope::Everyone,
        filter: SearchFilter::default(),
        content_types: ContentTypes::embedded(),
        terms: query_terms("needle"),
        limit: 10,
    };
    let candidates = store.backend.text_candidates(&query).await.unwrap().items;
    let mut found: Vec<_> = candidates.iter().map(|c| (c.place.sequence, c.content_type)).collect();
    found.sort();
    let (answer, thinking) = (ContentType::AssistantResponse, ContentType::AssistantThinking);
    assert_eq!(found, [(0, answer), (0, thinking), (1, ContentType::ToolOutput)]);
}

/// Snippets show the place and mark the words, in any alphabet.
pub async fn snippets_mark_the_words(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let filler = "weit und breit nichts 👍 ".repeat(100);
    store
        .sync(
            &target("s"),
            vec![lines::user(&format!("{filler} das Café\n\nam Eck {filler}")), lines::tool("café")],
        )
        .await;
    for result in store.search(&target("s"), &words("CAFE").with_snippet_chars(80)).await.results {
        assert!(result.snippet.chars().count() <= 90, "{}", result.snippet);
        let characters: Vec<char> = result.snippet.chars().collect();
        let marked: Vec<String> = result
            .highlights
            .iter()
            .map(|(start, end)| {
                characters[*start as usize..*end as usize].iter().collect::<String>().to_lowercase()
            })
            .collect();
        assert_eq!(marked, ["café"]);
    }
}

/// A message is found by what it says now, and not by what it said.
pub async fn a_message_is_found_by_what_it_says_now(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for round in 0..5 {
        store
            .sync(
                &target("s"),
                vec![lines::user(&format!("round{round}")), lines::tool(&format!("output{round}"))],
            )
            .await;
        if round % 2 == 0 {
            store.storage.update_index().await.unwrap();
        }
        for other in 0..5 {
            let expected: &[u32] = if other == round { &[0, 1] } else { &[] };
            assert_eq!(store.find(&target("s"), &format!("round{other} output{other}")).await, expected);
        }
    }
    store.sync(&target("s"), vec![lines::user("round4")]).await;
    assert!(store.find(&target("s"), "output4").await.is_empty());
}

/// Bringing the index up to date changes no answer.
pub async fn updating_the_index_changes_no_answer(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let mut random = samples::Random(11);
    for session in ["a", "b", "c"] {
        store.sync(&target(session), (0..60).map(|_| lines::user(&random.words(12, 80))).collect()).await;
    }
    let queries =
        ["word1 word2", "word3", "word79 word40 word20"].map(|query| words(query).with_limit(1_000));
    let mut before = Vec::new();
    for query in &queries {
        before.push(store.search(&target("a"), query).await.results);
    }
    store.storage.update_index().await.unwrap();
    for (query, before) in queries.iter().zip(&before) {
        let after = store.search(&target("a"), query).await.results;
        assert_eq!(places(&after), places(before));
        let top = |results: &[_]| places(&results[..10]);
        let shared = top(&after).intersection(&top(before)).count();
        assert!(shared >= 9, "{shared} of 10 for {}", query.query);
    }
}

fn places(
    results: &[amplifier_session_core::search::SearchResult],
) -> std::collections::BTreeSet<(String, u32)> {
    results.iter().map(|result| (result.session_id.to_string(), result.sequence)).collect()
}

/// A message that was committed is found at once, also through a handle that has searched before.
pub async fn a_committed_message_is_found_at_once(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let again = Store::open_again(subject).await;
    for n in 0..10 {
        let target = target_of("ana", "shop", &format!("s{}", n % 3));
        let start = n / 3;
        let writer = if n % 2 == 0 { &store } else { &again };
        writer.sync_from(&target, start, vec![lines::user(&format!("needle fresh{n}"))]).await.unwrap();
        for handle in [&store, &again] {
            assert_eq!(handle.find(&target, &format!("fresh{n}")).await, [start]);
            assert_eq!(handle.find(&target, "needle").await.len() as u32, n + 1);
        }
        if n % 4 == 3 {
            store.storage.update_index().await.unwrap();
        }
    }
}
