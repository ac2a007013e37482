//! `show`.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::{ContextArgs, LimitArgs, PositionArgs, TurnArgs, at_least_one, number};
use crate::failure::Failure;

/// Options of pages, which turns and contexts do not have.
const PAGE_OPTIONS: [&str; 4] = ["from", "limit", "events", "superseded"];

/// Options of everything that --raw and --command do not print.
const OTHER_OPTIONS: [&str; 14] = [
    "from",
    "limit",
    "turn",
    "context",
    "before",
    "after",
    "message",
    "full",
    "no_thinking",
    "no_tools",
    "events",
    "superseded",
    "max_chars",
    "budget",
];

/// Show the conversation of a session, or a part of it
#[derive(Debug, Args)]
#[command(long_about = "\
Shows the details of a session and its conversation, a page at a time: turns, speakers, thinking, tool calls and tool output. \
A tool call is one line with its most informative argument, and tool output is cut after a few lines; --full shows both \
completely: commands with their line breaks, edits as removed and added lines, and other arguments one per line. On a \
terminal, text is wrapped; code, commands and edits are not.

A session is named by its id, a unique prefix of the id, or `latest` for the most recently updated one. An address such as \
3a7c1e90#14, as printed by `search`, names a message. It is shown alone and in full, or together with the following messages \
if --limit is given, or together with the messages around it if --context is given. --command prints only the commands of \
its tool calls, and --raw its line of the transcript. --editor opens what would be printed in an editor.

With --turn N, shows the two sides of one turn, without tool calls and thinking: the complete text of the user, the complete \
last text of the assistant, and the summary if there is one. With --turn alone, shows the turn of the message that the address \
names. With --turn N --context, shows all messages of the turn, including its tool calls, and the turns around it. Turns are \
counted from 1 and messages from 0.

--before or --after alone keeps the default of the other side: --before 2 shows 3 messages after the message, or 1 turn after \
the turn.

With --events, shows the event log of the session; `events` finds events in all sessions. An address such as \
3a7c1e90_evt_14, as printed by `events`, names an event, which is shown alone and in full.")]
#[command(after_long_help = "\
JSON has complete messages, unless --max-chars or --budget cuts them. `truncated` then has the number of characters `shown` \
and the total (`of`), and `left_out` the number of messages that do not fit into the budget.

With --turn, JSON has the ids of both messages, where the summary comes from, and what was embedded of the turn \
(`embedding`): the text, its SHA-256 and the model.

Exits with 3 if there is no such message, turn or event, if the page is beyond the end, or with --command if the message has no \
command.

--raw prints the line byte for byte, and --command the commands unchanged; on a terminal, control characters are replaced.

Examples:
  amplifier-sessions show 3a7c1e90
  amplifier-sessions show 3a7c1e90#14
  amplifier-sessions show 3a7c1e90#14 --command
  amplifier-sessions show 3a7c1e90#14 --raw | jq .
  amplifier-sessions show 3a7c1e90#14 --editor
  amplifier-sessions show 3a7c1e90#14 --context
  amplifier-sessions show 3a7c1e90#14 --before 5 --after 0
  amplifier-sessions show 3a7c1e90 --turn 2
  amplifier-sessions show 3a7c1e90 --turn 2 --context
  amplifier-sessions show 3a7c1e90 --turn 2 --before 0 --after 0
  amplifier-sessions show 3a7c1e90#14 --turn
  amplifier-sessions show latest --from 40
  amplifier-sessions show 3a7c1e90 --no-thinking --no-tools
  amplifier-sessions show 3a7c1e90 --from 40 --limit 10 --full
  amplifier-sessions show 3a7c1e90 --json --budget 8000
  amplifier-sessions show 3a7c1e90 --events --json")]
pub(crate) struct ShowArgs {
    /// The session, a message such as 3a7c1e90#14, or an event such as 3a7c1e90_evt_14
    #[arg(value_name = "SESSION", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) session: String,
    /// The first message (or event, with --events), counted from 0
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) from: Option<u32>,
    /// Maximum number of messages (or events) [default: 100, or 1 if the address names one]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    pub(crate) limit: Option<usize>,
    /// Show one turn: what was asked, and the last answer; without N, the turn of the message
    #[arg(long, value_name = "N", value_parser = turn_number, conflicts_with_all = PAGE_OPTIONS)]
    pub(crate) turn: Option<Option<u32>>,
    /// Show the message with 3 messages before and after it; with --turn N, all of the turn with 1 turn before and after it
    #[arg(long, conflicts_with_all = PAGE_OPTIONS)]
    pub(crate) context: bool,
    /// As --context, with this number of messages (or turns) before it
    #[arg(long, value_name = "N", value_parser = number::<u32>, conflicts_with_all = PAGE_OPTIONS)]
    pub(crate) before: Option<u32>,
    /// As --context, with this number of messages (or turns) after it
    #[arg(long, value_name = "N", value_parser = number::<u32>, conflicts_with_all = PAGE_OPTIONS)]
    pub(crate) after: Option<u32>,
    // An earlier form of SESSION#N --context.
    #[arg(long, value_name = "N", hide = true, conflicts_with = "turn", conflicts_with_all = PAGE_OPTIONS)]
    pub(crate) message: Option<u32>,
    /// Show complete tool calls and tool output (and the original lines of events)
    #[arg(long)]
    pub(crate) full: bool,
    /// Print only the line of the message (or event) as it is stored
    #[arg(long, conflicts_with_all = OTHER_OPTIONS, conflicts_with = "command")]
    pub(crate) raw: bool,
    /// Print only the commands of the message's tool calls
    #[arg(long, conflicts_with_all = OTHER_OPTIONS)]
    pub(crate) command: bool,
    /// Open it in an editor ($VISUAL, $EDITOR or vi); changes are not stored
    #[arg(long)]
    pub(crate) editor: bool,
    /// Leave out thinking
    #[arg(long, conflicts_with = "events")]
    pub(crate) no_thinking: bool,
    /// Leave out tool calls and their output
    #[arg(long, conflicts_with = "events")]
    pub(crate) no_tools: bool,
    /// Show the event log instead of the conversation
    #[arg(long, conflicts_with_all = ["max_chars", "budget"])]
    pub(crate) events: bool,
    /// Show only superseded messages (or events, with --events), which are no longer in the files of the session
    #[arg(long, conflicts_with = "budget")]
    pub(crate) superseded: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

fn turn_number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "must be a number; without one, --turn comes after the session".to_owned())
}

/// The part of a session to show.
#[derive(Debug)]
pub(crate) enum ShownPart {
    /// A page of the conversation or the event log, or a single line.
    Page(ShowArgs),
    /// A line as it is stored, or its commands.
    Line(ShowArgs),
    Turn(TurnArgs),
    Context(ContextArgs),
}

impl ShowArgs {
    /// The name of a file for the answer.
    pub(crate) fn file_name(&self, is_json: bool) -> String {
        let ending = match self {
            Self { command: true, .. } => "sh",
            Self { raw: true, .. } => "json",
            _ if is_json => "json",
            _ => "md",
        };
        format!("{}.{ending}", self.session)
    }

    /// The part that the options select.
    pub(crate) fn part(self) -> Result<ShownPart, Failure> {
        if self.raw || self.command {
            return Ok(ShownPart::Line(self));
        }
        if !self.is_context() {
            let Some(turn) = self.turn else { return Ok(ShownPart::Page(self)) };
            if self.limits.is_given() {
                let message = "--turn shows a turn in full, without --max-chars and --budget";
                return Err(Failure::wrong_use(message, "add --context to show all messages of the turn"));
            }
            if self.full || self.no_thinking || self.no_tools {
                let message = "--turn shows a turn without tool calls and thinking, so --full, --no-tools and \
                               --no-thinking have no effect";
                return Err(Failure::wrong_use(message, "add --context to show all messages of the turn"));
            }
            return Ok(ShownPart::Turn(TurnArgs { session: self.session, turn }));
        }
        if self.turn == Some(None) {
            let message = "with --context, --turn needs the number of the turn";
            let hint = "pass --turn N, or omit --turn to show the messages around a message";
            return Err(Failure::wrong_use(message, hint));
        }
        let Self { session, turn, before, after, message, full, no_thinking, no_tools, limits, .. } = self;
        let position = PositionArgs { turn: turn.flatten(), message };
        Ok(ShownPart::Context(ContextArgs {
            session,
            position,
            before,
            after,
            full,
            no_thinking,
            no_tools,
            limits,
        }))
    }

    fn is_context(&self) -> bool {
        self.context || self.before.is_some() || self.after.is_some() || self.message.is_some()
    }
}
