//! Signing in with Microsoft Entra ID, without a key.
//!
//! `azure_identity` has credentials, but no way to choose among them. This choice is the same as in the Azure SDKs for
//! other languages, <https://aka.ms/azsdk/go/identity/credential-chains>, made once from the environment:
//!
//! | the environment has | who signs in |
//! | --- | --- |
//! | `AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET` | a service principal |
//! | `AZURE_FEDERATED_TOKEN_FILE` | a workload identity, as in Kubernetes |
//! | `IDENTITY_ENDPOINT`, or `AZURE_TOKEN_CREDENTIALS=prod` | a managed identity; `AZURE_CLIENT_ID` names one of several |
//! | none of these | the user of the Azure CLI, or of the Azure Developer CLI |

use std::{path::PathBuf, sync::Arc};

use amplifier_session_core::{Error, ErrorKind, Result, Secret};
use azure_core::{credentials::TokenCredential, error::ErrorKind as AzureErrorKind, http::ClientOptions};
use azure_identity::{
    ClientAssertionCredentialOptions, ClientSecretCredential, ClientSecretCredentialOptions,
    DeveloperToolsCredential, ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId,
    WorkloadIdentityCredential, WorkloadIdentityCredentialOptions,
};

/// The maximum number of quoted characters of an Azure error.
const QUOTED_CHARACTERS: usize = 300;

/// The identity that signs in with Microsoft Entra ID.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntraIdentity {
    /// A service principal with a secret.
    ServicePrincipal {
        /// The tenant's id.
        tenant_id: String,
        /// The application's id.
        client_id: String,
        /// The application's secret.
        client_secret: Secret,
    },
    /// A workload identity, with a token in a file.
    Workload {
        /// The tenant's id.
        tenant_id: Option<String>,
        /// The application's id.
        client_id: Option<String>,
        /// The file with the token.
        token_file: PathBuf,
    },
    /// The identity of the machine or service that the program runs on.
    Managed {
        /// The client id of one identity, if there are several.
        client_id: Option<String>,
    },
    /// The user of the Azure CLI, or of the Azure Developer CLI.
    DeveloperTools,
}

impl EntraIdentity {
    /// Chooses according to the environment; `env` looks up a variable.
    #[must_use]
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Self {
        let read =
            |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let (tenant_id, client_id) = (read("AZURE_TENANT_ID"), read("AZURE_CLIENT_ID"));
        if let (Some(tenant_id), Some(client_id), Some(secret)) =
            (&tenant_id, &client_id, read("AZURE_CLIENT_SECRET"))
        {
            let (tenant_id, client_id) = (tenant_id.clone(), client_id.clone());
            return Self::ServicePrincipal { tenant_id, client_id, client_secret: Secret::new(&secret) };
        }
        if let Some(file) = read("AZURE_FEDERATED_TOKEN_FILE") {
            return Self::Workload { tenant_id, client_id, token_file: PathBuf::from(file) };
        }
        let wants_managed = read("AZURE_TOKEN_CREDENTIALS").is_some_and(|kind| {
            ["prod", "managedidentitycredential"].contains(&kind.to_lowercase().as_str())
        });
        if wants_managed || read("IDENTITY_ENDPOINT").is_some() {
            return Self::Managed { client_id };
        }
        Self::DeveloperTools
    }

    /// A credential that gets tokens for this identity, and keeps each until shortly before it expires. `options` makes
    /// the options of its HTTP client; it is called only if the credential has one.
    ///
    /// # Errors
    ///
    /// `Authentication` if the configured ids are malformed; errors of `options`.
    pub fn credential(
        &self,
        options: impl FnOnce() -> Result<ClientOptions>,
    ) -> Result<Arc<dyn TokenCredential>> {
        let unusable = |error: azure_core::Error| {
            let message = format!("{} can't sign in: {}", self.name(), first_line(&error.to_string()));
            Error::new(ErrorKind::Authentication, message)
        };
        Ok(match self {
            Self::ServicePrincipal { tenant_id, client_id, client_secret } => {
                let options = ClientSecretCredentialOptions { client_options: options()? };
                let secret = client_secret.expose().to_owned().into();
                ClientSecretCredential::new(tenant_id, client_id.clone(), secret, Some(options))
                    .map_err(unusable)?
            }
            Self::Workload { tenant_id, client_id, token_file } => {
                let options = WorkloadIdentityCredentialOptions {
                    credential_options: ClientAssertionCredentialOptions { client_options: options()? },
                    tenant_id: tenant_id.clone(),
                    client_id: client_id.clone(),
                    token_file_path: Some(token_file.clone()),
                };
                WorkloadIdentityCredential::new(Some(options)).map_err(unusable)?
            }
            Self::Managed { client_id } => {
                let options = ManagedIdentityCredentialOptions {
                    user_assigned_id: client_id.clone().map(UserAssignedId::ClientId),
                    client_options: options()?,
                };
                ManagedIdentityCredential::new(Some(options)).map_err(unusable)?
            }
            // Runs a program of Azure, without an HTTP client.
            Self::DeveloperTools => DeveloperToolsCredential::new(None).map_err(unusable)?,
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::ServicePrincipal { .. } => "the service principal",
            Self::Workload { .. } => "the workload identity",
            Self::Managed { .. } => "the managed identity",
            Self::DeveloperTools => "the Azure CLI",
        }
    }
}

/// A token for `scope`.
///
/// # Errors
///
/// `Authentication`; retryable if Microsoft Entra ID can't be reached or is too busy.
pub async fn token(credential: &dyn TokenCredential, scope: &str) -> Result<Secret> {
    let refused = |error: azure_core::Error| {
        let message = format!("Microsoft Entra ID did not issue a token: {}", first_line(&error.to_string()));
        let refused = Error::new(ErrorKind::Authentication, message);
        if is_temporary(&error) { refused.retryable() } else { refused }
    };
    let token = credential.get_token(&[scope], None).await.map_err(refused)?;
    Ok(Secret::new(token.token.secret()))
}

/// Whether an error or one of its causes may be temporary.
fn is_temporary(error: &azure_core::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<azure_core::Error>().map(azure_core::Error::kind);
        match kind {
            Some(AzureErrorKind::Connection | AzureErrorKind::Io) => return true,
            Some(AzureErrorKind::HttpResponse { status, .. }) => {
                return matches!(u16::from(*status), 408 | 429 | 500..);
            }
            _ => cause = error.source(),
        }
    }
    false
}

/// The first line of an error of the SDK; advice and links follow it.
fn first_line(text: &str) -> String {
    text.trim_start().lines().next().unwrap_or_default().chars().take(QUOTED_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(variables: &[(&str, &str)]) -> EntraIdentity {
        EntraIdentity::from_env(|asked| {
            variables.iter().find(|(name, _)| *name == asked).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_decides_who_signs_in() {
        let client = ("AZURE_CLIENT_ID", "app");
        let tenant = ("AZURE_TENANT_ID", "tenant");
        let secret = ("AZURE_CLIENT_SECRET", "hunter2");
        let file = ("AZURE_FEDERATED_TOKEN_FILE", "/token");
        let name = |variables: &[(&str, &str)]| identity(variables).name();
        assert_eq!(name(&[client, tenant, secret, file]), "the service principal");
        assert_eq!(name(&[client, tenant, file]), "the workload identity");
        assert_eq!(name(&[("IDENTITY_ENDPOINT", "http://localhost/msi")]), "the managed identity");
        let named = identity(&[("AZURE_TOKEN_CREDENTIALS", "prod"), client]);
        assert_eq!(named, EntraIdentity::Managed { client_id: Some("app".to_owned()) });
        // A secret without the other variables is not sufficient.
        assert_eq!(name(&[client, secret]), "the Azure CLI");
        assert_eq!(identity(&[("AZURE_TENANT_ID", " ")]), EntraIdentity::DeveloperTools);
        assert!(!format!("{:?}", identity(&[client, tenant, secret])).contains("hunter2"));
    }

    #[test]
    fn a_malformed_tenant_is_an_error() {
        let bad = identity(&[
            ("AZURE_CLIENT_ID", "app"),
            ("AZURE_TENANT_ID", "no/tenant"),
            ("AZURE_CLIENT_SECRET", "hunter2"),
        ]);
        let error = bad.credential(|| Ok(ClientOptions::default())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Authentication, "{error}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn errors_of_the_connection_and_busy_services_are_temporary() {
        let http = |status: u16| AzureErrorKind::HttpResponse {
            status: status.into(),
            error_code: None,
            raw_response: None,
        };
        for (kind, temporary) in [
            (AzureErrorKind::Connection, true),
            (AzureErrorKind::Io, true),
            (http(503), true),
            (http(429), true),
            (http(400), false),
            (AzureErrorKind::Credential, false),
        ] {
            let shown = format!("{kind:?}");
            let inner = azure_core::Error::with_message(kind, "inner");
            let outer = azure_core::Error::with_error(AzureErrorKind::Credential, inner, "outer");
            assert_eq!(is_temporary(&outer), temporary, "{shown}");
        }
    }

    #[test]
    fn only_the_first_line_of_an_error_is_quoted() {
        assert_eq!(
            first_line("\nAzureCliCredential failed. Run az login\nTo troubleshoot, visit"),
            "AzureCliCredential failed. Run az login"
        );
    }
}
