//! Functions that SQL statements call.
//!
//! They call `core`, so that a database that counts or filters gets the same results as code that examines every row.

use amplifier_session_core::{backend::Usage, model::event_mentions, text::holds_words};
use rusqlite::{
    Connection, Result,
    functions::{Aggregate, Context, FunctionFlags},
};

/// Registers the functions.
///
/// - `holds_words(wanted, name, first_prompt, session_id, description)`: whether the title or description of a session
///   contains all words.
/// - `event_mentions(wanted, error_type, summary)`: whether an event contains all words.
/// - `usage_of(summary)`: the usage of the events of a group, as text for [`read_usage`].
pub(crate) fn register(connection: &Connection) -> Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function("holds_words", 5, flags, |row| {
        let text = |index| text(row, index);
        let (name, first_prompt) = (text(1), text(2));
        // As `Session::title`.
        let given = name.filter(|name| !name.trim().is_empty());
        let title = given.or(first_prompt).or(text(3)).unwrap_or_default();
        Ok(holds_words(&[title, text(4).unwrap_or_default()], text(0).unwrap_or_default()))
    })?;
    connection.create_scalar_function("event_mentions", 3, flags, |row| {
        let text = |index| text(row, index);
        let summary = serde_json::from_str(text(2).unwrap_or_default()).unwrap_or_default();
        Ok(event_mentions(text(1), &summary, text(0).unwrap_or_default()))
    })?;
    connection.create_aggregate_function("usage_of", 1, flags, UsageOf)
}

/// A text argument. Any other value, in a damaged row, contains no words.
fn text<'a>(row: &'a Context<'_>, index: usize) -> Option<&'a str> {
    row.get_raw(index).as_str_or_null().ok().flatten()
}

/// Sums with `core`, which does not overflow and does not treat text as numbers.
struct UsageOf;

impl Aggregate<Usage, String> for UsageOf {
    fn init(&self, _: &mut Context<'_>) -> Result<Usage> {
        Ok(Usage::default())
    }

    fn step(&self, row: &mut Context<'_>, sum: &mut Usage) -> Result<()> {
        sum.add_summary(text(row, 0).unwrap_or_default());
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, sum: Option<Usage>) -> Result<String> {
        let sum = sum.unwrap_or_default();
        let tokens = [sum.input_tokens, sum.output_tokens, sum.cache_read_tokens, sum.cache_write_tokens];
        let tokens = tokens.map(|count| count.to_string()).join(" ");
        Ok(format!("{} {tokens} {}", sum.calls, sum.cost))
    }
}

/// Reads the result of `usage_of`: calls, four numbers of tokens, and the cost.
pub(crate) fn read_usage(text: &str) -> Usage {
    let mut fields = text.split(' ');
    let mut number = || fields.next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let mut usage = Usage::of_calls(number());
    usage.input_tokens = number();
    usage.output_tokens = number();
    usage.cache_read_tokens = number();
    usage.cache_write_tokens = number();
    usage.cost = fields.next().and_then(|cost| cost.parse().ok()).unwrap_or_default();
    usage
}
