//! The routes, as data: the router, the documentation and the tests are made from this table.

mod changes;
mod feed;
mod finding;
mod groups;
mod hook;
mod managing;
mod open;
mod operations;
mod parameter;
mod rows;
mod sessions;

use std::{future::Future, pin::Pin, time::Duration};

use amplifier_session_api::{AccessRight, Reach};
use axum::http::{HeaderMap, Method, StatusCode, header};

pub(crate) use open::OPEN_ROUTES;
pub(crate) use parameter::{ParameterKind, RouteParameter};

use crate::{answer::HttpAnswer, call::HttpCall, problem::HttpProblem};

/// All routes for callers who have signed in.
pub(crate) fn routes() -> impl Iterator<Item = &'static HttpRoute> {
    [
        sessions::SESSION_ROUTES,
        finding::FINDING_ROUTES,
        changes::CHANGE_ROUTES,
        feed::FEED_ROUTES,
        rows::ROW_ROUTES,
        hook::HOOK_ROUTES,
        managing::MANAGING_ROUTES,
        operations::OPERATION_ROUTES.as_slice(),
    ]
    .into_iter()
    .flatten()
}

/// The work of a handler.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<HttpAnswer, HttpProblem>> + Send>>;

/// A method of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HttpVerb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl HttpVerb {
    /// The method in lower case, as OpenAPI writes it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

impl From<HttpVerb> for Method {
    fn from(verb: HttpVerb) -> Self {
        match verb {
            HttpVerb::Get => Self::GET,
            HttpVerb::Post => Self::POST,
            HttpVerb::Put => Self::PUT,
            HttpVerb::Patch => Self::PATCH,
            HttpVerb::Delete => Self::DELETE,
        }
    }
}

/// The body that a route reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteBody {
    /// None.
    None,
    /// A JSON object with the parameters that are not in the path.
    Json,
    /// Bytes of this content type, with parameters in the query. May be compressed with zstd.
    Bytes(&'static str),
    /// None: the connection becomes a WebSocket.
    Socket,
    /// As [`Self::Bytes`], but of any length: the handler reads it piece by piece.
    Stream(&'static str),
}

impl RouteBody {
    /// The memory that a body with these headers may need, in bytes, if it has at most `most`. A body that is read piece
    /// by piece takes its memory as it comes, and a JSON body is small.
    pub(crate) fn reserved(self, headers: &HeaderMap, most: usize) -> usize {
        match self {
            Self::None | Self::Socket | Self::Stream(_) | Self::Json => 0,
            // What a compressed body will need is not known.
            Self::Bytes(_) if headers.contains_key(header::CONTENT_ENCODING) => most,
            Self::Bytes(_) => {
                let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
                length.map_or(most, |length| length.parse().unwrap_or(most)).min(most)
            }
        }
    }
}

/// How a route is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoutePace {
    /// Answers soon.
    Short,
    /// Searches, which use a processor for long.
    Search,
    /// Stores what may be large.
    Store,
    /// Stores a posted event.
    Event,
    /// Reads all lines of a user.
    Scan,
    /// Its answer is a stream.
    Stream,
    /// Answers an agent, whose tools may search.
    Agent,
    /// Waits for changes, as long as its client says. That is no sign of a slow server.
    Wait,
}

/// The longest time that a client may wait for changes in a request, in seconds.
pub(crate) const LONGEST_WAIT: u64 = 60;

impl RoutePace {
    /// The longest time until there is an answer.
    pub(crate) const fn limit(self) -> Duration {
        match self {
            Self::Short | Self::Event | Self::Stream | Self::Agent => Duration::from_secs(60),
            Self::Search => Duration::from_secs(10),
            Self::Store | Self::Scan => Duration::from_secs(300),
            Self::Wait => Duration::from_secs(LONGEST_WAIT + 30),
        }
    }
}

/// A route for callers who have signed in.
#[derive(Debug)]
pub(crate) struct HttpRoute {
    /// The name in the log, in metrics and in the documentation.
    pub(crate) name: &'static str,
    pub(crate) method: HttpVerb,
    /// The path, with names in braces.
    pub(crate) path: &'static str,
    /// A description of one line.
    pub(crate) about: &'static str,
    /// The right that a caller needs.
    pub(crate) right: AccessRight,
    /// Another right that is enough.
    pub(crate) or_right: Option<AccessRight>,
    /// The least reach that a caller needs. The parameter `scope` may ask for more.
    pub(crate) reach: Reach,
    pub(crate) parameters: &'static [&'static [RouteParameter]],
    pub(crate) body: RouteBody,
    pub(crate) pace: RoutePace,
    /// The status of an answer.
    pub(crate) status: StatusCode,
    /// The type of the response, by its name in the documentation, or several; or a content type.
    pub(crate) response: &'static str,
    pub(crate) handler: fn(HttpCall) -> Answering,
}

impl HttpRoute {
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &'static RouteParameter> {
        self.parameters.iter().flat_map(|group| group.iter())
    }

    /// The rights of which a caller needs one.
    pub(crate) fn rights(&self) -> impl Iterator<Item = AccessRight> {
        [self.right].into_iter().chain(self.or_right)
    }

    /// Whether the parameter is a part of the path.
    pub(crate) fn is_in_path(&self, parameter: &RouteParameter) -> bool {
        self.path.split('/').any(|part| {
            part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) == Some(parameter.name)
        })
    }

    /// Whether the answer is the same until something is written, so that clients may keep it.
    pub(crate) fn is_kept(&self) -> bool {
        self.method == HttpVerb::Get && self.pace == RoutePace::Short && self.path.contains("{id}")
    }
}

/// A route for everyone. It reads no sessions.
#[derive(Debug)]
pub(crate) struct OpenRoute {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    /// The content type of the answer.
    pub(crate) response: &'static str,
    pub(crate) page: OpenPage,
}

/// The answer of a route for everyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenPage {
    /// The process runs.
    Health,
    /// The store answers, and the server is not stopping.
    Readiness,
    /// The description for programs.
    Description,
    /// The description for people.
    Documentation,
}

/// The parameter of `route` for a field of a request; the field, if there is none.
pub(crate) fn fields_to_names(route: &HttpRoute, field: &str) -> String {
    // Names that the storage uses.
    let field = match field {
        "content_types" | "content_type" => "in",
        "project_slug" => "project",
        "session_id" | "address" | "sequence" => "session",
        "start_sequence" => "start",
        "user_id" => "user",
        field => field,
    };
    let parameter = route.parameters().find(|parameter| parameter.field == field);
    parameter.map_or(field, |parameter| parameter.name).to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_places_of_routes_are_unique() {
        let names: BTreeSet<&str> = routes().map(|route| route.name).collect();
        assert_eq!(names.len(), routes().count());
        let places: BTreeSet<(&str, &str)> =
            routes().map(|route| (route.path, route.method.as_str())).collect();
        assert_eq!(places.len(), routes().count());
    }

    #[test]
    fn parameters_of_a_route_are_unique_and_those_of_its_path_exist() {
        for route in routes() {
            let names: Vec<&str> = route.parameters().map(|parameter| parameter.name).collect();
            let unique: BTreeSet<&str> = names.iter().copied().collect();
            assert_eq!(unique.len(), names.len(), "{}", route.name);
            for part in route.path.split('/').filter_map(|part| part.strip_prefix('{')) {
                assert!(unique.contains(part.trim_end_matches('}')), "{}: {part}", route.name);
            }
        }
    }

    /// Browsers and proxies repeat and prefetch these.
    #[test]
    fn no_get_changes_anything() {
        for route in routes() {
            let reads = matches!(route.right, AccessRight::Read | AccessRight::Admin);
            assert!(route.method != HttpVerb::Get || reads, "{}", route.name);
            assert!(
                route.method == HttpVerb::Get
                    || route.body != RouteBody::None
                    || route.method == HttpVerb::Delete
            );
        }
    }
}
