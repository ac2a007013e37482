//! Stores behind servers, in a build without the client of servers.

use std::sync::Arc;

use amplifier_session_api::remote::OperationServer;
use amplifier_session_storage::Error;

use crate::{
    app::{App, CurrentUser},
    failure::Failure,
};

/// Fails if a server has the selected store.
pub(crate) fn selected(app: &App) -> Result<Option<Arc<dyn OperationServer>>, Failure> {
    let store = app.global.store.trim_start();
    let scheme = store.split("://").next().unwrap_or_default();
    if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http") {
        let hint = "build the program with the feature `client`, or pass another --store";
        return Err(Failure::wrong_use("this build has no client for servers", hint));
    }
    Ok(None)
}

/// As [`selected`].
pub(crate) fn missing_in_file(app: &App) -> Result<Option<Error>, Failure> {
    selected(app).map(|_| None)
}

/// As [`selected`].
pub(crate) fn is_selected(app: &App) -> Result<bool, Failure> {
    selected(app).map(|_| false)
}

/// As [`selected`].
pub(crate) async fn user(app: &App) -> Result<Option<CurrentUser>, Failure> {
    selected(app).map(|_| None)
}
