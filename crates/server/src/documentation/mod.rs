//! The description of the routes, made from the table of routes: a page for people, and the OpenAPI document for programs.
//!
//! The document has the schemas of all responses, made from their types. A test writes it to `openapi.json`, which is a
//! part of the program: so the program has no code for schemas, and changes of the routes are seen in reviews.

#[cfg(test)]
mod openapi;
#[cfg(test)]
mod schemas;

use amplifier_session_api::{AccessRight, Reach};
use axum::body::Bytes;

use crate::routes::{HttpRoute, OPEN_ROUTES, ParameterKind, routes};

/// The OpenAPI document.
static OPENAPI: &[u8] = include_bytes!("../../openapi.json");

/// The description of the routes.
#[derive(Debug)]
pub(crate) struct Documentation {
    page: Bytes,
}

impl Documentation {
    pub(crate) fn new() -> Self {
        Self { page: Bytes::from(page()) }
    }

    /// The OpenAPI document.
    pub(crate) fn description(&self) -> Bytes {
        Bytes::from_static(OPENAPI)
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

/// The rights that a token needs.
fn needs(route: &HttpRoute) -> String {
    let reach = match route.reach {
        Reach::Own => String::new(),
        reach => format!(", and the reach `{}`", reach.as_str()),
    };
    let rights: Vec<&str> = route.rights().map(AccessRight::as_str).collect();
    format!("Needs the right to {}{reach}.", rights.join(" or to "))
}

fn page() -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Amplifier sessions: routes</title>\n\
         <h1>Routes</h1>\n<p>{}</p>\n<p>For programs: <a href=\"/openapi.json\">openapi.json</a></p>\n\
         <h2>Without a token</h2>\n<dl>\n",
        escaped(INTRODUCTION)
    );
    for route in OPEN_ROUTES {
        page.push_str(&format!(
            "<dt id=\"{}\"><code>GET {}</code><dd>{}\n",
            route.name,
            escaped(route.path),
            escaped(route.about)
        ));
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
        page.push_str(&format!("<p>The answer is <code>{}</code>.\n", escaped(route.response)));
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
        ParameterKind::Json(type_name) => format!(": {type_name}"),
        _ => String::new(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

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
