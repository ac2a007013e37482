//! The location of the server, and how to connect.

use std::{fmt, path::PathBuf, time::Duration};

use amplifier_session_core::{
    Error, ErrorField, Result,
    config::{Setting, Settings},
};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// The default schema.
const SCHEMA: &str = "amplifier_sessions";

/// The default for the maximum number of connections.
const CONNECTIONS: usize = 8;

/// The values of `sslmode`. The weaker modes of PostgreSQL's own programs leave the decision to the host.
const SSL_MODES: &[&str] = &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// How long a host may take to accept a connection before the next host is tried.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a call waits for a server that was reachable before.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a call waits for a lock of another session.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// If the other machine does not respond for this long, the connection is lost.
const UNREACHABLE: Duration = Duration::from_secs(30);

const SESSIONS: &[&str] = &["any", "read-write", "read-only"];

/// The form of a URL.
pub(crate) const FORM: &str = "postgres://[USER@][HOST[:PORT]][/DATABASE]";

/// The parts that a URL may leave out. The variables are those of PostgreSQL's own programs.
pub(crate) static SETTINGS: &[Setting] = &[
    Setting::text(
        "postgres.host",
        "PGHOST",
        "The host of the PostgreSQL server, or the folder of its socket",
    ),
    Setting::text("postgres.port", "PGPORT", "The port of the PostgreSQL server"),
    Setting::text("postgres.dbname", "PGDATABASE", "The PostgreSQL database"),
    Setting::text("postgres.user", "PGUSER", "The role to connect to PostgreSQL as"),
    Setting::secret("postgres.password", "PGPASSWORD", "The password of the role").not_in_file(),
    Setting::choice(
        "postgres.sslmode",
        "PGSSLMODE",
        SSL_MODES,
        "Whether connections to PostgreSQL use TLS; certificates are always checked",
    ),
    Setting::text(
        "postgres.sslrootcert",
        "PGSSLROOTCERT",
        "A file with the root certificates to trust, instead of those of the system",
    ),
    Setting::choice(
        "postgres.target_session_attrs",
        "PGTARGETSESSIONATTRS",
        SESSIONS,
        "Which of several hosts to use: any, a writable one, or a read-only one",
    ),
    Setting::text(
        "postgres.schema",
        "AMPLIFIER_POSTGRES_SCHEMA",
        "The schema with the tables of the store, by default amplifier_sessions",
    ),
    Setting::count(
        "postgres.connections",
        "AMPLIFIER_POSTGRES_CONNECTIONS",
        "The maximum number of connections to PostgreSQL, by default 8",
    ),
];

/// A store in PostgreSQL: the server, the database and the schema.
#[derive(Clone)]
pub struct PostgresConfig {
    pub(crate) connection: tokio_postgres::Config,
    pub(crate) root_certificates: Option<PathBuf>,
    /// The schema with the tables.
    pub schema: String,
    /// The maximum number of connections.
    pub connections: usize,
    /// How long a call waits for a server that was reachable before: it may be restarting, or a standby may be
    /// replacing it. Default: 30 seconds.
    pub patience: Duration,
    /// How long a statement waits for a lock of another session of the database. Default: 30 seconds.
    pub lock_timeout: Duration,
    /// Whether the store must exist. Otherwise it is created if it is missing.
    pub must_exist: bool,
}

/// Without the password.
impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl PostgresConfig {
    /// Reads `//[USER[:PASSWORD]@][HOST[:PORT]][/DATABASE]`, the part of a URL after `postgres:`. `settings` supplies
    /// the parts that it leaves out.
    ///
    /// # Errors
    ///
    /// `Validation` if the address or a setting is invalid. The error does not show the address, which may contain a
    /// password.
    pub fn new(address: &str, settings: &Settings) -> Result<Self> {
        let connection = format!("postgresql:{address}").parse().map_err(|_| {
            Error::validation(
                ErrorField::Store,
                format!("the URL of a store in PostgreSQL has the form {}", FORM),
            )
        })?;
        let text = |name: &str| settings.text(&format!("postgres.{name}")).map(str::to_owned);
        let mut config = Self {
            connection,
            root_certificates: settings.path("postgres.sslrootcert"),
            schema: text("schema").unwrap_or_else(|| SCHEMA.to_owned()),
            connections: settings
                .count("postgres.connections")?
                .and_then(|number| usize::try_from(number).ok())
                .unwrap_or(CONNECTIONS)
                .max(1),
            patience: PATIENCE,
            lock_timeout: LOCK_TIMEOUT,
            must_exist: false,
        };
        config.fill(&text)?;
        config.set_tls(settings.choice("postgres.sslmode")?);
        config.connection.target_session_attrs(match settings.choice("postgres.target_session_attrs")? {
            Some("read-write") => TargetSessionAttrs::ReadWrite,
            Some("read-only") => TargetSessionAttrs::ReadOnly,
            _ => TargetSessionAttrs::Any,
        });
        Ok(config)
    }

    /// Sets the schema with the tables.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Fills in the parts that the address leaves out.
    fn fill(&mut self, text: &impl Fn(&str) -> Option<String>) -> Result<()> {
        let connection = &mut self.connection;
        if connection.get_hosts().is_empty() {
            let hosts = text("host").unwrap_or_else(|| "localhost".to_owned());
            for host in hosts.split(',') {
                connection.host(host);
            }
        }
        if connection.get_ports().is_empty()
            && let Some(ports) = text("port")
        {
            for port in ports.split(',') {
                let port = port
                    .parse()
                    .map_err(|_| Error::validation(ErrorField::PostgresPort, "is not a port number"))?;
                connection.port(port);
            }
        }
        if connection.get_dbname().is_none()
            && let Some(name) = text("dbname")
        {
            connection.dbname(name);
        }
        if connection.get_user().is_none()
            && let Some(user) = text("user")
        {
            connection.user(user);
        }
        if connection.get_password().is_none()
            && let Some(password) = text("password")
        {
            connection.password(password);
        }
        if connection.get_connect_timeout().is_none() {
            connection.connect_timeout(CONNECT);
        }
        // By default, the operating system waits for hours for a machine that is gone.
        if connection.get_tcp_user_timeout().is_none() {
            connection.tcp_user_timeout(UNREACHABLE);
            connection
                .keepalives_idle(UNREACHABLE / 3)
                .keepalives_interval(UNREACHABLE / 3)
                .keepalives_retries(2);
        }
        if connection.get_application_name().is_none() {
            connection.application_name("amplifier-sessions");
        }
        Ok(())
    }

    /// Uses TLS for every host except this machine, unless `mode` specifies otherwise.
    fn set_tls(&mut self, mode: Option<&str>) {
        let uses_tls = match mode {
            Some("disable") => false,
            Some("require" | "verify-ca" | "verify-full") => true,
            _ => self.connection.get_hosts().iter().any(is_elsewhere),
        };
        self.connection.ssl_mode(if uses_tls { SslMode::Require } else { SslMode::Disable });
    }

    /// The address without secrets.
    pub(crate) fn address(&self) -> String {
        let ports = self.connection.get_ports();
        let host = |(at, host): (usize, &Host)| {
            let name = match host {
                Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                Host::Unix(folder) => folder.display().to_string(),
            };
            format!("{name}:{}", ports.get(at).or(ports.first()).unwrap_or(&5432))
        };
        let hosts: Vec<String> = self.connection.get_hosts().iter().enumerate().map(host).collect();
        let database = self.connection.get_dbname().or(self.connection.get_user()).unwrap_or_default();
        format!("postgres://{}/{database}?schema={}", hosts.join(","), self.schema)
    }
}

/// Whether a host is another machine.
fn is_elsewhere(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => !["localhost", "127.0.0.1", "::1", "[::1]"].contains(&name.as_str()),
        #[cfg(unix)]
        Host::Unix(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::config::{Entry, SettingOrigin};

    use super::*;

    fn settings(values: &[(&str, &str)]) -> Settings {
        let entries = SETTINGS.iter().filter_map(|setting| {
            let (_, value) = values.iter().find(|(key, _)| *key == setting.name())?;
            Some(Entry::new(setting, SettingOrigin::Environment(setting.variable), Some(value)))
        });
        Settings::new(entries.collect(), None)
    }

    fn config(address: &str, values: &[(&str, &str)]) -> Result<PostgresConfig> {
        PostgresConfig::new(address, &settings(values))
    }

    #[test]
    fn the_settings_fill_what_the_url_leaves_out() {
        let values =
            [("host", "db.example"), ("port", "6000"), ("dbname", "team"), ("user", "ana"), ("schema", "s")];
        assert_eq!(config("//", &values).unwrap().address(), "postgres://db.example:6000/team?schema=s");
        let url = config("//ben@other.example:7000/own", &values).unwrap();
        assert_eq!(url.address(), "postgres://other.example:7000/own?schema=s");
        assert_eq!(url.connection.get_user(), Some("ben"));
        let empty = config("//ana@/", &[]).unwrap();
        assert_eq!(empty.address(), "postgres://localhost:5432/ana?schema=amplifier_sessions");
    }

    #[test]
    fn other_machines_are_reached_with_tls() {
        let uses_tls = |address: &str, mode: &[(&str, &str)]| {
            config(address, mode).unwrap().connection.get_ssl_mode() == SslMode::Require
        };
        for local in ["//localhost/d", "//127.0.0.1/d", "//", "//%2Frun%2Fpostgresql/d"] {
            assert!(!uses_tls(local, &[]) && uses_tls(local, &[("sslmode", "require")]), "{local}");
        }
        for elsewhere in ["//db.example/d", "//localhost,db.example/d"] {
            assert!(uses_tls(elsewhere, &[]) && uses_tls(elsewhere, &[("sslmode", "prefer")]), "{elsewhere}");
            assert!(!uses_tls(elsewhere, &[("sslmode", "disable")]), "{elsewhere}");
        }
    }

    #[test]
    fn no_output_has_the_password() {
        let valid = config("//ana:quondam@db.example/d", &[]).unwrap();
        assert!(!format!("{valid:?} {}", valid.address()).contains("quondam"));
        let error = config("//ana:quondam@db.example:port/d", &[]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("quondam"), "{error:?}");
    }
}
