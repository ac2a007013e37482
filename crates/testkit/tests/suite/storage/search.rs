//! Searches: the contents of a result, and how hybrid search combines both methods.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    words_are_found_in_every_text_of_a_message,
    tool_results_are_found_in_readable_form,
    snippets_mark_the_words,
    any_text_is_a_plain_query,
    a_result_has_the_location_of_its_message,
    no_result_contains_a_vector,
    a_message_is_one_result_and_scores_descend,
    options_out_of_range_are_errors,
    thinking_is_found_only_on_request,
    results_of_both_methods_rank_first,
    messages_without_vectors_are_found_by_words,
    hybrid_search_falls_back_to_full_text,
    diversity_moves_copies_down,
];

const MODES: [SearchMode; 3] = [SearchMode::FullText, SearchMode::Semantic, SearchMode::Hybrid];

fn search(query: &str, mode: SearchMode) -> SearchOptions {
    SearchOptions::new(query).with_mode(mode).with_limit(100)
}

/// Words are found in every text of a message: plain and block content, thinking, tool results and tool calls. System
/// messages are found only on request. Keys and values of JSON that are not text are not found.
async fn words_are_found_in_every_text_of_a_message(store: Store) {
    let command = json!({"command": "needle -auto-approve", "timeout": 30});
    let call = json!([{"id": "call_1", "tool": "bash", "arguments": {"command": "needle -auto-approve"}}]);
    let as_text = json!([{"id": "c", "function": {"name": "edit", "arguments": "{\"old\": \"a needle\"}"}}]);
    let ephemeral = json!({"kind": "ephemeral"});
    let lines = [
        (
            Some(ContentType::UserQuery),
            lines::user("needle in a text").with("x_custom", json!({"hidden": "treasure"})),
        ),
        (
            Some(ContentType::UserQuery),
            lines::message(
                "user",
                json!([{"type": "text", "text": "hay", "cache_control": ephemeral}, {"type": "text", "text": "a needle"}]),
            ),
        ),
        (Some(ContentType::AssistantResponse), lines::assistant("the needle")),
        (Some(ContentType::AssistantThinking), lines::thinking("needle?", "nothing here")),
        (Some(ContentType::AssistantThinking), lines::assistant("nothing").with("thinking", json!("needle"))),
        (Some(ContentType::ToolOutput), lines::tool("output: needle")),
        (Some(ContentType::ToolOutput), lines::tool_result("needle")),
        (Some(ContentType::ToolOutput), lines::message("tool", json!({"found": "needle"}))),
        (
            Some(ContentType::AssistantThinking),
            lines::message("assistant", json!([{"type": "reasoning", "summary": [{"text": "needle"}]}])),
        ),
        // A call that is in the line twice counts once.
        (Some(ContentType::ToolCall), lines::tool_call("bash", command).with("tool_calls", call)),
        (Some(ContentType::ToolCall), lines::assistant("I edit it.").with("tool_calls", as_text)),
        (None, lines::system("the needle rules")),
        (None, lines::message("developer", json!("needle"))),
        (None, lines::user("hay")),
    ];
    store.sync(&target("s"), lines.iter().map(|(_, line)| line.clone()).collect()).await;
    let mut found = store.search(&target("s"), &words("needle").with_limit(100)).await.results;
    found.sort_by_key(|result| result.sequence);
    let found: Vec<_> = found.iter().map(|result| (result.sequence, result.content_type)).collect();
    let expected = (0..).zip(&lines).filter_map(|(n, (content_type, _))| Some((n, (*content_type)?)));
    assert_eq!(found, expected.collect::<Vec<_>>());
    let calls = words("needle approve").with_content_types(only(ContentType::ToolCall));
    let result = &store.search(&target("s"), &calls).await.results[0];
    assert_eq!((result.sequence, result.snippet.as_str()), (9, "bash: needle -auto-approve"));
    let system = words("needle").with_content_types(only(ContentType::System));
    assert_eq!(store.search(&target("s"), &system).await.results.len(), 2);
    let absent = "role content type metadata x_custom hidden treasure cache_control ephemeral tool_use_id call_1 \
        timeout 30 assistant user null";
    for word in absent.split_whitespace() {
        assert!(store.find(&target("s"), word).await.is_empty(), "{word}");
    }
}

/// A tool result in JSON is searched, shown, marked and embedded in readable form. Its line does not change.
async fn tool_results_are_found_in_readable_form(store: Store) {
    let answer = json!({"error": null, "output": {"returncode": 0, "stderr": "", "stdout": "first\nneedle \"quoted\"\n"}, "success": true});
    let failed = json!({"success": false, "error": {"type": "NotFound", "message": "no needle here"}});
    let answer = answer.to_string();
    let lines = [lines::tool(&answer), lines::message("tool", failed), lines::tool_result(&answer)];
    store.sync(&target("s"), lines.to_vec()).await;
    let mut results = store.search(&target("s"), &words("needle")).await.results;
    results.sort_by_key(|result| result.sequence);
    let snippets: Vec<&str> = results.iter().map(|result| result.snippet.as_str()).collect();
    let read = "first\nneedle \"quoted\"";
    assert_eq!(snippets, [read, "NotFound: no needle here"]);
    assert_eq!(results[0].also_in[0].sequence, 2);
    assert!(store.find(&target("s"), "returncode stdout success output").await.is_empty());
    assert_eq!(store.messages(&target("s")).await[0].raw, lines[0].clone().raw());
    let (_, record) = store.vectors(&target("s")).await.remove(0);
    assert_eq!((record.span_start, record.span_end), (0, 22));
    assert!(is_kept(&record.vector, &store.embedding.vector("first\nneedle \"quoted\"\n")));
}

/// Snippets contain the match and mark the words, in any script.
async fn snippets_mark_the_words(store: Store) {
    let filler = "weit und breit nichts 👍 ".repeat(100);
    let text = format!("{filler} das Café\n\nam Eck {filler}");
    store.sync(&target("s"), vec![lines::user(&text), lines::tool("café")]).await;
    for result in store.search(&target("s"), &words("CAFE").with_snippet_chars(80)).await.results {
        assert!(result.snippet.chars().count() <= 90, "{}", result.snippet);
        let characters: Vec<char> = result.snippet.to_lowercase().chars().collect();
        let [(start, end)] = result.highlights[..] else { panic!("{:?}", result.highlights) };
        assert_eq!(characters[start as usize..end as usize].iter().collect::<String>(), "café");
    }
}

/// Any text is a valid query: nothing in it is an operator, a pattern or a quote, and no length is too long.
async fn any_text_is_a_plain_query(store: Store) {
    let texts = ["a plain message", "100% of a_b \"quoted\" AND more", "an axb"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let long = "lorem ipsum dolor sit amet ".repeat(400);
    let nothing = [
        "%", "_", "\"", "*", "", " ", "\n\t", "%%", "''", "\0", "*:*", "\\", "()", "👍", "-- ;", "pla*",
        "pl%", "p_ain",
    ];
    let plain = [
        "\"plain",
        "plain*",
        "plain AND",
        "(plain",
        "plain^2",
        "content_type:plain",
        "'; DROP TABLE x; -- plain",
    ];
    for mode in MODES {
        for query in nothing.into_iter().chain([long.as_str()]) {
            let results = store.search(&target("s"), &search(query, mode)).await.results;
            assert!(mode != SearchMode::FullText || results.is_empty(), "{query:?}");
        }
        for query in plain {
            let results = store.search(&target("s"), &search(query, mode)).await.results;
            assert!(sequences(&results).contains(&0), "{mode} {query:?}");
        }
    }
    for (query, sequence) in [("100%", 1), ("a_b", 1), ("\"quoted\"", 1), ("axb", 2)] {
        assert_eq!(store.find(&target("s"), query).await, [sequence], "{query}");
    }
}

/// A result has the location of its message, and the whole message only on request.
async fn a_result_has_the_location_of_its_message(store: Store) {
    let needle = lines::user("a needle").at(day(5)).with("x", json!(1.5));
    store.sync(&target("s"), vec![lines::user("hello"), needle]).await;
    for mode in MODES {
        let first =
            async |options: SearchOptions| store.search(&target("s"), &options).await.results.remove(0);
        let result = first(search("needle", mode)).await;
        let session = (result.user_id.as_str(), result.session_id.as_str(), result.project.as_str());
        assert_eq!(session, ("ana", "s", "shop"));
        assert_eq!((result.sequence, result.turn, result.role, result.ts), (1, Some(2), Role::User, day(5)));
        assert_eq!((result.content_type, result.span), (ContentType::UserQuery, (0, 8)));
        assert_eq!((result.snippet.as_str(), result.message), ("a needle", None));
        let message = first(search("needle", mode).with_message(true)).await.message.unwrap();
        assert_eq!((&message["content"], &message["x"]), (&json!("a needle"), &json!(1.5)));
    }
}

/// No result contains a vector.
async fn no_result_contains_a_vector(store: Store) {
    fn longest_list_of_numbers(value: &Value) -> usize {
        let nested = match value {
            Value::Array(items) if items.iter().all(Value::is_number) => return items.len(),
            Value::Array(items) => items.iter().map(longest_list_of_numbers).max(),
            Value::Object(fields) => fields.values().map(longest_list_of_numbers).max(),
            _ => None,
        };
        nested.unwrap_or(0)
    }
    store.sync(&target("s"), vec![lines::user("a needle"), lines::tool("needle")]).await;
    for mode in MODES {
        let options = search("needle", mode).with_message(true);
        let answer = serde_json::to_value(store.search(&target("s"), &options).await).unwrap();
        assert_eq!(answer["results"].as_array().unwrap().len(), 2);
        assert_eq!(longest_list_of_numbers(&answer), 2, "{mode}");
        assert!(!answer["results"].to_string().contains("vector"), "{mode}");
    }
}

/// A message is one result, however many of its texts match. Scores descend between 1 and 0, whatever the weight of
/// diversity.
async fn a_message_is_one_result_and_scores_descend(store: Store) {
    let line = |n: usize| {
        lines::thinking(
            &format!("needle {n} {}", "hay ".repeat(n)),
            &format!("needle {n} {}", "straw ".repeat(n % 4)),
        )
    };
    store.sync(&target("s"), (0..30).map(line).collect()).await;
    for mode in MODES {
        for (limit, lambda) in [(1, 0.7), (7, 0.0), (30, 0.3), (100, 1.0), (100, 0.7)] {
            let options = search("needle", mode).with_limit(limit).with_mmr_lambda(lambda);
            let results = store.search(&target("s"), &options).await.results;
            assert_eq!(results.len(), limit.min(30), "{mode}");
            let places: std::collections::BTreeSet<u32> = sequences(&results).into_iter().collect();
            assert_eq!(places.len(), results.len(), "{mode}");
            assert!(results.windows(2).all(|pair| pair[0].score >= pair[1].score), "{mode}");
            assert!(results.iter().all(|result| (0.0..=1.0).contains(&result.score)), "{mode}");
        }
    }
}

/// Searching no content types is an error, as is any option out of range.
async fn options_out_of_range_are_errors(store: Store) {
    for mode in MODES {
        let options = || search("needle", mode);
        let refused = [
            options().with_content_types(ContentTypes::NONE),
            options().with_limit(0),
            options().with_limit(1_001),
            options().with_mmr_lambda(1.5),
            options().with_mmr_lambda(f32::NAN),
            options().with_min_similarity(2.0),
        ];
        for options in refused {
            let answer = store.storage.search().search_transcripts(&ana(), &options).await;
            assert_eq!(kind(answer), ErrorKind::Validation, "{options:?}");
        }
    }
}

/// Thinking is found only on request.
async fn thinking_is_found_only_on_request(store: Store) {
    let lines = vec![lines::thinking("needle only thought", "something else"), lines::user("needle asked")];
    store.sync(&target("s"), lines).await;
    let without = [ContentType::UserQuery, ContentType::AssistantResponse].into_iter().collect();
    for mode in MODES {
        let options = search("only thought", mode).with_content_types(without);
        for result in store.search(&target("s"), &options).await.results {
            assert_ne!(result.content_type, ContentType::AssistantThinking, "{mode}");
            assert!(!result.snippet.contains("thought"), "{mode}");
        }
    }
}

/// Results found by both methods rank above those found by one. Each result has its source.
async fn results_of_both_methods_rank_first(store: Store) {
    let texts = ["the connection pool was tuned", "apples and pears", "other words", "unrelated"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let answer = store.search(&target("s"), &SearchOptions::new("connection pool")).await;
    assert_eq!((answer.mode, fell_back_to_full_text(&answer)), (SearchMode::Hybrid, false));
    let best = &answer.results[0];
    assert_eq!((best.sequence, best.source), (0, SearchSource::Both));
    assert!(best.text_score.unwrap() > 0.0 && best.similarity.unwrap() > 0.3);
    assert!(answer.results[1..].iter().all(|result| result.source == SearchSource::Semantic));
}

/// A message with pending vectors is found by its words, also if no message has vectors.
async fn messages_without_vectors_are_found_by_words(store: Store) {
    store.sync_text(&target("s"), vec![lines::user("a basket of pears")]).await;
    for others in 0..2 {
        let results = store.search(&target("s"), &SearchOptions::new("basket pears")).await.results;
        let result = results.iter().find(|result| result.session_id == target("s").key.session_id).unwrap();
        assert_eq!((result.source, result.similarity), (SearchSource::FullText, None));
        assert_eq!(results.len(), 1 + others);
        store.sync(&target("t"), vec![lines::user("a basket of apples")]).await;
    }
}

/// Without a provider, or if the query cannot be embedded, a hybrid search falls back to full text and reports it. A
/// semantic search fails.
async fn hybrid_search_falls_back_to_full_text(store: Store) {
    store.sync(&target("s"), vec![lines::user("a basket"), lines::user("a cup")]).await;
    let answers = [Answer::TooFew, Answer::WrongDimensions, Answer::NotFinite].map(Some);
    for answer in answers.into_iter().chain([None]) {
        store.embedding.answer_with(answer.unwrap_or_default());
        store.embedding.fail_always(answer.is_none());
        let error = store.storage.search().search_transcripts(&ana(), &meaning("basket")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Embedding, "{answer:?}");
        assert!(error.is_retryable() || answer.is_some());
        let found = store.search(&target("s"), &SearchOptions::new("basket")).await;
        assert_eq!((found.mode, sequences(&found.results)), (SearchMode::FullText, vec![0]), "{answer:?}");
        assert!(fell_back_to_full_text(&found));
    }
    store.embedding.fail_always(false);
    store.embedding.answer_with(Answer::Right);
    let found = store.search(&target("s"), &SearchOptions::new("basket")).await;
    assert_eq!((found.mode, fell_back_to_full_text(&found)), (SearchMode::Hybrid, false));

    let without = store.storage_with(None);
    let found = without.search().search_transcripts(&ana(), &SearchOptions::new("basket")).await.unwrap();
    assert_eq!((found.mode, sequences(&found.results)), (SearchMode::FullText, vec![0]));
    assert!(fell_back_to_full_text(&found));
    let semantic = without.search().search_transcripts(&ana(), &meaning("basket")).await;
    assert_eq!(kind(semantic), ErrorKind::Unsupported);
}

/// Diversity moves copies of chosen results down, also if all candidates are returned.
async fn diversity_moves_copies_down(store: Store) {
    let copy = "tuning the connection pool of the database";
    let other = "why is the connection slow after lunch every day in our office";
    let copies =
        [copy, "tuning our connection pool of the database", "tuning a connection pool of the database"];
    store.sync(&target("s"), copies.into_iter().chain([other]).map(lines::user).collect()).await;
    for mode in [SearchMode::Semantic, SearchMode::Hybrid] {
        for (lambda, limit, rank) in [(1.0, 10, 3), (0.3, 2, 1), (0.3, 4, 1), (0.3, 10, 1)] {
            let options = search("connection pool database", mode).with_mmr_lambda(lambda).with_limit(limit);
            let order = sequences(&store.search(&target("s"), &options).await.results);
            assert_eq!(order.len(), limit.min(4));
            assert_eq!(order[rank], 3, "{mode} {limit}: {order:?}");
        }
    }
}
