//! `search`.

use clap::{Args, ValueEnum};

use super::{GroupArg, LimitArgs, QueryArgs};

/// Find messages by words and by meaning
#[derive(Debug, Args)]
#[command(long_about = "\
Finds messages by words, by meaning, or by both, best first. A query is words or a question, with \"exact phrase\", -word, \
prefix* and fields; --plain takes it as plain text. --since, --until, --role and --in filter messages; other options filter \
the sessions that contain them. `sessions WORD` searches titles. `show ADDRESS --context` shows what surrounds a result.

On a terminal, results are grouped: each session is listed once, with its best messages. Without a query, a terminal shows \
results as you type, with filters and a preview.")]
#[command(after_long_help = "\
In a pipe, each result is one line of tab-separated fields: score, session, message, time, project, content type, snippet, \
address; if --scope is not own, the owner comes before the address. With --full, the message follows, indented. With --group \
session, each session is one line: score, session, time of its last change, project, title, number of messages found, best \
snippet, its address. With --list: address of the session, time of its last change, project, title.

Syntax of a query; quote it, so that the shell leaves it alone:
  \"exact phrase\"  these words in this order
  -word            messages without this word; -\"a phrase\" without a phrase
  prefix*          words that begin like this
  role:user  project:NAME  repo:NAME  session:ID  tag:NAME  after:DATE  before:DATE
                   like --role, --project, --repo, --session, --tag, --since, and --until excluding the day itself
  tool:bash        messages that call a tool or contain its output
  file:PATH        like --file
  -session:ID      like --not-session
Anything else is plain text, including rm -rf, a - b, C:\\x, http://x and session::new, and fields whose values can't be \
any, such as role:admin. With only fields, the newest messages are found.

With --unit turn, the results are turns, and a line in a pipe has: score, session, message of the user, time, project, turn, \
text of the user, answer or summary, addresses of both messages. `show ADDRESS --turn` shows one in full. `sync` and \
`embeddings backfill --turns` create the vectors of turns.

`show` accepts the address of a result, such as 3a7c1e90#14. In JSON, each result has its `address` and the \
`title` of its session. --group session adds `groups`, with the results of each session. If --max-chars cuts a message, \
`truncated` has the number of characters `shown` and the total (`of`).

Exits with 3 if nothing is found.

Examples:
  amplifier-sessions search                                as you type, on a terminal
  amplifier-sessions search connection pool exhausted
  amplifier-sessions search 'what did we decide about retries' --in assistant,thinking
  amplifier-sessions search ECONNRESET --mode full-text --in tool
  amplifier-sessions search 'is the cache safe' --group none
  amplifier-sessions search 'why did we drop redis' --unit turn
  amplifier-sessions search '\"connection pool\" time* -postgres role:assistant'
  amplifier-sessions search --exact 'Basket.java:12'
  amplifier-sessions search --file src/cart.rs rounding
  amplifier-sessions search -l -n 20 deadlock
  amplifier-sessions search 'git reset --hard'
  amplifier-sessions search -- --no-verify
  amplifier-sessions search rollback --tag incident --min-turns 3
  amplifier-sessions search timeout --project -home-ana-payments --since 2w --limit 3 --json")]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// List sessions with their best messages, or single messages [default: session on a terminal, else none]
    #[arg(long, value_name = "WHAT", conflicts_with = "superseded")]
    pub(crate) group: Option<GroupArg>,
    /// Find messages, or turns: what was asked, with the last answer or its summary
    #[arg(long, value_name = "UNIT", default_value = "message")]
    pub(crate) unit: ResultUnitArg,
    /// List sessions, one on a line: address, time of the last change, project, title
    #[arg(short, long, conflicts_with_all = ["group", "explain", "full", "superseded", "max_chars"])]
    pub(crate) list: bool,
    /// Maximum number of results, 1 to 1000; with --group session or --list, of sessions
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Balance of relevance and diversity, 0 to 1; 1 is relevance only
    #[arg(long, value_name = "X", default_value_t = 0.7, allow_negative_numbers = true)]
    pub(crate) mmr_lambda: f32,
    /// Minimum similarity of results found by meaning, -1 to 1
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) min_similarity: Option<f32>,
    /// Explain the rank of each result: its ranks by words and by meaning, and the parts of its relevance
    #[arg(long, conflicts_with_all = ["group", "superseded"])]
    pub(crate) explain: bool,
    /// Show complete messages, each up to --max-chars
    #[arg(long)]
    pub(crate) full: bool,
    /// Search only superseded messages, which are no longer in their files, by words
    #[arg(long, conflicts_with_all = ["min_similarity", "budget"])]
    pub(crate) superseded: bool,
    /// Do not read recent changes in ~/.amplifier first; by default they are read if that takes less than a second
    #[arg(long)]
    pub(crate) no_refresh: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// The kind of thing that `search` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultUnitArg {
    Message,
    Turn,
}

#[cfg(test)]
mod tests {
    use amplifier_session_storage::model::{ContentType, ContentTypes};
    use clap::Parser as _;

    use crate::args::{Cli, Command, query::ModeArg};

    #[test]
    fn slugs_with_a_hyphen_and_negative_numbers_are_values() {
        let typed =
            ["x", "search", "a", "b", "--project", "-home-ana", "--min-similarity", "-0.5", "--limit", "3"];
        let Command::Search(search) = Cli::parse_from(typed).command else { panic!("not a search") };
        assert_eq!(search.query.text(), "a b");
        assert_eq!(search.query.filter.place.projects, ["-home-ana"]);
        assert_eq!(search.min_similarity, Some(-0.5));
        assert_eq!(search.limit, 3);
    }

    #[test]
    fn a_query_may_begin_with_a_hyphen_but_a_mistyped_option_is_an_error() {
        let query = |typed: &[&str]| match Cli::try_parse_from([&["x", "search"], typed].concat()) {
            Ok(Cli { command: Command::Search(search), .. }) if search.query.is_given() => {
                Some((search.query.text(), search.limit))
            }
            _ => None,
        };
        assert_eq!(query(&["- That", "--limit", "3"]), Some(("- That".to_owned(), 3)));
        assert_eq!(query(&["--limit", "3", "-1", "%"]), Some(("-1 %".to_owned(), 3)));
        assert_eq!(query(&["--limit", "3", " --flag"]), Some((" --flag".to_owned(), 3)));
        assert_eq!(query(&["--limt", "3", "a"]), None);
        assert_eq!(query(&["a", "--limt", "3"]), None);
        assert_eq!(query(&["--limit", "3", "--", "--mode"]), Some(("--mode".to_owned(), 3)));
        assert_eq!(
            query(&["the", "flag", "--", "--mode", "-x"]),
            Some(("the flag --mode -x".to_owned(), 10))
        );
        assert_eq!(query(&[]), None);
    }

    #[test]
    fn content_types_come_as_a_list() {
        let typed = ["x", "search", "a", "--in", "user,tool", "--in", "system", "--mode", "full_text"];
        let Command::Search(search) = Cli::parse_from(typed).command else { panic!("not a search") };
        let found = search.query.content_types.into_iter().fold(ContentTypes::NONE, ContentTypes::union);
        assert_eq!(
            found.iter().map(ContentType::as_str).collect::<Vec<_>>(),
            ["user_query", "tool_output", "system", "tool_call"]
        );
        assert_eq!(search.query.mode, ModeArg::FullText);
        assert!(Cli::try_parse_from(["x", "search", "a", "--in", "answers"]).is_err());
    }
}
