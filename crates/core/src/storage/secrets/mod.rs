//! Secrets in stored lines: lists them, masks them, and stores decisions about single ones.

mod at_rest;
mod judged;

use std::{cmp::Reverse, sync::Arc};

use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};

use super::{
    session_rows::SessionRows,
    store::{StoredSecrets, SupersededHistory},
    superseded::SupersededLine,
};
use crate::{
    ErrorKind, KnownPart, Result, Scope,
    backend::SupersededQuery,
    blocking,
    content::{Certainty, CleanTexts, IgnoredSecrets, SecretSpan, secrets_in_line},
    model::{
        DamagedRow, Digest, Event, LineKind, Message, ProjectSlug, RawJson, SessionId, SessionKey, Timestamp,
        UserId,
    },
    search::SessionFilter,
};

/// Number of event lines read at a time: a line may have megabytes.
const LINES: usize = 32;

/// Minimum number of sessions searched at a time: one is read while another is searched.
const AT_ONCE: usize = 4;

/// Number of characters shown before and after a secret.
const AROUND: usize = 40;

const TRANSCRIPT: &str = "transcript.jsonl";
const EVENT_LOG: &str = "events.jsonl";

/// The minimum length of a secret whose beginning is shown, and the number of characters shown of it.
const SHOWN_FROM: usize = 16;
const SHOWN: usize = 4;

/// The kind of data in which a secret was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct StoredSecret {
    /// The kind of data that contains it.
    pub kind: SecretIn,
    /// The file that the line is from.
    pub file: String,
    /// The sequence of the message or event.
    pub sequence: Option<u32>,
    /// When the line was superseded, if it was. Its file no longer contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_at: Option<Timestamp>,
    /// The line number in the file. For messages and events, only valid lines are counted, as if they followed each
    /// other directly.
    pub line: u64,
    /// How certain it is.
    pub certainty: Certainty,
    /// The rule that found it.
    pub rule: String,
    /// Its range in the line, in characters.
    pub span: (u64, u64),
    /// Its first characters, if they do not reveal it, followed by `…`.
    pub shown: String,
    /// The text around it, in which all secrets are masked.
    pub context: String,
    /// Identifies the finding in the store's list of ignored ones: see [`IgnoredSecrets::digest`].
    #[serde(skip)]
    pub digest: Digest,
    /// The digest of the line.
    #[serde(skip)]
    pub line_digest: Digest,
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
    /// The number of findings that are ignored, because a person has judged them to be harmless.
    pub ignored: u64,
    /// The secrets, the most certain first. Of the same certainty: first those in the metadata, then those in messages,
    /// then those in events, then those in superseded lines.
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
    superseded_at: Option<Timestamp>,
    raw: RawJson,
}

impl Searched {
    fn new(kind: SecretIn, file: &str, sequence: Option<u32>, raw: RawJson) -> Self {
        Self { kind, file: file.to_owned(), sequence, superseded_at: None, raw }
    }

    fn message(message: Message) -> Self {
        Self::new(SecretIn::Message, TRANSCRIPT, Some(message.sequence), message.raw)
    }

    fn superseded(line: SupersededLine) -> Self {
        let (kind, file) = match line.kind {
            LineKind::Message => (SecretIn::Message, TRANSCRIPT),
            LineKind::Event => (SecretIn::Event, EVENT_LOG),
        };
        let superseded_at = Some(line.superseded_at);
        Self { superseded_at, ..Self::new(kind, file, Some(line.sequence), line.raw) }
    }
}

/// What a search of a session has found, and what it needs to know.
struct SecretSearch {
    found: SessionSecrets,
    ignored: Arc<IgnoredSecrets>,
    clean: CleanTexts,
}

impl StoredSecrets<'_> {
    /// Finds the secrets that are stored in a session, using the rules for texts that are sent to other machines. Reads
    /// all of its lines, including superseded ones. Does not find secrets that were masked when they were stored, nor
    /// those that are [ignored](Self::ignore_secrets).
    ///
    /// # Errors
    ///
    /// `SessionNotFound` if the session is not in `scope`; `Unsupported` without a redactor; errors of the backend.
    pub async fn session_secrets(self, scope: &Scope, session_id: &SessionId) -> Result<SessionSecrets> {
        let ignored = Arc::new(self.ignored_secrets().await?);
        self.session_secrets_except(scope, session_id, ignored).await
    }

    /// As [`Self::session_secrets`], including those that are ignored.
    ///
    /// # Errors
    ///
    /// As [`Self::session_secrets`].
    pub async fn all_session_secrets(self, scope: &Scope, session_id: &SessionId) -> Result<SessionSecrets> {
        self.session_secrets_except(scope, session_id, Arc::default()).await
    }

    async fn session_secrets_except(
        self,
        scope: &Scope,
        session_id: &SessionId,
        ignored: Arc<IgnoredSecrets>,
    ) -> Result<SessionSecrets> {
        let session = self.store.existing_session(scope, session_id).await?;
        let key = session.key();
        let found = SessionSecrets {
            user_id: session.user_id,
            session_id: session.session_id,
            project_slug: session.project_slug,
            count: 0,
            ignored: 0,
            secrets: Vec::new(),
            damaged: Vec::new(),
        };
        let mut search = SecretSearch { found, ignored, clean: CleanTexts::default() };
        let files = self
            .store
            .backend
            .get_session(&key)
            .await?
            .map(|stored| stored.metadata_files)
            .unwrap_or_default();
        let metadata =
            files.into_iter().map(|file| Searched::new(SecretIn::Metadata, &file.name, None, file.raw));
        search = self.search_lines(metadata.collect(), search).await?;
        let rows = SessionRows::new(self.store, &key);
        let mut messages = rows.messages(0);
        while let Some(page) = messages.next().await? {
            search = self.search_lines(page.into_iter().map(Searched::message).collect(), search).await?;
        }
        search.found.damaged.append(&mut messages.damaged);
        let mut events = rows.events(0);
        while let Some(page) = events.next().await? {
            // Events are small, but their lines may have megabytes.
            for events in page.chunks(LINES) {
                let mut payloads =
                    self.store.readable_payloads(&key, events, &mut search.found.damaged).await?;
                let line = |event: &Event| {
                    let raw = payloads.remove(&event.sequence).flatten()?;
                    Some(Searched::new(SecretIn::Event, EVENT_LOG, Some(event.sequence), raw))
                };
                let lines = events.iter().filter_map(line).collect();
                search = self.search_lines(lines, search).await?;
            }
        }
        search.found.damaged.append(&mut events.damaged);
        let filter = SessionFilter::default().with_session(key.session_id.clone());
        let query = SupersededQuery::new(Scope::User(key.user_id.clone())).with_filter(filter);
        let mut superseded = SupersededHistory::new(self.store).superseded_lines(query);
        while let Some(lines) = superseded.next().await? {
            search = self.search_lines(lines.into_iter().map(Searched::superseded).collect(), search).await?;
        }
        let mut found = search.found;
        found.secrets.sort_by_key(|secret| Reverse(secret.certainty));
        found.count = found.secrets.len() as u64;
        Ok(found)
    }

    /// [`Self::session_secrets`] of several sessions, in order, without those that are deleted meanwhile. `on_searched` is
    /// called after each.
    ///
    /// # Errors
    ///
    /// `Unsupported` without a redactor; errors of the backend.
    pub async fn secrets_of_sessions(
        self,
        sessions: &[SessionKey],
        on_searched: &mut (dyn FnMut() + Send),
    ) -> Result<Vec<SessionSecrets>> {
        let ignored = Arc::new(self.ignored_secrets().await?);
        let searches = sessions.iter().map(|session| {
            let ignored = ignored.clone();
            async move {
                let owner = Scope::User(session.user_id.clone());
                self.session_secrets_except(&owner, &session.session_id, ignored).await
            }
        });
        let at_once = std::thread::available_parallelism().map_or(AT_ONCE, |cores| cores.get().max(AT_ONCE));
        let mut searching = stream::iter(searches.collect::<Vec<_>>()).buffered(at_once);
        let mut found = Vec::with_capacity(sessions.len());
        while let Some(secrets) = searching.next().await {
            match secrets {
                Ok(secrets) => found.push(secrets),
                Err(error) if error.kind() == ErrorKind::SessionNotFound => {}
                Err(error) => return Err(error),
            }
            on_searched();
        }
        Ok(found)
    }

    /// Adds the secrets in some lines.
    async fn search_lines(self, lines: Vec<Searched>, mut search: SecretSearch) -> Result<SecretSearch> {
        let redactor = self.redactor()?;
        blocking(move || {
            for line in lines {
                let spans = secrets_in_line(redactor.as_ref(), &line.raw, &mut search.clean)?;
                let secrets = stored_secrets(&line, spans);
                let all = secrets.len();
                let kept =
                    secrets.into_iter().filter(|secret| !search.ignored.contains_digest(&secret.digest));
                let before = search.found.secrets.len();
                search.found.secrets.extend(kept);
                search.found.ignored += (before + all - search.found.secrets.len()) as u64;
            }
            Ok(search)
        })
        .await?
    }
}

/// The secrets at these places of a line, which are in order. A line may have any number of secrets, so the text
/// between them is counted once.
fn stored_secrets(line: &Searched, spans: Vec<SecretSpan>) -> Vec<StoredSecret> {
    let bytes = line.raw.as_bytes();
    let part = |range| String::from_utf8_lossy(bytes.part(range));
    let (mut done, mut chars, mut breaks) = (0, 0, 0);
    let line_digest = Digest::of(if spans.is_empty() { &[] } else { bytes });
    let secret = |(at, SecretSpan { rule, certainty, span }): (usize, &SecretSpan)| {
        let before = part(done..span.start);
        chars += before.chars().count() as u64;
        breaks += before.bytes().filter(|byte| *byte == b'\n').count() as u64;
        done = span.start;
        let secret = part(span.clone());
        StoredSecret {
            kind: line.kind,
            file: line.file.clone(),
            sequence: line.sequence,
            superseded_at: line.superseded_at,
            line: line.sequence.map_or(breaks, u64::from) + 1,
            certainty: *certainty,
            digest: IgnoredSecrets::digest(rule, secret.as_bytes()),
            line_digest,
            rule: rule.clone(),
            span: (chars, chars + secret.chars().count() as u64),
            shown: shown(&secret),
            context: context(bytes, &spans, at),
        }
    };
    spans.iter().enumerate().map(secret).collect()
}

/// The text around the secret with this index, on one line. Other secrets in it are masked.
fn context(bytes: &[u8], spans: &[SecretSpan], at: usize) -> String {
    let Some(secret) = spans.get(at) else { return String::new() };
    let previous = at.checked_sub(1).and_then(|before| spans.get(before)).map_or(0, |other| other.span.end);
    let next = spans.get(at + 1).map_or(bytes.len(), |other| other.span.start);
    let start = previous.max(secret.span.start.saturating_sub(4 * AROUND));
    let end = next.min(secret.span.end.saturating_add(4 * AROUND));
    let text = |range| String::from_utf8_lossy(bytes.part(range)).into_owned();
    let (before, after) = (text(start..secret.span.start), text(secret.span.end..end));
    let skipped = before.chars().count().saturating_sub(AROUND);
    let before: String = before.chars().skip(skipped).collect();
    let after: String = after.chars().take(AROUND).collect();
    // As a person reads it: the escapes of line breaks and quotes would only take space.
    let shown = format!("{before}****{after}").replace("\\n", " ").replace("\\t", " ").replace("\\\"", "\"");
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
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
        let line = Searched::new(SecretIn::Metadata, "metadata.json", None, RawJson::from(file));
        let span = |(start, end): &(usize, usize)| SecretSpan {
            rule: "r".to_owned(),
            certainty: Certainty::Likely,
            span: *start..*end,
        };
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

    #[test]
    fn the_context_shows_no_secret() {
        let text = r#"{"content":"first\nkey one=AAAA and two=BBBB\" end"}"#;
        let span = |secret: &str| {
            let start = text.find(secret).unwrap();
            SecretSpan { rule: "r".to_owned(), certainty: Certainty::Likely, span: start..start + 4 }
        };
        let spans = [span("AAAA"), span("BBBB")];
        assert_eq!(context(text.as_bytes(), &spans, 0), r#"{"content":"first key one=**** and two="#);
        assert_eq!(context(text.as_bytes(), &spans, 1), r#"and two=****" end"}"#);
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
