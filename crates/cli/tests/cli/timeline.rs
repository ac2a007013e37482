//! When messages that match were written.

use crate::{
    output::{check, json, terminal, text},
    support::{Home, SYNCED},
    terminal::Terminal,
};

const DEADLOCK: [&str; 4] = ["timeline", "deadlock", "--mode", "full-text"];

#[test]
fn output() {
    text("timeline", &DEADLOCK);
    json("timeline_json", &DEADLOCK);
    terminal("timeline_terminal", 80, &[&DEADLOCK[..], &["--color", "never"]].concat());
    terminal("timeline_weeks_terminal", 60, &[&DEADLOCK[..], &["--by", "week"]].concat());
    text("timeline_months", &[&DEADLOCK[..], &["--by", "month"]].concat());
    text("timeline_nothing", &["timeline", "xyzzyplugh", "--mode", "full-text"]);
    json("timeline_nothing_json", &["timeline", "xyzzyplugh", "--mode", "full-text", "--by", "week"]);
}

#[test]
fn the_messages_are_those_of_a_search() {
    let by_words = &["--mode", "full-text"];
    for query in [&["idempotency"][..], &["deadlock role:user"], &["deadlock", "--in", "assistant"]] {
        let timeline = SYNCED.json(&[&["timeline"], query].concat());
        let found = SYNCED.json(&[&["search"], query, by_words, &["--limit", "1000"]].concat());
        let counts = timeline["periods"].as_array().unwrap().iter().map(|of| of["count"].as_u64().unwrap());
        let matches = found["results"].as_array().unwrap().len() as u64;
        assert_eq!((timeline["matches"].as_u64(), counts.sum()), (Some(matches), matches), "{query:?}");
    }
}

/// Two messages in one day, and one 12 days later.
fn home_with_gap() -> Home {
    let home = Home::new();
    let line = |day| {
        format!("{{\"role\":\"user\",\"content\":\"zebra on {day}\",\"timestamp\":\"{day}T08:00:00Z\"}}\n")
    };
    let days = ["2025-12-28", "2025-12-28", "2026-01-09"];
    for (n, day) in days.iter().enumerate() {
        let text = line(day).replace("zebra", &format!("zebra {n}"));
        home.write_session("p", &format!("s{n}"), &text);
    }
    home.ok(&["sync", "--embedding", "none"]);
    home
}

#[test]
fn many_empty_days_are_one_line() {
    let home = home_with_gap();
    let search = ["timeline", "zebra", "--mode", "full-text", "--color", "never"];
    Terminal::new(&home).with_columns(60).shows("timeline_gap_terminal", &search);
    assert_eq!(home.ok(&search).lines().count(), 13, "a pipe gets every day");
}

#[test]
fn all_messages_with_the_words_are_counted() {
    let home = Home::new();
    let lines = (0..101).map(|n| {
        format!("{{\"role\":\"user\",\"content\":\"zebra {n}\",\"timestamp\":\"2026-01-05T08:00:00Z\"}}\n")
    });
    home.write_session("p", "s", &lines.collect::<String>());
    home.ok(&["sync", "--embedding", "none"]);
    let ran = home.run_json(&["timeline", "zebra", "--mode", "full-text"]);
    let timeline = ran.json();
    assert_eq!((timeline["matches"].as_u64(), timeline["has_more"].as_bool()), (Some(101), Some(false)));
    assert_eq!(
        (timeline["first"].as_str(), timeline["last"].as_str()),
        (Some("2026-01-05"), Some("2026-01-05"))
    );
    assert!(!ran.stderr.contains("only the best"), "{}", ran.stderr);
}

#[test]
fn a_picture() {
    let home = home_with_gap();
    let file = home.path().join("zebra.svg");
    let plot = ["timeline", "zebra <b>", "--mode", "full-text", "--plot", file.to_str().unwrap()];
    let ran = home.run(&plot);
    let notes =
        "note: no message has all of these words in one text: zebra, b\nnote: the picture was written to";
    assert_eq!(ran.stderr, format!("{notes} {}\n", file.display()));
    assert_eq!(ran.stdout.lines().count(), 13);
    let picture = std::fs::read_to_string(&file).unwrap();
    check("timeline_svg", &home, &picture);
    let stdout = ["timeline", "zebra <b>", "--mode", "full-text", "--plot", "-", "--json"];
    assert_eq!(home.ok(&stdout), picture);
    let nothing = home.path().join("nothing.svg");
    let ran = home.run(&["timeline", "horse", "--mode", "full-text", "--plot", nothing.to_str().unwrap()]);
    assert_eq!((ran.code, nothing.exists()), (3, false));
}
