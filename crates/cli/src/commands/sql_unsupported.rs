//! `sql`, in a build without DuckDB.

use crate::{
    app::App,
    args::SqlArgs,
    failure::{Failure, Outcome},
};

pub(super) async fn run(_: &mut App, _: SqlArgs) -> Result<Outcome, Failure> {
    let hint = "build with `--features duckdb` (docs/duckdb.md), fill a store with `--store duckdb:PATH sync`, and ask it";
    Err(Failure::wrong_use("this build has no DuckDB, which is what takes SQL", hint))
}
