//! The description of the routes, for programs (OpenAPI 3.1) and for people, made from the table of routes.

use amplifier_session_api::{AccessRight, Reach};
use axum::body::Bytes;
use serde_json::{Map, Value, json};

use crate::routes::{
    HttpRoute, OPEN_ROUTES, OpenPage, OpenRoute, ParameterKind, RouteBody, RouteParameter, routes,
};

/// The description of the routes.
#[derive(Debug)]
pub(crate) struct Documentation {
    description: Bytes,
    page: Bytes,
}

impl Documentation {
    pub(crate) fn new() -> Self {
        Self { description: Bytes::from(openapi().to_string()), page: Bytes::from(page()) }
    }

    /// The OpenAPI document.
    pub(crate) fn description(&self) -> Bytes {
        self.description.clone()
    }

    /// The page for people.
    pub(crate) fn page(&self) -> Bytes {
        self.page.clone()
    }
}

/// The rules for all routes.
const INTRODUCTION: &str = "Every route but those without a token needs `Authorization: Bearer ams_…`, and answers only \
what its token reaches. Responses are the objects that the command line prints with `--json`; remarks are in their field \
`remarks`. Parameters that a route does not have are errors. Errors are `application/problem+json` (RFC 9457).";

fn openapi() -> Value {
    let mut paths = Map::new();
    let mut add = |path: &str, method: &str, operation: Value| {
        if let Some(object) = paths.entry(path).or_insert_with(|| json!({})).as_object_mut() {
            object.insert(method.to_owned(), operation);
        }
    };
    for route in OPEN_ROUTES {
        add(route.path, "get", open_operation(route));
    }
    for route in routes() {
        add(route.path, route.method.as_str(), operation(route));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Amplifier sessions",
            "version": env!("CARGO_PKG_VERSION"),
            "description": INTRODUCTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": problem_schema()},
            "responses": {"Problem": {
                "description": "Why there is no answer",
                "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }},
        },
        "security": [{"token": []}],
    })
}

fn problem_schema() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "instance", "kind", "retryable"],
        "properties": {
            "type": {"type": "string", "description": "`urn:amplifier-sessions:` and the kind"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "instance": {"type": "string", "description": "The id of the request, as in the log of the server"},
            "kind": {"type": "string"},
            "field": {"type": "string", "description": "The parameter that is wrong"},
            "retryable": {"type": "boolean"},
        },
    })
}

fn open_operation(route: &OpenRoute) -> Value {
    let content_type = route.response.split(';').next().unwrap_or_default();
    let mut responses = json!({"200": {"description": route.about, "content": {content_type: {}}}});
    if route.page == OpenPage::Readiness {
        responses["503"] = json!({"description": "Not ready", "content": {content_type: {}}});
    }
    responses["403"] = json!({"$ref": "#/components/responses/Problem"});
    json!({"operationId": route.name, "summary": route.about, "security": [], "responses": responses})
}

fn operation(route: &HttpRoute) -> Value {
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.about,
        "description": needs(route),
        "responses": responses(route),
    });
    let in_body = |parameter: &RouteParameter| route.body == RouteBody::Json && !route.is_in_path(parameter);
    let parameters: Vec<Value> =
        route.parameters().filter(|one| !in_body(one)).map(|one| parameter(route, one)).collect();
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    match route.body {
        RouteBody::None | RouteBody::Socket => {}
        RouteBody::Json => operation["requestBody"] = json_body(route),
        RouteBody::Bytes(content_type) | RouteBody::Stream(content_type) => {
            operation["requestBody"] = json!({"required": true, "content": {content_type: {}}});
        }
    }
    operation
}

/// The rights that a token needs.
fn needs(route: &HttpRoute) -> String {
    let reach = match route.reach {
        Reach::Own => String::new(),
        reach => format!(", and the reach `{}`", reach.as_str()),
    };
    let rights: Vec<&str> = route.rights().map(AccessRight::as_str).collect();
    format!("Needs the right to {}{reach}.", rights.join(" or to "))
}

fn responses(route: &HttpRoute) -> Value {
    if route.body == RouteBody::Socket {
        return json!({
            "101": {"description": "The connection is a WebSocket, whose frames are JSON"},
            "default": {"$ref": "#/components/responses/Problem"},
        });
    }
    // A content type has a slash, a type of the API has none.
    let content = if route.response.contains('/') {
        json!({route.response: {}})
    } else {
        json!({"application/json": {"schema": {"type": "object", "title": route.response}}})
    };
    let mut responses = json!({"200": {"description": "The answer", "content": content}});
    if route.is_kept() {
        responses["304"] = json!({"description": "It has not changed since the version in If-None-Match"});
    }
    responses["default"] = json!({"$ref": "#/components/responses/Problem"});
    responses
}

fn parameter(route: &HttpRoute, parameter: &RouteParameter) -> Value {
    let is_in_path = route.is_in_path(parameter);
    let mut value = json!({
        "name": parameter.name,
        "in": if is_in_path { "path" } else { "query" },
        "description": parameter.about,
        "required": is_in_path || parameter.is_required,
        "schema": schema(parameter.kind),
    });
    if let ParameterKind::Choices(_) = parameter.kind {
        value["explode"] = false.into();
    }
    value
}

fn json_body(route: &HttpRoute) -> Value {
    let in_body = || route.parameters().filter(|parameter| !route.is_in_path(parameter));
    let property = |parameter: &RouteParameter| {
        let mut schema = schema(parameter.kind);
        schema["description"] = parameter.about.into();
        (parameter.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = in_body().map(property).collect();
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    let required: Vec<&str> = in_body().filter(|one| one.is_required).map(|one| one.name).collect();
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    json!({"required": schema.get("required").is_some(), "content": {"application/json": {"schema": schema}}})
}

fn schema(kind: ParameterKind) -> Value {
    match kind {
        ParameterKind::Text => json!({"type": "string"}),
        ParameterKind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        ParameterKind::Count(most) => json!({"type": "integer", "minimum": 0, "maximum": most}),
        ParameterKind::Decimal => json!({"type": "number"}),
        ParameterKind::Flag => json!({"type": "boolean"}),
        ParameterKind::Choice(values) => json!({"type": "string", "enum": values}),
        ParameterKind::Choices(values) => {
            json!({"type": "array", "items": {"type": "string", "enum": values}})
        }
        ParameterKind::Json(type_name) => json!({"title": type_name}),
    }
}

fn page() -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Amplifier sessions: routes</title>\n\
         <h1>Routes</h1>\n<p>{}</p>\n<p>For programs: <a href=\"/openapi.json\">openapi.json</a></p>\n\
         <h2>Without a token</h2>\n<dl>\n",
        escaped(INTRODUCTION)
    );
    for route in OPEN_ROUTES {
        page.push_str(&format!("<dt><code>GET {}</code><dd>{}\n", escaped(route.path), escaped(route.about)));
    }
    page.push_str("</dl>\n<h2>With a token</h2>\n");
    for route in routes() {
        let method = route.method.as_str().to_uppercase();
        page.push_str(&format!(
            "<h3 id=\"{}\"><code>{method} {}</code></h3>\n<p>{}. {}\n",
            escaped(route.name),
            escaped(route.path),
            escaped(route.about),
            escaped(&needs(route))
        ));
        if route.parameters().next().is_some() {
            page.push_str("<dl>\n");
            for parameter in route.parameters() {
                let required = if parameter.is_required { " (required)" } else { "" };
                page.push_str(&format!(
                    "<dt><code>{}</code>{required}<dd>{}{}\n",
                    escaped(parameter.name),
                    escaped(parameter.about),
                    escaped(&values(parameter.kind))
                ));
            }
            page.push_str("</dl>\n");
        }
    }
    page
}

/// The values of a parameter, if they are few.
fn values(kind: ParameterKind) -> String {
    match kind {
        ParameterKind::Choice(values) | ParameterKind::Choices(values) => format!(": {}", values.join(", ")),
        _ => String::new(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The committed document shows changes of the routes to reviewers. To write it again, set `UPDATE_OPENAPI`.
    #[test]
    fn the_committed_document_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        let current = serde_json::to_string_pretty(&openapi()).unwrap() + "\n";
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(path, &current).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap();
        assert!(committed == current, "openapi.json is not current: run this test with UPDATE_OPENAPI=1");
    }

    #[test]
    fn every_route_is_described_once() {
        let document = openapi();
        let paths = document["paths"].as_object().unwrap();
        let described: usize = paths.values().map(|methods| methods.as_object().unwrap().len()).sum();
        assert_eq!(described, routes().count() + OPEN_ROUTES.len());
        for route in routes() {
            assert!(paths[route.path].get(route.method.as_str()).is_some(), "{}", route.name);
        }
    }

    #[test]
    fn the_page_has_every_route_and_no_script() {
        let page = page();
        for route in routes() {
            assert!(page.contains(&format!("{} {}", route.method.as_str().to_uppercase(), route.path)));
        }
        assert!(!page.contains("<script") && !page.contains("style="));
        assert_eq!(escaped("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }
}
