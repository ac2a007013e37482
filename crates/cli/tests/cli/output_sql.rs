//! Output of `sql` for the samples in a DuckDB store.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{support::Home, terminal::Terminal};

const STORE: &str = "duckdb:~/s.duckdb";

/// A home folder with the samples in a DuckDB store, which processes can't share. Tests that use it only read.
static ASKED: LazyLock<Home> = LazyLock::new(asked);

fn asked() -> Home {
    Home::copy_of_shared("duckdb", |home| {
        home.put_samples();
        home.ok(&["sync", "--embedding", "none", "--store", STORE]);
    })
}

fn of_store<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--store", STORE]].concat()
}

fn text(name: &str, arguments: &[&str]) {
    ASKED.shows(name, &of_store(arguments));
}

fn terminal(name: &str, columns: u16, arguments: &[&str]) {
    let arguments = of_store(&[arguments, &["--color", "never"]].concat());
    Terminal::new(&ASKED).with_columns(columns).shows(name, &arguments);
}

fn json(arguments: &[&str]) -> Value {
    ASKED.json(&of_store(arguments))
}

/// The sum of a column of a view.
fn sum(view: &str, column: &str) -> f64 {
    let answer = json(&["sql", &format!("SELECT coalesce(sum({column}), 0) FROM {view}")]);
    answer["rows"][0][0].as_f64().unwrap()
}

/// The sum of a field over a list of the statistics.
fn counted(list: &Value, field: &str) -> f64 {
    let at = |one: &Value| field.split('.').fold(one.clone(), |value, name| value[name].clone());
    list.as_array().unwrap().iter().map(|one| at(one).as_f64().unwrap()).sum()
}

#[test]
fn answers() {
    terminal("sql_views_terminal", 80, &["sql"]);
    text("sql_views", &["sql", "--views"]);
    terminal("sql_tool_use_terminal", 100, &["sql", "FROM tool_use"]);
    terminal("sql_longest_terminal", 100, &["sql", "FROM longest_sessions LIMIT 3"]);
    terminal("sql_cut_terminal", 60, &["sql", "SELECT session_id, raw FROM transcripts", "--limit", "2"]);
    terminal("sql_longest_terminal_narrow", 60, &["sql", "FROM longest_sessions LIMIT 2"]);
    terminal("sql_messages_terminal_narrow", 60, &["sql", "FROM messages_by_day LIMIT 3"]);
    terminal("sql_views_terminal_narrow", 60, &["sql"]);
    text("sql_to_stdout", &["sql", "FROM tool_use LIMIT 2", "--format", "csv", "--out", "-"]);
    text("sql_tokens", &["sql", "FROM tokens_by_model_and_day LIMIT 3"]);
    text("sql_csv", &["sql", "FROM messages_by_day LIMIT 3", "--format", "csv"]);
    text("sql_json", &["sql", "FROM errors_by_type", "--json", "--limit", "1"]);
    text("sql_nothing", &["sql", "SELECT 1 AS a WHERE false"]);
}

#[test]
fn errors() {
    text("error_sql_writes", &["sql", "DELETE FROM sessions"]);
    text("error_sql_syntax", &["sql", "SELECT modle FROM tokens_by_model_and_day"]);
    text("error_sql_parquet_to_a_pipe", &["sql", "SELECT 1", "--format", "parquet"]);
    text("error_sql_unknown_file", &["sql", "SELECT 1", "--out", "x.doc"]);
    ASKED.shows("error_sql_of_sqlite", &["sql", "SELECT 1"]);
    let missing = ASKED.run(&["sql", "SELECT 1", "--store", "duckdb:~/missing.duckdb"]);
    assert_eq!(missing.code, 1, "{}", missing.stderr);
    assert!(missing.stderr.contains("no store at"), "{}", missing.stderr);
}

#[test]
fn views_agree_with_the_statistics() {
    let stats = json(&["stats"]);
    for (view, column, list, field) in [
        ("messages_by_day", "messages", "days", "messages"),
        ("messages_by_day", "user_messages", "days", "user_messages"),
        ("tool_use", "calls", "tools", "uses"),
        ("tool_use", "failures", "tools", "failures"),
        ("tokens_by_model_and_day", "calls", "days", "usage.calls"),
        ("tokens_by_model_and_day", "input_tokens", "days", "usage.input_tokens"),
        ("tokens_by_model_and_day", "output_tokens", "models", "output_tokens"),
        ("tokens_by_model_and_day", "cache_read_tokens", "models", "cache_read_tokens"),
        ("tokens_by_model_and_day", "cache_write_tokens", "models", "cache_write_tokens"),
        ("longest_sessions", "messages", "projects", "messages"),
        ("longest_sessions", "turns", "projects", "turns"),
        ("longest_sessions", "events", "projects", "events"),
        ("errors_by_type", "errors", "event_types", "failures"),
    ] {
        assert_eq!(sum(view, column), counted(&stats[list], field), "{view}.{column}");
    }
    for one in stats["tools"].as_array().unwrap() {
        let query =
            format!("SELECT calls, failures FROM tool_use WHERE tool = '{}'", one["tool"].as_str().unwrap());
        assert_eq!(json(&["sql", &query])["rows"][0], serde_json::json!([one["uses"], one["failures"]]));
    }
}

#[test]
fn the_file_extension_selects_the_format() {
    let file = |name: &str| ASKED.path().join(name).display().to_string();
    for (name, begins) in
        [("a.csv", "day,messages"), ("a.json", "{\"columns\":"), ("a.parquet", "PAR1"), ("a.txt", "day ")]
    {
        let said = ASKED.ok(&of_store(&["sql", "FROM messages_by_day", "--out", &file(name)]));
        let written = std::fs::read(file(name)).unwrap();
        assert!(written.starts_with(begins.as_bytes()), "{name}");
        assert!(said.ends_with(&format!(" rows in {}\n", file(name))), "{said}");
    }
    let report = json(&["sql", "FROM messages_by_day LIMIT 2", "--out", &file("b.csv")]);
    assert_eq!((&report["rows"], report["file"].as_str()), (&2.into(), Some(file("b.csv").as_str())));
}

#[test]
fn tables_in_files_are_not_cut() {
    let file = ASKED.path().join("whole.txt").display().to_string();
    let long =
        "SELECT repeat('x', 300) AS x, [TIMESTAMP '2026-01-05 08:00:00.5', NULL] AS times FROM range(1200)";
    ASKED.ok(&of_store(&["sql", long, "--out", &file]));
    let written = std::fs::read_to_string(file).unwrap();
    assert_eq!(written.lines().count(), 1_201);
    let row = format!("{}  ['2026-01-05 08:00:00.5', NULL]", "x".repeat(300));
    assert_eq!(written.lines().last(), Some(row.as_str()));
}

#[test]
fn output_cannot_overwrite_the_store() {
    let home = asked();
    let store = home.path().join("s.duckdb");
    std::os::unix::fs::symlink(&store, home.path().join("link.csv")).unwrap();
    let before = std::fs::read(&store).unwrap();
    for out in ["s.duckdb", "s.duckdb.wal", "s.duckdb.index", "link.csv"] {
        let out = home.path().join(out).display().to_string();
        for command in [
            &["sql", "FROM tool_use", "--format", "csv", "--out", &out][..],
            &["export", "--out", &out],
            &["stats", "--plot", &out],
        ] {
            let refused = home.run(&of_store(command));
            assert_eq!(refused.code, 2, "{command:?} {}", refused.stderr);
            assert!(refused.stderr.contains("belongs to the store"), "{}", refused.stderr);
        }
    }
    assert!(std::fs::read(&store).unwrap() == before);
}

#[test]
fn pipes_and_devices_are_not_replaced() {
    let pipe = ASKED.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let out = pipe.display().to_string();
    ASKED.ok(&of_store(&["sql", "SELECT 1 AS a", "--format", "csv", "--out", &out]));
    assert_eq!(reader.join().unwrap(), "a\n1\n");
    let refused = ASKED.run(&of_store(&["sql", "SELECT 1 AS a", "--format", "parquet", "--out", &out]));
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

#[test]
fn truncated_output_is_not_valid_json() {
    for arguments in [
        &["sql", "SELECT CAST('x' || n AS INTEGER) FROM range(3) t(n)", "--json"][..],
        &["stats", "--json", "--plot", "missing/folder.svg"],
    ] {
        let failed = ASKED.run(&of_store(arguments));
        assert!(failed.code != 0 && failed.stdout.is_empty(), "{arguments:?} {}", failed.stdout);
    }
}

#[test]
fn sessions_of_others_are_read_only_on_request() {
    let home = asked();
    let root = home.amplifier().display().to_string();
    home.ok(&of_store(&["sync", "--embedding", "none", "--user", "eve", "--root", &root]));
    let count = ["sql", "SELECT count(DISTINCT user_id) AS users FROM sessions"];
    home.shows("error_sql_of_others", &of_store(&count));
    assert_eq!(home.ok(&of_store(&[&count[..], &["--scope", "all"]].concat())), "2\n");
}
