//! Opening stores in PostgreSQL by their URL.

use std::sync::Arc;

use amplifier_session_core::{
    Result,
    backend::{BackendFactory, Open, OpenRequest, StorageBackend},
    blocking,
    model::UserId,
};

use crate::{
    Postgres, PostgresConfig,
    config::{FORM, SETTINGS},
};

/// Stores in PostgreSQL: `postgres://[USER@][HOST[:PORT]][/DATABASE]`. The settings supply the parts that a URL leaves
/// out.
pub static FACTORY: BackendFactory = BackendFactory {
    name: "PostgreSQL",
    schemes: &["postgres", "postgresql"],
    form: FORM,
    help: "a schema on a server of your own, for a team",
    // Readers and writers do not block each other.
    read_only: false,
    sql: false,
    settings: SETTINGS,
    open: Open::Service(|address, request| Box::pin(open(address, request))),
    backup: None,
    salvage: None,
    restrict_roles: Some(|address, request, users| Box::pin(restrict_roles(address, request, users))),
};

async fn open(address: String, request: OpenRequest) -> Result<Arc<dyn StorageBackend>> {
    Ok(Arc::new(Postgres::open(config(&address, &request)?).await?))
}

async fn restrict_roles(address: String, request: OpenRequest, users: Vec<UserId>) -> Result<Vec<String>> {
    let backend = Postgres::open(config(&address, &request)?).await?;
    blocking(move || backend.restrict_roles(&users)).await?
}

fn config(address: &str, request: &OpenRequest) -> Result<PostgresConfig> {
    let mut config = PostgresConfig::new(address, &request.settings)?;
    config.must_exist = request.must_exist;
    Ok(config)
}
