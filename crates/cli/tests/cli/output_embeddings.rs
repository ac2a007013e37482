//! Output of the commands that make vectors.

use crate::{output::text, support::Home, terminal::Terminal};

#[test]
fn help() {
    text("help_embeddings", &["embeddings", "--help"]);
    for command in ["backfill", "rebuild"] {
        text(&format!("help_{command}"), &["embeddings", command, "--help"]);
    }
    text("help_embeddings_estimate", &["embeddings", "estimate", "--help"]);
}

/// Sync without vectors, then estimate, make and rebuild them.
#[test]
fn the_life_of_vectors() {
    let home = Home::without_vectors();
    let terminal = Terminal::new(&home);
    home.shows("embeddings_none", &["embeddings"]);
    home.shows("estimate_pending", &["embeddings", "estimate"]);
    terminal.shows("estimate_terminal", &["embeddings", "estimate", "--price", "0.02", "--color", "never"]);
    home.shows("backfill_session", &["embeddings", "backfill", "--session", "38e6d1f5"]);
    terminal.shows("embeddings_terminal", &["embeddings", "--color", "never"]);
    let narrow = Terminal::new(&home).with_columns(60);
    narrow.shows("embeddings_terminal_narrow", &["embeddings", "--color", "never"]);
    home.shows("backfill_dry_run", &["embeddings", "backfill", "--dry-run"]);
    home.shows("backfill", &["embeddings", "backfill"]);
    home.shows("backfill_again", &["embeddings", "backfill"]);
    home.shows_json("backfill_json", &["embeddings", "backfill"]);
    home.shows("embeddings", &["embeddings", "status"]);
    home.shows_json("embeddings_json", &["embeddings"]);
    home.shows_json("estimate_json", &["embeddings", "estimate", "--all", "--price", "1"]);
    home.shows("rebuild_session", &["embeddings", "rebuild", "--session", "38e6d1f5"]);
    home.shows("rebuild", &["embeddings", "rebuild"]);
    home.shows("error_backfill_without_model", &["embeddings", "backfill", "--embedding", "none"]);
    home.shows("error_estimate_price", &["embeddings", "estimate", "--price", "much"]);
    home.shows("error_rebuild_unknown", &["embeddings", "rebuild", "--session", "ffff"]);
}
