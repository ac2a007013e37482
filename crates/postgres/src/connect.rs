//! Connecting to the server outside the pool.

use std::{fmt, time::Duration};

use amplifier_session_core::Result;
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{PostgresConfig, tls};

/// Connects to the server.
pub(crate) struct Connector {
    config: Config,
    tls: MakeRustlsConnect,
}

impl fmt::Debug for Connector {
    /// Without the configuration, which contains the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    pub(crate) fn new(config: &PostgresConfig) -> Result<Self> {
        let tls = MakeRustlsConnect::new(tls::client(config)?);
        Ok(Self { config: config.connection.clone(), tls })
    }

    /// The configuration of every connection.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// How every connection uses TLS.
    pub(crate) fn tls(&self) -> &MakeRustlsConnect {
        &self.tls
    }

    /// A connection beside those of the pool, which may all be in use.
    pub(crate) async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        self.connect_with(&self.config).await
    }

    /// A connection for statements that can't run in a transaction. They wait for locks for at most `longest`, except
    /// behind a pooler that does not accept this setting.
    pub(crate) async fn for_one_statement(&self, longest: Duration) -> Result<Client, tokio_postgres::Error> {
        let mut config = self.config.clone();
        let options = self.config.get_options().unwrap_or_default();
        config.options(format!("{options} -c lock_timeout={}", longest.as_millis()));
        match self.connect_with(&config).await {
            Ok(client) => Ok(client),
            Err(error) => {
                tracing::debug!(%error, "connecting without startup options");
                self.connect().await
            }
        }
    }

    async fn connect_with(&self, config: &Config) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = config.connect(self.tls.clone()).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection was lost");
            }
        });
        Ok(client)
    }
}
