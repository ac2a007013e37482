//! The turns that messages begin, with the lines that they consist of.

use std::collections::{BTreeMap, BTreeSet};

use super::{TurnCollector, TurnTexts};
use crate::{
    Result,
    backend::{SequenceRange, TurnLine, TurnLines},
    embedding::EmbeddingProvider,
    model::{Digest, Message, SessionKey},
    storage::store::StoreContext,
};

/// Number of messages read at a time. If the next turn is farther away, the messages in between are not read.
const MESSAGES_A_PAGE: usize = 256;

/// The kinds of provider, as they are stored: a model on this machine, or a service.
pub(in crate::storage) const PROVIDERS: [&str; 2] = ["local", "service"];

/// The kind of a provider.
pub(in crate::storage) fn provider_name(provider: &dyn EmbeddingProvider) -> &'static str {
    let [local, service] = PROVIDERS;
    if provider.is_local() { local } else { service }
}

/// A turn, by the message that begins it.
#[derive(Debug)]
pub(in crate::storage) struct BegunTurn {
    /// The digest of its lines: see [`TurnLines`].
    pub(in crate::storage) lines: Digest,
    /// Its texts, if the message that begins it has a text.
    pub(in crate::storage) texts: Option<TurnTexts>,
}

/// Groups the messages of a session into turns with their lines. The messages must come in order.
#[derive(Debug, Default)]
pub(in crate::storage) struct TurnReader {
    /// The messages of the turn that is being read.
    run: Vec<TurnLine>,
    collector: TurnCollector,
}

impl TurnReader {
    /// Adds the next message. Returns the turn before it, with the message that begins it, if that is complete.
    pub(in crate::storage) fn push(&mut self, message: Message) -> Option<(u32, BegunTurn)> {
        let Message { sequence, turn, role, digest, .. } = message;
        let is_next = self.run.last().is_some_and(|line| line.turn != turn);
        let texts = self.collector.push(message);
        let complete = if is_next { self.end_run(texts) } else { None };
        self.run.push(TurnLine { sequence, turn, role, digest });
        complete
    }

    /// The last turn.
    pub(in crate::storage) fn finish(mut self) -> Option<(u32, BegunTurn)> {
        let texts = std::mem::take(&mut self.collector).finish();
        self.end_run(texts)
    }

    fn end_run(&mut self, texts: Option<TurnTexts>) -> Option<(u32, BegunTurn)> {
        let lines = TurnLines::of(std::mem::take(&mut self.run));
        let first = lines.firsts().next()?;
        let texts = texts.filter(|texts| texts.user.sequence == first);
        Some((first, BegunTurn { lines: lines.begun_by(first)?, texts }))
    }

    /// Whether one of these messages belongs to the turn that is being read.
    fn reads_one_of(&self, messages: &BTreeSet<u32>) -> bool {
        self.run.iter().any(|line| messages.contains(&line.sequence))
    }
}

impl StoreContext {
    /// The turns that these messages of a session begin, by sequence. Leaves out messages that begin none.
    pub(in crate::storage) async fn turns_begun(
        &self,
        key: &SessionKey,
        messages: &BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, BegunTurn>> {
        let mut found = BTreeMap::new();
        let mut next = messages.first().copied();
        while let Some(wanted) = next {
            // Appending a line to a long session must not cost more than to a short one.
            let start = self.start_of_turn(key, wanted).await?;
            let (read, end) = self.read_turns_from(key, start, messages).await?;
            found.extend(read.into_iter().filter(|(first, _)| messages.contains(first)));
            next = messages.range(end.max(wanted.saturating_add(1))..).next().copied();
        }
        Ok(found)
    }

    /// Reads turns from the first message of one on, until no further message of `wanted` is near. Also returns where
    /// it stopped.
    async fn read_turns_from(
        &self,
        key: &SessionKey,
        start: u32,
        wanted: &BTreeSet<u32>,
    ) -> Result<(BTreeMap<u32, BegunTurn>, u32)> {
        let (mut reader, mut found) = (TurnReader::default(), BTreeMap::new());
        let mut range = SequenceRange { start, limit: MESSAGES_A_PAGE };
        loop {
            let page: Vec<Message> = self.readable_page(key, range, &mut Vec::new()).await?;
            let Some(last) = page.last() else {
                found.extend(reader.finish());
                return Ok((found, u32::MAX));
            };
            range.start = last.sequence.saturating_add(1);
            found.extend(page.into_iter().filter_map(|message| reader.push(message)));
            let near = range.start.saturating_add(MESSAGES_A_PAGE as u32);
            if !reader.reads_one_of(wanted) && wanted.range(range.start..near).next().is_none() {
                return Ok((found, range.start));
            }
        }
    }

    /// The sequence of the first message of the turn with this message, or 0 if there are few messages before it.
    async fn start_of_turn(&self, key: &SessionKey, sequence: u32) -> Result<u32> {
        let mut before = 16_u32;
        if sequence <= before {
            return Ok(0);
        }
        loop {
            let start = sequence.saturating_sub(before);
            let count = (sequence - start) as usize + 1;
            let rows = self.readable_rows::<Message>(key, start, count).await?.rows;
            let Some(last) = rows.last() else { return Ok(sequence) };
            let of_turn = rows.iter().rev().take_while(|message| message.turn == last.turn);
            let first = of_turn.last().map_or(sequence, |message| message.sequence);
            if start == 0 || rows.first().is_some_and(|before| before.sequence < first) {
                return Ok(first);
            }
            before = before.saturating_mul(4);
        }
    }
}
