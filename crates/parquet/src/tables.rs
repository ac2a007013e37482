//! The files of an archive and their columns.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

/// A file.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) file: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Texts,
    /// JSON as text.
    Json,
    Number,
    Size,
    /// A time in microseconds.
    Time,
    Flag,
}

use Kind::{Flag, Json, Number, Size, Text, Texts, Time};

/// The columns for the owner and the session of a row.
pub(crate) const OWNER: [&str; 3] = ["user_id", "session_id", "project_slug"];

/// The column with the checksum of a session. It is absent in archives of earlier versions, and other programs may drop
/// it.
pub(crate) const CHECKSUM: &str = "checksum";

pub(crate) const SESSIONS: Table = Table {
    file: "sessions.parquet",
    columns: &[
        ("user_id", Text),
        ("session_id", Text),
        ("project_slug", Text),
        ("host_id", Text),
        ("created", Time),
        ("updated", Time),
        ("name", Text),
        ("description", Text),
        ("bundle", Text),
        ("model", Text),
        ("turn_count", Number),
        ("message_count", Number),
        ("event_count", Number),
        ("parent_id", Text),
        ("forked_from_turn", Number),
        ("tags", Texts),
        ("visibility", Text),
        ("org_id", Text),
        ("team_ids", Texts),
        ("shared_at", Time),
        ("working_dir", Text),
        ("first_prompt", Text),
        ("edited", Texts),
        ("source", Text),
        ("moved_to", Text),
        ("metadata_files", Json),
        ("skipped", Json),
        ("sync_state", Text),
        // The checksum of the session's lines.
        (CHECKSUM, Text),
    ],
};

pub(crate) const MESSAGES: Table = Table {
    file: "messages.parquet",
    columns: &[
        ("user_id", Text),
        ("session_id", Text),
        ("project_slug", Text),
        ("sequence", Number),
        ("role", Text),
        ("turn", Number),
        ("ts", Time),
        ("ts_estimated", Flag),
        ("ts_source", Text),
        ("synced_at", Time),
        ("raw", Text),
        ("raw_hex", Text),
        ("turn_summary", Json),
    ],
};

pub(crate) const EVENTS: Table = Table {
    file: "events.parquet",
    columns: &[
        ("user_id", Text),
        ("session_id", Text),
        ("project_slug", Text),
        ("sequence", Number),
        ("event_id", Text),
        ("event_type", Text),
        ("ts", Time),
        ("ts_estimated", Flag),
        ("turn", Number),
        ("level", Text),
        ("tool_name", Text),
        ("error_type", Text),
        ("model", Text),
        ("provider", Text),
        ("summary", Json),
        ("data_size_bytes", Size),
        ("synced_at", Time),
        ("digest", Text),
        ("raw", Text),
        ("raw_hex", Text),
    ],
};

impl Kind {
    /// The type in the file.
    pub(crate) fn stored(self) -> DataType {
        match self {
            Text | Json => DataType::Utf8,
            Texts => DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))),
            Number => DataType::UInt32,
            Size => DataType::UInt64,
            Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Flag => DataType::Boolean,
        }
    }

    /// The type during conversion from JSON: times are numbers, because not all times can be parsed from text.
    pub(crate) fn as_json(self) -> DataType {
        match self {
            Time => DataType::Int64,
            other => other.stored(),
        }
    }
}

impl Table {
    /// The columns, with the types that `of` returns.
    pub(crate) fn schema(&self, of: fn(Kind) -> DataType) -> SchemaRef {
        let fields = self.columns.iter().map(|(name, kind)| Field::new(*name, of(*kind), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}
