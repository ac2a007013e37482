//! The text of a token: `ams_<id>_<secret>_<checksum>`.

use std::{fmt, io, path::Path};

use sha2::{Digest as _, Sha256};

use super::file::replace;
use crate::random::random_text;

/// The prefix, by which scanners of secrets know tokens.
const PREFIX: &str = "ams";
/// The length of the id.
const ID: usize = 8;
/// The length of the secret: 256 bits.
const SECRET: usize = 43;

/// A token. Whoever has its text has its rights, so it is shown only once, and never by [`fmt::Debug`].
#[derive(Clone)]
pub struct AccessToken {
    id: String,
    text: String,
}

impl AccessToken {
    /// A new token, from random numbers of the system.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub(crate) fn random() -> io::Result<Self> {
        let random = |length| random_text(length).map_err(io::Error::other);
        let id = random(ID)?;
        let body = format!("{PREFIX}_{id}_{}", random(SECRET)?);
        let checksum = crc32fast::hash(body.as_bytes());
        Ok(Self { id, text: format!("{body}_{checksum:08x}") })
    }

    /// The token with this text, if it can be one. The checksum tells typing errors from tokens that are not known.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (body, checksum) = text.rsplit_once('_')?;
        let mut parts = body.split('_');
        let (prefix, id, secret) = (parts.next()?, parts.next()?, parts.next()?);
        let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_one = prefix == PREFIX
            && (id.len(), secret.len()) == (ID, SECRET)
            && is_plain(id)
            && is_plain(secret)
            && parts.next().is_none()
            && checksum == format!("{:08x}", crc32fast::hash(body.as_bytes()));
        is_one.then(|| Self { id: id.to_owned(), text: text.to_owned() })
    }

    /// The id, which is no secret: it is in lists and logs.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Writes the text to a file that only its owner can read.
    ///
    /// # Errors
    ///
    /// If the file can't be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        replace(folder.unwrap_or(Path::new(".")), path, &format!("{}\n", self.text))
    }

    /// The hash that is stored. The text is random, so a slow hash would add nothing.
    pub(crate) fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.text).into()
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_can_be_read_again() {
        let token = AccessToken::random().unwrap();
        assert_eq!(token.text().len(), 65);
        let read = AccessToken::parse(token.text()).unwrap();
        assert_eq!((read.id(), read.hash()), (token.id(), token.hash()));
        assert!(!format!("{token:?}").contains(token.text()));
    }

    #[test]
    fn a_changed_token_is_none() {
        let token = AccessToken::random().unwrap();
        for place in 0..token.text().len() {
            let mut bytes = token.text().as_bytes().to_vec();
            bytes[place] = if bytes[place] == b'a' { b'b' } else { b'a' };
            let text = String::from_utf8(bytes).unwrap();
            assert!(AccessToken::parse(&text).is_none(), "{text}");
        }
        for text in ["", "ams", "ams___", "ams_12345678_x_00000000", "ghp_12345678"] {
            assert!(AccessToken::parse(text).is_none(), "{text}");
        }
    }
}
