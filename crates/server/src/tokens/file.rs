//! The file with the hashes of tokens.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use amplifier_session_core::model::Timestamp;
use serde::Deserialize;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value};

use super::{
    record::{NewToken, TokenRecord},
    text::AccessToken,
};

/// The first lines of a new file.
const HEAD: &str = "# Tokens for `serve`. It has hashes only: a token can't be shown again.\n\n";
/// The table of a token.
const TABLE: &str = "token";

/// The file with the hashes of tokens, which only its owner can read. Several processes may change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile {
    path: PathBuf,
}

/// The contents of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenTables {
    #[serde(default, rename = "token")]
    tokens: Vec<TokenRecord>,
}

impl TokenFile {
    /// The file at `path`, which need not exist.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All tokens, in the order in which they were made. None if there is no file.
    ///
    /// # Errors
    ///
    /// If the file can't be read, or has something else in it.
    pub fn tokens(&self) -> io::Result<Vec<TokenRecord>> {
        let tables: TokenTables = toml::from_str(&self.text()?).map_err(|error| self.wrong(&error))?;
        Ok(tables.tokens)
    }

    /// Makes a token, at the time `now`. Only the result has its text.
    ///
    /// # Errors
    ///
    /// If the file can't be read or written, has something else in it, or the system has no random numbers.
    pub fn create(&self, new: &NewToken, now: Timestamp) -> io::Result<AccessToken> {
        let token = AccessToken::random()?;
        let record = TokenRecord::new(token.id(), token.hash(), new, now);
        self.change(|tables| {
            tables.push(table(&record));
            Ok(())
        })?;
        Ok(token)
    }

    /// Removes the token with this id. Returns it, if there is one.
    ///
    /// # Errors
    ///
    /// If the file can't be read or written.
    pub fn revoke(&self, id: &str) -> io::Result<Option<TokenRecord>> {
        let Some(record) = self.tokens()?.into_iter().find(|record| record.id == id) else { return Ok(None) };
        self.change(|tables| {
            tables.retain(|table| table.get("id").and_then(Item::as_str) != Some(id));
            Ok(())
        })?;
        Ok(Some(record))
    }

    /// Changes the tables, and keeps what people have written beside them. A reader sees the file before or after the
    /// change, and two writers do not undo each other's.
    fn change(&self, change: impl FnOnce(&mut ArrayOfTables) -> io::Result<()>) -> io::Result<()> {
        let folder =
            self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        create_private_folder(folder)?;
        let lock = private(OpenOptions::new().write(true).create(true).truncate(false))
            .open(self.path.with_extension("toml.lock"))?;
        lock.lock()?;
        // A server believes none of the tokens if one can't be read.
        self.tokens()?;
        let mut document: DocumentMut = self.text()?.parse().map_err(|error| self.wrong(&error))?;
        let tables = document.entry(TABLE).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let tables =
            tables.as_array_of_tables_mut().ok_or_else(|| self.wrong(&"`token` is no list of tables"))?;
        change(tables)?;
        let mut text = document.to_string();
        // A comment goes with the token below it, and this one is above the first.
        if !text.contains(HEAD.trim_end()) {
            text.insert_str(0, HEAD);
        }
        replace(folder, &self.path, &text)
    }

    fn text(&self) -> io::Result<String> {
        match std::fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        }
    }

    fn wrong(&self, error: &impl ToString) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {}", self.path.display(), error.to_string()))
    }
}

/// A record as a table.
fn table(record: &TokenRecord) -> Table {
    let mut table = Table::new();
    let mut set = |name: &str, value: Value| {
        table.insert(name, Item::Value(value));
    };
    let list = |texts: Vec<&str>| Value::from_iter(texts);
    set("id", record.id.as_str().into());
    if let Some(name) = &record.name {
        set("name", name.as_str().into());
    }
    set("user", record.user.as_str().into());
    if !record.teams.is_empty() {
        set("teams", list(record.teams.iter().map(String::as_str).collect()));
    }
    if let Some(org) = &record.org {
        set("org", org.as_str().into());
    }
    set("reach", record.reach.as_str().into());
    set("rights", list(record.rights.iter().map(|right| right.as_str()).collect()));
    set("created", record.created.to_string().into());
    if let Some(expires) = record.expires {
        set("expires", expires.to_string().into());
    }
    for (name, most) in [("quota_sessions", record.quota_sessions), ("quota_rows", record.quota_rows)] {
        if let Some(most) = most {
            set(name, i64::try_from(most).unwrap_or(i64::MAX).into());
        }
    }
    let digits: String = record.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    set("sha256", digits.into());
    table
}

/// Replaces the file by one with this text. If the process is killed, one of the two is complete.
pub(super) fn replace(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    // Temporary files can be read only by their owner.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The rename itself must survive a power failure, or a revoked token would come back. Not all systems can do it.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Makes the options create files that only their owner can read.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

#[cfg(test)]
mod tests {
    use amplifier_session_api::{AccessRight, Reach};
    use amplifier_session_core::model::UserId;

    use super::*;
    use crate::quota::StorageQuota;

    fn new(user: &str) -> NewToken {
        NewToken {
            name: Some("laptop \"one\"\n[[token]]".to_owned()),
            teams: vec!["payments".to_owned()],
            org: Some("example".to_owned()),
            reach: Reach::Visible,
            rights: vec![AccessRight::Read, AccessRight::Admin],
            expires: Some(Timestamp::parse("2027-01-01T00:00:00Z").unwrap()),
            quota: StorageQuota { sessions: Some(100), rows: None },
            ..NewToken::new(UserId::new(user).unwrap())
        }
    }

    fn file() -> (tempfile::TempDir, TokenFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("new/tokens.toml"));
        (folder, file)
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-28T10:00:00Z").unwrap()
    }

    #[test]
    fn tokens_are_made_listed_and_revoked() {
        let (_folder, file) = file();
        assert_eq!(file.tokens().unwrap(), []);
        let ana = file.create(&new("ana"), now()).unwrap();
        let ben = file.create(&NewToken::new(UserId::new("ben").unwrap()), now()).unwrap();
        let tokens = file.tokens().unwrap();
        assert_eq!(tokens[0], TokenRecord::new(ana.id(), ana.hash(), &new("ana"), now()));
        assert_eq!((tokens.len(), tokens[1].id.as_str()), (2, ben.id()));
        assert_eq!(file.revoke(ana.id()).unwrap().unwrap().user.as_str(), "ana");
        assert_eq!(file.revoke(ana.id()).unwrap(), None);
        assert_eq!(file.tokens().unwrap(), tokens[1..]);
    }

    #[test]
    fn the_file_has_no_token_and_only_its_owner_can_read_it() {
        let (_folder, file) = file();
        let token = file.create(&new("ana"), now()).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(text.starts_with(HEAD) && text.contains(token.id()), "{text}");
        let secret = token.text().split('_').nth(2).unwrap();
        assert!(!text.contains(secret));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(file.path()), mode(file.path().parent().unwrap())), (0o600, 0o700));
        }
    }

    #[test]
    fn comments_stay_and_what_is_wrong_is_not_overwritten() {
        let (_folder, file) = file();
        let token = file.create(&new("ana"), now()).unwrap();
        file.create(&new("ben"), now()).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        let second = text.rfind("[[token]]").unwrap();
        std::fs::write(file.path(), format!("{}# of ben\n{}", &text[..second], &text[second..])).unwrap();
        file.revoke(token.id()).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(text.starts_with(HEAD) && text.contains("# of ben\n[[token]]"), "{text}");
        for wrong in ["[[token]]\nid = 3", "not toml"] {
            std::fs::write(file.path(), wrong).unwrap();
            assert!(file.create(&new("ben"), now()).is_err());
            assert_eq!(std::fs::read_to_string(file.path()).unwrap(), wrong);
        }
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let (_folder, file) = file();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| drop(file.create(&new("ana"), now()).unwrap())));
            }
        });
        assert_eq!(file.tokens().unwrap().len(), 20);
    }
}
