//! What ranks above what, what is one result, and what is none.

use amplifier_session_core::{
    embedding::ModelStrength,
    search::{Lowered, MatchKind},
};
use amplifier_session_testkit::prelude::*;

on_both_stores![
    words_near_each_other_rank_above_scattered_ones,
    a_session_with_several_matches_ranks_first,
    answers_rank_above_a_question_that_repeats_the_query,
    text_that_programs_insert_ranks_last,
    lines_that_nobody_typed_rank_last,
    noise_ranks_last_but_is_found,
    repeated_texts_are_one_result,
    a_copied_message_is_shown_where_it_was_written,
    a_result_says_what_it_matched,
    identifiers_are_found_in_any_spelling,
    unrelated_texts_are_no_results,
    a_session_is_found_by_its_title,
    an_explanation_adds_up,
];

const FILLER: &str = "and then we looked at several other things that day before we went on with it";

async fn order(store: &Store, query: &str) -> Vec<u32> {
    sequences(&store.search(&target("s"), &SearchOptions::new(query)).await.results)
}

async fn words_near_each_other_rank_above_scattered_ones(store: Store) {
    let scattered = format!("the pool is warm {FILLER} and the connection was late");
    let near = format!("the connection pool is warm {FILLER} and it was late");
    store.sync(&target("s"), vec![lines::user(&scattered), lines::user(&near)]).await;
    let found = store.search(&target("s"), &words("connection pool")).await.results;
    assert_eq!(sequences(&found), [1, 0]);
}

async fn a_session_with_several_matches_ranks_first(store: Store) {
    let matching = |n: u32| lines::user(&format!("the retry budget of service number {n} {FILLER}"));
    let other = |n: u32| lines::user(&format!("something else entirely, number {n}"));
    store.sync(&target("a"), vec![lines::user("the retry budget of services")]).await;
    let several =
        vec![matching(1), other(1), other(2), other(3), matching(2), other(4), other(5), matching(3)];
    store.sync(&target("b"), several).await;
    let found = store.search(&target("s"), &words("retry budget")).await.results;
    assert_eq!(found[0].session_id.as_str(), "b");
}

async fn answers_rank_above_a_question_that_repeats_the_query(store: Store) {
    let conversation = vec![
        lines::user("How do we keep two workers from taking the same row?"),
        lines::assistant("I look at the code first."),
        lines::tool("src/queue.rs"),
        lines::assistant("With SKIP LOCKED: each of them gets one that nobody else holds."),
        lines::user("Thank you."),
    ];
    store.sync(&target("s"), conversation).await;
    let found = order(&store, "how do we keep two workers from taking the same row").await;
    let rank = |sequence: u32| found.iter().position(|found| *found == sequence);
    assert_eq!(rank(3), Some(0), "{found:?}");
    assert!(rank(0) > rank(3));
}

async fn text_that_programs_insert_ranks_last(store: Store) {
    let own_output = r#"{"mode":"hybrid","results":[{"user_id":"ana","session_id":"s","content_type":"user_query","snippet":"flaky checkout test"}]}"#;
    let inserted = [
        lines::user("<system-reminder>flaky checkout test</system-reminder>"),
        lines::user(
            "This session is being continued from a previous conversation that ran out of context.\n\
             flaky checkout test",
        ),
        lines::message("tool", json!({"output": {"returncode": 0, "stdout": own_output, "stderr": ""}})),
        lines::tool_call("bash", json!({"command": "amplifier-sessions search 'flaky checkout test'"})),
    ];
    let written = format!("the test of the checkout is flaky {FILLER}");
    store.sync(&target("s"), inserted.into_iter().chain([lines::user(&written)]).collect()).await;
    assert_eq!(order(&store, "flaky checkout test").await[0], 4);
}

async fn lines_that_nobody_typed_rank_last(store: Store) {
    let with = |line: Line, metadata: Value| line.with("metadata", metadata);
    let automatic = [
        with(lines::user("flaky checkout test"), json!({"ephemeral": true})),
        with(lines::assistant("flaky checkout test, again"), json!({"ephemeral": true})),
        with(lines::user("the flaky checkout test"), json!({"amplifier_input": {"kind": "service"}})),
        with(lines::user("flaky checkout test once more"), json!({"amplifier_visible_reference": {"id": 1}})),
    ];
    let written = format!("the test of the checkout is flaky {FILLER}");
    store.sync(&target("s"), automatic.into_iter().chain([lines::user(&written)]).collect()).await;
    for mode in [SearchMode::Hybrid, SearchMode::FullText, SearchMode::Semantic] {
        let options = SearchOptions::new("flaky checkout test").with_mode(mode);
        let found = store.search(&target("s"), &options).await.results;
        assert_eq!((sequences(&found)[0], found.len()), (4, 5), "{mode}");
    }
}

async fn noise_ranks_last_but_is_found(store: Store) {
    let todos =
        |status: &str| json!({"todos": [{"content": "fix the flaky checkout test", "status": status}]});
    let noise = [
        lines::tool_call("TodoWrite", todos("pending")),
        lines::tool_call("TodoWrite", todos("completed")),
        lines::message("tool", json!({"output": todos("completed")})).with("name", json!("todo")),
        lines::tool("a file\n\n<system-reminder>\nno flaky checkout test\n</system-reminder>"),
        lines::tool(r#"[{"title": "flaky checkout test", "encrypted_content": "Eo8"#),
    ];
    let written = format!("the test of the checkout is flaky {FILLER}");
    store.sync(&target("s"), noise.into_iter().chain([lines::user(&written)]).collect()).await;
    for mode in [SearchMode::Hybrid, SearchMode::FullText] {
        let options = SearchOptions::new("flaky checkout test").with_mode(mode).with_explain(true);
        let found = store.search(&target("s"), &options).await.results;
        assert_eq!((sequences(&found)[0], found.len()), (5, 6), "{mode}");
        let lowered = found.iter().filter_map(|result| result.explanation?.lowered);
        assert_eq!(lowered.collect::<Vec<_>>(), [Lowered::Noise; 5], "{mode}");
    }
    // The text of the reminder is not the only one with this word.
    assert_eq!(store.find(&target("s"), "file").await, [3]);
}

async fn repeated_texts_are_one_result(store: Store) {
    let text = "tuning the connection pool of the database";
    for session in ["a", "b", "c"] {
        store.sync(&target(session), vec![lines::user(text), lines::user(FILLER)]).await;
    }
    for options in [words("connection pool"), SearchOptions::new("connection pool")] {
        let found = store.search(&target("s"), &options).await.results;
        let about: Vec<_> = found.iter().filter(|result| result.snippet.contains("connection")).collect();
        assert_eq!(about.len(), 1);
        let mut sessions: Vec<&str> =
            about[0].also_in.iter().map(|repeat| repeat.session_id.as_str()).collect();
        sessions.push(about[0].session_id.as_str());
        sessions.sort_unstable();
        assert_eq!(sessions, ["a", "b", "c"]);
    }
    // Short texts say the same by chance.
    store.sync(&target("s"), vec![lines::user("maybe so"), lines::user("maybe so")]).await;
    assert_eq!(store.find(&target("s"), "maybe").await.len(), 2);
}

/// A fork of a fork, which has more about the query, ranks above the session that it comes from. What it copied does not.
async fn a_copied_message_is_shown_where_it_was_written(store: Store) {
    let asked = lines::user("why is the connection pool of the database exhausted");
    let more = |n: u32| lines::user(&format!("the connection pool is exhausted again, number {n} {FILLER}"));
    store.sync(&target("original"), vec![asked.clone()]).await;
    for (fork, parent, copied) in [("fork", "original", 1), ("a fork of it", "fork", 2)] {
        let copied = (1..copied).map(more);
        let own = (4..7).map(more);
        store.sync(&target(fork), [asked.clone()].into_iter().chain(copied).chain(own).collect()).await;
        let metadata = json!({"fork": {"source_session_id": parent, "through_user_turn": 1}});
        store.sync_metadata(&target(fork), &metadata.to_string()).await;
    }
    for options in [words("exhausted connection pool"), SearchOptions::new("exhausted connection pool")] {
        let found = store.search(&target("s"), &options.with_message(true)).await.results;
        let shown = found.iter().find(|result| result.snippet.contains("why")).unwrap();
        assert_eq!((shown.session_id.as_str(), shown.sequence), ("original", 0));
        assert!(shown.message.is_some());
        let mut copies: Vec<&str> = shown.also_in.iter().map(|copy| copy.session_id.as_str()).collect();
        copies.sort_unstable();
        assert_eq!(copies, ["a fork of it", "fork"]);
    }
}

async fn a_result_says_what_it_matched(store: Store) {
    let texts = ["the connection pool is empty", "a pool of Connections", "apples and pears"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let mut found = store.search(&target("s"), &SearchOptions::new("Connection pool size")).await.results;
    found.sort_by_key(|result| result.sequence);
    let matched: Vec<_> = found.iter().map(|result| (result.match_kind, result.words.join(" "))).collect();
    let both = "Connection pool".to_owned();
    let expected =
        [(MatchKind::Words, both.clone()), (MatchKind::Words, both), (MatchKind::Similar, String::new())];
    assert_eq!(matched, expected);
    let found = store.search(&target("s"), &words("connection pool")).await.results;
    assert_eq!(found[0].match_kind, MatchKind::Exact);
}

async fn identifiers_are_found_in_any_spelling(store: Store) {
    let texts = ["the user of the id should get it", "fn getUserId()", "let get_user_id = 1;", "a user"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    for query in ["getUserId", "get_user_id", "get-user-id", "GetUserID"] {
        let found = store.search(&target("s"), &words(query)).await.results;
        let mut best = sequences(&found)[..2].to_vec();
        best.sort_unstable();
        assert_eq!(best, [1, 2], "{query}");
    }
}

/// A text without a word of the query is a result only if it is near enough in meaning. If there is no result, the
/// nearest text is reported.
async fn unrelated_texts_are_no_results(store: Store) {
    let store = store.with_embedding(FakeEmbedding::new().with_strength(ModelStrength::Static));
    let texts = ["apples and pears in a large basket", "a cup of tea with lemon"];
    store.sync(&target("s"), texts.map(lines::user).to_vec()).await;
    let answer = store.search(&target("s"), &SearchOptions::new("quantum flux")).await;
    assert!(answer.results.is_empty());
    let nearest = answer.nearest.unwrap();
    assert_eq!(nearest.match_kind, MatchKind::Similar);
    assert!(nearest.similarity.unwrap() < 0.48);
    let answer = store.search(&target("s"), &SearchOptions::new("pears")).await;
    assert_eq!((sequences(&answer.results), answer.nearest), (vec![0], None));
}

async fn a_session_is_found_by_its_title(store: Store) {
    store.sync(&target("named"), vec![lines::assistant("Hello."), lines::user("Where do we begin?")]).await;
    store.sync(&target("other"), vec![lines::user(&format!("the kickoff {FILLER}"))]).await;
    let edit = SessionEdit::default().set_name("Phoenix kickoff");
    store.storage.sessions().update_session(&target("named").key, &edit).await.unwrap();
    let found = store.search(&target("named"), &words("phoenix kickoffs")).await.results;
    let first = &found[0];
    assert_eq!((first.session_id.as_str(), first.sequence, first.by_title), ("named", 1, true));
    assert_eq!((found[1].session_id.as_str(), found[1].by_title), ("other", false));
    // Only as a whole, and only if no message has all the words.
    assert!(store.search(&target("named"), &words("phoenix basket")).await.results.is_empty());
    assert!(!store.search(&target("named"), &words("kickoff")).await.results[0].by_title);
}

async fn an_explanation_adds_up(store: Store) {
    store.sync(&target("s"), vec![lines::user("the retry budget"), lines::user("a budget")]).await;
    let search = SearchOptions::new("retry budget").with_explain(true);
    let found = store.search(&target("s"), &search).await;
    let terms = found.explanation.unwrap().terms;
    assert_eq!(terms.iter().map(|term| term.term.as_str()).collect::<Vec<_>>(), ["retri", "budget"]);
    for (rank, result) in (1..).zip(&found.results) {
        let why = result.explanation.unwrap();
        let sum = why.words + why.meaning + why.neighbours + why.session + why.title;
        assert!((sum - why.relevance).abs() < 1e-5, "{why:?}");
        assert_eq!(why.text_rank, Some(rank));
    }
    let plain = store.search(&target("s"), &SearchOptions::new("retry budget")).await;
    assert!(plain.explanation.is_none() && plain.results[0].explanation.is_none());
}
