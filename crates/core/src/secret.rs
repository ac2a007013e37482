//! Keys and tokens, which are never shown.

use std::fmt;

/// A key or token. Neither `Debug` nor an error shows it; only [`Secret::expose`] returns it.
///
/// ```
/// use amplifier_session_core::Secret;
///
/// let key = Secret::new("hunter2");
/// assert_eq!(format!("{key:?}"), "Secret(hidden)");
/// assert_eq!(key.expose(), "hunter2");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A secret, without surrounding white space, which copying and files add.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The secret itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}
