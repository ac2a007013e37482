//! Shows the superseded messages of a session, which are no longer in its files.

use amplifier_session_core::{
    backend::SupersededQuery,
    content::MessageLine,
    model::{Digest, LineKind, Message, Role, Session, SupersededReason, TimeSource, Timestamp, VectorState},
    search::SessionFilter,
    storage::SupersededLine,
};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

use super::is_zero;
use crate::{
    Api, ApiAnswer, ApiError, InvalidRequest, Reach,
    ids::short,
    views::{MessageView, SessionView},
};

/// The superseded messages of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupersededMessagesRequest {
    /// The users whose sessions are read.
    #[serde(default)]
    pub scope: Reach,
    /// The address of the session.
    pub session: String,
    /// Only messages with this number or a higher one.
    #[serde(default)]
    pub from: u32,
    /// Maximum number of messages. Default: 100.
    #[serde(default = "default_limit")]
    pub limit: usize,
    /// The number of the first messages that an earlier response had, and that this one does not have.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip: usize,
    /// The maximum length of each message in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<usize>,
}

fn default_limit() -> usize {
    SupersededMessagesRequest::LIMIT
}

impl SupersededMessagesRequest {
    /// The maximum number of messages, if a request does not choose one.
    pub const LIMIT: usize = 100;

    /// The first superseded messages of a session.
    #[must_use]
    pub fn new(session: impl Into<String>) -> Self {
        Self {
            scope: Reach::default(),
            session: session.into(),
            from: 0,
            limit: Self::LIMIT,
            skip: 0,
            max_chars: None,
        }
    }

    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`].
    pub fn check(&self) -> Result<(), ApiError> {
        if self.limit == 0 { Err(InvalidRequest::NothingToList.into()) } else { Ok(()) }
    }
}

/// The superseded messages of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SupersededMessagesResponse {
    /// The session.
    pub session: SessionView,
    /// The messages, in order of their numbers.
    pub messages: Vec<SupersededMessage>,
    /// Whether there are more.
    pub has_more_after: bool,
}

/// A superseded message, or a line of a transcript that was never a message.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SupersededMessage {
    /// The message. The number of a line that was never a message is its line number in the file.
    #[serde(flatten)]
    pub message: MessageView,
    /// The time and the reason of its supersession.
    #[serde(flatten)]
    pub how: Supersession,
}

/// The time when a message was superseded, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Supersession {
    /// That it is superseded.
    pub superseded: bool,
    /// The time when it was superseded.
    pub superseded_at: Timestamp,
    /// The reason why it was superseded.
    pub reason: SupersededReason,
    /// The text of a line that was never a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

// A derived implementation can't read the line of a flattened message.
impl<'de> Deserialize<'de> for SupersededMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Box::<RawValue>::deserialize(deserializer)?;
        let message = serde_json::from_str(object.get()).map_err(de::Error::custom)?;
        let how = serde_json::from_str(object.get()).map_err(de::Error::custom)?;
        Ok(Self { message, how })
    }
}

impl SupersededMessage {
    fn new(line: &SupersededLine, session: &Session, short_id: &str, max_chars: Option<usize>) -> Self {
        let is_unreadable = line.reason == SupersededReason::Unreadable;
        Self {
            message: MessageView::new(&message(line, session), short_id, max_chars),
            how: Supersession {
                superseded: true,
                superseded_at: line.superseded_at,
                reason: line.reason,
                raw: is_unreadable.then(|| line.raw.to_text().into_owned()),
            },
        }
    }
}

/// The message that a superseded line was.
fn message(line: &SupersededLine, session: &Session) -> Message {
    let read = MessageLine::parse(&line.raw, line.session_id.source());
    Message {
        user_id: line.user_id.clone(),
        host_id: session.host_id.clone(),
        project_slug: session.project_slug.clone(),
        session_id: line.session_id.clone(),
        sequence: line.sequence,
        role: read.map_or(Role::User, |read| read.role()),
        turn: line.turn,
        ts: line.ts,
        ts_source: line.ts_source.unwrap_or(TimeSource::File),
        synced_at: line.superseded_at,
        vectors: VectorState::Nothing,
        digest: Digest::default(),
        raw: line.raw.clone(),
    }
}

impl Api<'_> {
    /// Shows the superseded messages of a session.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or asks for too much; `SessionNotFound`; errors of the store.
    #[crate::compiled_here]
    pub async fn superseded_messages(
        &self,
        request: &SupersededMessagesRequest,
    ) -> Result<ApiAnswer<SupersededMessagesResponse>, ApiError> {
        request.check()?;
        let scope = self.caller.scope(request.scope)?;
        let mut notices = Vec::new();
        let session = self.find(&scope, &request.session, &mut notices).await?.session;
        let id = &session.session_id;
        let short_ids = self.storage.sessions().short_ids(&scope, [id]).await?;
        let query = SupersededQuery::new(self.caller.scope_of_superseded(request.scope)?)
            .with_filter(SessionFilter::default().with_session(id.clone()))
            .with_kind(LineKind::Message);
        // Another user may have a session with the same id.
        let matches =
            |line: &SupersededLine| line.user_id == session.user_id && line.sequence >= request.from;
        let (lines, has_more_after) =
            self.first_superseded(query, request.skip, request.limit, matches).await?;
        let shown = |line| SupersededMessage::new(line, &session, short(&short_ids, id), request.max_chars);
        let messages = lines.iter().map(shown).collect();
        let session = SessionView::from(&session);
        Ok(ApiAnswer { response: SupersededMessagesResponse { session, messages, has_more_after }, notices })
    }
}
