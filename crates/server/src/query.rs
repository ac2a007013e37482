//! Parameters of requests, as the fields of a request of the API.

use amplifier_session_api::choices::typed_choice;
use axum::body::Bytes;
use serde_json::{Map, Number, Value};

use crate::{
    problem::HttpProblem,
    routes::{HttpRoute, ParameterKind, RouteParameter},
};

/// The fields from path and query. A parameter that the route does not have is an error: it may be mistyped, and would
/// change nothing.
pub(crate) fn fields_of_query<'a>(
    route: &HttpRoute,
    path: impl Iterator<Item = (&'a str, &'a str)>,
    query: &str,
) -> Result<Map<String, Value>, HttpProblem> {
    let mut fields = Map::new();
    for (name, value) in path {
        let parameter = parameter(route, name)?;
        fields.insert(parameter.field.to_owned(), value_of(parameter, value)?);
    }
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let parameter = parameter(route, &name)?;
        if route.is_in_path(parameter) {
            return Err(HttpProblem::of_parameter(&name, "it is a part of the path"));
        }
        let value = value_of(parameter, &value)?;
        match (fields.get_mut(parameter.field), value) {
            (None, value) => {
                fields.insert(parameter.field.to_owned(), value);
            }
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            _ => return Err(HttpProblem::of_parameter(&name, "it is given twice")),
        }
    }
    Ok(fields)
}

/// Adds the fields of a JSON body.
pub(crate) fn add_fields_of_body(
    route: &HttpRoute,
    body: &Bytes,
    fields: &mut Map<String, Value>,
) -> Result<(), HttpProblem> {
    if body.is_empty() {
        return Ok(());
    }
    let wrong = |error: serde_json::Error| {
        HttpProblem::of_parameter("body", format!("it is not a JSON object: {error}"))
    };
    let object: Map<String, Value> = serde_json::from_slice(body).map_err(wrong)?;
    for (name, value) in object {
        let parameter = parameter(route, &name)?;
        if route.is_in_path(parameter) || fields.contains_key(parameter.field) {
            return Err(HttpProblem::of_parameter(&name, "it is given twice"));
        }
        // In JSON, `null` is as good as nothing.
        if !value.is_null() {
            let value =
                checked(parameter.kind, value).map_err(|must| HttpProblem::of_parameter(&name, must))?;
            fields.insert(parameter.field.to_owned(), value);
        }
    }
    Ok(())
}

/// Checks that required parameters are there.
pub(crate) fn check_required(route: &HttpRoute, fields: &Map<String, Value>) -> Result<(), HttpProblem> {
    let missing =
        route.parameters().find(|parameter| parameter.is_required && !fields.contains_key(parameter.field));
    missing.map_or(Ok(()), |parameter| Err(HttpProblem::of_parameter(parameter.name, "it is missing")))
}

fn parameter(route: &HttpRoute, name: &str) -> Result<&'static RouteParameter, HttpProblem> {
    route.parameters().find(|parameter| parameter.name == name).ok_or_else(|| {
        let known: Vec<&str> = route
            .parameters()
            .filter(|parameter| !route.is_in_path(parameter))
            .map(|parameter| parameter.name)
            .collect();
        let known =
            if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        HttpProblem::of_parameter(name, format!("{} has no such parameter; {known}", route.path))
    })
}

fn value_of(parameter: &RouteParameter, text: &str) -> Result<Value, HttpProblem> {
    let wrong = |must: String| HttpProblem::of_parameter(parameter.name, must);
    match parameter.kind {
        ParameterKind::Text => Ok(text.into()),
        ParameterKind::Texts => Ok(vec![text].into()),
        ParameterKind::Count(most) => match text.parse::<u64>() {
            Ok(count) if count <= most => Ok(count.into()),
            _ => Err(wrong(format!("must be a number from 0 to {most}"))),
        },
        ParameterKind::Decimal => text
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| wrong("must be a number".to_owned())),
        ParameterKind::Flag => match text {
            "" | "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => Err(wrong("must be true or false".to_owned())),
        },
        ParameterKind::Choice(values) => {
            typed_choice(values, text).map(Value::from).ok_or_else(|| wrong(one_of(values)))
        }
        ParameterKind::Choices(values) => {
            let chosen = text.split(',').map(|text| typed_choice(values, text.trim()));
            let chosen: Option<Vec<&str>> = chosen.collect();
            chosen.map(Value::from).ok_or_else(|| wrong(one_of(values)))
        }
        ParameterKind::Json(_) | ParameterKind::Numbers => Err(wrong("belongs into the body".to_owned())),
    }
}

/// A value of a JSON body, if it is of this kind; otherwise, what it must be. A value of another type must not be taken for
/// an absent one: `{"dry_run": "yes"}` would delete.
fn checked(kind: ParameterKind, value: Value) -> Result<Value, String> {
    let must = |right: bool, what: &str| if right { Ok(()) } else { Err(format!("must be {what}")) };
    match kind {
        ParameterKind::Text => must(value.is_string(), "a text")?,
        ParameterKind::Texts => must(are(&value, Value::is_string), "a list of texts")?,
        ParameterKind::Decimal => must(value.is_number(), "a number")?,
        ParameterKind::Numbers => must(are(&value, Value::is_number), "a list of numbers")?,
        ParameterKind::Flag => must(value.is_boolean(), "true or false")?,
        ParameterKind::Count(most) => {
            let is_count = value.as_u64().is_some_and(|count| count <= most);
            must(is_count, &format!("a number from 0 to {most}"))?;
        }
        ParameterKind::Choice(values) => {
            return value
                .as_str()
                .and_then(|text| typed_choice(values, text))
                .map(Value::from)
                .ok_or(one_of(values));
        }
        ParameterKind::Choices(values) => {
            let chosen = |list: &Vec<Value>| -> Option<Vec<&str>> {
                list.iter().map(|value| typed_choice(values, value.as_str()?)).collect()
            };
            return value.as_array().and_then(chosen).map(Value::from).ok_or(one_of(values));
        }
        // Its operation checks it.
        ParameterKind::Json(_) => {}
    }
    Ok(value)
}

fn are(value: &Value, is_one: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(is_one))
}

fn one_of(values: &[&str]) -> String {
    format!("must be one of {}", values.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::routes::routes;

    fn route(name: &str) -> &'static HttpRoute {
        routes().find(|route| route.name == name).unwrap()
    }

    fn fields(query: &str) -> Result<Value, HttpProblem> {
        fields_of_query(route("search"), std::iter::empty(), query).map(Value::Object)
    }

    #[test]
    fn parameters_become_fields() {
        let read = fields("q=%C3%A9+pool&in=user,tool&tag=a&tag=b&limit=5&exact&scope=OWN").unwrap();
        assert_eq!(
            read,
            json!({
                "query": "é pool", "in": ["user", "tool"], "tags": ["a", "b"], "limit": 5, "exact": true,
                "scope": "own",
            })
        );
    }

    #[test]
    fn values_may_be_named_as_on_the_command_line() {
        let read = fields("q=a&mode=full-text&in=user_query,tool-call").unwrap();
        assert_eq!(read, json!({"query": "a", "mode": "full_text", "in": ["user", "tool_call"]}));
        let read = fields_of_query(route("statistics"), std::iter::empty(), "by=event,day").unwrap();
        assert_eq!(Value::Object(read), json!({"by": ["event_type", "day"]}));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (query, name) in [
            ("q=a&limt=5", "limt"),
            ("q=a&q=b", "q"),
            ("q=a&limit=many", "limit"),
            ("q=a&limit=-1", "limit"),
            ("q=a&limit=100000000", "limit"),
            ("q=a&exact=maybe", "exact"),
            ("q=a&mode=telepathy", "mode"),
            ("q=a&in=user,dreams", "in"),
            ("q=a&query=b", "query"),
        ] {
            let problem = fields(query).unwrap_err();
            assert_eq!((problem.status().as_u16(), problem.field()), (400, Some(name)), "{query}");
        }
    }

    #[test]
    fn a_body_has_the_same_names() {
        let read = |body: &str| {
            let mut fields = Map::new();
            let body = Bytes::from(body.to_owned());
            add_fields_of_body(route("search.post"), &body, &mut fields).map(|()| Value::Object(fields))
        };
        assert_eq!(read(r#"{"q":"a","tag":["x"]}"#).unwrap(), json!({"query": "a", "tags": ["x"]}));
        assert_eq!(read(r#"{"q":"a","until":null}"#).unwrap(), json!({"query": "a"}));
        assert_eq!(read("").unwrap(), json!({}));
        assert_eq!(
            read(r#"{"q":"a","exact":true,"in":["User"],"mode":"SEMANTIC","mmr_lambda":1}"#).unwrap(),
            json!({"query": "a", "exact": true, "in": ["user"], "mode": "semantic", "mmr_lambda": 1})
        );
        for body in [
            "[]",
            "{",
            r#"{"qq":"a"}"#,
            r#"{"q":1}"#,
            r#"{"q":"a","tag":"x"}"#,
            r#"{"q":"a","tag":[1]}"#,
            r#"{"q":"a","exact":"true"}"#,
            r#"{"q":"a","limit":"5"}"#,
            r#"{"q":"a","limit":1.5}"#,
            r#"{"q":"a","limit":100000000}"#,
            r#"{"q":"a","in":"user"}"#,
            r#"{"q":"a","in":["dreams"]}"#,
            r#"{"q":"a","mode":"telepathy"}"#,
            r#"{"q":"a","mmr_lambda":"1"}"#,
        ] {
            assert_eq!(read(body).unwrap_err().status().as_u16(), 400, "{body}");
        }
    }
}
