//! Opening stores in Cosmos DB by their URL.

use std::sync::Arc;

use amplifier_session_core::{
    Error, ErrorField, Result,
    backend::{BackendFactory, Open, OpenRequest, StorageBackend},
};
use amplifier_session_entra::EntraIdentity;
use azure_core::http::ClientOptions;

use crate::{Authentication, CosmosBackend, CosmosConfig, config::SETTINGS, connect::provide_tls};

/// The form of a URL.
const FORM: &str = "cosmos://HOST[:PORT][/DATABASE]";

/// Stores in Azure Cosmos DB: `cosmos://HOST[:PORT][/DATABASE]`. The settings supply the parts that a URL leaves out.
pub static FACTORY: BackendFactory = BackendFactory {
    name: "Azure Cosmos DB",
    schemes: &["cosmos"],
    form: FORM,
    help: "a database in the cloud, for a team",
    // Read-only access has no advantage: readers and writers do not block each other.
    read_only: false,
    sql: false,
    settings: SETTINGS,
    backup: None,
    salvage: None,
    restrict_roles: None,
    open: Open::Service(|address, request| Box::pin(open(address, request))),
};

async fn open(address: String, request: OpenRequest) -> Result<Arc<dyn StorageBackend>> {
    let config = config(&address, &request)?;
    Ok(Arc::new(match config.authentication {
        Authentication::DefaultCredential => {
            let variable = |name: &str| request.environment.get(name).map(str::to_owned);
            provide_tls();
            let credential = EntraIdentity::from_env(variable).credential(|| Ok(ClientOptions::default()))?;
            CosmosBackend::connect_with(config, credential).await?
        }
        Authentication::Key(_) => CosmosBackend::connect(config).await?,
    }))
}

/// The URL takes precedence, then the settings, then the embedding provider.
fn config(address: &str, request: &OpenRequest) -> Result<CosmosConfig> {
    let (host, database) = parse(address)?;
    let of_host = (!host.is_empty()).then(|| endpoint(host));
    let of_settings = || request.settings.text("cosmos.endpoint").map(str::to_owned);
    let endpoint = of_host.or_else(of_settings).ok_or_else(|| {
        let message =
            "no account: name its host in the URL (cosmos://HOST), or set cosmos.endpoint or AMPLIFIER_COSMOS_ENDPOINT";
        Error::validation(ErrorField::Store, message)
    })?;
    let mut config = CosmosConfig::from_settings(endpoint, &request.settings)?;
    config.create = !request.must_exist;
    if !database.is_empty() {
        database.clone_into(&mut config.database);
    }
    config.vector_dimensions = config.vector_dimensions.or(request.dimensions);
    Ok(config)
}

/// Host and database in the part of a URL after `cosmos:`; an empty one is left out.
fn parse(text: &str) -> Result<(&str, &str)> {
    let is_plain = |part: &str| !part.contains(['/', '\\', '#', '@']) && !part.contains(char::is_whitespace);
    let parts = text.strip_prefix("//").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
    let parts = parts.filter(|(host, database)| {
        is_plain(host) && is_plain(database) && (!host.is_empty() || database.is_empty())
    });
    parts.ok_or_else(|| {
        let message = format!("the URL of a store in Cosmos DB has the form {FORM}");
        Error::validation(ErrorField::Store, message).with("url", format_args!("\"cosmos:{text}\""))
    })
}

/// The address of the account with this host, which may include a port. A server on this machine, for tests, does not
/// use TLS.
fn endpoint(host: &str) -> String {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let scheme = if ["localhost", "127.0.0.1", "[::1]"].contains(&name) { "http" } else { "https" };
    format!("{scheme}://{host}/")
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::config::{Entry, SettingOrigin, Settings};

    use super::*;

    #[test]
    fn every_part_of_a_url_is_optional() {
        assert_eq!(parse("//team.documents.azure.com/db").unwrap(), ("team.documents.azure.com", "db"));
        assert_eq!(parse("//127.0.0.1:8081").unwrap(), ("127.0.0.1:8081", ""));
        assert_eq!(parse("//").unwrap(), ("", ""));
    }

    #[test]
    fn only_local_servers_use_plain_http() {
        assert_eq!(endpoint("team.documents.azure.com"), "https://team.documents.azure.com/");
        assert_eq!(endpoint("127.0.0.1:8081"), "http://127.0.0.1:8081/");
    }

    #[test]
    fn malformed_urls_are_refused() {
        for rest in ["x", "//h/d/e", "//ana:secret@h/d", "///d", "//h/a b"] {
            let error = parse(rest).unwrap_err();
            assert!(error.to_string().contains("cosmos://HOST"), "{error}");
        }
    }

    #[test]
    fn the_url_overrides_the_settings_and_they_the_embedding_provider() {
        let values = [
            ("cosmos.endpoint", "https://b.documents.azure.com/"),
            ("cosmos.database", "b"),
            ("cosmos.vector_dimensions", "64"),
        ];
        let entries = SETTINGS.iter().filter_map(|setting| {
            let (_, value) = values.iter().find(|(key, _)| *key == setting.key)?;
            Some(Entry::new(setting, SettingOrigin::Environment(setting.variable), Some(value)))
        });
        let empty = OpenRequest::default().with_dimensions(Some(256));
        let request = empty.clone().with_settings(Settings::new(entries.collect(), None));
        let read = |rest: &str, request| config(rest, request);
        let url = read("//a.documents.azure.com/a", &request).unwrap();
        assert_eq!((url.endpoint.as_str(), url.database.as_str()), ("https://a.documents.azure.com/", "a"));
        let settings = read("//", &request).unwrap();
        assert_eq!((settings.endpoint.as_str(), settings.database.as_str()), (values[0].1, "b"));
        assert_eq!(settings.vector_dimensions, Some(64));
        assert_eq!(read("//a", &empty).unwrap().vector_dimensions, Some(256));
        assert!(read("//", &empty).unwrap_err().to_string().contains("AMPLIFIER_COSMOS_ENDPOINT"));
    }
}
