//! Sessions, from rows of `sessions`.

use amplifier_session_core::{
    Result,
    metadata::Metadata,
    model::{MetadataFile, RawJson, Session, SessionKey, Timestamp},
};

use crate::{ids, tables::OldRow};

/// The columns of a session that are read.
pub(crate) const COLUMNS: [&str; 20] = [
    "user_id",
    "session_id",
    "host_id",
    "project_slug",
    "bundle",
    "created",
    "updated",
    "turn_count",
    "metadata",
    "synced_at",
    "name",
    "description",
    "model",
    "parent_id",
    "forked_from_turn",
    "tags",
    "visibility",
    "org_id",
    "team_ids",
    "shared_at",
];

/// A session according to its row, before its messages and events are read.
#[derive(Debug)]
pub(crate) struct OldSession {
    pub(crate) session: Session,
    /// Its metadata, unchanged.
    pub(crate) files: Vec<MetadataFile>,
    /// When it began and last changed, if known.
    pub(crate) created: Option<Timestamp>,
    pub(crate) updated: Option<Timestamp>,
}

impl OldSession {
    /// The session of a row. If the session has no row, `row` is one of its messages or events.
    pub(crate) fn of(
        key: SessionKey,
        row: Option<&OldRow<'_>>,
        is_own: bool,
        now: Timestamp,
    ) -> Result<Self> {
        let text = |name| row.and_then(|row| row.text(&[name]));
        let (host, project) = (ids::host(text("host_id"))?, ids::project(text("project_slug"))?);
        let mut session = Session::new(key, host, project, now);
        let Some(row) = row.filter(|_| is_own) else {
            return Ok(Self { session, files: Vec::new(), created: None, updated: None });
        };
        let raw = row.text(&["metadata"]).map(|metadata| RawJson::from(metadata.as_str()));
        let files: Vec<_> =
            raw.into_iter().map(|raw| MetadataFile { name: "metadata.json".to_owned(), raw }).collect();
        // Unreadable metadata is kept as well.
        let metadata = Metadata::read(&files).unwrap_or_default();
        metadata.apply(&mut session);
        apply(row, &mut session);
        let created = row.time("created").or_else(|| metadata.created());
        let updated = row.time("updated").or_else(|| metadata.updated());
        Ok(Self { session, files, created, updated })
    }
}

/// Applies the columns. They take precedence over the metadata: later versions of the library could set them.
fn apply(row: &OldRow<'_>, session: &mut Session) {
    let given = |name| row.text(&[name]).filter(|text| !text.trim().is_empty());
    let fill = |field: &mut Option<String>, name| {
        if let Some(text) = given(name) {
            *field = Some(text);
        }
    };
    fill(&mut session.name, "name");
    fill(&mut session.description, "description");
    fill(&mut session.bundle, "bundle");
    fill(&mut session.model, "model");
    fill(&mut session.org_id, "org_id");
    if let Some(parent) = given("parent_id").and_then(|id| ids::session(&id).ok()) {
        session.parent_id = Some(parent);
    }
    session.forked_from_turn = row.turn("forked_from_turn").or(session.forked_from_turn);
    let list = |name| given(name).and_then(|text| serde_json::from_str::<Vec<String>>(&text).ok());
    session.tags = list("tags").filter(|tags| !tags.is_empty()).unwrap_or(std::mem::take(&mut session.tags));
    session.team_ids = list("team_ids").unwrap_or_default();
    session.visibility = given("visibility").and_then(|text| text.parse().ok()).unwrap_or_default();
    session.shared_at = row.time("shared_at");
    session.turn_count = row.turn("turn_count").unwrap_or(0);
}
