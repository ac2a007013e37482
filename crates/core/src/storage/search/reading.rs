//! The messages that a search reads, each once.

use std::collections::{HashMap, HashSet};

use crate::{
    Result,
    content::{ExtractedText, MessageLine},
    model::{ContentType, DamagedRow, Message, MessageRef},
    search::{Checks, SearchOptions},
    storage::{damage::Readable, store::StoreContext},
};

/// A message with its texts.
#[derive(Debug)]
pub(in crate::storage) struct ReadMessage {
    pub(in crate::storage) message: Message,
    pub(in crate::storage) line: MessageLine,
    pub(in crate::storage) texts: Vec<ExtractedText>,
}

impl ReadMessage {
    fn new(message: Message) -> Self {
        let line = message.line();
        let texts = line.texts();
        Self { message, line, texts }
    }

    /// Its text of a content type; empty if it has none.
    pub(in crate::storage) fn text(&self, content_type: ContentType) -> &str {
        let text = self.texts.iter().find(|text| text.content_type == content_type);
        text.map_or("", |text| &text.text)
    }
}

/// Messages that were read, and those that can't be read. With the conditions of a search, only those that meet them.
#[derive(Debug, Default)]
pub(in crate::storage) struct ReadMessages {
    messages: HashMap<MessageRef, ReadMessage>,
    requested: HashSet<MessageRef>,
    pub(in crate::storage) damaged: Vec<DamagedRow>,
    checks: Option<Checks>,
    unmet: HashSet<MessageRef>,
}

impl ReadMessages {
    /// Keeps only messages that meet the conditions of a search.
    pub(in crate::storage) fn checking(options: &SearchOptions) -> Self {
        Self { checks: Some(Checks::new(&options.conditions, options.content_types)), ..Self::default() }
    }

    /// Whether a message was read and does not meet the conditions.
    pub(in crate::storage) fn has_dropped(&self, message_ref: &MessageRef) -> bool {
        self.unmet.contains(message_ref)
    }

    /// Whether any message was dropped.
    pub(in crate::storage) fn has_dropped_any(&self) -> bool {
        !self.unmet.is_empty()
    }

    /// Reads messages unless that was tried before. Messages that were removed in the meantime are left out.
    pub(in crate::storage) async fn read(
        &mut self,
        store: &StoreContext,
        message_refs: impl IntoIterator<Item = MessageRef>,
    ) -> Result<()> {
        let new = message_refs.into_iter().filter(|message_ref| self.requested.insert(message_ref.clone()));
        let new: Vec<MessageRef> = new.collect();
        if new.is_empty() {
            return Ok(());
        }
        let Readable { rows, damaged } = store.readable_messages_at(new).await?;
        self.damaged.extend(damaged);
        for row in rows {
            let (message_ref, read) = (row.message_ref(), ReadMessage::new(row));
            if self.checks.as_mut().is_some_and(|checks| !checks.admit_texts(&read.line, &read.texts)) {
                self.unmet.insert(message_ref);
            } else {
                self.messages.insert(message_ref, read);
            }
        }
        Ok(())
    }

    pub(in crate::storage) fn get(&self, message_ref: &MessageRef) -> Option<&ReadMessage> {
        self.messages.get(message_ref)
    }
}
