//! What is known of a token.

use amplifier_session_api::{AccessRight, ApiCaller, Reach};
use amplifier_session_core::model::{Timestamp, UserId};
use serde::{Deserialize, Serialize};

use crate::quota::StorageQuota;

/// A token to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What it is for, such as the name of a machine.
    pub name: Option<String>,
    /// Whose sessions it reads and writes.
    pub user: UserId,
    /// Their teams.
    pub teams: Vec<String>,
    /// Their organisation.
    pub org: Option<String>,
    /// Which sessions it may read.
    pub reach: Reach,
    /// What it may do.
    pub rights: Vec<AccessRight>,
    /// When it ends. Default: never.
    pub expires: Option<Timestamp>,
    /// How much its user may store with it. Default: what the server says.
    pub quota: StorageQuota,
}

impl NewToken {
    /// The rights by default: to read, and to send and edit sessions. Deleting can't be undone, so it is asked for.
    pub const RIGHTS: [AccessRight; 2] = [AccessRight::Read, AccessRight::Write];

    /// A token for the own sessions of `user`, with [`Self::RIGHTS`].
    #[must_use]
    pub fn new(user: UserId) -> Self {
        Self {
            name: None,
            user,
            teams: Vec::new(),
            org: None,
            reach: Reach::Own,
            rights: Self::RIGHTS.to_vec(),
            expires: None,
            quota: StorageQuota::default(),
        }
    }
}

/// A token as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    /// The id: a part of the text of the token.
    pub id: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whose sessions it reads and writes.
    pub user: UserId,
    /// Their teams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<String>,
    /// Their organisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Which sessions it may read.
    pub reach: Reach,
    /// What it may do.
    pub rights: Vec<AccessRight>,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends. Without a time, it does not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The number of sessions that its user may store with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_sessions: Option<u64>,
    /// The number of messages and events that its user may store with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_rows: Option<u64>,
    /// The SHA-256 of its text, in hexadecimal digits.
    #[serde(with = "hexadecimal")]
    pub(crate) sha256: [u8; 32],
}

impl TokenRecord {
    /// The record of a token.
    pub(crate) fn new(id: &str, sha256: [u8; 32], new: &NewToken, created: Timestamp) -> Self {
        let NewToken { name, user, teams, org, reach, rights, expires, quota } = new.clone();
        let StorageQuota { sessions: quota_sessions, rows: quota_rows } = quota;
        let id = id.to_owned();
        Self {
            id,
            name,
            user,
            teams,
            org,
            reach,
            rights,
            created,
            expires,
            quota_sessions,
            quota_rows,
            sha256,
        }
    }

    /// Whether it has ended at the time `now`.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// How much its user may store with it, as far as it says so.
    #[must_use]
    pub fn quota(&self) -> StorageQuota {
        StorageQuota { sessions: self.quota_sessions, rows: self.quota_rows }
    }

    /// The caller who has it.
    pub(crate) fn caller(&self) -> ApiCaller {
        ApiCaller::new(self.user.clone())
            .with_teams(&self.teams)
            .with_org(self.org.clone())
            .with_reach(self.reach)
            .with_rights(self.rights.iter().copied())
    }
}

/// Bytes as hexadecimal digits.
mod hexadecimal {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&digits)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        read(&text).ok_or_else(|| D::Error::custom("must have 64 hexadecimal digits"))
    }

    fn read(text: &str) -> Option<[u8; 32]> {
        let mut bytes = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let digit = |place: u8| char::from(place).to_digit(16);
            let [high, low] = pair;
            *byte = u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?;
        }
        Some(bytes)
    }
}
