//! A picture of a timeline.

use amplifier_session_core::{
    search::{Period, Timeline},
    text::{counted, grouped},
};

use super::{
    bars::{Dated, bars},
    page::{over_time, page, text},
};
use crate::text::{fitted, one_line};

/// The maximum length of the title, in characters.
const TITLE: usize = 64;

/// The picture of a timeline, with `title` above it. `tz` is the name of the time zone of the days.
#[must_use]
pub fn timeline(timeline: &Timeline, title: &str, tz: &str) -> String {
    let title = one_line(title);
    let line = summary(timeline).map_or_else(String::new, |summary| format!("{summary} ({tz})"));
    let mut body = String::new();
    text(&mut body, (24.0, 36.0), "title", "start", &fitted(&title, TITLE));
    text(&mut body, (24.0, 57.0), "aside", "start", &line);
    let dated = |of: &Period| -> Option<Dated> { Some((of.start.parse().ok()?, of.count, 0)) };
    let bars = bars(timeline.periods.iter().filter_map(dated), timeline.by);
    let y = over_time(&mut body, 92.0, "messages", timeline.by, &[], &bars);
    page(&format!("{title}: {line}"), y + 30.0, &body)
}

/// The number of messages, with the days of the first and the last. Returns `None` without messages.
#[must_use]
pub fn summary(timeline: &Timeline) -> Option<String> {
    let (first, last) = (timeline.first.as_ref()?, timeline.last.as_ref()?);
    let time = if first == last { first.clone() } else { format!("{first} to {last}") };
    let estimated = match timeline.estimated {
        0 => String::new(),
        count => format!(", {} with an estimated time", grouped(count)),
    };
    Some(format!("{}, {time}{estimated}", counted(timeline.matches, "message")))
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn a_title_is_text() {
        let nothing = Timeline::of_results([], None, &TimeZone::UTC);
        let picture = timeline(&nothing, "<b>\u{1b}[1m & \"x\"\n\u{ffff}", "UTC");
        let title = "&lt;b&gt;␛[1m &amp; &quot;x&quot; \u{fffd}";
        assert!(picture.contains(&format!("<title>{title}: </title>")), "{picture}");
        assert!(picture.contains(&format!(">{title}</text>")), "{picture}");
    }
}
