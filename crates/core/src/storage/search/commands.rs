//! Queries that are commands: the messages that ran them.

use super::{judging::Judged, reading::ReadMessages};
use crate::{
    Result,
    model::{ContentType, MessageRef},
    search::{RankedText, SearchOptions, TypedCommand},
    storage::store::TranscriptSearch,
};

/// At most this many tool calls are read to find those that run a command.
const MOST_CALLS: usize = 100;

/// This many are read if the query is short, but has no option. If one of them runs it, the others are read too.
const FIRST_CALLS: usize = 10;

/// How much a tool call gains that runs the command, relative to the best text. It is large enough to put such calls
/// above texts that also match by meaning.
const RUN: f32 = 4.0;

impl TranscriptSearch<'_> {
    /// If the query is a command, lets the tool calls that ran it rank above texts that mention it, such as edits of
    /// scripts.
    pub(super) async fn lift_commands(
        self,
        options: &SearchOptions,
        judged: &mut Judged,
        reading: &mut ReadMessages,
    ) -> Result<()> {
        let Some(command) = TypedCommand::of(&options.query) else { return Ok(()) };
        let runs = |text: &RankedText, reading: &ReadMessages| {
            let is_call = text.candidate.content_type == ContentType::ToolCall;
            let read = reading.get(&text.candidate.message_ref).filter(|_| is_call);
            read.is_some_and(|read| {
                let calls = read.line.called_tools();
                calls.iter().flat_map(|call| call.commands()).any(|script| command.is_run_by(&script))
            })
        };
        let is_call = |text: &&RankedText| text.candidate.content_type == ContentType::ToolCall;
        let calls = judged.texts.iter().filter(is_call).map(|text| text.candidate.message_ref.clone());
        let calls: Vec<MessageRef> = calls.take(MOST_CALLS).collect();
        let first = match (command.has_option(), command.is_short()) {
            (true, _) => MOST_CALLS,
            (false, true) => FIRST_CALLS,
            (false, false) => 0,
        };
        reading.read(self.store, calls.iter().take(first).cloned()).await?;
        if !judged.texts.iter().any(|text| runs(text, reading)) {
            return Ok(());
        }
        reading.read(self.store, calls).await?;
        let best = judged.texts.iter().map(|text| text.score).fold(0.0, f32::max);
        for text in judged.texts.iter_mut().filter(|text| runs(text, reading)) {
            text.score += RUN * best;
        }
        Ok(())
    }
}
