//! The certificate, which is read again when its files change.

use std::{
    io,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum_server::tls_rustls::RustlsConfig;
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

use crate::settings::{ServerError, TlsFiles};

/// How often the files are looked at.
const RELOAD: Duration = Duration::from_secs(10);

/// Reads the certificate.
pub(crate) fn configuration(files: &TlsFiles) -> Result<RustlsConfig, ServerError> {
    Ok(RustlsConfig::from_config(read(files)?))
}

/// Reads the certificate again each time that its files change, for ever. While they can't be read, for example because
/// only one of them has been replaced, the certificate stays.
pub(crate) async fn follow(files: TlsFiles, configuration: RustlsConfig) {
    let mut seen = changed(&files).ok();
    let mut ticks = tokio::time::interval(RELOAD);
    loop {
        ticks.tick().await;
        let now = changed(&files).ok();
        if now == seen {
            continue;
        }
        match read(&files) {
            Ok(read) => {
                configuration.reload_from_config(read);
                seen = now;
                tracing::info!("the certificate was read again");
            }
            Err(error) => tracing::error!(%error, "the certificate was not read again"),
        }
    }
}

fn changed(files: &TlsFiles) -> io::Result<[SystemTime; 2]> {
    Ok([files.certificate.metadata()?.modified()?, files.key.metadata()?.modified()?])
}

fn read(files: &TlsFiles) -> Result<Arc<ServerConfig>, ServerError> {
    let wrong = |path: &std::path::Path, error: &dyn ToString| {
        ServerError::new(
            format!("{}: {}", path.display(), error.to_string()),
            "pass PEM files that belong together",
        )
    };
    let of_certificate = |error: &dyn ToString| wrong(&files.certificate, error);
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| of_certificate(&error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let mut configuration = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| of_certificate(&error))?;
    configuration.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(configuration))
}
