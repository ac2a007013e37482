//! Identifiers. They are validated when they are built, so no other code validates them.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::SessionSource;
use crate::{Error, ErrorField, Result, text::composed};

/// The maximum length of an identifier in bytes.
const MAX_LENGTH: usize = 255;

// The field of its errors has the same name.
macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $form:path, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Builds the identifier.
            ///
            /// # Errors
            ///
            /// `Validation` if the text is not valid for this type.
            pub fn new(text: impl AsRef<str>) -> Result<Self> {
                let text = $form(text.as_ref());
                match $check(&text) {
                    Ok(()) => Ok(Self(text.into())),
                    Err(rule) => {
                        Err(Error::validation(ErrorField::$name, rule).with("value", format_args!("{:?}", shortened(&text))))
                    }
                }
            }

            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;
            fn try_from(text: String) -> Result<Self> {
                Self::new(text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.as_ref().to_owned()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

identifier! {
    /// The owner of a session, and the primary isolation key. Any non-empty text of at most 255 bytes without control
    /// characters. It is composed ([`composed`]), so that the same name is the same id.
    UserId, composed, printable
}
identifier! {
    /// The machine on which a session was recorded. The same rule as for [`UserId`].
    HostId, composed, printable
}
identifier! {
    /// The name of the folder under `projects/` to which a session belongs. The same rule as for [`UserId`].
    ProjectSlug, composed, printable
}
identifier! {
    /// A session: any text of 1 to 255 bytes without control characters, `/` and `\`, except `.` and `..`.
    ///
    /// Real ids are UUIDs, `{span}-{span}_{agent}` for sub-agents, and `{span}-{timestamp}_recipe`.
    /// Unlike the others, it is not composed: it is the name of a folder, byte for byte. The id of a session of a
    /// program other than Amplifier is `SOURCE:ID`: see [`SessionId::native`].
    SessionId, Cow::Borrowed, session_id
}

identifier! {
    /// The repository of a session: its address `HOST/PATH`, or `commit:` and its first commit, or a folder. Text of at
    /// most 1,024 bytes without control characters, composed. It contains no password.
    Repository, composed, repository
}

impl SessionId {
    /// The program in whose format the session's lines are. Both of Amplifier's programs write the same format and
    /// use their ids as they are.
    #[must_use]
    pub fn source(&self) -> SessionSource {
        SessionSource::split(self.as_str()).0
    }

    /// The id that the program itself uses, without `SOURCE:`. Short ids and addresses are made of it.
    #[must_use]
    pub fn native(&self) -> &str {
        SessionSource::split(self.as_str()).1
    }

    /// Whether the id is a UUID in its usual form: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
    #[must_use]
    pub fn is_uuid(&self) -> bool {
        let groups: Vec<&str> = self.as_str().split('-').collect();
        groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
            && groups.iter().all(|group| group.bytes().all(|b| b.is_ascii_hexdigit()))
    }
}

impl ProjectSlug {
    /// The slug of sessions without a project (`default`).
    #[must_use]
    pub fn unnamed() -> Self {
        Self("default".into())
    }

    /// The slug that Amplifier uses for sessions in `folder`, an absolute path.
    ///
    /// # Errors
    ///
    /// `Validation` if the slug is not valid, for example because it is too long.
    pub fn of_folder(folder: &str) -> Result<Self> {
        let folder = folder.trim_end_matches(['/', '\\']);
        let slug = folder.replace(['/', '\\'], "-").replace(':', "");
        Self::new(if slug.starts_with('-') { slug } else { format!("-{slug}") })
    }
}

fn printable(text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_LENGTH {
        return Err("must be at most 255 bytes");
    }
    not_empty(text)
}

fn repository(text: &str) -> Result<(), &'static str> {
    // PostgreSQL indexes no value above 2,704 bytes.
    const MOST: usize = 1_024;
    if text.len() > MOST {
        return Err("must be at most 1024 bytes");
    }
    not_empty(text)
}

fn not_empty(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        Err("must not be empty")
    } else if text.chars().any(char::is_control) {
        Err("must not contain control characters")
    } else {
        Ok(())
    }
}

/// The ids that Amplifier accepts: they are names of folders.
fn session_id(text: &str) -> Result<(), &'static str> {
    printable(text)?;
    if text.contains(['/', '\\']) {
        Err("must not contain '/' or '\\'")
    } else if matches!(text, "." | "..") {
        Err("must not be '.' or '..'")
    } else {
        Ok(())
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The key of a session: its id is unique only together with its owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionKey {
    /// The owner.
    pub user_id: UserId,
    /// The session.
    pub session_id: SessionId,
}

impl SessionKey {
    /// A key from its two parts.
    #[must_use]
    pub fn new(user_id: UserId, session_id: SessionId) -> Self {
        Self { user_id, session_id }
    }
}

/// The key of a message or event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageRef {
    /// The session.
    pub session: SessionKey,
    /// The number of the line among the valid lines of its file, from 0.
    pub sequence: u32,
}

impl MessageRef {
    /// A key from its two parts.
    #[must_use]
    pub fn new(session: SessionKey, sequence: u32) -> Self {
        Self { session, sequence }
    }
}

/// A fingerprint of a line when it was stored: the first 16 bytes of its BLAKE3 hash. Written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut digest = [0; 16];
        digest.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        Self(digest)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        format!("{digest:?}")
    }
}

impl TryFrom<String> for Digest {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| text.len() == 32);
        let number = number.ok_or_else(|| {
            Error::validation(ErrorField::Digest, "must be 32 hexadecimal digits")
                .with("value", format_args!("{text:?}"))
        })?;
        Ok(Self(number.to_be_bytes()))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_amplifier_are_accepted() {
        for id in [
            "3a7c1e90-1f4b-4d2a-9c11-0b2e5d6f7a01",
            "0123456789abcdef-fedcba9876543210_explorer",
            "0123456789abcdef-20260105T080000_recipe",
            "locomo:conv-26.session_1",
            "daily standup",
            "a+b@2",
            "naïve-1",
            "#1 | 100% 'ok'?",
        ] {
            assert_eq!(SessionId::new(id).unwrap().as_str(), id);
        }
    }

    #[test]
    fn ids_of_other_programs_begin_with_its_name() {
        let split = |id| {
            let id = SessionId::new(id).unwrap();
            (id.source(), id.native().to_owned())
        };
        let (own, agent) = (SessionSource::Amplifier, SessionSource::AmplifierAgent);
        assert_eq!(split("amplifier-agent:a:b"), (agent, "a:b".to_owned()));
        // Ids of Amplifier, whatever they contain.
        for id in
            ["locomo:conv-26.session_1", "amplifier:a", "amplifier-agent:", "Amplifier-Agent:a", ":a", "a:"]
        {
            assert_eq!(split(id), (own, id.to_owned()));
        }
    }

    #[test]
    fn a_folder_has_a_slug() {
        let slug = |folder| ProjectSlug::of_folder(folder).unwrap().to_string();
        assert_eq!(slug("/home/mira/bakery/"), "-home-mira-bakery");
        assert_eq!(slug("C:\\work\\bakery"), "-C-work-bakery");
        assert_eq!(slug("/"), "-");
        assert!(ProjectSlug::of_folder(&"/long".repeat(60)).is_err());
    }

    #[test]
    fn names_are_the_same_however_their_accents_are_written() {
        assert_eq!(
            ProjectSlug::of_folder("/Users/zoe\u{308}/cafe\u{301}").unwrap().as_str(),
            "-Users-zoë-café"
        );
        assert_eq!(UserId::new("zoe\u{308}").unwrap(), UserId::new("zoë").unwrap());
        assert_ne!(SessionId::new("zoe\u{308}").unwrap(), SessionId::new("zoë").unwrap());
    }

    #[test]
    fn digests_are_written_as_hexadecimal_digits() {
        let digest = Digest::of(b"line");
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json, format!("\"{digest:?}\""));
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        assert!(serde_json::from_str::<Digest>("\"12\"").is_err());
    }

    #[test]
    fn uuids_are_distinguished_from_other_ids() {
        let is_uuid = |id| SessionId::new(id).unwrap().is_uuid();
        assert!(is_uuid("3a7c1e90-1f4b-4d2a-9c11-0b2e5d6f7a01"));
        assert!(!is_uuid("0123456789abcdef-fedcba9876543210_explorer"));
        assert!(!is_uuid("3a7c1e90-1f4b-4d2a-9c11-0b2e5d6f7a0g"));
    }

    #[test]
    fn invalid_ids_are_errors_that_name_the_field() {
        for id in ["", ".", "..", "a/b", "a\\b", "a\nb", "a\u{85}", &"é".repeat(128)] {
            let error = SessionId::new(id).unwrap_err();
            assert_eq!(error.field(), Some(ErrorField::SessionId), "{id:?}");
        }
        assert!(UserId::new("").is_err());
        assert!(UserId::new("a\0b").is_err());
        assert!(UserId::new("ana@example.com").is_ok());
    }
}
