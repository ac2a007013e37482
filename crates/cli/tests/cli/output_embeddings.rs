//! Output of the commands that make vectors.

use crate::{
    output::{check, text},
    support::{Home, Ran},
    terminal::Terminal,
};

fn pretty(ran: &Ran) -> String {
    let value: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    format!("exit code {}\n{value:#}\n--- stderr\n{}", ran.code, ran.stderr)
}

#[test]
fn help() {
    for command in ["embeddings", "backfill", "rebuild"] {
        text(&format!("help_{command}"), &[command, "--help"]);
    }
    text("help_embeddings_estimate", &["embeddings", "estimate", "--help"]);
}

/// Sync without vectors, then estimate, make and rebuild them.
#[test]
fn the_life_of_vectors() {
    let home = Home::with_samples();
    home.ok(&["sync", "--embedding", "none"]);
    let terminal = |name: &str, arguments: &[&str]| {
        check(name, &home, &Terminal::new(&home).run(arguments).all());
    };
    let pipe = |name: &str, arguments: &[&str]| check(name, &home, &home.run(arguments).all());
    pipe("embeddings_none", &["embeddings"]);
    pipe("estimate_pending", &["embeddings", "estimate"]);
    terminal("estimate_terminal", &["embeddings", "estimate", "--price", "0.02", "--color", "never"]);
    pipe("backfill_session", &["backfill", "--session", "38e6d1f5"]);
    terminal("embeddings_terminal", &["embeddings", "--color", "never"]);
    let narrow = Terminal::new(&home).with_columns(60);
    check("embeddings_terminal_narrow", &home, &narrow.run(&["embeddings", "--color", "never"]).all());
    pipe("backfill_dry_run", &["backfill", "--dry-run"]);
    pipe("backfill", &["backfill"]);
    pipe("backfill_again", &["backfill"]);
    check("backfill_json", &home, &pretty(&home.run(&["backfill", "--json"])));
    pipe("embeddings", &["embeddings", "status"]);
    check("embeddings_json", &home, &pretty(&home.run(&["embeddings", "--json"])));
    check(
        "estimate_json",
        &home,
        &pretty(&home.run(&["embeddings", "estimate", "--all", "--price", "1", "--json"])),
    );
    pipe("rebuild_session", &["rebuild", "--session", "38e6d1f5"]);
    pipe("rebuild", &["rebuild"]);
    pipe("error_backfill_without_model", &["backfill", "--embedding", "none"]);
    pipe("error_estimate_price", &["embeddings", "estimate", "--price", "much"]);
    pipe("error_rebuild_unknown", &["rebuild", "--session", "ffff"]);
}
