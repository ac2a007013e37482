//! The requests of the proof of scope for operations: a new operation without a case fails it.

use amplifier_session_testkit::prelude::{Value, json};

use crate::cases::{RouteCase, with_json};

/// The requests for the operation of a route. `None` if it is none, or has no case.
pub(crate) fn operation_cases(route: &str, id: &str) -> Option<Vec<RouteCase>> {
    let name = route.strip_prefix("operations.")?;
    let requests = finding(name, id).or_else(|| reading(name, id)).or_else(|| changing(name, id))?;
    Some(requests.iter().map(|request| operation(name, request)).collect())
}

/// A call of an operation.
pub(crate) fn operation(name: &str, request: &Value) -> RouteCase {
    let call = json!({"now": "2026-03-29T03:30:00+02:00[Europe/Berlin]", "request": request});
    with_json("POST", format!("/v1/operations/{name}"), &call)
}

fn finding(name: &str, id: &str) -> Option<Vec<Value>> {
    Some(match name {
        "search" => vec![
            json!({"query": "pool", "full": true, "explain": true, "limit": 200}),
            json!({"query": "pool", "by_session": true}),
            json!({"query": "pool", "session": id}),
            json!({"query": format!("session:{id} pool"), "not_sessions": [id]}),
            json!({"query": "nothing like this"}),
        ],
        "search_turns" => vec![json!({"query": "pool"}), json!({"query": "pool", "by_session": true})],
        "search_superseded" => vec![json!({"query": "pool"}), json!({"query": "pool", "session": id})],
        "timeline" => vec![json!({"query": "pool"})],
        "events" => vec![json!({"full": true, "limit": 1000}), json!({"session": id, "short_ids": true})],
        "sessions" => vec![
            json!({"short_ids": true, "tree": true}),
            json!({"text": "about", "sort": "cost"}),
            json!({"parent": id}),
        ],
        "recent" => vec![json!({"limit": 100, "short_ids": true})],
        "projects" | "statistics" | "tags" | "users" | "vector_status" | "gaps" | "superseded_sessions" => {
            vec![json!({})]
        }
        "superseded_events" => vec![json!({"full": true}), json!({"session": id, "full": true})],
        "list_secrets" => vec![json!({"short_ids": true, "redact": "mark"}), json!({"sessions": [id]})],
        "export" => vec![json!({}), json!({"vectors": true}), json!({"session": id})],
        _ => return None,
    })
}

fn reading(name: &str, id: &str) -> Option<Vec<Value>> {
    let of_session = json!({"session": id});
    Some(match name {
        "session" => vec![json!({"session": id, "short_ids": true})],
        "messages" => vec![
            json!({"session": id, "vectors": true, "short_ids": true}),
            json!({"session": format!("{id}#1"), "range": true}),
        ],
        "session_events" => vec![json!({"session": id, "full": true})],
        "context" => vec![
            json!({"session": id, "message": 1, "before": 5, "after": 5}),
            json!({"session": id, "turn": 1}),
        ],
        "turn" => vec![json!({"session": id, "turn": 1, "embedding": true})],
        "files" | "session_vectors" | "superseded_messages" => vec![of_session],
        _ => return None,
    })
}

fn changing(name: &str, id: &str) -> Option<Vec<Value>> {
    Some(match name {
        "edit" => vec![json!({"session": id, "name": "renamed"})],
        "share" => vec![json!({"session": id, "visibility": "public"})],
        "tag" => vec![json!({"session": id, "add": ["more"]}), json!({"session": id})],
        "summaries" => {
            vec![json!({"summaries": [{"message_id": format!("{id}#0"), "text": "a summary"}]})]
        }
        // A line without a secret: what is ignored is shown to everyone.
        "ignore_secrets" => vec![json!({"address": format!("{id}#2"), "ignore": true})],
        "purge_secrets_preview" => vec![json!({"address": id})],
        "purge_secrets" => vec![json!({"address": id, "session_id": id, "lines": []})],
        "rewind_preview" => vec![json!({"session": id, "to_turn": 0, "short_ids": true})],
        "rewind" => vec![json!({"session_id": id, "to_turn": 0})],
        "delete_preview" => vec![json!({"all": true, "short_ids": true}), json!({"sessions": [id]})],
        "delete" => vec![json!({"session_ids": [id]})],
        "prune_preview" => vec![json!({}), json!({"sessions": [id]})],
        "prune" => {
            vec![json!({"sessions": [{"session_id": id, "last_superseded_at": "2027-01-01T00:00:00Z"}]})]
        }
        // Renaming a user with sessions would take them from the tokens of the proof.
        "rename_user" => vec![json!({"old": "nobody-1", "new": "nobody-2"})],
        _ => return None,
    })
}
