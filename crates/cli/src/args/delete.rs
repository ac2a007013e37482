//! `delete`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::RepoArgs;

/// `delete`.
#[derive(Debug, Args)]
#[command(about = "Remove sessions or superseded lines from the store")]
#[command(long_about = "\
Removes your sessions from the store, with their messages, events and vectors: the named ones, those of a project, those of \
a certain age, or all. Shows what would be deleted and asks; if input is not a terminal, --yes is required. With --dry-run, \
only shows it. If one of the named sessions is not found, nothing is deleted.

--project, --repo and --older-than may be combined: a session must match all of them. The age of a session is the time since its last \
activity. Sessions of other users are never deleted, whatever the --scope; --user ID selects the user.

The files of the sessions are not touched. The store remembers the deletion: later syncs skip the sessions, unless \
`sync --include-deleted` is used. `import` restores them from an archive, and says so. Sub-agents, forks and copies are not \
deleted unless they match too; as they contain the same text, they are named before anything is deleted.

Two folders may have the same slug, such as my-app and my/app. --project FOLDER deletes only the sessions that ran in the \
folder; --project SLUG deletes those of both.

With --superseded, removes only superseded lines: messages and events that a sync kept although their files no longer contain \
them. The sessions themselves stay as they are. Without other arguments, removes those of all your sessions. --older-than then \
refers to when the lines were superseded. `sessions --superseded` lists the sessions that have superseded lines, and \
`show SESSION --superseded` shows them.

The words of what is deleted are erased from all files of the store, which means rewriting it once. If that fails, for example \
because the disk is full, the sessions are deleted nevertheless; the command reports the file and exits with 1, and the next \
command that writes to the store erases the words.")]
#[command(after_long_help = "\
In a pipe, each deleted session is one line of tab-separated fields: `deleted` (`would-delete` with --dry-run), session, \
project, messages, turns, events, title. With --superseded, the fields are: `pruned` (`would-prune` with --dry-run), session, \
project, messages, events, bytes.

Examples:
  amplifier-sessions delete 3a7c1e90
  amplifier-sessions delete 3a7c1e90 5b8d2f10 --yes
  amplifier-sessions delete --older-than 90d --dry-run
  amplifier-sessions delete --project my-project --older-than '6 months ago'
  amplifier-sessions delete --all --user ana@example.com
  amplifier-sessions delete --superseded --older-than 90d")]
pub(crate) struct DeleteArgs {
    /// The sessions to delete, each by its address
    #[arg(
        value_name = "SESSION",
        conflicts_with_all = ["project", "repo", "all"],
        value_parser = NonEmptyStringValueParser::new(),
    )]
    pub(crate) sessions: Vec<String>,
    /// Delete the sessions of this project: its slug, a unique part of the slug, or its folder (`.` is the current one)
    // Slugs begin with a hyphen.
    #[arg(short, long, value_name = "PROJECT", allow_hyphen_values = true)]
    pub(crate) project: Option<String>,
    #[command(flatten)]
    pub(crate) repo: RepoArgs,
    /// Delete sessions without activity for this long (90d, 12w), or since this date (2026-01-31)
    // With SESSION only for --superseded: `DeletePreviewRequest::check` refuses it otherwise.
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// Delete all your sessions; with --user ID, all sessions of that user
    #[arg(long, conflicts_with_all = ["project", "repo", "older_than"])]
    pub(crate) all: bool,
    /// Delete only superseded lines, which are no longer in the files of the sessions
    #[arg(long, conflicts_with = "all")]
    pub(crate) superseded: bool,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Delete without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}
