//! Looking tokens up.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use amplifier_session_core::model::Timestamp;
use subtle::ConstantTimeEq as _;

use super::{file::TokenFile, record::TokenRecord, text::AccessToken};

/// How often the file may be looked at: a token that is revoked ends within this time.
const RELOAD: Duration = Duration::from_secs(1);

/// The tokens of a file, as they are now.
#[derive(Debug)]
pub(crate) struct TokenBook {
    file: TokenFile,
    pages: Mutex<TokenPages>,
}

#[derive(Debug)]
struct TokenPages {
    tokens: Arc<HashMap<String, TokenRecord>>,
    /// When the file was looked at.
    checked: Instant,
    /// How the file was then: its time of change and its size.
    seen: Option<(SystemTime, u64)>,
}

impl TokenBook {
    /// The tokens of `file`.
    ///
    /// # Errors
    ///
    /// If it can't be read.
    pub(crate) fn open(file: TokenFile) -> std::io::Result<Self> {
        let seen = seen(&file);
        let tokens = Arc::new(by_id(file.tokens()?));
        let pages = Mutex::new(TokenPages { tokens, checked: Instant::now(), seen });
        Ok(Self { file, pages })
    }

    /// The record of `token`, if it is known and has not expired at the time `now`. Takes the same path for ids that are
    /// known and that are not.
    pub(crate) fn find(&self, token: &AccessToken, now: Timestamp) -> Option<TokenRecord> {
        let known = record_in(&self.tokens(), token, now);
        // It may have been made just now.
        known.or_else(|| record_in(&self.current_tokens(), token, now))
    }

    /// The tokens, read again if the file has changed. If it can't be read, the tokens are gone: who makes it unreadable
    /// may want to lock everyone out, and nobody should stay in by accident.
    fn tokens(&self) -> Arc<HashMap<String, TokenRecord>> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.checked.elapsed() >= RELOAD {
            self.reload(&mut pages);
        }
        pages.tokens.clone()
    }

    /// The tokens, read again if the file has changed since it was looked at.
    fn current_tokens(&self) -> Arc<HashMap<String, TokenRecord>> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        self.reload(&mut pages);
        pages.tokens.clone()
    }

    fn reload(&self, pages: &mut TokenPages) {
        pages.checked = Instant::now();
        let seen = seen(&self.file);
        if seen == pages.seen {
            return;
        }
        pages.seen = seen;
        let read = self.file.tokens();
        if let Err(error) = &read {
            tracing::error!(%error, "the tokens can't be read, so none is valid");
        }
        pages.tokens = Arc::new(by_id(read.unwrap_or_default()));
    }

    /// The file.
    #[cfg(test)]
    pub(crate) fn file(&self) -> &TokenFile {
        &self.file
    }

    /// Looks at the file at the next request.
    #[cfg(test)]
    pub(crate) fn expire(&self) {
        let mut pages = self.pages.lock().unwrap();
        pages.checked = Instant::now().checked_sub(RELOAD).unwrap();
        pages.seen = None;
    }
}

fn record_in(
    tokens: &HashMap<String, TokenRecord>,
    token: &AccessToken,
    now: Timestamp,
) -> Option<TokenRecord> {
    let record = tokens.get(token.id());
    let stored = record.map_or([0; 32], |record| record.sha256);
    let is_equal = bool::from(stored.ct_eq(&token.hash()));
    record.filter(|record| is_equal && !record.has_expired(now)).cloned()
}

fn by_id(tokens: Vec<TokenRecord>) -> HashMap<String, TokenRecord> {
    tokens.into_iter().map(|record| (record.id.clone(), record)).collect()
}

fn seen(file: &TokenFile) -> Option<(SystemTime, u64)> {
    let metadata = file.path().metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use amplifier_session_core::model::UserId;

    use super::{super::record::NewToken, *};

    fn at(time: &str) -> Timestamp {
        Timestamp::parse(time).unwrap()
    }

    #[test]
    fn a_token_is_valid_until_it_expires_or_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        let now = at("2026-11-28T10:00:00Z");
        let expires = Some(at("2026-12-01T00:00:00Z"));
        let new = NewToken { expires, ..NewToken::new(UserId::new("ana").unwrap()) };
        let token = file.create(&new, now).unwrap();
        let book = TokenBook::open(file.clone()).unwrap();
        assert_eq!(book.find(&token, now).unwrap().user.as_str(), "ana");
        assert!(book.find(&token, at("2026-12-01T00:00:00Z")).is_none());
        let unknown = AccessToken::random().unwrap();
        assert!(book.find(&unknown, now).is_none());
        file.revoke(token.id()).unwrap();
        book.expire();
        assert!(book.find(&token, now).is_none());
    }

    #[test]
    fn a_new_token_is_valid_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        let book = TokenBook::open(file.clone()).unwrap();
        let now = at("2026-11-28T10:00:00Z");
        for user in ["ana", "ben"] {
            let token = file.create(&NewToken::new(UserId::new(user).unwrap()), now).unwrap();
            assert_eq!(book.find(&token, now).unwrap().user.as_str(), user);
        }
    }

    #[test]
    fn another_secret_with_the_same_id_is_not_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        let now = at("2026-11-28T10:00:00Z");
        let token = file.create(&NewToken::new(UserId::new("ana").unwrap()), now).unwrap();
        let book = TokenBook::open(file).unwrap();
        let other = AccessToken::random().unwrap();
        let body = format!("ams_{}_{}", token.id(), other.text().split('_').nth(2).unwrap());
        let forged = format!("{body}_{:08x}", crc32fast::hash(body.as_bytes()));
        assert!(book.find(&AccessToken::parse(&forged).unwrap(), now).is_none());
    }

    #[test]
    fn without_a_readable_file_no_token_is_valid() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        let now = at("2026-11-28T10:00:00Z");
        let token = file.create(&NewToken::new(UserId::new("ana").unwrap()), now).unwrap();
        let book = TokenBook::open(file.clone()).unwrap();
        std::fs::write(file.path(), "not toml").unwrap();
        book.expire();
        assert!(book.find(&token, now).is_none());
    }
}
