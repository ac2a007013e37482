//! `--push`, of the commands that read sessions into the store.

use clap::Args;

/// The servers that get the sessions.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PushArgs {
    /// Send new and changed sessions to this server (see `serve`), in place of those of `push.to` in the configuration;
    /// may be repeated. Nothing is deleted there. Only sessions of Amplifier are sent, unless `push.sources` names other
    /// programs. The token is in AMPLIFIER_SESSIONS_TOKEN, or by host in credentials.toml beside the configuration
    #[cfg(feature = "client")]
    #[arg(long, value_name = "URL", value_parser = server_address)]
    pub(crate) push: Vec<amplifier_session_client::ServerAddress>,
}

/// The address of a server. The message of an error does not repeat it, because it may contain a password.
#[cfg(feature = "client")]
pub(crate) fn server_address(text: &str) -> Result<amplifier_session_client::ServerAddress, String> {
    text.parse().map_err(|error: amplifier_session_storage::Error| error.message().to_owned())
}
