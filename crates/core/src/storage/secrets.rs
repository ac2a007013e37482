//! Lists the secrets in stored lines.

use futures_util::{StreamExt as _, stream};
use serde::Serialize;

use super::SessionStorage;
use crate::{
    Error, ErrorKind, Result, Scope,
    backend::SequenceRange,
    blocking,
    content::{SecretSpan, secrets_in_line},
    model::{DamagedRow, Event, Message, ProjectSlug, RawJson, SessionId, UserId},
};

/// Number of messages, and of events, searched at a time.
const MESSAGES: usize = 500;
const EVENTS: usize = 500;
/// Number of event lines read at a time: a line may have megabytes.
const LINES: usize = 32;

/// Number of sessions searched at a time: one is read while another is searched.
const AT_ONCE: usize = 4;

/// The minimum length of a secret whose beginning is shown, and the number of characters shown of it.
const SHOWN_FROM: usize = 16;
const SHOWN: usize = 4;

/// The kind of data in which a secret was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretIn {
    /// A message.
    Message,
    /// An event.
    Event,
    /// A metadata file.
    Metadata,
}

/// A secret in a stored line, without the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredSecret {
    /// The kind of data that contains it.
    pub kind: SecretIn,
    /// The file that the line is from.
    pub file: String,
    /// The sequence of the message or event.
    pub sequence: Option<u32>,
    /// The line number in the file. For messages and events, only valid lines are counted, as if they followed each
    /// other directly.
    pub line: u64,
    /// The rule that found it.
    pub rule: String,
    /// Its range in the line, in characters.
    pub span: (u64, u64),
    /// Its first characters, if they do not reveal it, followed by `…`.
    pub shown: String,
}

/// The secrets of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionSecrets {
    /// The owner.
    pub user_id: UserId,
    /// The id.
    pub session_id: SessionId,
    /// The project.
    pub project_slug: ProjectSlug,
    /// The number of secrets.
    pub count: u64,
    /// The secrets: first those in the metadata, then those in messages, then those in events.
    pub secrets: Vec<StoredSecret>,
    /// Rows that can't be read.
    #[serde(skip)]
    pub damaged: Vec<DamagedRow>,
}

/// A line to search.
struct Searched {
    kind: SecretIn,
    file: String,
    sequence: Option<u32>,
    raw: RawJson,
}

impl SessionStorage {
    /// Finds the secrets that are stored in a session, using the rules for texts that are sent to other machines. Reads
    /// all of its lines. Does not find secrets that were masked when they were stored.
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; `Unsupported` without a redactor; errors of the backend.
    pub async fn session_secrets(&self, scope: &Scope, session_id: &SessionId) -> Result<SessionSecrets> {
        let session = self.existing_session(scope, session_id).await?;
        let key = session.key();
        let mut found = SessionSecrets {
            user_id: session.user_id,
            session_id: session.session_id,
            project_slug: session.project_slug,
            count: 0,
            secrets: Vec::new(),
            damaged: Vec::new(),
        };
        let files =
            self.backend.get_session(&key).await?.map(|stored| stored.metadata_files).unwrap_or_default();
        let metadata = files.into_iter().map(|file| Searched {
            kind: SecretIn::Metadata,
            file: file.name,
            sequence: None,
            raw: file.raw,
        });
        self.search_lines(metadata.collect(), &mut found).await?;
        let mut range = SequenceRange { start: 0, limit: MESSAGES };
        loop {
            let page: Vec<Message> = self.readable_page(&key, range, &mut found.damaged).await?;
            let Some(last) = page.last() else { break };
            range.start = last.sequence.saturating_add(1);
            let lines = page.into_iter().map(|message| Searched {
                kind: SecretIn::Message,
                file: "transcript.jsonl".to_owned(),
                sequence: Some(message.sequence),
                raw: message.raw,
            });
            self.search_lines(lines.collect(), &mut found).await?;
        }
        range = SequenceRange { start: 0, limit: EVENTS };
        loop {
            let page: Vec<Event> = self.readable_page(&key, range, &mut found.damaged).await?;
            let Some(last) = page.last() else { break };
            range.start = last.sequence.saturating_add(1);
            for events in page.chunks(LINES) {
                let mut payloads = self.readable_payloads(&key, events, &mut found.damaged).await?;
                let line = |event: &Event| {
                    Some(Searched {
                        kind: SecretIn::Event,
                        file: "events.jsonl".to_owned(),
                        sequence: Some(event.sequence),
                        raw: payloads.remove(&event.sequence).flatten()?,
                    })
                };
                let lines = events.iter().filter_map(line).collect();
                self.search_lines(lines, &mut found).await?;
            }
        }
        found.count = found.secrets.len() as u64;
        Ok(found)
    }

    /// [`SessionStorage::session_secrets`] of several sessions, in order. `on_searched` is called after each.
    ///
    /// # Errors
    ///
    /// As [`SessionStorage::session_secrets`].
    pub async fn secrets_of_sessions(
        &self,
        scope: &Scope,
        sessions: &[SessionId],
        on_searched: &mut (dyn FnMut() + Send),
    ) -> Result<Vec<SessionSecrets>> {
        let searches = sessions.iter().map(|session| self.session_secrets(scope, session));
        let mut searching = stream::iter(searches.collect::<Vec<_>>()).buffered(AT_ONCE);
        let mut found = Vec::with_capacity(sessions.len());
        while let Some(secrets) = searching.next().await {
            found.push(secrets?);
            on_searched();
        }
        Ok(found)
    }

    /// Adds the secrets in some lines.
    async fn search_lines(&self, lines: Vec<Searched>, found: &mut SessionSecrets) -> Result<()> {
        let Some(redactor) = self.redactor.clone() else {
            let message = "this build of the library can't find secrets";
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        let search = move || -> Result<Vec<StoredSecret>> {
            let mut secrets = Vec::new();
            for line in lines {
                let spans = secrets_in_line(redactor.as_ref(), &line.raw)?;
                secrets.extend(stored_secrets(&line, spans));
            }
            Ok(secrets)
        };
        found.secrets.extend(blocking(search).await??);
        Ok(())
    }
}

/// The secrets at these places of a line, which are in order. A line may have any number of secrets, so the text between
/// them is counted once.
fn stored_secrets(line: &Searched, spans: Vec<SecretSpan>) -> Vec<StoredSecret> {
    let bytes = line.raw.as_bytes();
    let part = |range| String::from_utf8_lossy(bytes.get(range).unwrap_or_default());
    let (mut done, mut chars, mut breaks) = (0, 0, 0);
    let secret = |SecretSpan { rule, span }| {
        let before = part(done..span.start);
        chars += before.chars().count() as u64;
        breaks += before.bytes().filter(|byte| *byte == b'\n').count() as u64;
        done = span.start;
        let secret = part(span);
        StoredSecret {
            kind: line.kind,
            file: line.file.clone(),
            sequence: line.sequence,
            line: line.sequence.map_or(breaks, u64::from) + 1,
            rule,
            span: (chars, chars + secret.chars().count() as u64),
            shown: shown(&secret),
        }
    };
    spans.into_iter().map(secret).collect()
}

/// The beginning of a long secret, which mostly shows the kind of key, and never all of it.
fn shown(secret: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let beginning = match secret.chars().count() {
        0..SHOWN_FROM => String::new(),
        _ => secret.chars().take(SHOWN).take_while(is_plain).collect(),
    };
    beginning + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(file: &str, spans: &[(usize, usize)]) -> Vec<(u64, (u64, u64))> {
        let line = Searched {
            kind: SecretIn::Metadata,
            file: "metadata.json".to_owned(),
            sequence: None,
            raw: RawJson::from(file),
        };
        let span = |(start, end): &(usize, usize)| SecretSpan { rule: "r".to_owned(), span: *start..*end };
        let found = stored_secrets(&line, spans.iter().map(span).collect());
        found.into_iter().map(|secret| (secret.line, secret.span)).collect()
    }

    #[test]
    fn places_count_lines_and_characters() {
        assert_eq!(
            places("é\nabc\n\nd", &[(0, 2), (3, 5), (5, 6), (8, 9)]),
            [(1, (0, 1)), (2, (2, 4)), (2, (4, 5)), (4, (7, 8))]
        );
    }

    /// Takes hours if the text before each secret is counted again.
    #[test]
    fn a_line_may_consist_of_secrets() {
        const LENGTH: usize = 16;
        let file = "sk-a1b2c3d4e5f6\n".repeat(400_000);
        let spans: Vec<_> = (0..400_000).map(|at| (at * LENGTH, at * LENGTH + 15)).collect();
        assert_eq!(places(&file, &spans).last(), Some(&(400_000, (6_399_984, 6_399_999))));
    }

    #[test]
    fn only_the_beginning_of_a_long_secret_is_shown() {
        for (secret, expected) in [
            ("sk-a1b2c3d4e5f6g7h8", "sk-a…"),
            ("hunter2", "…"),
            ("pa\"ss phrase with words", "pa…"),
            ("", "…"),
        ] {
            assert_eq!(shown(secret), expected);
        }
    }
}
