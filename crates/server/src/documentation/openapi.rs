//! The OpenAPI document (3.1), made from the table of routes and the types of the responses.

use amplifier_session_api::releases::VERSION;
use serde_json::{Map, Value, json};

use super::{INTRODUCTION, needs, schemas::response_schemas};
use crate::routes::{
    HttpRoute, OPEN_ROUTES, OpenPage, OpenRoute, ParameterKind, RouteBody, RouteParameter, routes,
};

/// Stands between the names of the types that a response can have.
const OR: &str = " | ";

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
    let mut schemas = response_schemas();
    schemas.insert("Problem".to_owned(), problem_schema());
    // That of each operation of the API.
    schemas.insert("Request".to_owned(), json!({"type": "object"}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Amplifier sessions",
            "version": VERSION,
            "description": INTRODUCTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
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

fn responses(route: &HttpRoute) -> Value {
    if route.body == RouteBody::Socket {
        return json!({
            "101": {"description": "The connection is a WebSocket, whose frames are JSON"},
            "default": {"$ref": "#/components/responses/Problem"},
        });
    }
    let mut content = Map::new();
    // A content type has a slash, a type of the API has none.
    let (types, names): (Vec<&str>, Vec<&str>) =
        route.response.split(OR).partition(|name| name.contains('/'));
    if !names.is_empty() {
        content.insert("application/json".to_owned(), json!({"schema": any_of(&names)}));
    }
    content.extend(types.into_iter().map(|content_type| (content_type.to_owned(), json!({}))));
    let mut responses = json!({route.status.as_str(): {"description": "The answer", "content": content}});
    if route.is_kept() {
        responses["304"] = json!({"description": "It has not changed since the version in If-None-Match"});
    }
    responses["default"] = json!({"$ref": "#/components/responses/Problem"});
    responses
}

/// One of the types with these names.
fn any_of(names: &[&str]) -> Value {
    let schemas: Vec<Value> = names.iter().map(|name| reference(name)).collect();
    match schemas.as_slice() {
        [schema] => schema.clone(),
        _ => json!({"anyOf": schemas}),
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
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
        if !parameter.is_required {
            schema = or_null(schema);
        }
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

/// In a JSON body, `null` is as good as nothing.
fn or_null(mut schema: Value) -> Value {
    if let Some(kind) = schema.get("type").cloned() {
        schema["type"] = json!([kind, "null"]);
        if let Some(Value::Array(values)) = schema.get_mut("enum") {
            values.push(Value::Null);
        }
        return schema;
    }
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn schema(kind: ParameterKind) -> Value {
    match kind {
        ParameterKind::Text => json!({"type": "string"}),
        ParameterKind::Texts => json!({"type": "array", "items": {"type": "string"}}),
        ParameterKind::Count(most) => json!({"type": "integer", "minimum": 0, "maximum": most}),
        ParameterKind::Decimal => json!({"type": "number"}),
        ParameterKind::Numbers => json!({"type": "array", "items": {"type": "number"}}),
        ParameterKind::Flag => json!({"type": "boolean"}),
        ParameterKind::Choice(values) => json!({"type": "string", "enum": values}),
        ParameterKind::Choices(values) => {
            json!({"type": "array", "items": {"type": "string", "enum": values}})
        }
        ParameterKind::Json(type_name) => match type_name.strip_suffix("[]") {
            Some(type_name) => json!({"type": "array", "items": reference(type_name)}),
            None => reference(type_name),
        },
    }
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

    /// All references lead somewhere.
    #[test]
    fn every_type_is_described() {
        let document = openapi();
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name}: add it to `response_schemas`");
        }
    }
}
