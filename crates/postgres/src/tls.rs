//! TLS: certificates are checked against those that the system trusts, or against those in a file.

use std::{path::Path, sync::Arc};

use amplifier_session_core::{Error, ErrorKind, Result};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres::config::SslMode;

use crate::PostgresConfig;

/// The TLS configuration. If TLS is not used, it trusts nobody and reads no certificates, so that a container without
/// certificates can use a server on the same machine.
pub(crate) fn client(config: &PostgresConfig) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(no_tls)?;
    let builder = match &config.root_certificates {
        _ if config.connection.get_ssl_mode() == SslMode::Disable => {
            builder.with_root_certificates(RootCertStore::empty())
        }
        Some(file) => builder.with_root_certificates(certificates(file)?),
        None => builder.with_platform_verifier().map_err(no_tls)?,
    };
    Ok(builder.with_no_client_auth())
}

fn certificates(file: &Path) -> Result<RootCertStore> {
    let unread = |source: Box<dyn std::error::Error + Send + Sync>| {
        let message = "can't read the certificates of postgres.sslrootcert";
        Error::new(ErrorKind::StorageConnection, message).with("file", file.display()).with_source(source)
    };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unread(error.into()))? {
        let certificate = certificate.map_err(|error| unread(error.into()))?;
        store.add(certificate).map_err(|error| unread(error.into()))?;
    }
    Ok(store)
}

fn no_tls(source: rustls::Error) -> Error {
    Error::new(ErrorKind::StorageConnection, "TLS can't be used").with_source(source)
}
