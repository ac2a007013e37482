//! Queries with fields that can't be used.

use amplifier_session_api::{
    Api, ApiAnswer, FieldProblem, Notice, SearchCondition, operations::search::SearchRequest,
};
use amplifier_session_testkit::prelude::*;

use super::{ana_asks, api, by_words, now, storage};

/// The results of a search by words, and the notices about its fields.
async fn found(api: &Api<'_>, request: &SearchRequest) -> (usize, Vec<Notice>) {
    request.check(&now()).unwrap();
    let ApiAnswer { response, notices } = api.search(request).await.unwrap();
    let is_about_fields = |notice: &Notice| {
        use Notice::{MeantAsText, NothingMatchesBoth, SearchedAsText, UnmetField};
        matches!(
            notice,
            MeantAsText { .. } | NothingMatchesBoth { .. } | SearchedAsText { .. } | UnmetField { .. }
        )
    };
    (response.results.len(), notices.into_iter().filter(is_about_fields).collect())
}

#[tokio::test]
async fn a_field_with_an_impossible_value_is_text() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let (all, _) = found(&api, &by_words("pool")).await;
    assert!(all > 0);
    for text in ["role:admin", "after:hours", "before:lunch", "session:new", "-role:user", "-session:new"] {
        let (count, notices) = found(&api, &by_words(&format!("pool {text}"))).await;
        assert_eq!(count, all, "{text}");
        assert!(
            matches!(&notices[..], [Notice::SearchedAsText { text: said, .. }] if said == text),
            "{notices:?}"
        );
    }
    for text in ["turn:left", "in:place", "min_turns:x", "Role:admin"] {
        assert_eq!(found(&api, &by_words(&format!("pool {text}"))).await, (all, vec![]), "{text}");
    }
    let mut plain = by_words("pool role:admin");
    plain.query.plain = true;
    assert_eq!(found(&api, &plain).await, (all, vec![]));
}

#[tokio::test]
async fn a_field_that_nothing_meets_finds_nothing_and_says_why() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let (count, notices) = found(&api, &by_words("pool session:3a7c1e90")).await;
    assert_eq!(count, 0);
    let problem = FieldProblem::UnknownSession { session: "3a7c1e90".to_owned() };
    assert_eq!(
        notices,
        [Notice::UnmetField { text: "session:3a7c1e90".to_owned(), problem: problem.clone() }]
    );
    let (count, notices) = found(&api, &by_words("pool -session:3a7c1e90")).await;
    assert_eq!(notices, [Notice::UnmetField { text: "-session:3a7c1e90".to_owned(), problem }]);
    assert!(count > 0);
    let field = |text: &str| SearchCondition::Query { text: text.to_owned() };
    let option = |field: &str, value: &str| SearchCondition::Request {
        field: field.to_owned(),
        value: value.to_owned(),
    };
    let mut by_role = by_words("pool role:user");
    by_role.query.role = Some(Role::Assistant);
    let mut until = by_words("pool after:2026-03-01");
    until.query.filter.until = Some("2026-02-01".to_owned());
    for (request, one, other) in [
        (by_words("pool role:user role:assistant"), field("role:user"), field("role:assistant")),
        (by_role, option("role", "assistant"), field("role:user")),
        (
            by_words("pool before:2026-02-01 after:2026-03-01"),
            field("after:2026-03-01"),
            field("before:2026-02-01"),
        ),
        (
            by_words("pool after:2026-03-01 before:2026-03-01"),
            field("after:2026-03-01"),
            field("before:2026-03-01"),
        ),
        (until, field("after:2026-03-01"), option("until", "2026-02-01")),
    ] {
        let (count, notices) = found(&api, &request).await;
        assert_eq!(
            (count, notices.first()),
            (0, Some(&Notice::NothingMatchesBoth { one, other })),
            "{request:?}"
        );
    }
}

#[tokio::test]
async fn without_results_a_field_may_be_meant_as_text() {
    let (storage, caller, now) = (storage().await, ana_asks(), now());
    let api = api(&storage, &caller, &now);
    let hint = |text: &str| Notice::MeantAsText { text: text.to_owned() };
    assert_eq!(found(&api, &by_words("pool tool:nothing")).await, (0, vec![hint("tool:nothing")]));
    assert_eq!(
        found(&api, &by_words("pool after:2026-01-31 tag:\"on call\"")).await.1,
        [hint("tag:\"on call\"")]
    );
    assert_eq!(found(&api, &by_words("zzzz")).await, (0, vec![]));
}
