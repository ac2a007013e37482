//! The syntax of queries, conditions on texts, and words that stand for others.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    a_phrase_is_found_only_in_its_order,
    a_phrase_that_no_message_has_is_searched_by_its_words,
    messages_with_an_excluded_word_are_not_found,
    a_prefix_finds_words_that_begin_so,
    an_exact_text_is_found_character_by_character,
    tools_and_files_are_conditions,
    a_search_without_words_finds_the_newest_messages,
    a_search_without_words_finds_all_messages,
    a_session_may_have_few_of_the_newest_messages,
    all_messages_that_match_are_counted,
    sessions_that_touched_a_file_are_found,
    a_part_of_an_identifier_or_a_hash_finds_it,
    a_word_with_a_typo_finds_what_is_meant,
    words_without_spaces_are_found_by_their_parts,
    a_prefix_may_have_several_characters_without_spaces,
    a_period_that_ends_before_it_begins_is_an_error,
];

/// A full-text search for a query as it was typed.
fn typed(query: &str) -> SearchOptions {
    SearchOptions::parsed(&TypedQuery::parse(query)).with_mode(SearchMode::FullText)
}

/// The sequences of the messages that are found, sorted.
async fn found(store: &Store, options: &SearchOptions) -> Vec<u32> {
    let mut found = sequences(&store.search(&target("s"), options).await.results);
    found.sort_unstable();
    found
}

async fn say(store: &Store, texts: &[&str]) {
    store.sync(&target("s"), texts.iter().map(|text| lines::user(text)).collect()).await;
}

/// Checks what each query finds, before and after the messages are indexed.
async fn check(store: &Store, cases: &[(&str, &[u32])]) {
    for _ in 0..2 {
        for (query, expected) in cases {
            assert_eq!(found(store, &typed(query)).await, *expected, "{query}");
        }
        store.storage.update_index().await.unwrap();
    }
}

fn has_notice(answer: &SearchResults, part: &str) -> bool {
    answer.notices.iter().any(|notice| notice.contains(part))
}

async fn a_phrase_is_found_only_in_its_order(store: Store) {
    say(&store, &["the connection pool is empty", "a pool for each connection", "the Connection-Pool"]).await;
    let cases: [(&str, &[u32]); 4] = [
        (r#""connection pool""#, &[0, 2]),
        (r#""pool connection""#, &[]),
        (r#""connection pool" empty"#, &[0, 2]),
        (r#""for each""#, &[1]),
    ];
    check(&store, &cases).await;
}

async fn a_phrase_that_no_message_has_is_searched_by_its_words(store: Store) {
    say(&store, &["the connection pool is empty", "a leak in the roof", "apples"]).await;
    let query = typed(r#""connection leak" pool"#);
    assert_eq!(found(&store, &query).await, [0, 1]);
    let notices = store.search(&target("s"), &query).await.notices;
    let notice = r#"no message contains "connection leak"; searched for its words"#.to_owned();
    assert!(notices.contains(&notice), "{notices:?}");
    // A phrase alone is meant as it is.
    let answer = store.search(&target("s"), &typed(r#""connection leak""#)).await;
    assert!(answer.results.is_empty() && !has_notice(&answer, "its words"), "{answer:?}");
}

async fn messages_with_an_excluded_word_are_not_found(store: Store) {
    say(&store, &["retries of the webhook", "retries of the failed job", "retries"]).await;
    let cases: [(&str, &[u32]); 3] = [
        ("retries -webhooks", &[1, 2]),
        (r#"retries -"failed job""#, &[0, 2]),
        (r#"retries -"job failed""#, &[0, 1, 2]),
    ];
    check(&store, &cases).await;
    for mode in [SearchMode::Semantic, SearchMode::Hybrid] {
        assert_eq!(found(&store, &typed("retries -webhook").with_mode(mode)).await, [1, 2], "{mode}");
    }
}

async fn a_prefix_finds_words_that_begin_so(store: Store) {
    say(&store, &["authentication failed", "an author", "apples"]).await;
    let cases: [(&str, &[u32]); 4] =
        [("authenti*", &[0]), ("auth*", &[0, 1]), ("apples auth*", &[0, 1, 2]), ("banan*", &[])];
    check(&store, &cases).await;
}

/// Also within words, and if it has no words. Its meaning does not count.
async fn an_exact_text_is_found_character_by_character(store: Store) {
    let trace = "java.lang.NullPointerException\n\tat com.shop.Basket(Basket.java:12)";
    say(&store, &["sha256:9f86d081884c7d65 image.tar", trace, "全文検索エンジン", "a -> b"]).await;
    let cases: [(&str, &[u32]); 7] = [
        ("6d081884", &[0]),
        ("PointerException at com", &[1]),
        ("at com.shop.Bask", &[1]),
        ("basket.java", &[]),
        ("索エ", &[2]),
        ("検", &[2]),
        ("->", &[3]),
    ];
    for _ in 0..2 {
        for (exact, expected) in cases {
            let conditions = TextConditions::default().with_exact(exact.to_owned());
            let options = SearchOptions::new(exact).with_conditions(conditions);
            assert_eq!(found(&store, &options).await, expected, "{exact}");
        }
        store.storage.update_index().await.unwrap();
    }
}

async fn tools_and_files_are_conditions(store: Store) {
    let lines = vec![
        lines::user("needle in src/cart.rs"),
        lines::tool_call("bash", json!({"command": "grep needle src/cart.rs"})),
        lines::tool("needle").with("name", json!("bash")),
        lines::tool_call("edit_file", json!({"file_path": "src/cart.rs", "new_string": "needle"})),
    ];
    store.sync(&target("s"), lines).await;
    let any = TextConditions::default;
    let cases = [
        (any().with_tools(["bash"]), vec![1, 2]),
        (any().with_tools(["edit_file"]), vec![3]),
        (any().with_files(["cart.rs"]), vec![1, 3]),
        (any().with_files(["cart"]), vec![]),
        (any().with_tools(["bash"]).with_files(["src"]), vec![1]),
    ];
    for mode in [SearchMode::FullText, SearchMode::Hybrid] {
        for (conditions, expected) in &cases {
            let options = words("needle").with_mode(mode).with_conditions(conditions.clone());
            assert_eq!(found(&store, &options).await, *expected, "{mode} {conditions:?}");
        }
    }
}

/// If that is requested. Otherwise, it finds nothing.
async fn a_search_without_words_finds_the_newest_messages(store: Store) {
    let ran = |command: &str| lines::tool_call("bash", json!({"command": command}));
    let first = vec![ran("one").at(day(1)), lines::user("hello").at(day(2)), ran("two").at(day(3))];
    store.sync(&target("a"), first).await;
    store.sync(&target("b"), vec![ran("three").at(day(4))]).await;
    let conditions = TextConditions::default().with_tools(["bash"]);
    let nothing = SearchOptions::new("").with_conditions(conditions);
    let newest = nothing.clone().with_newest_without_words(true);
    let before = SearchFilter::default().with_until(day(3));
    let cases = [
        (nothing, vec![]),
        (newest.clone(), vec!["b#0", "a#2", "a#0"]),
        (newest.clone().with_limit(1), vec!["b#0"]),
        (newest.with_filter(before), vec!["a#0"]),
    ];
    for (options, expected) in &cases {
        let results = store.search(&target("s"), options).await.results;
        let found: Vec<String> =
            results.iter().map(|result| format!("{}#{}", result.session_id, result.sequence)).collect();
        assert_eq!(found, *expected, "{options:?}");
    }
}

/// However many there are, and also if only the oldest meet the conditions.
async fn a_search_without_words_finds_all_messages(store: Store) {
    let edit = |n: u32| lines::tool_call("edit", json!({"path": format!("src/{}/cart.rs", n % 50)}));
    let lines = (0..2_000).map(|n| edit(n).at(day(1 + n / 100)));
    store.sync_text(&target("a"), lines.collect()).await;
    store
        .sync_text(&target("b"), vec![lines::tool_call("bash", json!({"command": "cat src/7/cart.rs"}))])
        .await;
    let newest = |conditions| {
        SearchOptions::new("").with_conditions(conditions).with_newest_without_words(true).with_limit(1_000)
    };
    let any = TextConditions::default;
    let cases = [
        (any().with_files(["src/7/cart.rs"]), 41),
        (any().with_files(["src/7/cart.rs"]).with_tools(["Edit"]), 40),
        (any().with_files(["src/7/cart.rs"]).with_tools(["bash"]), 1),
        (any().with_files(["cart.rs"]), 1_000),
        (any().with_tools(["edit"]), 1_000),
        (any().with_tools(["grep"]), 0),
    ];
    for _ in 0..2 {
        for (conditions, expected) in &cases {
            let found = store.search(&target("a"), &newest(conditions.clone())).await;
            assert_eq!((found.results.len(), &found.notices[..]), (*expected, &[][..]), "{conditions:?}");
            let times: Vec<Timestamp> = found.results.iter().map(|result| result.ts).collect();
            assert!(times.is_sorted_by(|a, b| a >= b), "{conditions:?}");
        }
        store.storage.update_index().await.unwrap();
    }
}

/// So that sessions with few messages are found as well.
async fn a_session_may_have_few_of_the_newest_messages(store: Store) {
    let call = || lines::tool_call("bash", json!({"command": "make"}));
    store.sync_text(&target("a"), (0..600).map(|n| call().at(day(2 + n / 100))).collect()).await;
    store.sync_text(&target("b"), vec![call().at(day(1))]).await;
    let options = SearchOptions::new("")
        .with_conditions(TextConditions::default().with_tools(["bash"]))
        .with_newest_without_words(true)
        .with_most_of_session(2);
    let results = store.search(&target("a"), &options).await.results;
    let found: Vec<&str> = results.iter().map(|result| result.session_id.as_str()).collect();
    assert_eq!(found, ["a", "a", "b"]);
}

/// All of them, not only the best, and those with all words if there are any.
async fn all_messages_that_match_are_counted(store: Store) {
    let said = |text: &str, n: u32| lines::user(&format!("{text} {n}")).at(day(1 + n % 9));
    let lines = (0..300).map(|n| said(if n % 3 == 0 { "alpha beta" } else { "alpha" }, n));
    store.sync_text(&target("s"), lines.collect()).await;
    store
        .sync_text(
            &target("t"),
            vec![said("alpha beta", 0), lines::tool_call("bash", json!({"command": "x"}))],
        )
        .await;
    let fields = SearchOptions::new("").with_newest_without_words(true);
    let phrase = typed("\"alpha beta\"");
    let without = typed("alpha -beta");
    let cases = [
        (words("alpha"), 301, None),
        (words("alpha beta"), 101, None),
        (words("beta gamma"), 101, Some(vec!["beta".to_owned(), "gamma".to_owned()])),
        (words("gamma"), 0, None),
        (phrase, 101, None),
        (without, 200, None),
        (fields.clone().with_conditions(TextConditions::default().with_tools(["bash"])), 1, None),
        (fields.with_filter(SearchFilter::default().with_role(Role::User)), 301, None),
    ];
    for _ in 0..2 {
        for (options, expected, not_together) in &cases {
            let all = store.storage.search().all_matches(&ana(), options).await.unwrap().unwrap();
            assert_eq!((all.messages.len(), &all.not_together), (*expected, not_together), "{options:?}");
        }
        // The session `t` repeats a line of `s` at the same time.
        let all = store.storage.search().all_matches(&ana(), &words("alpha")).await.unwrap().unwrap();
        assert_eq!(all.without_copies().messages.len(), 300);
        store.storage.update_index().await.unwrap();
    }
    assert_eq!(store.storage.search().all_matches(&ana(), &meaning("alpha")).await.unwrap(), None);
}

async fn sessions_that_touched_a_file_are_found(store: Store) {
    let edit = |path: &str| vec![lines::tool_call("edit_file", json!({"file_path": path}))];
    store.sync(&target("a"), edit("/home/ana/shop/src/cart.rs")).await;
    store.sync(&target("b"), vec![lines::assistant("src/cart.rs is fine")]).await;
    store.sync(&target("c"), edit("src/cart.rs.bak")).await;
    store.sync(&target_of("ben", "shop", "a"), edit("src/cart.rs")).await;
    let without = SessionFilter::default().excluding(target("a").key);
    let all = SessionFilter::default;
    let cases = [
        (ana(), all(), "src/cart.rs", vec!["ana/a"]),
        (ana(), all(), "./src/cart.rs", vec!["ana/a"]),
        (ana(), all(), "shop/src/", vec!["ana/a"]),
        (ana(), all(), "src", vec!["ana/a", "ana/c"]),
        (ana(), all(), "art.rs", vec![]),
        (ana(), all(), "lib/cart.rs", vec![]),
        (Scope::Everyone, all(), "cart.rs", vec!["ana/a", "ben/a"]),
        (Scope::Everyone, without, "cart.rs", vec!["ben/a"]),
    ];
    for _ in 0..2 {
        for (scope, filter, file, expected) in &cases {
            let touched = store.storage.search().sessions_that_touched(scope, filter, file).await.unwrap();
            let sessions: Vec<String> =
                touched.sessions.iter().map(|key| format!("{}/{}", key.user_id, key.session_id)).collect();
            assert_eq!(sessions, *expected, "{scope:?} {file}");
        }
        store.storage.update_index().await.unwrap();
    }
}

/// If no text has it as a whole.
async fn a_part_of_an_identifier_or_a_hash_finds_it(store: Store) {
    say(&store, &["fn getUserId()", "sha256:9f86d081884c7d659a2f", "apples"]).await;
    check(&store, &[("getUser", &[0]), ("9f86d08", &[1])]).await;
    store.sync_from(&target("s"), 3, vec![lines::user("fn getUser()")]).await.unwrap();
    check(&store, &[("getUser", &[3]), ("getUserI", &[0])]).await;
}

/// If no other word is found. Words of other users are not shown.
async fn a_word_with_a_typo_finds_what_is_meant(store: Store) {
    say(&store, &["connect to the pool", "apples"]).await;
    store.sync(&target_of("ben", "shop", "s"), vec![lines::user("a zeppelin")]).await;
    let notice = r#"no message contains "conect"; did you mean "connect"?"#.to_owned();
    for _ in 0..2 {
        let answer = store.search(&target("s"), &words("conect")).await;
        assert_eq!(sequences(&answer.results), [0]);
        assert!(answer.notices.contains(&notice), "{:?}", answer.notices);
        for (query, expected) in [("conect apples", vec![1]), ("zeppelim", vec![])] {
            let answer = store.search(&target("s"), &words(query)).await;
            assert_eq!(sequences(&answer.results), expected, "{query}");
            assert!(!has_notice(&answer, "did you mean"), "{:?}", answer.notices);
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese, by one character or several, and emoji.
async fn words_without_spaces_are_found_by_their_parts(store: Store) {
    let east = ["全文検索エンジン", "東京タワー", "검색결과", "リリース完了🎉", "京都"];
    let south_east = ["ระบบค้นหาข้อความ", "ລະບົບຄົ້ນຫາຂໍ້ຄວາມ", "ប្រព័ន្ធស្វែងរកអត្ថបទ", "စာသားရှာဖွေမှုစနစ်"];
    say(&store, &[&east[..], &south_east].concat()).await;
    let cases: [(&str, &[u32]); 18] = [
        ("検索", &[0]),
        ("検", &[0]),
        ("ン", &[0]),
        ("京", &[1, 4]),
        (r#""京タ""#, &[1]),
        (r#""タ京""#, &[]),
        ("검색", &[2]),
        ("결", &[2]),
        ("🎉", &[3]),
        ("完了 -検", &[3]),
        ("完了 -🎉", &[]),
        ("ค้นหา", &[5]),
        (r#""ข้อความ""#, &[5]),
        (r#""ความข้อ""#, &[]),
        ("ค้", &[5]),
        ("ຄົ້ນຫາ", &[6]),
        ("ស្វែងរក", &[7]),
        ("ရှာဖွေ", &[8]),
    ];
    check(&store, &cases).await;
    // Overlapping parts are marked once.
    let result = store.search(&target("s"), &typed("検索エ")).await.results.remove(0);
    assert_eq!((result.sequence, &result.highlights[..]), (0, &[(2, 5)][..]));
}

async fn a_prefix_may_have_several_characters_without_spaces(store: Store) {
    say(&store, &["東京タワー", "京都", "검색결과", "색상"]).await;
    check(&store, &[("東京*", &[0]), ("검색*", &[2]), ("京*", &[0, 1])]).await;
}

async fn a_period_that_ends_before_it_begins_is_an_error(store: Store) {
    let search = async |since, until| {
        let filter = SearchFilter::default().with_since(day(since)).with_until(day(until));
        store.storage.search().search_transcripts(&ana(), &words("needle").with_filter(filter)).await
    };
    assert_eq!(kind(search(2, 1).await), ErrorKind::Validation);
    assert!(search(2, 2).await.unwrap().results.is_empty());
}
