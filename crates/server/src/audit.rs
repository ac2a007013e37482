//! The audit log: who asked for what, without queries and contents.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    net::IpAddr,
    path::Path,
    sync::{Mutex, PoisonError},
};

use amplifier_session_core::model::Timestamp;
use serde::Serialize;

/// A file with one JSON object a line. Only its owner can read it.
#[derive(Debug)]
pub(crate) struct AuditLog {
    file: Mutex<File>,
}

/// A request in the log.
#[derive(Debug, Serialize)]
pub(crate) struct AuditEntry<'a> {
    pub(crate) time: Timestamp,
    /// The id of the request, as in its answer.
    pub(crate) request: &'a str,
    /// The id of the token, or `proxy:` with the user; `null` if nobody has signed in.
    pub(crate) token: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
    /// The name of the route; `null` if the path has no route.
    pub(crate) route: Option<&'static str>,
    /// The address of the session that the path names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<&'a str>,
    /// The rows that were read or written; sessions, if they were listed or deleted. Absent if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rows: Option<u64>,
    /// The trace that it belongs to, if the client names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<&'a str>,
    pub(crate) status: u16,
    /// Milliseconds.
    pub(crate) ms: u64,
    pub(crate) address: IpAddr,
}

impl AuditLog {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self { file: Mutex::new(options.open(path)?) })
    }

    /// Adds a line. If that fails, for example because the disk is full, the requests go on: what can be read must stay
    /// readable.
    pub(crate) fn add(&self, entry: &AuditEntry<'_>) {
        let written = serde_json::to_vec(entry).map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
        });
        if let Err(error) = written {
            tracing::error!(%error, request = entry.request, "the audit log can't be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let entry = AuditEntry {
            time: Timestamp::from_micros(0),
            request: "r1",
            token: Some("abc"),
            user: Some("ana"),
            route: Some("session"),
            session: Some("7f3c\n"),
            rows: Some(2),
            trace: None,
            status: 200,
            ms: 3,
            address: "127.0.0.1".parse().unwrap(),
        };
        AuditLog::open(&path).unwrap().add(&entry);
        AuditLog::open(&path).unwrap().add(&AuditEntry { session: None, user: None, ..entry });
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[0],
            r#"{"time":"1970-01-01T00:00:00.000000Z","request":"r1","token":"abc","user":"ana","route":"session","session":"7f3c\n","rows":2,"status":200,"ms":3,"address":"127.0.0.1"}"#
        );
    }
}
