//! Reads the metadata files of a session folder into the fields of a session.

use serde_json::{Map, Value};

use crate::{
    Result,
    model::{MetadataFile, Session, SessionField, SessionId, Timestamp},
    text::composed,
};

/// The file of a session that was moved to another machine. Its fields are no metadata of the session.
pub const TRANSFER_FENCE: &str = "transfer-fence.json";
/// Fields with the time when a session began.
const CREATED: [&str; 4] = ["created", "created_at", "started_at", "timestamp"];
/// Fields with the time when it last changed.
const UPDATED: [&str; 4] = ["updated", "updated_at", "ended_at", "last_activity"];

/// A warning about times in a metadata file that can't be read.
#[must_use]
pub fn unreadable_times(file: &Map<String, Value>) -> Option<String> {
    let unreadable = |names: &[&'static str]| {
        let mut given =
            names.iter().filter_map(|name| Some((*name, file.get(*name).filter(|value| !is_empty(value))?)));
        let first = given.clone().next()?.0;
        let is_read = given.any(|(_, value)| Timestamp::from_json(value).is_some());
        (!is_read).then(|| format!("the time in {first:?} can't be read"))
    };
    let reasons: Vec<String> = [CREATED, UPDATED].iter().filter_map(|names| unreadable(names)).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// The contents of a session's metadata files. All fields are optional.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    fields: Map<String, Value>,
    /// The machine that the session was moved to.
    moved_to: Option<String>,
}

impl Metadata {
    /// Reads the files. If several have a field, the first one is used. Of several names, one that a person gave is used
    /// (`name_source` is `manual`), and one that is only a fallback is not.
    ///
    /// # Errors
    ///
    /// `Validation` with the file's name if a file is not a JSON object.
    pub fn read(files: &[MetadataFile]) -> Result<Self> {
        let (mut fields, mut moved_to) = (Map::new(), None);
        let mut best: Option<(NameSource, String)> = None;
        for file in files {
            let object = file.raw.parse_object().map_err(|error| error.with("file", &file.name))?;
            if file.name == TRANSFER_FENCE {
                moved_to = destination(&object).map(str::to_owned);
                continue;
            }
            if let Some((source, name)) = name_in(&object)
                && best.as_ref().is_none_or(|(best, _)| source < *best)
            {
                best = Some((source, name.to_owned()));
            }
            for (name, value) in object {
                if !is_empty(&value) {
                    fields.entry(name).or_insert(value);
                }
            }
        }
        if let Some((_, name)) = best {
            fields.insert("name".to_owned(), Value::String(name));
        }
        Ok(Self { fields, moved_to })
    }

    /// The time at which the session began.
    #[must_use]
    pub fn created(&self) -> Option<Timestamp> {
        self.time(&CREATED)
    }

    /// The time at which it last changed.
    #[must_use]
    pub fn updated(&self) -> Option<Timestamp> {
        self.time(&UPDATED)
    }

    /// Whether the session is a fork: its first messages are copies of its parent's.
    #[must_use]
    pub fn is_fork(&self) -> bool {
        ["forked_from_turn", "forked_from"].iter().any(|name| self.fields.contains_key(*name))
            || self.fork_source().is_some()
    }

    /// The parent of the session.
    #[must_use]
    pub fn parent(&self) -> Option<SessionId> {
        let named = || self.text(&["parent_id", "parent_session_id", "forked_from"]);
        let parent = self.fork_source().map(str::to_owned).or_else(named);
        parent.and_then(|id| SessionId::new(id).ok())
    }

    /// The session whose beginning was copied, in the form of Amplifier's web host: `fork {source_session_id,
    /// through_user_turn, before_user_turn}`.
    fn fork_source(&self) -> Option<&str> {
        self.fork()?.get("source_session_id")?.as_str().filter(|id| !id.is_empty())
    }

    fn fork(&self) -> Option<&Map<String, Value>> {
        self.fields.get("fork")?.as_object()
    }

    /// The last turn that was copied from the parent.
    fn forked_from_turn(&self) -> Option<u32> {
        let of_fork = |name: &str| self.fork()?.get(name)?.as_u64();
        let through = || of_fork("through_user_turn");
        let before = || of_fork("before_user_turn").map(|turn| turn.saturating_sub(1));
        let turn =
            self.fields.get("forked_from_turn").and_then(Value::as_u64).or_else(through).or_else(before);
        turn.and_then(|turn| turn.try_into().ok())
    }

    /// The model of the session.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        self.text(&["model"])
    }

    /// The working folder of the session.
    #[must_use]
    pub fn working_dir(&self) -> Option<String> {
        self.text(&["working_dir", "cwd"])
    }

    /// Sets the fields of `session` from the files, except counts, times, and fields that a person set. The model is
    /// not changed if the files have none.
    pub fn apply(&self, session: &mut Session) {
        if !session.edited.contains(&SessionField::Name) {
            session.name = self.name(&["name", "title"]);
        }
        if !session.edited.contains(&SessionField::Description) {
            session.description = self.text(&["description"]);
        }
        if !session.edited.contains(&SessionField::Tags) {
            session.tags = self.texts("tags");
        }
        session.bundle = self.name(&["bundle", "bundle_name"]);
        session.model = self.model().or(session.model.take());
        self.apply_parent(session);
        session.working_dir = self.working_dir();
        session.moved_to.clone_from(&self.moved_to);
    }

    /// Sets the parent of `session`, and the last turn that was copied from it.
    pub(crate) fn apply_parent(&self, session: &mut Session) {
        session.parent_id = self.parent();
        session.forked_from_turn = self.forked_from_turn();
    }

    /// As [`Self::text`], for a name that people compare with others.
    fn name(&self, names: &[&str]) -> Option<String> {
        self.text(names).map(|name| composed(&name).into_owned())
    }

    fn text(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.fields.get(*name)?.as_str()).map(str::to_owned)
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let list = self.fields.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(|text| composed(text).into_owned()).collect()
    }

    fn time(&self, names: &[&str]) -> Option<Timestamp> {
        names.iter().find_map(|name| Timestamp::from_json(self.fields.get(*name)?))
    }
}

/// The origin of a session's name. Earlier variants take precedence over later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameSource {
    Manual,
    /// A model, or unknown.
    Generated,
    Fallback,
}

/// The name in a metadata file.
fn name_in(file: &Map<String, Value>) -> Option<(NameSource, &str)> {
    let given = |field: &&str| file.get(*field).filter(|name| !is_empty(name))?.as_str();
    let name = ["name", "title"].iter().find_map(given)?;
    let source = match file.get("name_source").and_then(Value::as_str) {
        Some("manual") => NameSource::Manual,
        Some("fallback") => NameSource::Fallback,
        _ => NameSource::Generated,
    };
    Some((source, name))
}

/// The machine that a session was moved to, according to its fence. While a session arrives, its folder there has a fence
/// too, with the role `destination`.
fn destination(fence: &Map<String, Value>) -> Option<&str> {
    let is_here = fence.get("role").is_some_and(|role| role == "destination");
    fence.get("destination_host").filter(|host| !is_here && !is_empty(host))?.as_str()
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HostId, ProjectSlug, RawJson, SessionKey, UserId};

    fn file(name: &str, text: &str) -> MetadataFile {
        MetadataFile { name: name.into(), raw: RawJson::from(text) }
    }

    fn session() -> Session {
        let key = SessionKey::new(UserId::new("u").unwrap(), SessionId::new("s").unwrap());
        Session::new(key, HostId::new("h").unwrap(), ProjectSlug::unnamed(), Timestamp::from_micros(0))
    }

    #[test]
    fn the_first_file_takes_precedence() {
        let metadata = Metadata::read(&[
            file("metadata.json", r#"{"name":"mine","parent_id":""}"#),
            file(
                "context-intelligence/metadata.json",
                r#"{"name":"other","parent_id":"p","started_at":"2026-01-05T08:00:00Z","working_dir":"/w"}"#,
            ),
        ])
        .unwrap();
        let mut session = session();
        metadata.apply(&mut session);
        assert_eq!(session.name.as_deref(), Some("mine"));
        assert_eq!(session.parent_id.as_ref().map(SessionId::as_str), Some("p"));
        assert_eq!(session.working_dir.as_deref(), Some("/w"));
        assert_eq!(metadata.created(), Some(Timestamp::parse("2026-01-05T08:00:00Z").unwrap()));
        assert_eq!(metadata.updated(), None);
    }

    #[test]
    fn a_name_that_a_person_gave_takes_precedence() {
        let name_of = |own: &str, other: &str| {
            let files = [file("metadata.json", own), file("context-intelligence/metadata.json", other)];
            Metadata::read(&files).unwrap().text(&["name", "title"])
        };
        let generated = r#"{"name":"generated","name_source":"generated"}"#;
        let manual = r#"{"name":"mine","name_source":"manual"}"#;
        let fallback = r#"{"name":"fallback","name_source":"fallback"}"#;
        for (own, other, expected) in [
            (generated, manual, "mine"),
            (manual, generated, "mine"),
            (r#"{"name":"old"}"#, manual, "mine"),
            (fallback, generated, "generated"),
            (fallback, r#"{"title":"old"}"#, "old"),
            (generated, r#"{"name":"old"}"#, "generated"),
            (r#"{"name":" ","name_source":"manual"}"#, fallback, "fallback"),
        ] {
            assert_eq!(name_of(own, other).as_deref(), Some(expected), "{own} {other}");
        }
    }

    #[test]
    fn names_have_one_form() {
        let text = r#"{"name":"cafe\u0301","tags":["e\u0301"],"bundle":"u\u0308","working_dir":"/e\u0301"}"#;
        let mut session = session();
        Metadata::read(&[file("metadata.json", text)]).unwrap().apply(&mut session);
        assert_eq!((session.name.as_deref(), session.bundle.as_deref()), (Some("café"), Some("ü")));
        assert_eq!(session.tags, ["é"]);
        assert_eq!(session.working_dir.as_deref(), Some("/e\u{301}"), "it is a path, byte for byte");
    }

    #[test]
    fn a_fence_says_where_the_session_went_and_nothing_else() {
        let fence = r#"{"version":1,"destination_host":"desk","role":"source","phase":"staged","name":"no"}"#;
        let of = |fence: &str| {
            let files = [file("metadata.json", r#"{"destination_host":"no"}"#), file(TRANSFER_FENCE, fence)];
            let mut session = session();
            Metadata::read(&files).unwrap().apply(&mut session);
            session
        };
        assert_eq!(of(fence).moved_to.as_deref(), Some("desk"));
        assert_eq!(of(fence).name, None);
        let arriving = r#"{"destination_host":"desk","role":"destination"}"#;
        for other in ["{}", r#"{"destination_host":" "}"#, r#"{"destination_host":7}"#, arriving] {
            assert_eq!(of(other).moved_to, None, "{other}");
        }
    }

    #[test]
    fn counts_in_the_files_are_not_used() {
        let key = SessionKey::new(UserId::new("u").unwrap(), SessionId::new("s").unwrap());
        let mut session =
            Session::new(key, HostId::new("h").unwrap(), ProjectSlug::unnamed(), Timestamp::from_micros(0));
        let stated = r#"{"turn_count":57,"message_count":57,"parent_id":"p"}"#;
        Metadata::read(&[file("metadata.json", stated)]).unwrap().apply(&mut session);
        assert_eq!((session.turn_count, session.message_count), (0, 0));
    }

    #[test]
    fn forks_of_the_web_host_have_a_parent_and_a_turn() {
        let of = |text: &str| {
            let metadata = Metadata::read(&[file("metadata.json", text)]).unwrap();
            let parent = metadata.parent().map(|parent| parent.to_string());
            (parent, metadata.forked_from_turn(), metadata.is_fork())
        };
        let fork = |rest: &str| format!(r#"{{"parent_id":null,"fork":{{"source_session_id":"p"{rest}}}}}"#);
        let parent = Some("p".to_owned());
        assert_eq!(of(&fork(r#","through_user_turn":3"#)), (parent.clone(), Some(3), true));
        assert_eq!(
            of(&fork(r#","through_user_turn":null,"before_user_turn":3"#)),
            (parent.clone(), Some(2), true)
        );
        assert_eq!(of(&fork(r#","before_user_turn":0"#)), (parent.clone(), Some(0), true));
        assert_eq!(of(&fork("")), (parent, None, true));
        assert_eq!(of(r#"{"fork":true}"#), (None, None, false));
        assert_eq!(of(r#"{"fork":{"source_session_id":"a/b"}}"#).0, None);
    }

    #[test]
    fn a_broken_file_is_named() {
        let error = Metadata::read(&[file("metadata.json", "{")]).unwrap_err();
        assert_eq!(error.context("file"), Some("metadata.json"));
    }
}
