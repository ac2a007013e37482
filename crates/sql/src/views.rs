//! The views for people and their tools, defined once for every database: the content of raw lines, and ids composed of
//! other columns.
//!
//! A column is an expression over the tables. Parts that differ between databases are in braces, and a [`ViewDialect`]
//! defines them.
//!
//! The content of lines comes from functions of this program, [`line_field`] and [`chunk_text`], which each backend
//! registers with its connections. They read a line as the rest of the program does.

use amplifier_session_core::{
    content::MessageLine,
    model::{ContentType, RawJson, Role, SessionSource},
};

use crate::rows;

/// The SQL of a database for the names in braces.
pub type ViewDialect = [(&'static str, &'static str)];

/// A view.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    columns: &'static [(&'static str, &'static str)],
    rows: &'static str,
}

impl View {
    /// The names of its columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(name, _)| *name)
    }

    /// The view as a query.
    #[must_use]
    pub fn query(&self, dialect: &ViewDialect) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|(name, sql)| format!("{sql} AS {name}")).collect();
        let query = format!("SELECT {}\nFROM {}", columns.join(",\n    "), self.rows);
        let query =
            dialect.iter().fold(query, |query, (name, sql)| query.replace(&format!("{{{name}}}"), sql));
        query
            .replace("{has_vectors}", &rows::has_vectors("t.vectors"))
            .replace("{plain}", &rows::encoding::PLAIN.to_string())
    }
}

/// Messages, with the content of their lines.
pub const TRANSCRIPTS_WITH_CONTENT: View = View {
    name: "transcripts_with_content",
    columns: &[
        ("id", "t.session_id || '_msg_' || t.sequence"),
        ("user_id", "t.user_id"),
        ("host_id", "s.host_id"),
        ("project_slug", "s.project_slug"),
        ("session_id", "t.session_id"),
        ("sequence", "t.sequence"),
        ("role", "t.role"),
        ("turn", "t.turn"),
        ("ts", "t.ts"),
        ("ts_estimated", "t.ts_estimated"),
        ("ts_source", "t.ts_source"),
        ("synced_at", "t.synced_at"),
        ("has_vectors", "{has_vectors}"),
        ("content", "{content}"),
        ("metadata", "{metadata}"),
        ("raw", "t.raw"),
    ],
    rows: "transcripts t JOIN sessions s ON s.user_id = t.user_id AND s.session_id = t.session_id",
};

/// The texts from which the vectors of the current generation were made. The vectors themselves are in the table.
pub const VECTORS_WITH_CONTEXT: View = View {
    name: "vectors_with_context",
    columns: &[
        ("id", "v.session_id || '_msg_' || v.sequence || '_' || v.content_type || '_' || v.chunk_index"),
        ("parent_id", "v.session_id || '_msg_' || v.sequence"),
        ("user_id", "v.user_id"),
        ("host_id", "s.host_id"),
        ("project_slug", "s.project_slug"),
        ("session_id", "v.session_id"),
        ("sequence", "v.sequence"),
        ("role", "t.role"),
        ("turn", "t.turn"),
        ("ts", "t.ts"),
        ("content_type", "v.content_type"),
        ("chunk_index", "v.chunk_index"),
        ("total_chunks", "v.total_chunks"),
        ("span_start", "v.span_start"),
        ("span_end", "v.span_end"),
        ("token_count", "v.token_count"),
        (
            "source_text",
            "chunk_text(v.session_id, t.role, t.raw, v.content_type, CAST(v.span_start AS BIGINT), \
             CAST(v.span_end AS BIGINT))",
        ),
        ("embedding_model", "v.embedding_model"),
        ("created_at", "v.created_at"),
    ],
    rows: "transcript_vectors v
JOIN transcripts t ON t.user_id = v.user_id AND t.session_id = v.session_id AND t.sequence = v.sequence
JOIN sessions s ON s.user_id = v.user_id AND s.session_id = v.session_id{current}",
};

/// Events, with the content of their lines.
pub const EVENTS_WITH_DATA: View = View {
    name: "events_with_data",
    columns: &[
        ("user_id", "e.user_id"),
        ("host_id", "s.host_id"),
        ("project_slug", "s.project_slug"),
        ("session_id", "e.session_id"),
        ("sequence", "e.sequence"),
        ("event_id", "e.event_id"),
        ("event_type", "e.event_type"),
        ("ts", "e.ts"),
        ("ts_estimated", "e.ts_estimated"),
        ("synced_at", "e.synced_at"),
        ("turn", "e.turn"),
        ("level", "e.level"),
        ("tool_name", "e.tool_name"),
        ("error_type", "e.error_type"),
        ("model", "e.model"),
        ("provider", "e.provider"),
        ("summary", "{summary}"),
        ("data_size_bytes", "e.data_size_bytes"),
        ("is_chunked", "e.is_chunked"),
        ("chunk_count", "e.chunk_count"),
        ("data", "{data}"),
    ],
    rows: "events e JOIN sessions s ON s.user_id = e.user_id AND s.session_id = e.session_id",
};

/// Every view.
pub const VIEWS: [View; 3] = [TRANSCRIPTS_WITH_CONTENT, VECTORS_WITH_CONTEXT, EVENTS_WITH_DATA];

/// The field `name` of a message's line as JSON. `None` if the line has no such field or can't be read.
#[must_use]
pub fn line_field(session_id: &str, role: &str, raw: &[u8], name: &str) -> Option<String> {
    let line = message_line(session_id, role, raw)?;
    line.fields().get(name).map(ToString::to_string)
}

/// The characters from `start` to `end` of a message's text. `None` if it has no text of this type.
#[must_use]
pub fn chunk_text(
    session_id: &str,
    role: &str,
    raw: &[u8],
    content_type: &str,
    (start, end): (i64, i64),
) -> Option<String> {
    let content_type: ContentType = content_type.parse().ok()?;
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    let texts = message_line(session_id, role, raw)?.texts();
    let text = texts.into_iter().find(|text| text.content_type == content_type)?;
    Some(text.text.chars().skip(start).take(end.saturating_sub(start)).collect())
}

fn message_line(session_id: &str, role: &str, raw: &[u8]) -> Option<MessageLine> {
    let role: Role = role.parse().ok()?;
    Some(MessageLine::stored(&RawJson::new(raw), role, SessionSource::split(session_id).0))
}
