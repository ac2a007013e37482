//! Lines on a terminal: they break between words.

use crate::{
    support::{Home, SYNCED},
    terminal::Terminal,
};

/// The columns of labels before a text.
const LABEL: usize = 24;

/// Whether a line fits, or ends with a word that has no room, such as a path. It is not cut, so that it can be copied.
fn fits(line: &str, columns: usize) -> bool {
    let last = line.rsplit(' ').next().unwrap_or_default();
    line.chars().count() <= columns || last.chars().count() > columns - LABEL
}

/// The lines of a run on a terminal of this width, without those that may be wider: commands to copy.
fn lines(home: &Home, columns: u16, arguments: &[&str]) -> Vec<String> {
    let ran = Terminal::new(home).with_columns(columns).run(&[arguments, &["--color", "never"]].concat());
    let text = ran.stdout + &ran.stderr;
    text.lines().filter(|line| !line.contains('`')).map(str::to_owned).collect()
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for columns in [40, 60, 80, 100] {
        for arguments in [
            &["show", "7f3c9a52", "--limit", "1"][..],
            &["show", "7f3c9a52#4", "--context", "--no-tools"],
            &["show", "7f3c9a52", "--turn", "1"],
            &["doctor"],
            &["verify"],
            &["verify", "--root", "nowhere"],
            &["search", "--explain", "webhook", "--mode", "full-text"],
        ] {
            for line in lines(&SYNCED, columns, arguments) {
                assert!(fits(&line, usize::from(columns)), "{arguments:?} at {columns}: {line}");
            }
        }
    }
}

#[test]
fn titles_break_between_words_and_in_chinese_between_characters() {
    let home = Home::new();
    let prompt = |text: &str| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
    let english = "Measure the temperature of every oven in the bakery before the rye goes in";
    home.write_session("-home-dana-app", "11111111-6d1e-4b8f-9a07-c2e54d81b3f7", &prompt(english));
    let chinese = "请在放入黑麦面包之前测量面包店里每个烤箱的温度，然后把结果写进表格。谢谢你";
    home.write_session("-home-dana-app", "22222222-6d1e-4b8f-9a07-c2e54d81b3f7", &prompt(chinese));
    home.ok(&["sync", "--embedding", "none"]);
    for (session, expected) in [
        ("11111111", ["Measure the temperature of every oven in", "the bakery before the rye goes in"]),
        ("22222222", ["请在放入黑麦面包之前测量面包店里每个烤箱", "的温度，然后把结果写进表格。谢谢你"]),
    ] {
        for arguments in [&["show", session][..], &["show", session, "--turn", "1"]] {
            assert_eq!(lines(&home, 40, arguments)[..2], expected, "{arguments:?}");
        }
    }
}
