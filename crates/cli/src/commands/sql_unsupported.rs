//! `sql`, in a build without DuckDB.

use crate::{
    app::App,
    args::SqlArgs,
    failure::{Failure, Outcome},
};

pub(super) async fn run(_: &mut App, _: SqlArgs) -> Result<Outcome, Failure> {
    let hint =
        "build with `--features duckdb` (docs/duckdb.md), and create a store with `--store duckdb:PATH sync`";
    Err(Failure::wrong_use("`sql` needs DuckDB, which this build does not include", hint))
}
