//! All messages that match by their fields, newest first, and searches for messages that use a tool.

use std::collections::BTreeSet;

use amplifier_session_core::{
    content::MessageLine,
    text::{Analyzer, bm25::count_terms, query_terms},
};

use crate::prelude::*;

/// All texts of ana, or those with any of these terms.
fn query(terms: &str) -> TextQuery {
    TextQuery {
        scope: ana(),
        filter: SearchFilter::default(),
        content_types: ContentTypes::searched(),
        terms: if terms.is_empty() { Vec::new() } else { query_terms(terms) },
        weights: Vec::new(),
        required: Vec::new(),
        phrases: Vec::new(),
        tools: Vec::new(),
        limit: usize::MAX,
    }
}

fn using(tools: &[&str], query: TextQuery) -> TextQuery {
    TextQuery { tools: tools.iter().map(|tool| (*tool).to_owned()).collect(), ..query }
}

/// Lines of all roles, some of which call tools. Several have the same time.
fn random_lines(random: &mut Random, count: usize) -> Vec<Line> {
    let line = |n: usize, random: &mut Random| {
        let text = random.words(3, 12);
        let line = match random.below(7) {
            0 => lines::assistant(&text),
            1 => lines::tool(&text).with("name", json!("Bash")),
            2 => lines::thinking("so be it", &text),
            3 => lines::system(&text),
            4 => lines::message(
                "assistant",
                json!([
                    {"type": "text", "text": text},
                    {"type": "tool_call", "id": "1", "name": "bash", "input": {"command": "make"}},
                    {"type": "tool_call", "id": "2", "name": "edit", "input": {"path": "src/a b/\"ü\".rs"}},
                ]),
            ),
            5 => lines::tool_call("EDIT", json!({"path": "C:\\shop\\cart.rs"})),
            _ => lines::user(&text),
        };
        line.at(day(1 + n as u32 / 4 % 20))
    };
    (0..count).map(|n| line(n, random)).collect()
}

fn sessions() -> Vec<IngestTarget> {
    let of = |user, session| target_of(user, "shop", session);
    vec![of("ana", "s0"), of("ana", "s1"), of("ben", "s0"), of("ben", "s2")]
}

/// The messages of ana that match, found one by one.
async fn expected(store: &Store, query: &TextQuery) -> BTreeSet<MessageRef> {
    let mut analyzer = Analyzer::new();
    let mut found = BTreeSet::new();
    let is_asked_for = |target: &&IngestTarget| {
        let session = query.filter.sessions.session.as_ref();
        query.scope == scope(target) && session.is_none_or(|id| *id == target.key.session_id)
    };
    for target in sessions().iter().filter(is_asked_for) {
        for message in store.messages(target).await {
            let line: MessageLine = message.line();
            let matches = line.texts().iter().any(|text| {
                query.content_types.contains(text.content_type)
                    && query.is_matched_by(&count_terms(&mut analyzer, &text.text, &query.terms))
            });
            if matches
                && query.filter.admits_message(message.role, message.ts)
                && query.has_tools(&line.used_tools())
            {
                found.insert(message.message_ref());
            }
        }
    }
    found
}

fn queries() -> Vec<TextQuery> {
    let of_role = SearchFilter::default().with_role(Role::User);
    let of_days = SearchFilter::default().with_since(day(3)).with_until(day(9));
    let of_session = SearchFilter::default().with_session(target("s1").key.session_id);
    vec![
        query(""),
        query("word1 word2"),
        TextQuery { required: vec![vec![0], vec![1]], ..query("word1 word2") },
        using(&["bash"], query("")),
        using(&["bash", "edit"], query("")),
        using(&["bas"], query("")),
        using(&["edit"], TextQuery { filter: of_session, ..query("") }),
        using(&["bash"], query("word3")),
        TextQuery { content_types: only(ContentType::ToolCall), ..query("") },
        TextQuery { content_types: only(ContentType::System), ..query("") },
        TextQuery { filter: of_role, ..query("") },
        using(&["bash"], TextQuery { filter: of_days, ..query("") }),
        query("nothing"),
    ]
}

/// Without a limit, they are all messages of the scope that match, each once, newest first; with one, the newest of them.
pub async fn the_newest_messages_are_all_that_match(store: Store) {
    let mut random = Random(54);
    for (n, target) in sessions().iter().enumerate() {
        store.sync_text(target, random_lines(&mut random, 40)).await;
        if n % 2 == 0 {
            store.storage.update_index().await.unwrap();
        }
    }
    for _ in 0..2 {
        for query in queries() {
            let found = store.backend.newest_messages(&query).await.unwrap().items;
            assert!(found.windows(2).all(|pair| pair[0].ts >= pair[1].ts), "{query:?}");
            let messages: BTreeSet<MessageRef> = found.iter().map(|of| of.message_ref.clone()).collect();
            assert_eq!(
                (found.len(), &messages),
                (messages.len(), &expected(&store, &query).await),
                "{query:?}"
            );
            let few =
                store.backend.newest_messages(&TextQuery { limit: 7, ..query.clone() }).await.unwrap().items;
            let times = |of: &[DatedMessage]| of.iter().map(|message| message.ts).collect::<Vec<_>>();
            assert_eq!(times(&few), times(&found[..found.len().min(7)]), "{query:?}");
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Changed and removed messages are not found as they were, before and after an update of the index.
pub async fn changed_and_removed_messages_are_not_found_by_their_fields(store: Store) {
    let call = |tool: &str| lines::tool_call(tool, json!({"path": "src/cart.rs"}));
    store.sync_text(&target("s"), vec![call("bash"), call("bash"), call("edit")]).await;
    store.storage.update_index().await.unwrap();
    store.sync_text(&target("s"), vec![call("bash"), call("edit")]).await;
    for _ in 0..2 {
        for (tool, expected) in [("bash", vec![0]), ("edit", vec![1])] {
            let found = store.backend.newest_messages(&using(&[tool], query(""))).await.unwrap().items;
            let sequences: Vec<u32> = found.iter().map(|of| of.message_ref.sequence).collect();
            assert_eq!(sequences, expected, "{tool}");
        }
        store.storage.update_index().await.unwrap();
    }
}

/// Texts of messages that use a tool are the only candidates, with the scores that they have among all.
pub async fn tools_narrow_the_candidates(store: Store) {
    let mut random = Random(7);
    store.sync_text(&target("s0"), random_lines(&mut random, 60)).await;
    store.storage.update_index().await.unwrap();
    store.sync_text(&target("s1"), random_lines(&mut random, 30)).await;
    let all = query("word1 word2 word3 make");
    for _ in 0..2 {
        let unfiltered = store.backend.text_candidates(&all).await.unwrap().items;
        for tools in [&["bash"][..], &["bash", "edit"], &["nothing"]] {
            let narrow = using(tools, all.clone());
            let users = expected(&store, &narrow).await;
            let of_users = unfiltered.iter().filter(|candidate| users.contains(&candidate.message_ref));
            let place =
                |of: &TextCandidate| (of.message_ref.clone(), of.content_type, (of.score * 1e3) as i64);
            let wanted: BTreeSet<_> = of_users.map(place).collect();
            let found = store.backend.text_candidates(&narrow).await.unwrap().items;
            assert_eq!(found.iter().map(place).collect::<BTreeSet<_>>(), wanted, "{tools:?}");
        }
        store.storage.update_index().await.unwrap();
    }
}
