//! What holds in every mode of search: content types, filters, limits, and what a result is.

use amplifier_session_core::{
    ErrorKind,
    model::{ContentType, ContentTypes, ProjectSlug, Role, Timestamp},
    search::{SearchFilter, SearchMode, SearchOptions},
};
use serde_json::{Value, json};

use super::{
    Subject,
    store::{Store, kind, scope, sequences, target, target_of},
};
use crate::lines::{self, Line};

const MODES: [SearchMode; 3] = [SearchMode::FullText, SearchMode::Semantic, SearchMode::Hybrid];

fn search(query: &str, mode: SearchMode) -> SearchOptions {
    SearchOptions::new(query).with_mode(mode).with_limit(100)
}

fn only(content_type: ContentType) -> ContentTypes {
    [content_type].into_iter().collect()
}

async fn found(store: &Store, options: &SearchOptions) -> Vec<u32> {
    let mut found = sequences(&store.search(&target("s"), options).await.results);
    found.sort_unstable();
    found
}

/// One message of each content type, all with the same word; the second holds two.
fn every_kind() -> Vec<Line> {
    vec![
        lines::user("needle asked"),
        lines::thinking("needle thought", "needle answered"),
        lines::tool("needle returned"),
        lines::thinking("needle only thought", "something else"),
        lines::system("needle ruled"),
    ]
}

/// The content types that are asked for are searched, and no others.
pub async fn content_types_are_searched_as_asked(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), every_kind()).await;
    for mode in MODES {
        let of = async |content_type| {
            let options = search("needle", mode).with_content_types(only(content_type));
            let results = store.search(&target("s"), &options).await.results;
            assert!(results.iter().all(|result| result.content_type == content_type), "{mode}");
            found(&store, &options).await
        };
        assert_eq!(of(ContentType::UserQuery).await, [0], "{mode}");
        assert_eq!(of(ContentType::AssistantThinking).await, [1, 3], "{mode}");
        assert_eq!(of(ContentType::ToolOutput).await, [2], "{mode}");
        let answers = of(ContentType::AssistantResponse).await;
        // By meaning, the other answer is a candidate too.
        assert_eq!(answers, if mode == SearchMode::FullText { vec![1] } else { vec![1, 3] }, "{mode}");
        let system = of(ContentType::System).await;
        assert_eq!(system, if mode == SearchMode::Semantic { vec![] } else { vec![4] }, "{mode}");
        let all = search("needle", mode);
        assert_eq!(found(&store, &all).await, [0, 1, 2, 3], "{mode}");
    }
}

/// Thinking is not found when it is not asked for.
pub async fn thinking_is_not_found_unasked(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), every_kind()).await;
    let without: ContentTypes =
        [ContentType::UserQuery, ContentType::AssistantResponse, ContentType::ToolOutput]
            .into_iter()
            .collect();
    for mode in MODES {
        let options = search("only thought", mode).with_content_types(without);
        for result in store.search(&target("s"), &options).await.results {
            assert_ne!(result.content_type, ContentType::AssistantThinking, "{mode}");
            assert!(!result.snippet.contains("thought"), "{mode}");
        }
    }
    let options = search("thought", SearchMode::FullText).with_content_types(without);
    assert!(found(&store, &options).await.is_empty());
}

/// Searching in nothing is an error, and so is an option out of range.
pub async fn options_out_of_range_are_errors(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), every_kind()).await;
    let run = async |options: SearchOptions| {
        kind(store.storage.search_transcripts(&scope(&target("s")), &options).await)
    };
    for mode in MODES {
        let options = || search("needle", mode);
        assert_eq!(run(options().with_content_types(ContentTypes::NONE)).await, ErrorKind::Validation);
        assert_eq!(run(options().with_limit(0)).await, ErrorKind::Validation);
        assert_eq!(run(options().with_limit(1_001)).await, ErrorKind::Validation);
        assert_eq!(run(options().with_mmr_lambda(1.5)).await, ErrorKind::Validation);
        assert_eq!(run(options().with_mmr_lambda(f32::NAN)).await, ErrorKind::Validation);
        assert_eq!(run(options().with_min_similarity(2.0)).await, ErrorKind::Validation);
    }
}

/// Any text is a plain query: nothing in it is an operator, a pattern, a quote or too much.
pub async fn any_text_is_a_plain_query(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store
        .sync(
            &target("s"),
            ["a plain message", "100% of a_b \"quoted\" AND more", "an axb"].map(lines::user).to_vec(),
        )
        .await;
    let long = "lorem ipsum dolor sit amet ".repeat(400);
    let nothing = [
        "%", "_", "\"", "*", "", " ", "\n\t", "%%", "''", "\0", "*:*", "\\", "()", "👍", "-- ;", "pla*",
        "pl%", "p_ain",
    ];
    for mode in MODES {
        for query in nothing.into_iter().chain([long.as_str()]) {
            let results = store.search(&target("s"), &search(query, mode)).await.results;
            assert!(mode != SearchMode::FullText || results.is_empty(), "{query:?}");
        }
        for query in [
            "\"plain",
            "plain*",
            "plain AND",
            "(plain",
            "plain^2",
            "content_type:plain",
            "'; DROP TABLE messages; -- plain",
        ] {
            assert!(found(&store, &search(query, mode)).await.contains(&0), "{mode} {query:?}");
        }
    }
    let words = |query| search(query, SearchMode::FullText);
    assert_eq!(found(&store, &words("100%")).await, [1]);
    assert_eq!(found(&store, &words("a_b")).await, [1]);
    assert_eq!(found(&store, &words("\"quoted\"")).await, [1]);
    assert_eq!(found(&store, &words("axb")).await, [2]);
    assert_eq!(store.messages(&target("s")).await.len(), 3);
}

/// A message is one result, however many of its texts match, and scores descend within 0 and 1.
pub async fn a_message_is_one_result_and_scores_descend(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let line = |n: usize| {
        lines::thinking(&format!("needle {}", "hay ".repeat(n)), &format!("needle {}", "straw ".repeat(n)))
    };
    store.sync(&target("s"), (0..30).map(line).collect()).await;
    for mode in MODES {
        for limit in [1, 7, 30, 100] {
            let results = store.search(&target("s"), &search("needle", mode).with_limit(limit)).await.results;
            assert_eq!(results.len(), limit.min(30), "{mode}");
            let mut places = sequences(&results);
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), results.len(), "{mode}");
            assert!(results.windows(2).all(|pair| pair[0].score >= pair[1].score), "{mode}");
            assert!(results.iter().all(|result| (0.0..=1.0).contains(&result.score)), "{mode}");
        }
    }
}

/// Filters on project, session, role and time narrow the answer; `since` is inclusive, `until` is not.
pub async fn filters_narrow_the_answer(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let at = |day: u32| format!("2026-01-0{day}T00:00:00Z");
    let day = |day: u32| Timestamp::parse(&at(day)).unwrap();
    for (project, session) in [("shop", "s"), ("blog", "t"), ("shop", "u")] {
        let lines = vec![
            lines::user("needle").at(&at(1)),
            lines::assistant("needle").at(&at(2)),
            lines::tool("needle").at(&at(3)),
            lines::user("needle").at(&at(4)),
        ];
        store.sync(&target_of("ana", project, session), lines).await;
    }
    let none = SearchFilter::default;
    let project = |slug: &str| none().with_project(ProjectSlug::new(slug).unwrap());
    let session = |id: &str| none().with_session(target(id).key.session_id);
    for mode in MODES {
        let count = async |filter: SearchFilter| {
            store.search(&target("s"), &search("needle", mode).with_filter(filter)).await.results.len()
        };
        assert_eq!(count(none()).await, 12, "{mode}");
        assert_eq!(count(project("shop")).await, 8, "{mode}");
        assert_eq!(count(project("sho")).await, 0, "{mode}");
        assert_eq!(count(session("t")).await, 4, "{mode}");
        assert_eq!(count(session("T")).await, 0, "{mode}");
        assert_eq!(count(session("t").with_project(ProjectSlug::new("shop").unwrap())).await, 0, "{mode}");
        assert_eq!(count(none().with_role(Role::User)).await, 6, "{mode}");
        assert_eq!(count(none().with_role(Role::System)).await, 0, "{mode}");
        assert_eq!(count(none().with_since(day(3))).await, 6, "{mode}");
        assert_eq!(count(none().with_until(day(3))).await, 6, "{mode}");
        assert_eq!(count(none().with_since(day(2)).with_until(day(4))).await, 6, "{mode}");
        assert_eq!(count(none().with_since(day(4)).with_until(day(2))).await, 0, "{mode}");
        let all = project("shop").with_role(Role::User).with_since(day(2));
        assert_eq!(count(all).await, 2, "{mode}");
        store.storage.update_index().await.unwrap();
    }
}

/// A result says where it stands, and carries the whole message only when that is asked for.
pub async fn a_result_says_where_it_stands(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    let lines =
        vec![lines::user("hello"), lines::user("a needle").at("2026-01-05T08:00:00Z").with("x", json!(1.5))];
    store.sync(&target("s"), lines).await;
    for mode in MODES {
        let result = store.search(&target("s"), &search("needle", mode)).await.results.remove(0);
        assert_eq!(
            (result.user_id.as_str(), result.session_id.as_str(), result.project.as_str()),
            ("ana", "s", "shop")
        );
        assert_eq!((result.sequence, result.turn, result.role), (1, Some(2), Role::User));
        assert_eq!(result.ts.to_string(), "2026-01-05T08:00:00.000000Z");
        assert_eq!((result.content_type, result.span), (ContentType::UserQuery, (0, 8)));
        assert_eq!((result.snippet.as_str(), result.message), ("a needle", None));
        let result =
            store.search(&target("s"), &search("needle", mode).with_message(true)).await.results.remove(0);
        let message = result.message.unwrap();
        assert_eq!((&message["content"], &message["x"]), (&json!("a needle"), &json!(1.5)));
    }
}

/// No answer holds a vector.
pub async fn no_answer_holds_a_vector(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    store.sync(&target("s"), every_kind()).await;
    for mode in MODES {
        let options = search("needle", mode).with_message(true);
        let answer = serde_json::to_value(store.search(&target("s"), &options).await).unwrap();
        assert!(!answer["results"].as_array().unwrap().is_empty());
        assert_eq!(longest_list_of_numbers(&answer), 2, "{mode}");
        assert!(!answer["results"].to_string().contains("vector"), "{mode}");
    }
    let session = serde_json::to_value(store.stored(&target("s")).await.session).unwrap();
    assert_eq!(longest_list_of_numbers(&session), 0);
}

fn longest_list_of_numbers(value: &Value) -> usize {
    let nested = match value {
        Value::Array(items) if items.iter().all(Value::is_number) => return items.len(),
        Value::Array(items) => items.iter().map(longest_list_of_numbers).max(),
        Value::Object(fields) => fields.values().map(longest_list_of_numbers).max(),
        _ => None,
    };
    nested.unwrap_or(0)
}

/// An empty store answers every search with nothing.
pub async fn an_empty_store_has_no_results(subject: &dyn Subject) {
    let store = Store::open(subject).await;
    for mode in MODES {
        let answer = store.search(&target("s"), &search("needle", mode)).await;
        assert!(answer.results.is_empty(), "{mode}");
    }
    store.storage.update_index().await.unwrap();
    for mode in MODES {
        assert!(store.search(&target("s"), &search("needle", mode)).await.results.is_empty(), "{mode}");
    }
}
