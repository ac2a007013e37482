//! Masks secrets in what is read, for readers that must not learn them: see
//! [`SessionStorage::with_masked_reads`](super::SessionStorage::with_masked_reads).

use std::borrow::Cow;

use serde_json::Value;

use super::{damage::Readable, store::StoreContext, turns::Turn};
use crate::{
    Result, blocking,
    content::{Certainty, IgnoredSecrets, Redactor, mask_line},
    model::{Event, Message, RawJson, Session},
};

impl StoreContext {
    /// The redactor for what is read, if that is masked.
    pub(super) fn read_redactor(&self) -> Option<&dyn Redactor> {
        self.redactor.as_deref().filter(|_| self.masks_reads)
    }

    /// The messages with their secrets masked, if that is set.
    ///
    /// # Errors
    ///
    /// Errors of the redactor. The messages must not be shown then.
    pub(super) async fn masked_messages(&self, mut found: Readable<Message>) -> Result<Readable<Message>> {
        let Some(redactor) = self.redactor.clone().filter(|_| self.masks_reads) else { return Ok(found) };
        // Lines may be large.
        let masked = move || -> Result<Readable<Message>> {
            for message in &mut found.rows {
                if let Some(raw) = masked_line(redactor.as_ref(), &message.raw)? {
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
        let Some(redactor) = self.read_redactor() else { return Ok(found) };
        for event in &mut found.rows {
            let summary = RawJson::new(Value::Object(event.summary.clone()).to_string());
            if let Some(masked) = masked_line(redactor, &summary)? {
                event.summary = masked.parse_object()?;
            }
            for value in event.summary.values_mut() {
                if let Value::String(text) = value {
                    *text = whole_words(text).into_owned();
                }
            }
        }
        Ok(found)
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
        if self.read_redactor().is_some() {
            for text in [&mut session.name, &mut session.description, &mut session.first_prompt] {
                let masked = text.as_deref().map(|text| self.masked_text(text)).transpose()?;
                *text = masked.map(Cow::into_owned);
            }
            session.first_prompt = session.first_prompt.as_deref().map(|text| whole_words(text).into_owned());
        }
        Ok(())
    }

    /// The turn with the secrets in its texts masked, if that is set.
    ///
    /// # Errors
    ///
    /// As [`Self::masked_messages`].
    pub(super) fn masked_turn(&self, mut turn: Turn) -> Result<Turn> {
        if self.read_redactor().is_some() {
            let answer = turn.assistant.as_mut().map(|side| &mut side.text);
            for text in [Some(&mut turn.user.text), answer, turn.summary.as_mut()].into_iter().flatten() {
                *text = self.masked_text(text)?.into_owned();
            }
        }
        Ok(turn)
    }

    /// The line with its secrets masked, if that is set; `None` if it has none.
    ///
    /// # Errors
    ///
    /// As [`Self::masked_messages`].
    pub(super) fn masked_line(&self, line: &RawJson) -> Result<Option<RawJson>> {
        self.read_redactor().map_or(Ok(None), |redactor| masked_line(redactor, line))
    }

    /// The text with its secrets masked, if that is set. Characters keep their places.
    ///
    /// # Errors
    ///
    /// As [`Self::masked_messages`].
    pub(super) fn masked_text<'a>(&self, text: &'a str) -> Result<Cow<'a, str>> {
        match self.read_redactor() {
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

/// The line with its secrets masked; `None` if it has none. Findings that a person judged to be harmless are masked too:
/// that person is not the reader.
fn masked_line(redactor: &dyn Redactor, line: &RawJson) -> Result<Option<RawJson>> {
    let masked = mask_line(redactor, line, Certainty::Likely, &IgnoredSecrets::default())?;
    Ok(masked.map(|(line, _)| line))
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
