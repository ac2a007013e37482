//! `doctor`.

use clap::Args;

/// Check the configuration, the store, the model and this machine
#[derive(Debug, Args)]
#[command(long_about = "\
Checks the installation, and prints one line for each check, with a hint about what to do if something is wrong:

  configuration  the configuration file is valid
  store          the store can be opened and written
  schema         its schema version is the one that this program knows
  index          the search index exists, and was built by this version for this store
  model          the embedding model is available, and created the vectors of the store
  credentials    keys of the services in use are set
  permissions    only you can read the files of the store, and a configuration file with keys
  disk           there is enough free space
  clock          the clock of this machine is not behind the files of the store
  times          no session changed in the future
  watch          `watch` is running, if it is installed as a service
  root           the folders with Amplifier's sessions exist and can be read
  mcp            the programs and the stores in the configuration of MCP clients exist

Checks that do not apply are left out. Nothing is changed, and no service is called, except for a store in a service.")]
#[command(after_long_help = "\
Each line begins with `ok`, `warning` or `failed`. Exits with 1 if a check failed. --json prints one object: ok, and checks, \
each with name, status, text and hint.

`doctor` does not read the sessions: see `salvage` for a store that is damaged.

Examples:
  amplifier-sessions doctor
  amplifier-sessions --store duckdb:~/team.duckdb doctor --json")]
pub(crate) struct DoctorArgs {}
