//! What several commands narrow by.

use amplifier_session_storage::{model::ProjectSlug, search::SessionFilter};
use clap::Args;
use jiff::Zoned;

use crate::{
    app::{App, Reader},
    dates::Period,
    failure::{Failure, say},
};

/// What narrows sessions and messages.
#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// Only this project: its slug, a part of the slug that no other has, or its folder (`.` is this one)
    // Slugs begin with a hyphen.
    #[arg(long, value_name = "PROJECT", allow_hyphen_values = true)]
    pub(crate) project: Option<String>,
    /// Only from then on
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Only until then; a day is meant whole
    #[arg(long, value_name = "DATE")]
    pub(crate) until: Option<String>,
}

impl FilterArgs {
    /// The project, if one is named, among those of `reader`.
    pub(crate) async fn project(&self, app: &App, reader: &Reader) -> Result<Option<ProjectSlug>, Failure> {
        app.project(reader, self.project.as_deref()).await
    }

    /// The stretch of time.
    pub(crate) fn period(&self, now: &Zoned) -> Result<Period, Failure> {
        Period::parse(self.since.as_deref(), self.until.as_deref(), now)
    }
}

/// What narrows sessions by what they are.
#[derive(Debug, Args)]
pub(crate) struct NarrowArgs {
    /// Only sessions that ran with this bundle, by its whole name
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) bundle: Option<String>,
    /// Only sessions that carry this tag; repeated, only those that carry all of them
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Only sessions of so many turns or more
    #[arg(long, value_name = "N")]
    pub(crate) min_turns: Option<u32>,
    /// Only sessions of so many turns or fewer
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
}

impl NarrowArgs {
    /// The filter.
    pub(crate) fn filter(&self) -> Result<SessionFilter, Failure> {
        if let (Some(least), Some(most)) = (self.min_turns, self.max_turns)
            && most < least
        {
            let message = format!("--max-turns {most} is less than --min-turns {least}");
            return Err(Failure::wrong_use(message, "no session has so many turns and so few"));
        }
        Ok(SessionFilter::default()
            .with_bundle(self.bundle.clone())
            .with_tags(self.tags.iter().map(|tag| tag.trim()))
            .with_min_turns(self.min_turns)
            .with_max_turns(self.max_turns))
    }

    /// Tells what may be amiss when nothing was found.
    pub(crate) fn explain_nothing(&self) {
        if let Some(bundle) = self.bundle.as_deref().filter(|bundle| !bundle.contains(':')) {
            say("hint", &format!("bundles go by their whole names: --bundle bundle:{bundle}"));
        }
    }
}
