//! The selected store, if it is behind a server.

use std::sync::Arc;

use amplifier_session_client::{
    CREDENTIALS_FILE, HttpStore, ServerAddress, ServerCredentials, TOKEN_VARIABLE, TokenOwner,
};
use amplifier_session_storage::{Error, config::ConfigSources};

use crate::{
    app::{App, CurrentUser},
    args::server_address,
    failure::Failure,
};

/// The server that a text names, if it names one.
pub(crate) fn server_of(text: &str) -> Result<Option<ServerAddress>, Failure> {
    if !ServerAddress::is_one(text) {
        return Ok(None);
    }
    let hint = "the address of a server is, for example, https://sessions.example.com";
    server_address(text).map(Some).map_err(|reason| Failure::wrong_use(format!("the store {reason}"), hint))
}

/// The store of a server. `is_only` says whether the command uses no other one.
pub(crate) fn connect(app: &App, address: ServerAddress, is_only: bool) -> Result<HttpStore, Failure> {
    let token = credentials(app).token(&address, is_only)?;
    Ok(HttpStore::new(address, &token, app.config.switch("allow_http")?)?)
}

fn credentials(app: &App) -> ServerCredentials {
    let environment = &app.environment;
    let sources = ConfigSources::new(app.home.clone(), environment.variables.clone());
    let file = sources.folder_of_configuration().map(|folder| folder.join(CREDENTIALS_FILE));
    ServerCredentials::new(environment.variable(TOKEN_VARIABLE), file)
}

/// Why the file of tokens has none for the selected server: a program that another one starts may not get the variable.
pub(crate) fn missing_in_file(app: &App) -> Result<Option<Error>, Failure> {
    let Some(address) = server_of(&app.global.store)? else { return Ok(None) };
    Ok(credentials(app).token_in_file(&address).err())
}

/// Whether a server has the selected store.
pub(crate) fn is_selected(app: &App) -> Result<bool, Failure> {
    Ok(server_of(&app.global.store)?.is_some())
}

/// The selected store, if a server has it.
pub(crate) fn selected(app: &App) -> Result<Option<Arc<HttpStore>>, Failure> {
    match server_of(&app.global.store)? {
        Some(address) => Ok(Some(Arc::new(connect(app, address, true)?))),
        None => Ok(None),
    }
}

/// The user of the token of the selected store, if a server has it.
pub(crate) async fn user(app: &App) -> Result<Option<CurrentUser>, Failure> {
    let Some(server) = selected(app)? else { return Ok(None) };
    let TokenOwner { user_id, teams, org } = server.owner().await?.clone();
    let source = format!("the token for {}", server.address().host());
    Ok(Some(CurrentUser { user_id: user_id.to_string(), source, teams, org }))
}
