//! `serve`.

use std::{net::SocketAddr, path::PathBuf};

use amplifier_session_server::{AddressRange, PublicUrl};
use clap::Args;

use super::{ScopeArg, token::RightArg};

/// Answer programs and other machines over HTTP
#[derive(Debug, Args)]
#[command(long_about = "\
Serves the store over HTTP until it gets SIGINT or SIGTERM (Ctrl-C): every operation of this program as JSON, at /v1. The \
first line on stdout is the address; messages go to stderr. Each request needs a token: see `token create`. The first start \
makes one for you, in ~/.amplifier/server-token. /docs describes all routes, and /openapi.json does for programs.

By default, only this machine can reach it. For others, it needs a name (--public-url) and TLS: a certificate, or a proxy \
that has one. Requests that use another name are refused, so that pages of other sites can't use it from a browser.")]
#[command(after_long_help = "\
When it is told to stop, it accepts no more connections, and requests get 20 seconds to finish. A second signal ends it at \
once.

Examples:
  amplifier-sessions serve
  curl -H \"Authorization: Bearer $(cat ~/.amplifier/server-token)\" http://127.0.0.1:7878/v1/sessions
  amplifier-sessions serve --listen 0.0.0.0:443 --public-url https://example.com --tls-cert cert.pem --tls-key key.pem
  amplifier-sessions serve --public-url https://sessions.example.com --behind-proxy --trusted-proxy 127.0.0.1")]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 is any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    pub(crate) listen: SocketAddr,
    /// The address that clients use, such as https://sessions.example.com
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<PublicUrl>,
    /// A certificate with those of its issuers (PEM); it is read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A proxy on the way to clients has TLS
    #[arg(long)]
    pub(crate) behind_proxy: bool,
    /// An address or a range (10.0.0.0/8) of proxies whose X-Forwarded-For is believed; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) trusted_proxy: Vec<AddressRange>,
    /// The header in which a trusted proxy names the user that it has signed in
    #[arg(long, value_name = "NAME", requires = "trusted_proxy")]
    pub(crate) user_header: Option<String>,
    /// Whose sessions users of --user-header can read
    #[arg(long, value_name = "SCOPE", default_value = "own", requires = "user_header")]
    pub(crate) user_reach: ScopeArg,
    /// What users of --user-header can do
    #[arg(long, value_name = "RIGHTS", default_value = "read,write", value_delimiter = ',')]
    #[arg(requires = "user_header")]
    pub(crate) user_rights: Vec<RightArg>,
    /// The file of the tokens; by default ~/.config/amplifier-sessions/tokens.toml
    #[arg(long, value_name = "FILE", env = super::token::TOKENS_VARIABLE, hide_env_values = true)]
    pub(crate) tokens: Option<PathBuf>,
    /// Also keep the store up to date with the session folders of this account, as `watch` does
    #[cfg(feature = "watch")]
    #[arg(long)]
    pub(crate) watch: bool,
    /// A folder for --watch that contains projects/; by default as for `watch`; may be repeated
    #[cfg(feature = "watch")]
    #[arg(long, value_name = "DIR", requires = "watch")]
    pub(crate) root: Vec<PathBuf>,
    /// Answer requests for metrics (Prometheus) on this address of this machine, without a token; port 0 is any free port
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// The number of sessions that each user may store; by default any
    #[arg(long, value_name = "N")]
    pub(crate) quota_sessions: Option<u64>,
    /// The number of messages and events that each user may store; by default any
    #[arg(long, value_name = "N")]
    pub(crate) quota_rows: Option<u64>,
    /// Add a line of JSON to this file for each request: who asked for what, without queries
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,
}
