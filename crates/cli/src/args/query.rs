//! The queries of `search` and `timeline`.

use amplifier_session_api::query::QueryRequest;
use amplifier_session_storage::{
    model::{ContentTypes, Role},
    search::SearchMode,
};
use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};

use super::{FilterArgs, NarrowArgs, parse};
use crate::app::App;

/// The session of the agent that runs this program.
pub(crate) const CURRENT_SESSION: &str = "AMPLIFIER_SESSION_ID";

/// A query with its mode and filters.
#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// Words or a question; quotes are optional
    #[arg(value_name = "QUERY", value_parser = query, allow_hyphen_values = true)]
    query: Option<String>,
    /// Further words
    #[arg(value_name = "WORD", hide = true)]
    further_words: Vec<String>,
    /// Words that may look like options
    #[arg(value_name = "WORD", last = true, hide = true)]
    words_after_dashes: Vec<String>,
    /// Take the query as plain text, without syntax
    #[arg(long)]
    pub(crate) plain: bool,
    /// Find exactly this text, even within words, such as part of a hash or a line of a stack trace; case-sensitive
    #[arg(long, conflicts_with = "mode")]
    pub(crate) exact: bool,
    /// Only sessions with a tool call on this file or folder; the end of the path is enough. Without words, finds the calls
    #[arg(long = "file", value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) files: Vec<String>,
    /// Exclude this session, by its address; the one in AMPLIFIER_SESSION_ID is excluded anyway
    #[arg(long = "not-session", value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) not_sessions: Vec<String>,
    /// Search by words, by meaning, or by both
    #[arg(long, default_value = "hybrid")]
    pub(crate) mode: ModeArg,
    /// Where to search: user, assistant, thinking, tool (or only tool_call, tool_output), system; by default everything
    /// except system
    #[arg(long = "in", value_name = "TYPES", value_delimiter = ',', value_parser = content_types)]
    pub(crate) content_types: Vec<ContentTypes>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) narrow: NarrowArgs,
    /// Only this session, by its address
    #[arg(long, value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: Option<String>,
    /// Only messages with this role: user, assistant, tool, system, developer
    #[arg(long, value_parser = parse::<Role>)]
    pub(crate) role: Option<Role>,
}

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    Hybrid,
    Semantic,
    #[value(alias = "full_text")]
    FullText,
}

impl From<ModeArg> for SearchMode {
    fn from(arg: ModeArg) -> Self {
        match arg {
            ModeArg::Hybrid => Self::Hybrid,
            ModeArg::Semantic => Self::Semantic,
            ModeArg::FullText => Self::FullText,
        }
    }
}

impl QueryArgs {
    /// Whether there is something to search for: a query, which may be empty, or a file.
    pub(crate) fn is_given(&self) -> bool {
        self.query.is_some() || !self.words_after_dashes.is_empty() || !self.files.is_empty()
    }

    /// The query as a title: without words, the files that are searched for.
    pub(crate) fn title(&self) -> String {
        match self.text() {
            text if text.trim().is_empty() => {
                let files: Vec<String> = self.files.iter().map(|file| format!("file:{file}")).collect();
                files.join(" ")
            }
            text => text,
        }
    }

    /// Whether the search needs an embedding provider.
    pub(crate) fn embeds(&self) -> bool {
        self.mode != ModeArg::FullText
    }

    /// The query of a request.
    pub(crate) fn request(&self, app: &App) -> QueryRequest {
        let types = self.content_types.iter().copied().flat_map(ContentTypes::iter);
        QueryRequest {
            query: self.text(),
            plain: self.plain,
            exact: self.exact,
            scope: app.global.scope.into(),
            files: self.files.clone(),
            not_sessions: self.not_sessions.clone(),
            current_session: app
                .environment
                .variable(CURRENT_SESSION)
                .filter(|id| !id.is_empty())
                .map(str::to_owned),
            without_own_calls: false,
            mode: self.mode.into(),
            content_types: types.map(|content_type| content_type.as_str().to_owned()).collect(),
            filter: self.filter.request(&self.narrow),
            session: self.session.clone(),
            role: self.role,
        }
    }

    /// The complete query.
    pub(crate) fn text(&self) -> String {
        let words = self.query.iter().chain(&self.further_words).chain(&self.words_after_dashes);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

fn content_types(text: &str) -> Result<ContentTypes, String> {
    ContentTypes::parse(text).map_err(|error| error.message().to_owned())
}

/// Any text is a query, even `- that` or `-1`, but `--limt` is a mistyped option.
fn query(text: &str) -> Result<String, String> {
    if is_option_like(text) {
        Err(format!("unknown option; to search for this text, put -- before it: -- {text}"))
    } else {
        Ok(text.to_owned())
    }
}

/// Whether a text looks like a long option.
pub(super) fn is_option_like(text: &str) -> bool {
    text.strip_prefix("--").is_some_and(|name| {
        name.starts_with(|first: char| first.is_ascii_alphabetic()) && !name.contains(char::is_whitespace)
    })
}
