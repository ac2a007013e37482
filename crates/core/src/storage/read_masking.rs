//! Masks secrets in what is read, for readers that must not learn them: see
//! [`SessionStorage::with_masked_reads`](super::SessionStorage::with_masked_reads) and
//! [`SessionStorage::with_masked_reads_of_others`](super::SessionStorage::with_masked_reads_of_others).

use std::borrow::Cow;

use serde_json::Value;

use super::{damage::Readable, events::EventLine, store::StoreContext, turns::Turn};
use crate::{
    Error, ErrorKind, Result, blocking,
    content::{Certainty, IgnoredSecrets, Redactor, mask_line},
    model::{Event, Message, RawJson, Session, UserId},
};

/// Whose secrets are masked in what is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum ReadMasking {
    #[default]
    Nobody,
    Everybody,
    /// Those of all others.
    Except(UserId),
}

impl ReadMasking {
    fn includes(&self, owner: &UserId) -> bool {
        match self {
            Self::Nobody => false,
            Self::Everybody => true,
            Self::Except(user) => user != owner,
        }
    }
}

impl StoreContext {
    /// Whether secrets of any sessions are masked in what is read.
    pub(super) fn masks_reads(&self) -> bool {
        self.redactor.is_some() && self.read_masking != ReadMasking::Nobody
    }

    /// The redactor for what is read of a user's sessions, if that is masked.
    fn read_redactor(&self, owner: &UserId) -> Option<&dyn Redactor> {
        self.redactor.as_deref().filter(|_| self.read_masking.includes(owner))
    }

    /// Checks that the rows of a user's sessions may be read as they are stored.
    ///
    /// # Errors
    ///
    /// `Unsupported` if secrets in them are to be masked.
    pub(super) fn check_unmasked(&self, owner: &UserId) -> Result<()> {
        match self.read_masking.includes(owner) {
            false => Ok(()),
            true => Err(Error::new(
                ErrorKind::Unsupported,
                "an export has secrets unmasked: only the owner of a session can export it",
            )),
        }
    }

    /// The messages with their secrets masked, if that is set.
    ///
    /// # Errors
    ///
    /// Errors of the redactor. The messages must not be shown then.
    pub(super) async fn masked_messages(&self, mut found: Readable<Message>) -> Result<Readable<Message>> {
        if !self.masks_reads() {
            return Ok(found);
        }
        let store = self.clone();
        // Lines may be large.
        let masked = move || -> Result<Readable<Message>> {
            for message in &mut found.rows {
                if let Some(raw) = store.masked_line(&message.user_id, &message.raw)? {
                    message.raw = raw;
                }
            }
            Ok(found)
        };
        blocking(masked).await?
    }

    /// The events with the secrets in their summaries masked, if that is set.
    ///
    /// # Errors
    ///
    /// As [`Self::masked_messages`].
    pub(super) fn masked_events(&self, mut found: Readable<Event>) -> Result<Readable<Event>> {
        found.rows.iter_mut().try_for_each(|event| self.mask_event(event))?;
        Ok(found)
    }

    /// The events and their lines with the secrets masked, if that is set.
    ///
    /// # Errors
    ///
    /// As [`Self::masked_messages`].
    pub(super) async fn masked_event_lines(
        &self,
        mut found: Readable<EventLine>,
    ) -> Result<Readable<EventLine>> {
        if !self.masks_reads() {
            return Ok(found);
        }
        let store = self.clone();
        let masked = move || -> Result<Readable<EventLine>> {
            for EventLine { event, raw } in &mut found.rows {
                store.mask_event(event)?;
                let line = raw.as_ref().map(|raw| store.masked_line(&event.user_id, raw)).transpose()?;
                *raw = line.flatten().or_else(|| raw.take());
            }
            Ok(found)
        };
        blocking(masked).await?
    }

    fn mask_event(&self, event: &mut Event) -> Result<()> {
        if self.read_redactor(&event.user_id).is_none() {
            return Ok(());
        }
        let summary = RawJson::new(Value::Object(event.summary.clone()).to_string());
        if let Some(masked) = self.masked_line(&event.user_id, &summary)? {
            event.summary = masked.parse_object()?;
        }
        for value in event.summary.values_mut() {
            if let Value::String(text) = value {
                *text = whole_words(text).into_owned();
            }
        }
        Ok(())
    }

    /// The sessions with the secrets in their titles and descriptions masked, if that is set.
    ///
    /// # Errors
    ///
    /// As [`Self::masked_messages`].
    pub(super) fn masked_sessions(&self, mut sessions: Vec<Session>) -> Result<Vec<Session>> {
        sessions.iter_mut().try_for_each(|session| self.mask_session(session))?;
        Ok(sessions)
    }

    /// [`Self::masked_sessions`] of one.
    pub(super) fn mask_session(&self, session: &mut Session) -> Result<()> {
        if self.read_redactor(&session.user_id).is_none() {
            return Ok(());
        }
        let owner = &session.user_id;
        for text in [&mut session.name, &mut session.description, &mut session.first_prompt] {
            let masked = text.as_deref().map(|text| self.masked_text(owner, text)).transpose()?;
            *text = masked.map(Cow::into_owned);
        }
        session.first_prompt = session.first_prompt.as_deref().map(|text| whole_words(text).into_owned());
        Ok(())
    }

    /// The turn with the secrets in its texts masked, if that is set.
    ///
    /// # Errors
    ///
    /// As [`Self::masked_messages`].
    pub(super) fn masked_turn(&self, mut turn: Turn) -> Result<Turn> {
        if self.read_redactor(&turn.user_id).is_some() {
            let answer = turn.assistant.as_mut().map(|side| &mut side.text);
            for text in [Some(&mut turn.user.text), answer, turn.summary.as_mut()].into_iter().flatten() {
                *text = self.masked_text(&turn.user_id, text)?.into_owned();
            }
        }
        Ok(turn)
    }

    /// The line with its secrets masked, if that is set; `None` if it has none. Findings that a person judged to be harmless
    /// are masked too: that person is not the reader.
    ///
    /// # Errors
    ///
    /// As [`Self::masked_messages`].
    pub(super) fn masked_line(&self, owner: &UserId, line: &RawJson) -> Result<Option<RawJson>> {
        let Some(redactor) = self.read_redactor(owner) else { return Ok(None) };
        let masked = mask_line(redactor, line, Certainty::Likely, &IgnoredSecrets::default())?;
        Ok(masked.map(|(line, _)| line))
    }

    /// The text with its secrets masked, if that is set. Characters keep their places.
    ///
    /// # Errors
    ///
    /// As [`Self::masked_messages`].
    pub(super) fn masked_text<'a>(&self, owner: &UserId, text: &'a str) -> Result<Cow<'a, str>> {
        match self.read_redactor(owner) {
            Some(redactor) => Ok(redactor.mask(text)?.text),
            None => Ok(Cow::Borrowed(text)),
        }
    }
}

/// A text that was cut when it was stored, without the word in which it was cut: that may be the beginning of a secret,
/// which no rule knows.
fn whole_words(text: &str) -> Cow<'_, str> {
    match text.strip_suffix('…') {
        // Scripts without spaces are no secrets.
        Some(cut) => Cow::Owned(format!("{}…", cut.trim_end_matches(|c: char| c.is_ascii_graphic()))),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::whole_words;

    #[test]
    fn a_word_that_was_cut_is_left_out() {
        assert_eq!(whole_words("the token ghp_a9Xk2…"), "the token …");
        assert_eq!(whole_words("見てください…"), "見てください…");
        assert_eq!(whole_words("the token"), "the token");
        assert_eq!(whole_words("…"), "…");
    }
}
