//! Databases as the Python library `amplifier_session_storage` wrote them, as statements that any driver can run.
//!
//! Three sessions of two users, with 45 messages, 12 events and 60 vectors, in the tables of each of its three
//! generations.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "for tests: what is not as expected is a panic"
)]

use std::fmt::Write as _;

use amplifier_session_core::{
    Scope, SessionStorage,
    backend::SessionQuery,
    model::{ContentType, EmbeddingSpace, Role, SessionId, Timestamp, UserId},
    search::{SearchMode, SearchOptions, VectorSearchOptions},
    storage::EventLines,
};
use serde_json::{Value, json};

/// The model that the vectors name.
pub const MODEL: &str = "fake-64";
const DIMENSIONS: usize = 64;
const SESSIONS: [(&str, &str, &str); 3] = [
    ("alice", "11111111-1111-4111-8111-111111111111", "proj-a"),
    ("alice", "22222222-2222-4222-8222-222222222222", "proj-b"),
    ("bob", "33333333-3333-4333-8333-333333333333-0123456789abcdef_explorer", "proj-a"),
];
const CONTENT_TYPES: [&str; 4] = ["user_query", "assistant_response", "assistant_thinking", "tool_output"];

/// The database for the statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite: vectors are JSON, times are text.
    Sqlite,
    /// DuckDB: vectors are `FLOAT[64]`, times are `TIMESTAMP`.
    DuckDb,
}

/// A message of the fixture.
#[derive(Debug, Clone)]
struct OldMessage {
    session: usize,
    sequence: usize,
    role: &'static str,
    content: Value,
    turn: Option<u32>,
    ts: String,
    /// Content type, text and vector.
    texts: Vec<(&'static str, String, Vec<f32>)>,
}

/// A database of one generation.
#[derive(Debug, Clone, Copy)]
pub struct PythonLibrary {
    generation: u32,
    dialect: Dialect,
}

impl PythonLibrary {
    /// A database of the given generation, from 1 to 3.
    #[must_use]
    pub fn new(generation: u32, dialect: Dialect) -> Self {
        Self { generation, dialect }
    }

    /// The statements that make it.
    pub fn sql(self) -> String {
        let mut sql = self.tables();
        for (n, (user, session, project)) in SESSIONS.into_iter().enumerate() {
            let metadata = json!({"name": format!("Session {n}"), "tags": ["x"], "unknown": 1.50});
            let _ = writeln!(
                sql,
                "INSERT INTO sessions (user_id, session_id, host_id, project_slug, bundle, created, updated, turn_count, metadata)
                 VALUES ('{user}', '{session}', 'host-1', '{project}', 'bundle:foundation', '2026-01-0{day} 10:00:00',
                 '2026-01-0{day} 16:00:00', 5, {metadata});",
                day = n + 1,
                metadata = quoted(&metadata.to_string()),
            );
            for k in 0..4 {
                let ts = format!("2026-01-0{}T10:00:0{k}.000+00:00", n + 1);
                let data = json!({"event": "tool:pre", "ts": ts, "lvl": "INFO", "turn": 1, "data": {"tool_name": "bash", "k": k}});
                let _ = writeln!(
                    sql,
                    "INSERT INTO events (id, user_id, host_id, project_slug, session_id, sequence, ts, lvl, event, turn, data)
                     VALUES ('{session}_evt_{k}', '{user}', 'host-1', '{project}', '{session}', {k}, '{ts}', 'INFO', 'tool:pre', 1, {});",
                    quoted(&data.to_string()),
                );
            }
        }
        messages().iter().for_each(|message| self.insert(message, &mut sql));
        sql
    }

    fn tables(self) -> String {
        let (time, json, vector) = match self.dialect {
            Dialect::Sqlite => ("TEXT", "TEXT", "TEXT"),
            Dialect::DuckDb => ("TIMESTAMP", "JSON", "FLOAT[64]"),
        };
        let (content, suffix) = (self.content(), self.suffix());
        let mut columns = String::new();
        match self.generation {
            1 => {
                for name in CONTENT_TYPES {
                    let _ = write!(columns, ", {name}_vector{suffix} {vector}");
                }
                columns += &format!(", embedding_model VARCHAR, vector_metadata {json}");
            }
            2 => columns += &format!(", metadata {json}"),
            _ => columns += &format!(", metadata {json}, has_vectors BOOLEAN"),
        }
        let mut sql = format!(
            "CREATE TABLE sessions (user_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL PRIMARY KEY, host_id VARCHAR NOT NULL,
                project_slug VARCHAR, bundle VARCHAR, created {time}, updated {time}, turn_count INTEGER, metadata {json}, synced_at {time});
             CREATE TABLE transcripts (id VARCHAR NOT NULL PRIMARY KEY, user_id VARCHAR NOT NULL, host_id VARCHAR NOT NULL,
                project_slug VARCHAR, session_id VARCHAR NOT NULL, sequence INTEGER NOT NULL, role VARCHAR, {content} {json},
                turn INTEGER, ts {time}{columns}, synced_at {time});
             CREATE TABLE events (id VARCHAR NOT NULL PRIMARY KEY, user_id VARCHAR NOT NULL, host_id VARCHAR NOT NULL,
                project_slug VARCHAR, session_id VARCHAR NOT NULL, sequence INTEGER NOT NULL, ts {time}, lvl VARCHAR, event VARCHAR,
                turn INTEGER, data {json}, data_truncated BOOLEAN, data_size_bytes INTEGER, synced_at {time});
             CREATE INDEX idx_transcripts_session ON transcripts (user_id, project_slug, session_id, sequence);\n"
        );
        if self.generation == 1 {
            sql += "CREATE VIEW transcript_vectors AS SELECT id, user_id, session_id, sequence FROM transcripts;\n";
        } else {
            let _ = writeln!(
                sql,
                "CREATE TABLE schema_meta (key VARCHAR PRIMARY KEY, value VARCHAR);
                 INSERT INTO schema_meta VALUES ('version', '{}');
                 CREATE TABLE transcript_vectors (id VARCHAR NOT NULL PRIMARY KEY, parent_id VARCHAR NOT NULL, user_id VARCHAR NOT NULL,
                    session_id VARCHAR NOT NULL, project_slug VARCHAR, content_type VARCHAR NOT NULL, chunk_index INTEGER NOT NULL DEFAULT 0,
                    total_chunks INTEGER NOT NULL DEFAULT 1, span_start INTEGER NOT NULL DEFAULT 0, span_end INTEGER NOT NULL,
                    token_count INTEGER NOT NULL, source_text VARCHAR NOT NULL, vector{suffix} {vector}, embedding_model VARCHAR,
                    created_at {time});",
                self.generation
            );
        }
        sql
    }

    fn insert(self, message: &OldMessage, sql: &mut String) {
        let (user, session, project) = SESSIONS[message.session];
        let id = format!("{session}_msg_{}", message.sequence);
        let turn = message.turn.map_or_else(|| "NULL".to_owned(), |turn| turn.to_string());
        let (mut names, mut values) = (String::new(), String::new());
        if self.generation == 1 {
            for (content_type, _, vector) in &message.texts {
                names += &format!(", {content_type}_vector{}", self.suffix());
                values += &format!(", {}", self.vector(vector));
            }
            names += ", embedding_model";
            values += &format!(", '{MODEL}'");
        }
        let _ = writeln!(
            sql,
            "INSERT INTO transcripts (id, user_id, host_id, project_slug, session_id, sequence, role, {}, turn, ts{names})
             VALUES ('{id}', '{user}', 'host-1', '{project}', '{session}', {}, '{}', {}, {turn}, '{}'{values});",
            self.content(),
            message.sequence,
            message.role,
            quoted(&message.content.to_string()),
            message.ts,
        );
        if self.generation == 1 {
            return;
        }
        for (content_type, text, vector) in &message.texts {
            let _ = writeln!(
                sql,
                "INSERT INTO transcript_vectors (id, parent_id, user_id, session_id, project_slug, content_type, span_end,
                    token_count, source_text, vector{}, embedding_model, created_at)
                 VALUES ('{id}_{content_type}_0', '{id}', '{user}', '{session}', '{project}', '{content_type}', {}, 9, {}, {},
                    '{MODEL}', '2026-02-01 00:00:00');",
                self.suffix(),
                text.chars().count(),
                quoted(text),
                self.vector(vector),
            );
        }
    }

    fn content(self) -> &'static str {
        match self.dialect {
            Dialect::Sqlite => "content_json",
            Dialect::DuckDb => "content",
        }
    }

    fn suffix(self) -> &'static str {
        match self.dialect {
            Dialect::Sqlite => "_json",
            Dialect::DuckDb => "",
        }
    }

    fn vector(self, vector: &[f32]) -> String {
        match self.dialect {
            Dialect::Sqlite => format!("'{vector:?}'"),
            Dialect::DuckDb => format!("{vector:?}::FLOAT[{}]", vector.len()),
        }
    }
}

/// Panics unless `storage` contains and finds everything from a database of [`PythonLibrary`].
pub async fn assert_upgraded(storage: &SessionStorage) {
    assert_eq!(
        storage.vectors().embedding_space().await.unwrap(),
        Some(EmbeddingSpace { model: MODEL.to_owned(), dimensions: DIMENSIONS })
    );
    let sessions = storage.sessions().search_sessions(&SessionQuery::new(Scope::Everyone)).await.unwrap();
    assert_eq!(sessions.len(), SESSIONS.len());
    for (n, (user, id, project)) in SESSIONS.into_iter().enumerate() {
        let (scope, id) = (Scope::from(UserId::new(user).unwrap()), SessionId::new(id).unwrap());
        let session = sessions.iter().find(|session| session.session_id == id).unwrap();
        let at = |time: &str| Timestamp::parse(&format!("2026-01-0{}T{time}Z", n + 1)).unwrap();
        assert_eq!((session.created, session.updated), (at("10:00:00"), at("16:00:00")));
        assert_eq!((session.user_id.as_str(), session.project_slug.as_str()), (user, project));
        assert_eq!((session.turn_count, session.message_count, session.event_count), (5, 15, 4));
        assert_eq!(session.name, Some(format!("Session {n}")));
        let events = storage.reading().get_event_lines(&scope, &id, EventLines::default()).await.unwrap();
        let whole: Vec<_> =
            events.iter().map(|line| (line.event.ts, line.event.tool_name.as_deref())).collect();
        assert_eq!(whole, [0, 1, 2, 3].map(|k| (at(&format!("10:00:0{k}")), Some("bash"))));
        assert_messages(storage, &scope, n, &id).await;
        let rows = storage.backend().session_rows(&session.key()).await.unwrap();
        assert_eq!((rows.vectors, rows.pending_vectors), (20, 0));
    }
}

async fn assert_messages(storage: &SessionStorage, scope: &Scope, n: usize, id: &SessionId) {
    let stored = storage.reading().get_transcript_lines(scope, id, None, usize::MAX).await.unwrap();
    let expected: Vec<OldMessage> = messages().into_iter().filter(|message| message.session == n).collect();
    assert_eq!(stored.len(), expected.len());
    for (stored, expected) in stored.iter().zip(&expected) {
        assert_eq!(stored.sequence as usize, expected.sequence);
        assert_eq!((stored.role, stored.turn), (expected.role.parse::<Role>().unwrap(), expected.turn));
        assert_eq!(stored.ts, Timestamp::parse(&expected.ts).unwrap());
        assert!(!stored.ts_estimated());
        assert_eq!(stored.content(), expected.content);
        for (content_type, text, vector) in &expected.texts {
            let content_type: ContentType = content_type.parse().unwrap();
            let options = VectorSearchOptions::new(vector.clone())
                .with_content_types([content_type].into_iter().collect())
                .with_limit(1);
            let found = storage.search().vector_search(scope, &options).await.unwrap().results;
            assert_eq!((&found[0].session_id, found[0].sequence), (id, stored.sequence), "{text}");
            assert!(found[0].score > 0.999, "{}", found[0].score);
            let options = SearchOptions::new(text.clone()).with_mode(SearchMode::FullText).with_limit(1);
            let found = storage.search().search_transcripts(scope, &options).await.unwrap().results;
            assert_eq!((&found[0].session_id, found[0].sequence), (id, stored.sequence), "{text}");
        }
    }
}

/// The messages. All their texts and vectors are distinct.
fn messages() -> Vec<OldMessage> {
    let mut messages = Vec::new();
    let mut made = 0;
    for session in 0..SESSIONS.len() {
        for step in 0..5 {
            let at = |second: usize| format!("2026-01-0{}T1{step}:30:{second:02}.250+00:00", session + 1);
            let word = |kind: &str| format!("{kind}{session}x{step}");
            let (question, thought) =
                (format!("How's {} done?", word("query")), format!("Hm, {}.", word("thought")));
            let (answer, output) = (
                format!("Naïve approaches to {} fail.", word("answer")),
                format!("total 1\n{}.log", word("output")),
            );
            let blocks = json!([{"type": "thinking", "thinking": thought}, {"type": "text", "text": answer}]);
            let turn = Some(step as u32 + 1);
            let of_step = [
                ("user", json!(question), turn, vec![("user_query", question)]),
                (
                    "assistant",
                    blocks,
                    turn,
                    vec![("assistant_response", answer), ("assistant_thinking", thought)],
                ),
                // An unknown turn stays unknown.
                ("tool", json!(output), turn.filter(|turn| *turn != 3), vec![("tool_output", output)]),
            ];
            for (n, (role, content, turn, texts)) in of_step.into_iter().enumerate() {
                let texts = texts.into_iter().map(|(content_type, text)| {
                    made += 1;
                    (content_type, text, vector(made))
                });
                let texts = texts.collect();
                messages.push(OldMessage {
                    session,
                    sequence: step * 3 + n,
                    role,
                    content,
                    turn,
                    ts: at(n * 10),
                    texts,
                });
            }
        }
    }
    messages
}

/// A vector of unit length that is unique to this number.
fn vector(n: usize) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    vector[n % DIMENSIONS] = 0.6;
    vector[(n * 7 + 1) % DIMENSIONS] += 0.8;
    vector
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
