//! Days are those of the reader's time zone.

use serde_json::Value;

use crate::{call::Ran, support::Home};

/// The first and the last second of 29 March 2026 in Berlin, a day of 23 hours, and the seconds beside it; the same for
/// 8 March in New York; and a quarter of an hour before and at midnight of 15 April in Kathmandu.
const TIMES: [(&str, [&str; 4]); 3] = [
    (
        "berlin",
        ["2026-03-28T22:59:59Z", "2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z", "2026-03-29T22:00:00Z"],
    ),
    (
        "new-york",
        ["2026-03-08T04:59:59Z", "2026-03-08T05:00:00Z", "2026-03-09T03:59:59Z", "2026-03-09T04:00:00Z"],
    ),
    (
        "kathmandu",
        ["2026-04-14T18:00:00Z", "2026-04-14T18:15:00Z", "2026-04-15T18:14:59Z", "2026-04-15T18:15:00Z"],
    ),
];

fn home() -> Home {
    let home = Home::new();
    for (session, times) in TIMES {
        let line = |time: &str| {
            format!("{{\"role\":\"user\",\"content\":\"rollback at {time}\",\"timestamp\":\"{time}\"}}\n")
        };
        home.write_session("p", session, &times.map(line).concat());
    }
    home.ok(&["sync"]);
    home
}

fn in_zone(home: &Home, zone: &str, arguments: &[&str]) -> Ran {
    let ran = home.call(arguments).env("TZ", zone).run();
    assert_eq!(ran.code, 0, "{zone} {arguments:?}: {}", ran.stderr);
    ran
}

/// Day and messages of the lines that begin with a day, without empty days.
fn days(stdout: &str) -> Vec<(String, u64)> {
    let fields = stdout.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let days = fields.filter_map(|of| match of[..] {
        ["day", day, _, messages, ..] => Some((day.to_owned(), messages.parse().unwrap())),
        [first, last, count] if first == last => Some((first.to_owned(), count.parse().unwrap())),
        _ => None,
    });
    days.filter(|(_, count)| *count > 0).collect()
}

const TIMELINE: [&str; 7] = ["timeline", "rollback", "--mode", "full-text", "--by", "day", "--no-refresh"];

#[test]
fn charts_and_dates_have_the_days_of_the_time_zone() {
    let home = home();
    let cases = [
        ("Europe/Berlin", "2026-03-29", "2026-03-28", "2026-03-30"),
        ("America/New_York", "2026-03-08", "2026-03-07", "2026-03-09"),
        ("Asia/Kathmandu", "2026-04-15", "2026-04-14", "2026-04-16"),
    ];
    for (zone, day, before, after) in cases {
        let expected = [(before, 1), (day, 2), (after, 1)].map(|(day, count)| (day.to_owned(), count));
        let period = ["--since", before, "--until", after];
        let timeline = [&TIMELINE[..], &period].concat();
        assert_eq!(days(&in_zone(&home, zone, &timeline).stdout), expected, "{zone}");
        let stats = [&["stats"][..], &period].concat();
        assert_eq!(days(&in_zone(&home, zone, &stats).stdout), expected, "{zone}");
        // A day is as long as its hours, for every way to say it.
        let found = |query: &str, more: &[&str]| {
            let search = ["search", query, "--mode", "full-text", "--no-refresh", "--limit", "9", "--json"];
            let found = in_zone(&home, zone, &[&search[..], more].concat()).json();
            found["results"].as_array().unwrap().len()
        };
        assert_eq!(found("rollback", &["--since", day, "--until", day]), 2, "{zone}");
        assert_eq!(found(&format!("rollback after:{day} before:{after}"), &[]), 2, "{zone}");
        assert_eq!(found(&format!("rollback after:{before} before:{day}"), &[]), 1, "{zone}");
    }
}

#[test]
fn utc_and_the_time_zone_are_named_once() {
    let home = home();
    let json = |zone: &str, arguments: &[&str]| -> Value {
        in_zone(&home, zone, &[arguments, &["--json"]].concat()).json()
    };
    for command in [&TIMELINE[..], &["stats"]] {
        assert_eq!(json("Europe/Berlin", command)["tz"], "Europe/Berlin");
        let utc = [command, &["--utc"]].concat();
        let in_utc = json("Europe/Berlin", &utc);
        assert_eq!(in_utc["tz"], "UTC");
        for part in ["periods", "days", "weeks", "months"] {
            assert_eq!(in_utc[part], json("UTC", command)[part], "{part}");
        }
    }
    let utc = [&TIMELINE[..], &["--utc"]].concat();
    let in_utc = in_zone(&home, "Europe/Berlin", &utc).stdout;
    assert_eq!(in_utc, in_zone(&home, "UTC", &TIMELINE).stdout);
    let sessions = |more: &[&str]| in_zone(&home, "Asia/Kathmandu", &[&["sessions"], more].concat()).stdout;
    assert!(sessions(&[]).contains("2026-04-16T00:00:00+05:45"), "{}", sessions(&[]));
    assert!(sessions(&["--utc"]).contains("2026-04-15T18:15:00+00:00"), "{}", sessions(&["--utc"]));

    for (command, head) in [
        (&TIMELINE[..], "Day (Europe/Berlin)"),
        (&["stats", "--by", "week"], "Week (Europe/Berlin)"),
        (&utc, "Day (UTC)"),
    ] {
        let call = home.call(command).env("TZ", "Europe/Berlin").env("AMPLIFIER_SESSIONS_FORCE_TTY", "80");
        let shown = call.env("NO_COLOR", "1").run().stdout;
        let zones = shown.matches("(Europe/Berlin)").count() + shown.matches("(UTC)").count();
        assert!(shown.contains(head) && zones == 1, "{shown}");
    }
}

#[test]
fn a_time_zone_that_is_not_known_is_utc_with_a_warning() {
    let home = home();
    let ran = home.call(&["stats", "--json"]).env("TZ", "Mars/Phobos").run();
    assert_eq!(ran.json()["tz"], "UTC");
    assert_eq!(ran.stderr, "warning: TZ=Mars/Phobos is not a known time zone; days and times are in UTC\n");
    let ran = home.call(&["stats", "--json", "--utc"]).env("TZ", "Mars/Phobos").run();
    assert_eq!(ran.stderr, "");
}
