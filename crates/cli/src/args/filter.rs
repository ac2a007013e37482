//! Filters and limits that several commands share.

use amplifier_session_api::{budget::AnswerLimits, filter::RequestFilter};
use amplifier_session_storage::model::SessionSource;
use clap::{
    Args,
    builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser},
};

use super::{at_least_one, number};
use crate::out::Out;

/// Filters by project and repository.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArgs {
    /// Only this project: its slug, a part of it, a pattern ('shop-*'), or its folder (`.` is the current one); if repeated,
    /// sessions of any of them
    // Slugs begin with a hyphen, and may contain commas.
    #[arg(id = "project", short, long = "project", value_name = "PROJECT", allow_hyphen_values = true)]
    pub(crate) projects: Vec<String>,
    #[command(flatten)]
    pub(crate) repo: RepoArgs,
}

/// Filters by project and time.
#[derive(Debug, Clone, Args)]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Only from this date on
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// Only until this date; the whole day is included
    #[arg(long, value_name = "DATE")]
    pub(crate) until: Option<String>,
}

impl FilterArgs {
    /// The filter of a request, together with `narrow`.
    pub(crate) fn request(&self, narrow: &NarrowArgs) -> RequestFilter {
        let Self { place: PlaceArgs { projects, repo: RepoArgs { repo } }, since, until } = self.clone();
        let mut projects = projects.into_iter();
        let project = projects.next();
        RequestFilter { project, projects: projects.collect(), repo, since, until, ..narrow.request() }
    }
}

/// The filter by repository.
#[derive(Debug, Clone, Args)]
pub(crate) struct RepoArgs {
    /// Only this repository: its address, the end of the address, or a folder in it (`.` is the current one)
    #[arg(long, value_name = "REPO", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) repo: Option<String>,
}

/// Filters by properties of sessions.
#[derive(Debug, Clone, Args)]
pub(crate) struct NarrowArgs {
    /// Only sessions that ran with this bundle, by its full name
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) bundle: Option<String>,
    /// Only sessions that this program wrote
    #[arg(long, value_name = "PROGRAM", value_parser = sources())]
    pub(crate) source: Option<SessionSource>,
    /// Only sessions with this tag; if repeated, only sessions with all of them
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Only sessions with at least N turns
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) min_turns: Option<u32>,
    /// Only sessions with at most N turns
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) max_turns: Option<u32>,
}

impl NarrowArgs {
    /// The filter of a request.
    fn request(&self) -> RequestFilter {
        let Self { bundle, source, tags, min_turns, max_turns } = self.clone();
        RequestFilter { bundle, source, tags, min_turns, max_turns, ..RequestFilter::default() }
    }
}

fn sources() -> impl TypedValueParser<Value = SessionSource> {
    let names = SessionSource::ALL.map(SessionSource::as_str);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<SessionSource>())
}

/// Limits of the length of an answer.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LimitArgs {
    /// Cut each message after N characters; 0 means no limit [default: 4000 in a pipe, 0 on a terminal]
    #[arg(long, value_name = "N", value_parser = number::<usize>)]
    max_chars: Option<usize>,
    /// Maximum length of the whole answer in tokens (cl100k_base); the rest is cut or left out
    #[arg(long, value_name = "TOKENS", value_parser = at_least_one)]
    pub(crate) budget: Option<usize>,
}

impl LimitArgs {
    /// Whether one is given.
    pub(crate) fn is_given(self) -> bool {
        self.max_chars.is_some() || self.budget.is_some()
    }

    /// The limits of a response.
    pub(crate) fn of(self, out: &Out) -> AnswerLimits {
        AnswerLimits { max_chars: self.max_chars(out), budget: self.budget }
    }

    /// The maximum number of characters of a message, if there is a limit.
    pub(crate) fn max_chars(self, out: &Out) -> Option<usize> {
        const IN_A_PIPE: usize = 4_000;
        match self.max_chars {
            Some(0) => None,
            Some(most) => Some(most),
            None => (!out.is_for_a_person()).then_some(IN_A_PIPE),
        }
    }
}
