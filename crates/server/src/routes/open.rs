//! The routes for everyone.

use super::{OpenPage, OpenRoute};

/// The routes for everyone. They read no sessions.
pub(crate) static OPEN_ROUTES: &[OpenRoute] = &[
    OpenRoute {
        name: "healthz",
        path: "/healthz",
        about: "Whether the process runs",
        response: "text/plain; charset=utf-8",
        page: OpenPage::Health,
    },
    OpenRoute {
        name: "readyz",
        path: "/readyz",
        about: "Whether the store answers; 503 if it does not, or if the server is stopping",
        response: "text/plain; charset=utf-8",
        page: OpenPage::Readiness,
    },
    OpenRoute {
        name: "openapi",
        path: "/openapi.json",
        about: "This description",
        response: "application/json",
        page: OpenPage::Description,
    },
    OpenRoute {
        name: "docs",
        path: "/docs",
        about: "This description as a page",
        response: "text/html; charset=utf-8",
        page: OpenPage::Documentation,
    },
];
