//! Several projects, and what an answer says of itself.

use amplifier_session_api::{
    incomplete::IncompleteReason,
    operations::{search::SearchResponse, search_vector::VectorSearchRequest, vectors::EmbedRequest},
};

use super::*;

fn of_projects(named: &[&str]) -> SessionsRequest {
    let mut named = named.iter().map(|name| (*name).to_owned());
    let mut request = SessionsRequest::default();
    request.filter.project = named.next();
    request.filter.projects = named.collect();
    request
}

#[tokio::test]
async fn a_request_may_name_several_projects_by_names_patterns_and_parts() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let more = ["-home-ana-shop-web", "-home-ana-shop-api", "-home-ana-workshop", "-home-ana-blog"];
    for (n, project) in more.into_iter().enumerate() {
        let target = target_of("ana", project, &format!("more-{n}"));
        let text = vec![lines::user("the pool"), lines::assistant("it has water")];
        storage.ingestion().sync_transcript_lines(&target, whole(text)).await.unwrap();
    }
    let api = api(&storage, &caller, &now);
    let both: &[&str] = &["-home-ana-shop-api", "-home-ana-shop-web"];
    for (named, expected) in [
        (&["shop"][..], &["shop", "shop"][..]),
        (&["shop", "bakery"], &["bakery", "shop", "shop"]),
        (&["shop-*"], both),
        (&["shop-???"], both),
        (&["shop-*", "*-web", "BLOG"], &["-home-ana-blog", both[0], both[1]]),
        (&["ana-shop"], both),
        (&["web"], &both[1..]),
        // The only end wins over parts.
        (&["workshop"], &["-home-ana-workshop"]),
        (&["shop-*", "nowhere"], both),
        (&["x-*"], &[]),
    ] {
        let answer = api.sessions(&of_projects(named)).await.unwrap();
        let sessions =
            answer.response.sessions.iter().map(|listed| listed.session.session.project_slug.as_str());
        let mut found: Vec<&str> = sessions.collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{named:?} {:?}", answer.notices);
    }
    let noted = api.sessions(&of_projects(&["ana-shop"])).await.unwrap().notices;
    let projects = both.iter().map(|slug| ProjectSlug::new(*slug).unwrap()).collect();
    assert_eq!(noted, [Notice::SeveralProjects { typed: "ana-shop".to_owned(), projects }]);
    let noted = api.sessions(&of_projects(&["shop", "nowhere"])).await.unwrap().notices;
    assert_eq!(noted, [Notice::UnknownProject { project: ProjectSlug::new("nowhere").unwrap() }]);
    // As in an earlier version.
    let request: SessionsRequest = serde_json::from_str(r#"{"project":"web"}"#).unwrap();
    assert_eq!(api.sessions(&request).await.unwrap().response.count(), 1);
    for (query, count) in [
        ("pool project:shop-*", 2),
        ("pool project:ana-shop project:*web", 1),
        ("pool project:shop-* project:blog", 0),
    ] {
        let found = api.search(&by_words(query)).await.unwrap();
        assert_eq!(found.response.results.len(), count, "{query} {:?}", found.notices);
    }
    let mut request = by_words("pool project:*api");
    request.query.filter.projects = vec!["shop-*".to_owned(), "blog".to_owned()];
    assert_eq!(api.search(&request).await.unwrap().response.results.len(), 1);
}

#[tokio::test]
async fn a_search_says_that_no_text_has_all_words() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let missing = async |query: &str| {
        let notices = api.search(&by_words(query)).await.unwrap().notices;
        let words = |notice| match notice {
            Notice::NotTogether { words } => Some(words),
            _ => None,
        };
        notices.into_iter().find_map(words)
    };
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    // Each word is in a text, but no text has both.
    assert_eq!(missing("exhausted one").await, words(&["exhausted", "one"]));
    assert_eq!(missing("pool zeppelin").await, words(&["pool", "zeppelin"]));
    for query in ["pool connection", "pool", "zeppelin airship", "pool zeppel*", "getUserId pool"] {
        assert_eq!(missing(query).await, None, "{query}");
    }
}

#[tokio::test]
async fn turns_are_grouped_like_messages() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let target = target_of("ana", "shop", "many-1");
    let asked = (0..6).map(|n| {
        let question = lines::user(&format!("question {n} about the pool {}", "pool ".repeat(n)));
        [question, lines::assistant(&format!("answer {n}"))]
    });
    let text = asked.flatten().collect();
    storage.ingestion().sync_transcript_lines(&target, whole(text)).await.unwrap();
    let api = api(&storage, &caller, &now);
    let request = SearchRequest { by_session: true, limit: 2, ..by_words("pool") };
    let found = api.search_turns(&request).await.unwrap().response;
    assert_written_and_read(&found);
    let groups = found.groups.unwrap();
    assert_eq!(groups.len(), 2);
    let many = groups.iter().find(|group| group.session_id.as_str() == "many-1").unwrap();
    assert_eq!((many.results.len(), many.more), (3, 3));
    let of_groups: usize = groups.iter().map(|group| group.results.len()).sum();
    assert_eq!(found.results.len(), of_groups);
    assert!(found.results.is_sorted_by(|one, other| one.result.score >= other.result.score));
    let alone = SearchRequest { by_session: false, limit: 4, ..request };
    let alone = api.search_turns(&alone).await.unwrap().response;
    assert_eq!((alone.results.len(), alone.groups), (4, None));
}

#[tokio::test]
async fn an_answer_says_what_it_lacks() {
    let now = now();
    let caller = ana_asks();
    let storage = storage().await;
    let plain = api(&storage, &caller, &now);
    let hybrid = SearchRequest::new("pool");
    let found = plain.search(&hybrid).await.unwrap().response;
    assert_eq!(found.incomplete, [IncompleteReason::WordsOnly]);
    assert!(plain.search(&by_words("pool")).await.unwrap().response.incomplete.is_empty());
    let with_model = storage.clone().with_embedding(Some(Arc::new(FakeEmbedding::new())));
    let found = api(&with_model, &caller, &now).search(&hybrid).await.unwrap().response;
    assert_eq!(found.incomplete, [IncompleteReason::MissingVectors { messages: 6, of: 6 }]);
    assert_written_and_read(&found);
    let timeline = TimelineRequest { query: hybrid.query.clone(), by: None };
    let counted = api(&with_model, &caller, &now).timeline(&timeline).await.unwrap().response;
    assert!(counted.incomplete.is_empty(), "all messages with the words are counted");
    let listed = plain.sessions(&SessionsRequest::default()).await.unwrap().response;
    assert!(listed.incomplete.is_empty());
}

/// All of the messages with a word have the excluded one too, so the search ends before it has read them.
#[tokio::test]
async fn an_answer_says_that_not_all_candidates_were_examined() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let pears = (0..10_001).map(|_| lines::user("a pear in a basket"));
    storage
        .ingestion()
        .sync_transcript_lines(&target_of("ana", "shop", "pears"), whole(pears.collect()))
        .await
        .unwrap();
    let api = api(&storage, &caller, &now);
    let found = api.search(&by_words("pear -basket")).await.unwrap().response;
    assert_eq!(found.incomplete, [IncompleteReason::PartlyExamined { examined: 10_000 }]);
    assert_written_and_read(&found);
    assert!(api.search(&by_words("pear")).await.unwrap().response.incomplete.is_empty());
}

#[tokio::test]
async fn pages_of_a_search_follow_one_another() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    for by_session in [true, false] {
        let all = SearchRequest { by_session, limit: 9, ..by_words("pool") };
        let all = api.search(&all).await.unwrap().response;
        let addresses = |found: &SearchResponse| -> Vec<String> {
            found.results.iter().map(|found| found.address.clone()).collect()
        };
        let mut paged = Vec::new();
        for skip in 0..9 {
            let page = SearchRequest { by_session, limit: 1, skip, ..by_words("pool") };
            paged.extend(addresses(&api.search(&page).await.unwrap().response));
        }
        let (mut all, mut paged) = (addresses(&all), paged);
        assert!(!paged.is_empty());
        all.sort();
        paged.sort();
        assert_eq!(all, paged);
    }
}

#[tokio::test]
async fn lists_go_on_after_a_session_and_below_one() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let mut request = SessionsRequest { limit: 2, ..SessionsRequest::default() };
    let first = api.sessions(&request).await.unwrap().response;
    assert_written_and_read(&first);
    assert!(first.first(1).next.is_some());
    request.after = first.next;
    let rest = api.sessions(&request).await.unwrap().response;
    assert_eq!((first.sessions.len(), rest.sessions.len(), rest.next), (2, 1, None));
    request.sort = SessionOrder::Messages;
    let refused = api.sessions(&request).await.unwrap_err();
    assert!(matches!(refused, ApiError::Invalid(InvalidRequest::NotACursor { .. })), "{refused}");
    let request = SessionsRequest { parent: Some("first".to_owned()), ..SessionsRequest::default() };
    assert!(api.sessions(&request).await.unwrap().response.sessions.is_empty());
}

#[tokio::test]
async fn messages_are_found_by_a_vector_of_the_caller() {
    let embedding = Arc::new(FakeEmbedding::new());
    let (storage, now) = (storage().await.with_embedding(Some(embedding.clone())), now());
    let caller = ana_asks().with_rights(AccessRight::ALL);
    let with_model = api(&storage, &caller, &now);
    with_model.make_vectors(&EmbedRequest::default(), &mut |_| {}).await.unwrap();
    // The operation needs no model.
    let without = storage.clone().with_embedding(None);
    let asked = api(&without, &caller, &now);
    let mut request =
        VectorSearchRequest { vector: embedding.vector("cart"), ..VectorSearchRequest::default() };
    request.search.limit = 3;
    assert_written_and_read(&request);
    let found = asked.search_vector(&request).await.unwrap().response;
    assert_eq!(found.results.len(), 3);
    assert!(found.results.iter().all(|found| found.result.user_id.as_str() == "ana"));
    assert_written_and_read(&found);
    for vector in [vec![1.0], vec![0.0; request.vector.len()], Vec::new()] {
        let refused =
            asked.search_vector(&VectorSearchRequest { vector, ..request.clone() }).await.unwrap_err();
        assert!(
            matches!(&refused, ApiError::Storage(error) if error.kind() == ErrorKind::Validation),
            "{refused}"
        );
    }
}
