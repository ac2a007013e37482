//! Tests of the program as a process with a home folder, arguments, output and an exit code.

#[cfg(test)]
mod addresses;
#[cfg(test)]
mod archive;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod completion;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod contract;
#[cfg(test)]
#[cfg(feature = "cosmos")]
mod cosmos;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod dates;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod output;
#[cfg(test)]
mod output_changes;
#[cfg(test)]
mod output_embeddings;
#[cfg(test)]
#[cfg(feature = "local-transformer")]
mod output_models;
#[cfg(test)]
mod output_reading;
#[cfg(test)]
mod output_scopes;
#[cfg(test)]
#[cfg(feature = "duckdb-system")]
mod output_sql;
#[cfg(test)]
mod output_statistics;
#[cfg(test)]
#[cfg(unix)]
mod read_only;
#[cfg(test)]
mod services;
#[cfg(test)]
mod support;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod typed;
#[cfg(test)]
mod upgrade;
#[cfg(test)]
mod upgrade_samples;
#[cfg(test)]
mod upkeep;
