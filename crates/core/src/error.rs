//! One public error type for the whole system.
//!
//! An [`Error`] has a kind ([`ErrorKind`]), and says whether a retry may help, which operation failed, for which
//! session, sequence or field, and what caused it. Each backend maps its driver's errors in one file.

mod data;
mod field;

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

pub use field::ErrorField;

/// The result of every fallible function of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The key in the context of an error that names who holds the lock that a call waited for.
pub const HELD_BY: &str = "held by";
/// The context of a `Conflict` of a change that was only to be made to a session as its caller has seen it: see
/// [`SessionStorage::only_unchanged`](crate::SessionStorage::only_unchanged).
pub const CHANGED_SINCE: &str = "changed since";

type ErrorSource = Box<dyn std::error::Error + Send + Sync + 'static>;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The session does not exist in the scope of the call.
    SessionNotFound,
    /// A session to create already exists.
    SessionExists,
    /// Reading or writing the store failed.
    StorageIo,
    /// A stored row can't be read or is not what was written, but others can be read. The context has its `session`,
    /// and for a message or an event its `user` and `sequence`, unless the backend can't tell which row it is.
    Damaged,
    /// The store can't be reached or opened.
    StorageConnection,
    /// The service rejected the credentials.
    Authentication,
    /// An argument or other data is invalid: see [`Error::field`].
    Validation,
    /// A rewind is not possible.
    Rewind,
    /// An event line exceeds the maximum size.
    EventTooLarge,
    /// Another process changed the same session in the meantime.
    Conflict,
    /// The embedding provider failed.
    Embedding,
    /// The backend does not support this.
    Unsupported,
}

impl ErrorKind {
    const ALL: [Self; 12] = [
        Self::SessionNotFound,
        Self::SessionExists,
        Self::StorageIo,
        Self::Damaged,
        Self::StorageConnection,
        Self::Authentication,
        Self::Validation,
        Self::Rewind,
        Self::EventTooLarge,
        Self::Conflict,
        Self::Embedding,
        Self::Unsupported,
    ];

    /// The kind as one word in `snake_case`, for machine-readable output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SessionNotFound => "session_not_found",
            Self::SessionExists => "session_exists",
            Self::StorageIo => "storage_io",
            Self::Damaged => "damaged",
            Self::StorageConnection => "storage_connection",
            Self::Authentication => "authentication",
            Self::Validation => "validation",
            Self::Rewind => "rewind",
            Self::EventTooLarge => "event_too_large",
            Self::Conflict => "conflict",
            Self::Embedding => "embedding",
            Self::Unsupported => "unsupported",
        }
    }
}

/// The key of an [`ErrorOption`] in the context of an error.
const OPTION: &str = "option";

/// An option of a call on which an error depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorOption {
    /// A rewind keeps the events.
    KeepEvents,
    /// The store is opened only for reading.
    ReadOnly,
}

names! {
    ErrorOption { KeepEvents: "keep_events", ReadOnly: "read_only" }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error with its kind, context and cause.
///
/// ```
/// use amplifier_session_core::{Error, ErrorField, ErrorKind};
///
/// let error = Error::validation(ErrorField::Limit, "must be at least 1").with_operation("search");
/// assert_eq!(error.kind(), ErrorKind::Validation);
/// assert_eq!(error.to_string(), "search: must be at least 1 (limit)");
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    retryable: bool,
    retry_after: Option<Duration>,
    operation: Option<Cow<'static, str>>,
    field: Option<ErrorField>,
    message: String,
    context: Vec<(Cow<'static, str>, String)>,
    hint: Option<String>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// A permanent error of `kind`.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            retryable: false,
            retry_after: None,
            operation: None,
            field: None,
            message: message.into(),
            context: Vec::new(),
            hint: None,
            source: None,
        }))
    }

    /// A [`ErrorKind::Validation`] error about `field`.
    #[must_use]
    pub fn validation(field: ErrorField, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Validation, message).about(field)
    }

    /// A [`ErrorKind::SessionNotFound`] error.
    #[must_use]
    pub fn session_not_found(session_id: impl fmt::Display) -> Self {
        Self::new(ErrorKind::SessionNotFound, "no such session").with("session", session_id)
    }

    /// Names the operation that failed, for example `search`.
    #[must_use]
    pub fn with_operation(mut self, operation: impl Into<Cow<'static, str>>) -> Self {
        self.0.operation.get_or_insert_with(|| operation.into());
        self
    }

    /// Names the field that the error is about.
    #[must_use]
    pub fn about(mut self, field: ErrorField) -> Self {
        self.0.field = Some(field);
        self
    }

    /// Names the option that the error depends on.
    #[must_use]
    pub fn with_option(self, option: ErrorOption) -> Self {
        self.with(OPTION, option)
    }

    /// Adds one piece of context, for example the session or the path.
    #[must_use]
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl fmt::Display) -> Self {
        self.0.context.push((key.into(), value.to_string()));
        self
    }

    /// Adds advice for the user: what to do about the error, if possible as a command that can be pasted.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<ErrorSource>) -> Self {
        self.0.source = Some(source.into().into());
        self
    }

    /// Puts the location of the error before the message: `http://localhost:11434/v1: connection refused`.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// Appends a reason to the message: `too many requests: the service asks to wait 3600 s`.
    #[must_use]
    pub fn because(mut self, reason: impl fmt::Display) -> Self {
        self.0.message = format!("{}: {reason}", self.0.message);
        self
    }

    /// Marks the error as worth retrying.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.0.retryable = true;
        self
    }

    /// Marks the error as worth retrying after the time that the service asks for.
    #[must_use]
    pub fn retryable_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self.retryable()
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether a retry of the same call may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// How long the service asks to wait before a retry, if it does.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Advice for the user, if the one who made the error has some.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Whether the call waited for a lock of another session of the database for as long as it may, so that the context
    /// has [`HELD_BY`]. Another attempt may wait as long again.
    #[must_use]
    pub fn is_lock_timeout(&self) -> bool {
        self.context(HELD_BY).is_some()
    }

    /// The message, without operation, context and cause.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The operation that failed, if known.
    #[must_use]
    pub fn operation(&self) -> Option<&str> {
        self.0.operation.as_deref()
    }

    /// The field that the error is about. Every [`ErrorKind::Validation`] error of an argument has one.
    #[must_use]
    pub fn field(&self) -> Option<ErrorField> {
        self.0.field
    }

    /// The option that the error depends on: the call may succeed with another value of it.
    #[must_use]
    pub fn option(&self) -> Option<ErrorOption> {
        let name = self.context(OPTION)?;
        ErrorOption::ALL.into_iter().find(|option| option.as_str() == name)
    }

    /// A value from the context, for example `session` or `path`.
    #[must_use]
    pub fn context(&self, key: &str) -> Option<&str> {
        self.0.context.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = &self.0.operation {
            write!(f, "{operation}: ")?;
        }
        f.write_str(&self.0.message)?;
        let field = self.0.field.map(|field| field.as_str().to_owned());
        let context = self.0.context.iter().map(|(key, value)| format!("{key} {value}"));
        let details: Vec<String> = field.into_iter().chain(context).collect();
        if details.is_empty() { Ok(()) } else { write!(f, " ({})", details.join(", ")) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("retryable", &self.0.retryable)
            .field("operation", &self.0.operation)
            .field("field", &self.0.field)
            .field("message", &self.0.message)
            .field("context", &self.0.context)
            .field("hint", &self.0.hint)
            .field("source", &self.0.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
