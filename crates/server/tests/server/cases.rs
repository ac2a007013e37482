//! The requests of the proof of scope: for each route of the table, by its name.

use amplifier_session_testkit::prelude::{Value, json};

use crate::{
    cases_of_operations::operation_cases,
    world::{USERS, World},
};

/// A request, without token and scope.
#[derive(Debug, Clone)]
pub(crate) struct RouteCase {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) body: Option<(&'static str, String)>,
}

impl RouteCase {
    /// The request as text, to see what it names.
    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.path, self.body.as_ref().map_or("", |(_, body)| body))
    }
}

fn get(path: impl Into<String>) -> RouteCase {
    RouteCase { method: "GET", path: path.into(), body: None }
}

pub(crate) fn with_json(method: &'static str, path: impl Into<String>, body: &Value) -> RouteCase {
    RouteCase { method, path: path.into(), body: Some(("application/json", body.to_string())) }
}

fn with_lines(method: &'static str, path: impl Into<String>, lines: String) -> RouteCase {
    RouteCase { method, path: path.into(), body: Some(("application/jsonl", lines)) }
}

/// The requests for a route: about the session `id`, if it is about one. `None` if there is no case for it, which makes
/// the proof fail.
pub(crate) fn cases(world: &World, route: &str, id: &str) -> Option<Vec<RouteCase>> {
    open(route)
        .or_else(|| lists(route, id))
        .or_else(|| session(route, id))
        .or_else(|| changes(route, id))
        .or_else(|| rows(world, route, id))
        .or_else(|| hook(route, id))
        .or_else(|| operation_cases(route, id))
}

fn open(route: &str) -> Option<Vec<RouteCase>> {
    let path = match route {
        "healthz" => "/healthz",
        "readyz" => "/readyz",
        "openapi" => "/openapi.json",
        "docs" => "/docs",
        "me" => "/v1/me",
        "version" => "/v1/version",
        "status" => "/v1/status",
        "metrics" => "/metrics",
        _ => return None,
    };
    Some(vec![get(path)])
}

fn lists(route: &str, id: &str) -> Option<Vec<RouteCase>> {
    let both = |path: &str, of_session: String| vec![get(path), get(of_session)];
    Some(match route {
        "sessions" => vec![
            get("/v1/sessions?short_ids&tree"),
            get("/v1/sessions?sort=cost&text=about"),
            get(format!("/v1/sessions?id_prefix={id}")),
            get(format!("/v1/sessions?parent={id}")),
        ],
        "export" => vec![get("/v1/export"), get("/v1/export?project=project-*&vectors")],
        "search" => vec![
            get("/v1/search?q=pool&full&explain&limit=200"),
            get("/v1/search?q=pool&group=session&per_session=5"),
            get("/v1/search?q=pool&unit=turn"),
            get("/v1/search?q=nothing+like+this"),
            get(format!("/v1/search?q=pool&session={id}")),
            get(format!("/v1/search?q=session:{id}+pool")),
        ],
        "search.post" => vec![
            with_json("POST", "/v1/search", &json!({"q": "pool", "in": ["user", "tool", "thinking"]})),
            with_json("POST", "/v1/search", &json!({"q": "pool", "not_session": [id]})),
        ],
        "search_vector" => {
            vec![with_json("POST", "/v1/search/vector", &json!({"vector": [1.0, 0.0], "session": id}))]
        }
        "timeline" => vec![get("/v1/timeline?q=pool&by=day")],
        "events" => both("/v1/events?full&limit=1000", format!("/v1/events?session={id}&type=tool:error")),
        "statistics" => both("/v1/statistics", format!("/v1/statistics?session={id}")),
        "projects" => vec![get("/v1/projects")],
        "recent" => vec![get("/v1/projects/recent?limit=100&short_ids")],
        "users" => vec![get("/v1/users")],
        "tags" => vec![get("/v1/tags")],
        "gaps" => both("/v1/gaps", format!("/v1/gaps?sessions={id}")),
        "vectors" => vec![get("/v1/vectors")],
        "check" => vec![get("/v1/check")],
        // Of users who have no sessions: what it does to others is tested elsewhere.
        "rename_user" => {
            vec![with_json("POST", "/v1/users/rename", &json!({"old": "nobody-1", "new": "nobody-2"}))]
        }
        // What they report later has a proof of its own: `scope_of_changes`.
        "changes" => vec![get("/v1/changes")],
        "live" => vec![get("/v1/live")],
        "mcp" => agent_cases(id, None),
        "secrets" => vec![get("/v1/secrets?short_ids"), get("/v1/secrets?project=project-*")],
        "superseded_sessions" => vec![get("/v1/superseded?short_ids")],
        "superseded_events" => {
            both("/v1/superseded/events?full", format!("/v1/superseded/events?session={id}"))
        }
        _ => return None,
    })
}

fn session(route: &str, id: &str) -> Option<Vec<RouteCase>> {
    let ends: &[&str] = match route {
        "session" => &[""],
        "messages" => &["/messages?vectors&short_ids", "/messages?from=1&limit=2&budget=1000"],
        "message" => &["/messages/1?before=5&after=5", "/messages/99"],
        "turn" => &["/turns/1?embedding&turn_count"],
        "turn_context" => &["/turns/1/context?before=1&after=1"],
        "session_events" => &["/events?full"],
        "event" => &["/events/0?full", "/events/0?line=true"],
        "session_statistics" => &["/statistics", "/statistics?by=project,day"],
        "files" => &["/files"],
        "session_vectors" => &["/vectors"],
        "session_secrets" => &["/secrets"],
        "superseded" => &["/superseded"],
        "session_export" => &["/export"],
        _ => return None,
    };
    let mut cases: Vec<RouteCase> = ends.iter().map(|end| get(format!("/v1/sessions/{id}{end}"))).collect();
    if !matches!(route, "session_secrets" | "superseded" | "session_export") {
        let of_owner = |case: &RouteCase| {
            let joint = if case.path.contains('?') { '&' } else { '?' };
            get(format!("{}{joint}user={}", case.path, USERS[0]))
        };
        cases.extend(cases.iter().map(of_owner).collect::<Vec<_>>());
    }
    Some(cases)
}

fn changes(route: &str, id: &str) -> Option<Vec<RouteCase>> {
    let path = |end: &str| format!("/v1/sessions/{id}{end}");
    let post = |end: &str, body: &Value| with_json("POST", path(end), body);
    let line = json!({"role": "user", "content": "one more"});
    let event = json!({"event": "session:start", "ts": "2026-01-01T00:00:00Z"});
    Some(match route {
        "edit" => vec![with_json("PATCH", path(""), &json!({"name": "renamed"}))],
        "share" => vec![with_json("PUT", path("/sharing"), &json!({"visibility": "public"}))],
        "tag" => vec![post("/tags", &json!({"add": ["more"]}))],
        "summaries" => {
            let summary = json!({"message_id": format!("{id}#0"), "text": "a summary"});
            vec![with_json("POST", "/v1/summaries", &json!({"summaries": [summary]}))]
        }
        "purge_secrets" => {
            vec![post("/secrets/purge", &json!({"dry_run": true})), post("/secrets/purge", &json!({}))]
        }
        "ignore_secrets" => {
            vec![post("/secrets/ignore", &json!({})), post("/secrets/ignore", &json!({"ignore": false}))]
        }
        "make_vectors" => vec![with_json("POST", "/v1/vectors", &json!({"session": id}))],
        "rewind" => vec![
            post("/rewind", &json!({"to_turn": 0, "dry_run": true})),
            post("/rewind", &json!({"to_turn": 0})),
        ],
        "delete_session" => {
            let delete = |path| RouteCase { method: "DELETE", path, body: None };
            vec![delete(path("?dry_run")), delete(path(""))]
        }
        "delete" => vec![
            with_json("POST", "/v1/sessions/delete", &json!({"all": true, "dry_run": true})),
            with_json("POST", "/v1/sessions/delete", &json!({"sessions": [id]})),
        ],
        "prune" => vec![
            with_json("POST", "/v1/superseded/delete", &json!({"sessions": [id], "dry_run": true})),
            with_json("POST", "/v1/superseded/delete", &json!({})),
        ],
        "store_transcript" => {
            vec![with_lines("PUT", path("/transcript?project=shop&host=laptop"), line.to_string())]
        }
        "store_events" => {
            vec![with_lines("PUT", path("/events?project=shop&host=laptop"), event.to_string())]
        }
        "store_metadata" => {
            let path = path("/metadata?project=shop&host=laptop");
            vec![with_json("PUT", path, &json!({"name": "sent"}))]
        }
        _ => return None,
    })
}

fn rows(world: &World, route: &str, id: &str) -> Option<Vec<RouteCase>> {
    let path = format!("/v1/rows/{id}");
    Some(match route {
        "row_extents" => vec![get("/v1/rows/extents"), get(format!("/v1/rows/extents?session={id}"))],
        "read_rows" => {
            let zeros = "0".repeat(64);
            vec![get(format!("{path}?after_message=1&digest={zeros}")), get(path)]
        }
        "import" => vec![
            with_lines("POST", "/v1/import", world.archive(id)),
            with_lines("POST", "/v1/import?replace", world.archive(id)),
        ],
        "write_rows" => vec![
            with_lines("POST", "/v1/rows?dry_run", world.stream(id)),
            with_lines("POST", "/v1/rows", world.stream(id)),
        ],
        _ => return None,
    })
}

fn hook(route: &str, id: &str) -> Option<Vec<RouteCase>> {
    let event = |session: &str| {
        let data =
            json!({"session_id": session, "timestamp": "2026-01-01T00:00:00.000Z", "text": "one more"});
        let event =
            json!({"event": "tool:pre", "workspace": "shop", "working_dir": "/srv/shop", "data": data});
        with_json("POST", "/events", &event)
    };
    Some(match route {
        "hook_events" => vec![event(id), event(id), event("")],
        "hook_version" => vec![get("/version")],
        "hook_status" => vec![get("/status")],
        "hook_blobs" => vec![get(format!("/blobs/{id}"))],
        _ => return None,
    })
}

/// Calls of all tools of agents, with a scope if there is one.
pub(crate) fn agent_cases(id: &str, scope: Option<&str>) -> Vec<RouteCase> {
    let call = |tool: &str, mut arguments: Value| {
        if let Some(scope) = scope {
            arguments["scope"] = scope.into();
        }
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        with_json("POST", "/mcp", &message)
    };
    vec![
        call("search", json!({"query": "pool", "limit": 100, "budget": 12_000})),
        call("search", json!({"query": "pool", "unit": "turn", "format": "json", "budget": 12_000})),
        call("search", json!({"query": "pool", "session": id})),
        call("search", json!({"query": "nothing like this"})),
        call("read", json!({"address": id, "thinking": true, "budget": 12_000})),
        call("read", json!({"address": format!("{id}#1"), "format": "json", "budget": 12_000})),
        call("list", json!({"limit": 500, "budget": 12_000})),
        call("list", json!({"parent": id})),
        call("events", json!({"budget": 12_000})),
        call("events", json!({"session": id, "format": "json"})),
        call("statistics", json!({"by": "project"})),
        call("statistics", json!({"session": id})),
    ]
}
