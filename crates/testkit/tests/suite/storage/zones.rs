//! Statistics by the days of a time zone.

use amplifier_session_testkit::prelude::*;
use jiff::{SignedDuration, tz::TimeZone};

use super::statistics::{all, statistics};

on_both_stores![rows_are_counted_by_the_day_of_a_time_zone, weeks_and_months_are_those_of_the_time_zone];

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

/// Each hour of three days is a message, an event and a call, so a day of 23 or 25 hours has as many of them.
async fn rows_are_counted_by_the_day_of_a_time_zone(store: Store) {
    // Time zone, the first midnight there, and the hours of its days.
    let cases = [
        ("Europe/Berlin", "2026-03-27T23:00:00Z", [("2026-03-28", 24), ("2026-03-29", 23), ("2026-03-30", 24)]),
        ("Europe/Berlin", "2026-10-23T22:00:00Z", [("2026-10-24", 24), ("2026-10-25", 25), ("2026-10-26", 24)]),
        (
            "America/New_York",
            "2026-03-07T05:00:00Z",
            [("2026-03-07", 24), ("2026-03-08", 23), ("2026-03-09", 24)],
        ),
        (
            "America/New_York",
            "2026-10-31T04:00:00Z",
            [("2026-10-31", 24), ("2026-11-01", 25), ("2026-11-02", 24)],
        ),
        ("Asia/Kathmandu", "2026-01-04T18:15:00Z", [("2026-01-05", 24), ("2026-01-06", 24), ("2026-01-07", 24)]),
    ];
    for (n, (name, midnight, expected)) in cases.into_iter().enumerate() {
        let target = target_of("ana", "shop", &format!("s{n}"));
        let from: jiff::Timestamp = midnight.parse().unwrap();
        let hours: i64 = expected.iter().map(|(_, hours)| hours).sum();
        let times: Vec<String> =
            (0..hours).map(|hour| (from + SignedDuration::from_hours(hour)).to_string()).collect();
        let message = |time: &String| lines::user(&format!("{name} {time}")).at(time);
        store.create(&target, |session| session.created = time(midnight)).await;
        store.sync_text(&target, times.iter().map(message).collect()).await;
        let call = |time: &String| {
            let data = json!({"model": "m", "usage": {"input_tokens": 1, "cost_usd": "0.25"}});
            lines::logger_event("llm:response").data(data).at(time)
        };
        store.sync_events(&target, times.iter().map(call).collect()).await;
        let session = SessionFilter::default().with_session(target.key.session_id.clone());
        let options = all().with_sessions(session).with_zone(zone(name));
        let found = statistics(&store, ana(), options.clone()).await;
        let days: Vec<(&str, [u64; 4])> = found
            .days
            .iter()
            .map(|of| (of.day.as_str(), [of.messages, of.user_messages, of.events, of.usage.calls]))
            .collect();
        assert_eq!(days, expected.map(|(day, hours)| (day, [hours.unsigned_abs(); 4])), "{name}");
        // Sessions begin on the first day.
        assert_eq!(found.days.iter().map(|of| of.sessions).collect::<Vec<_>>(), [1, 0, 0], "{name}");
        let in_utc = statistics(&store, ana(), options.with_zone(TimeZone::UTC)).await;
        assert!(in_utc.days.len() == 4 && in_utc.totals == found.totals, "{name}");
    }
}

/// Late on a Sunday in New York, it is Monday in Berlin, and the next month.
async fn weeks_and_months_are_those_of_the_time_zone(store: Store) {
    let late = "2026-06-01T02:30:00Z";
    store.create(&target("s"), |session| session.created = time(late)).await;
    store.sync(&target("s"), vec![lines::user("late").at(late)]).await;
    for (name, day, week, month) in [
        ("America/New_York", "2026-05-31", "2026-W22", "2026-05"),
        ("Europe/Berlin", "2026-06-01", "2026-W23", "2026-06"),
    ] {
        let found = statistics(&store, ana(), all().with_zone(zone(name))).await;
        let periods = [&found.days[0].day, &found.weeks[0].period, &found.months[0].period];
        assert_eq!(periods, [day, week, month], "{name}");
    }
}
