//! Output of `stats` for the samples.

use crate::{
    output::{check, json, terminal, text},
    support::{Home, SYNCED},
    terminal::Terminal,
};

#[test]
fn stats() {
    text("help_stats", &["stats", "--help"]);
    terminal("stats_terminal", 100, &["stats", "--color", "never"]);
    terminal("stats_terminal_coloured", 80, &["stats", "--by", "tool,project"]);
    terminal("stats_terminal_medium", 80, &["stats", "--color", "never", "--by", "week,month,model"]);
    terminal("stats_terminal_narrow", 60, &["stats", "--color", "never"]);
    terminal("stats_terminal_narrowest", 40, &["stats", "--color", "never", "--by", "model,tool,week"]);
    text("stats_by_week", &["stats", "--by", "week,month"]);
    terminal("stats_period_terminal", 100, &["stats", "--color", "never", "--since", "2026-11-15"]);
    text("stats", &["stats"]);
    text("stats_by_tool", &["stats", "--by", "tool", "--project", "-home-dana-payments-api"]);
    text("stats_of_session", &["stats", "--session", "38e6d1f5"]);
    text("stats_nothing", &["stats", "--since", "2100-01-01"]);
    text("stats_of_unknown_project", &["stats", "--project", "brewery"]);
    json("stats_json", &["stats", "--session", "7f3c9a52"]);
}

#[test]
fn long_charts_are_cut() {
    let home = Home::new();
    for n in 0..45 {
        let (month, day) = (n / 28 + 1, n % 28 + 1);
        let line = format!(
            "{{\"role\":\"user\",\"content\":\"x\",\"timestamp\":\"2026-{month:02}-{day:02}T08:00:00Z\"}}\n"
        );
        home.write_session(&format!("p{:02}", n % 15), &format!("s{n}"), &line.repeat(n / 9 + 1));
    }
    home.ok(&["sync"]);
    let seen = |arguments: &[&str]| Terminal::new(&home).run(arguments).stdout;
    let short = seen(&["stats", "--color", "never"]);
    check("stats_cut_terminal", &home, &short);
    let all = seen(&["stats", "--color", "never", "--all"]);
    assert!(!all.contains("--all") && all.lines().count() == short.lines().count() + 17 + 4, "{all}");
    assert_eq!(home.ok(&["stats", "--by", "day"]).lines().count(), 48, "a pipe gets everything");
}

#[test]
fn a_picture() {
    let file = SYNCED.path().join("stats.svg");
    let plot = ["stats", "--by", "tool", "--plot", file.to_str().unwrap()];
    let ran = SYNCED.run(&plot);
    assert_eq!(ran.stderr, format!("note: the picture was written to {}\n", file.display()));
    let picture = std::fs::read_to_string(&file).unwrap();
    check("stats_svg", &SYNCED, &picture);
    SYNCED.ok(&plot);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), picture);
    for (by, title, bar) in [
        ("tool,week", "Messages by week", "<title>week from 2026-11-09: 69 messages</title>"),
        ("month", "Tokens by month", "<title>2026-11: "),
    ] {
        let picture = SYNCED.ok(&["stats", "--by", by, "--plot", "-"]);
        assert!(picture.contains(title) && picture.contains(bar) && !picture.contains("by day"), "{picture}");
    }
    let nothing = SYNCED.path().join("nothing.svg");
    assert_eq!(SYNCED.run(&["stats", "--since", "2100-01-01", "--plot", nothing.to_str().unwrap()]).code, 3);
    assert!(!nothing.exists());
    let ran = SYNCED.run(&["stats", "--plot", "/missing/x.svg"]);
    assert_eq!((ran.code, ran.stderr.contains("hint: ")), (1, true), "{}", ran.stderr);
}

/// Days far apart, many tools, a tool name with characters that are special in SVG, and a failed call.
#[test]
fn a_picture_of_much() {
    let home = Home::new();
    for n in 0..30 {
        let day = format!("202{}-0{}-11T08:00:00Z", n % 3 + 4, n % 9 + 1);
        let line = format!("{{\"role\":\"user\",\"content\":\"x\",\"timestamp\":\"{day}\"}}\n");
        let folder = home.write_session("p", &format!("s{n}"), &line.repeat(n + 1));
        let event = format!(
            "{{\"ts\":\"{day}\",\"lvl\":\"INFO\",\"event\":\"tool:post\",\"data\":{{\"tool_name\":\"<tool> & {n:02}\"}}}}\n"
        );
        std::fs::write(folder.join("events.jsonl"), event.repeat(n + 1)).unwrap();
    }
    home.ok(&["sync", "--embedding", "none"]);
    let file = home.path().join("stats.svg");
    home.ok(&["stats", "--plot", file.to_str().unwrap()]);
    let picture = std::fs::read_to_string(&file).unwrap();
    assert!(picture.contains("&lt;tool&gt; &amp; 29") && picture.contains("18 other tools"), "{picture}");
    assert!(
        picture.contains("Tokens by model") && !picture.contains("Tokens by day") && !picture.contains("NaN")
    );
    let bars = picture.matches("messages</title>").count();
    assert!((45..=90).contains(&bars), "{bars}");
}
