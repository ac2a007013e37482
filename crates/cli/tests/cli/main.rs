//! Tests of the command line with a home folder, arguments, output and an exit code: most of them as a library, the others
//! as a process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod addresses;
mod archive;
mod backup;
mod call;
mod changes;
mod clients;
mod completion;
mod configuration;
mod contract;
mod copy;
#[cfg(feature = "cosmos")]
mod cosmos;
mod damage;
mod dates;
mod doctor;
mod earlier;
#[cfg(unix)]
mod editor;
mod faults;
mod files;
mod folders;
#[cfg(all(unix, feature = "client", feature = "server", feature = "watch"))]
mod follow;
mod forks;
mod groups;
mod kill;
mod kill_often;
mod limits;
mod mcp;
mod moved;
mod output;
mod output_changes;
mod output_embeddings;
#[cfg(feature = "local-transformer")]
mod output_models;
mod output_reading;
mod output_scopes;
#[cfg(feature = "duckdb-system")]
mod output_sql;
mod output_statistics;
mod output_syntax;
mod outside;
#[cfg(unix)]
mod pager;
#[cfg(all(unix, feature = "client", feature = "server", feature = "watch"))]
mod push;
#[cfg(unix)]
mod read_only;
#[cfg(all(unix, feature = "client", feature = "server"))]
mod remote;
#[cfg(all(unix, feature = "client", feature = "server"))]
mod remote_mcp;
mod repositories;
mod restore;
mod roots;
mod salvage;
mod secrets;
#[cfg(all(unix, feature = "server"))]
mod serve;
mod services;
mod superseded;
mod support;
mod terminal;
mod timeline;
mod turns;
mod typed;
mod upgrade;
mod upkeep;
mod verify;
#[cfg(feature = "watch")]
mod watch;
mod wrapping;
mod zones;
