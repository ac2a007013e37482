//! The digest of a session: of all its stored data, except its vectors and how far its files were read.

use serde::Serialize;
use serde_json::Value;

use super::super::archive::Checksum;
use crate::{
    Error, ErrorKind, Result,
    backend::{SkippedLine, StoredSession},
    model::{Message, MetadataFile, Payload, Session, StoredEvent, SupersededPiece, Timestamp},
    storage::session_rows::SessionRows,
};

/// Computes a digest of values. The same values have the same digest, regardless of the store from which they were
/// read.
#[derive(Debug, Clone, Default)]
pub(super) struct Digester(Checksum);

/// The digest of all rows and the record of a session.
pub(super) async fn digest_of(rows: SessionRows<'_>, stored: &StoredSession) -> Result<String> {
    let mut digester = Digester::default();
    digester.session(&stored.session)?;
    digester.files(&stored.metadata_files);
    digester.skipped(&stored.skipped)?;
    let mut messages = rows.messages(0).strict();
    while let Some(page) = messages.next().await? {
        page.iter().for_each(|message| digester.message(message));
    }
    let mut events = rows.stored_events(0);
    while let Some(page) = events.next().await? {
        page.iter().try_for_each(|event| digester.event(event))?;
    }
    let mut superseded = rows.superseded(true);
    while let Some(page) = superseded.next().await? {
        page.iter().for_each(|piece| digester.superseded(piece));
    }
    Ok(digester.digits())
}

impl Digester {
    pub(super) fn digits(&self) -> String {
        self.0.digits()
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.add_part(bytes);
    }

    pub(super) fn number(&mut self, number: impl Into<i128>) {
        self.0.add(&number.into().to_le_bytes());
    }

    pub(super) fn time(&mut self, ts: Timestamp) {
        self.number(ts.as_micros());
    }

    fn optional_time(&mut self, ts: Option<Timestamp>) {
        self.number(u8::from(ts.is_some()));
        self.time(ts.unwrap_or(Timestamp::from_micros(0)));
    }

    /// Adds a value as JSON. The order of keys and the spelling of numbers (`1.0`, `1`) do not matter: databases for
    /// JSON may change both.
    pub(super) fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let value = serde_json::to_value(value).map_err(|error| {
            Error::new(ErrorKind::StorageIo, "a stored value can't be written as JSON").with_source(error)
        })?;
        self.value(&value);
        Ok(())
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(object) => {
                self.0.add(b"{");
                self.number(object.len() as u64);
                let mut entries: Vec<_> = object.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| key.as_str());
                for (key, value) in entries {
                    self.bytes(key.as_bytes());
                    self.value(value);
                }
            }
            Value::Array(items) => {
                self.0.add(b"[");
                self.number(items.len() as u64);
                items.iter().for_each(|item| self.value(item));
            }
            // Cosmos DB keeps numbers as 64-bit floats, and writes whole ones as integers.
            Value::Number(number) => {
                self.0.add(b"n");
                self.number(number.as_f64().unwrap_or(f64::NAN).to_bits());
            }
            plain => self.bytes(plain.to_string().as_bytes()),
        }
    }

    pub(super) fn session(&mut self, session: &Session) -> Result<()> {
        self.json(session)
    }

    pub(super) fn files(&mut self, files: &[MetadataFile]) {
        self.number(files.len() as u64);
        for MetadataFile { name, raw } in files {
            self.bytes(name.as_bytes());
            self.bytes(raw.as_bytes());
        }
    }

    pub(super) fn skipped(&mut self, skipped: &[SkippedLine]) -> Result<()> {
        self.json(&skipped)
    }

    pub(super) fn message(&mut self, message: &Message) {
        self.number(message.sequence);
        self.bytes(message.host_id.as_str().as_bytes());
        self.bytes(message.project_slug.as_str().as_bytes());
        self.bytes(message.role.as_str().as_bytes());
        self.number(message.turn.map_or(-1, i64::from));
        self.time(message.ts);
        self.bytes(message.ts_source.as_str().as_bytes());
        self.time(message.synced_at);
        self.bytes(message.raw.as_bytes());
    }

    pub(super) fn event(&mut self, stored: &StoredEvent) -> Result<()> {
        let StoredEvent { event, payload } = stored;
        self.json(event)?;
        self.optional_time(event.synced_at);
        self.bytes(&event.digest.0);
        match payload {
            Payload::None => self.0.add(b"-"),
            Payload::Plain(bytes) => {
                self.0.add(b"p");
                self.bytes(bytes);
            }
            Payload::Zstd(bytes) => {
                self.0.add(b"z");
                self.bytes(bytes);
            }
            Payload::Chunks(chunks) => {
                self.0.add(b"c");
                self.number(chunks.len() as u64);
                chunks.iter().for_each(|chunk| self.bytes(chunk));
            }
        }
        Ok(())
    }

    /// Adds a piece of superseded lines, without its data if that was not read.
    pub(super) fn superseded(&mut self, piece: &SupersededPiece) {
        self.bytes(piece.id.as_bytes());
        self.bytes(piece.kind.as_str().as_bytes());
        for number in [piece.first_sequence, piece.last_sequence, piece.lines] {
            self.number(number);
        }
        self.number(piece.bytes);
        self.time(piece.superseded_at);
        self.bytes(piece.reason.as_str().as_bytes());
        self.bytes(&piece.data);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Digester;

    fn digits(value: &serde_json::Value) -> String {
        let mut digester = Digester::default();
        digester.json(value).unwrap();
        digester.digits()
    }

    #[test]
    fn the_order_of_keys_and_the_spelling_of_numbers_do_not_matter_but_everything_else_does() {
        let one = json!({"a": 1, "b": {"c": [1, "x"], "d": null}});
        let same = json!({"b": {"d": null, "c": [1.0, "x"]}, "a": 1});
        assert_ne!(one.to_string(), same.to_string());
        assert_eq!(digits(&one), digits(&same));
        for other in [
            json!({"a": 1, "b": {"c": ["x", 1], "d": null}}),
            json!({"a": 1, "b": {"c": [1, "x"]}, "d": null}),
            json!({"a": "1", "b": {"c": [1, "x"], "d": null}}),
            json!({"a": 1.5, "b": {"c": [1, "x"], "d": null}}),
            json!([[], []]),
            json!([[[]]]),
        ] {
            assert_ne!(digits(&one), digits(&other), "{other}");
        }
        assert_ne!(digits(&json!([[], []])), digits(&json!([[[]]])));
    }
}
