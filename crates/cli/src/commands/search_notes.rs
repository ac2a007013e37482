//! Notes and hints of the search commands, printed to stderr.

use amplifier_session_storage::{
    Scope,
    search::{MissingVectors, SearchFilter, SearchOptions, SearchResults},
};

use crate::{
    app::{App, StoreReader},
    args::QueryArgs,
    failure::{Failure, USAGE_HINT, say},
    program,
    render::{
        result::ResultNames,
        text::{fitted, grouped},
    },
};

/// Prints the notices of a search, after adding one about missing vectors.
pub(super) async fn say_notices(
    app: &App,
    reader: &StoreReader,
    options: &SearchOptions,
    found: &mut SearchResults,
) -> Result<(), Failure> {
    if let Some(missing) = found.missing_vectors {
        let is_filtered = options.filter != SearchFilter::default();
        found.notices.push(missing_note(app, reader, missing, is_filtered).await?);
    }
    for notice in &found.notices {
        say("note", notice);
    }
    Ok(())
}

/// Prints that nothing was found, and the likely reason.
pub(super) async fn say_nothing_found(
    app: &App,
    reader: &StoreReader,
    options: &SearchOptions,
    args: &QueryArgs,
    note: &str,
) -> Result<(), Failure> {
    say("note", note);
    if let Some(excluded) = options.conditions.excluded.first() {
        let one = if excluded.contains(' ') { format!("-\"{excluded}\"") } else { format!("-{excluded}") };
        say("hint", &format!("{one} leaves out messages that contain it; with --plain it is searched for"));
    }
    args.narrow.explain_nothing();
    app.warn_of_unknown_project(reader, &options.filter.sessions).await
}

/// The usage error of `command` without a query, where there is no interactive search.
pub(super) fn no_query(command: &str) -> Failure {
    let usage = format!("Usage: {} {command} <QUERY>", program::name());
    let message = format!("the following required arguments were not provided:\n  <QUERY>\n\n{usage}");
    Failure::wrong_use(message, USAGE_HINT)
}

/// A note that nothing was found, with the message nearest in meaning if there is one.
pub(super) fn nothing_found(found: &SearchResults, names: &ResultNames) -> String {
    const CHARS: usize = 80;
    let Some(nearest) = &found.nearest else { return "no message matches".to_owned() };
    let address = names.address(nearest);
    let similarity = nearest.similarity.map_or_else(String::new, |found| format!(" (similarity {found:.2})"));
    format!("no match; nearest by meaning: {address}{similarity}: {}", fitted(&nearest.snippet, CHARS))
}

/// A note that messages have no vectors yet, and how to make them.
async fn missing_note(
    app: &App,
    reader: &StoreReader,
    missing: MissingVectors,
    is_filtered: bool,
) -> Result<String, Failure> {
    let MissingVectors { messages, of } = missing;
    let (messages, of) = (grouped(messages), grouped(of));
    let counted = if is_filtered { " (counted without the filters)" } else { "" };
    let note = format!("{messages} of {of} messages have no vectors yet{counted}");
    // `backfill` creates vectors only for the user's own messages.
    let own = Scope::User(app.who()?.0.user_id);
    let can_be_made = reader.scope == own || reader.storage.search().missing_vectors(&own).await?.is_some();
    Ok(if can_be_made {
        format!("{note}; run `{} backfill`", app.program_with_embedding())
    } else {
        format!("{note}; they belong to other users, who can run `backfill`")
    })
}
