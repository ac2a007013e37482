//! Sessions that are found by their titles.

use super::{judging::Judged, reading::ReadMessages};
use crate::{
    ErrorKind, Result, Scope,
    backend::{SessionQuery, TextCandidate},
    content::is_real,
    model::{ContentType, MessageRef, Role, Session},
    search::{RankedText, SearchMode, SearchOptions},
    storage::store::TranscriptSearch,
    text::{QueryWords, query_terms},
};

/// At most this many sessions, the newest, are found by their titles.
const MOST: usize = 5;

/// A longer query is a question: no title has all of its words.
const MOST_WORDS: usize = 8;

/// The first question is among this many messages of a session.
const BEGINNING: u32 = 10;

impl TranscriptSearch<'_> {
    /// If no message has all words of the query, adds the sessions that have them in their title or description. They
    /// are shown by their best candidate, or else by their first question.
    pub(super) async fn add_titled(
        self,
        scope: &Scope,
        options: &SearchOptions,
        words: &QueryWords,
        judged: &mut Judged,
        reading: &mut ReadMessages,
    ) -> Result<()> {
        // Conditions and types of content are about messages: a title stands for what the user asked.
        let is_possible = options.mode != SearchMode::Semantic
            && options.content_types.contains(ContentType::UserQuery)
            && options.conditions.is_empty()
            && (1..=MOST_WORDS).contains(&words.main_terms().count());
        if judged.has_all_words || !is_possible {
            return Ok(());
        }
        for session in self.titled(scope, options, words).await? {
            let key = session.key();
            let is_of_session = |text: &RankedText| text.candidate.message_ref.session == key;
            if !judged.texts.iter().any(is_of_session) {
                let beginning = (0..BEGINNING).map(|sequence| MessageRef::new(key.clone(), sequence));
                let beginning: Vec<MessageRef> = beginning.collect();
                reading.read(self.store, beginning.iter().cloned()).await?;
                let Some(message_ref) = first_question(beginning, options, reading) else { continue };
                let candidate =
                    TextCandidate { message_ref, content_type: ContentType::UserQuery, score: 0.0 };
                judged.texts.push(RankedText { candidate, score: 0.0 });
            }
            judged.judgements.titled.insert(key);
        }
        Ok(())
    }

    /// Sessions with all words of the query in their title or description, newest first.
    async fn titled(
        self,
        scope: &Scope,
        options: &SearchOptions,
        words: &QueryWords,
    ) -> Result<Vec<Session>> {
        // A stem is the beginning of each form of its word, except that it ends with `i` where the word has `y`.
        let beginnings: Vec<&str> = words.main_terms().map(|term| term.trim_end_matches('i')).collect();
        let query = SessionQuery::new(scope.clone())
            .with_filter(options.filter.sessions.clone())
            .with_text(Some(beginnings.join(" ")));
        let mut sessions = match self.store.backend.list_sessions(&query).await {
            // The messages that were found are still worth showing.
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(Vec::new()),
            sessions => sessions?,
        };
        // The list also contains sessions with a longer word in their title.
        sessions.retain(|session| {
            let said = query_terms(&format!(
                "{} {}",
                session.title(),
                session.description.as_deref().unwrap_or_default()
            ));
            words.main_terms().all(|term| said.iter().any(|said| said == term))
        });
        sessions.truncate(MOST);
        Ok(sessions)
    }
}

/// The first message of a person that `options` admits.
fn first_question(
    beginning: Vec<MessageRef>,
    options: &SearchOptions,
    reading: &ReadMessages,
) -> Option<MessageRef> {
    beginning.into_iter().find(|message_ref| {
        reading.get(message_ref).is_some_and(|read| {
            read.message.role == Role::User
                && is_real(read.line.fields())
                && options.filter.admits_message(read.message.role, read.message.ts)
        })
    })
}
