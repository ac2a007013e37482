//! The choice of the sessions to push.

use std::collections::BTreeSet;

use regex::Regex;

use crate::{
    Error, ErrorField, Result,
    model::{ProjectSlug, Session, SessionId, SessionSource},
    search::SessionFilter,
};

/// The sessions of a user to push: by default those of Amplifier, whatever their folder is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PushSelection {
    /// Only sessions that these programs wrote. Default: Amplifier.
    pub sources: BTreeSet<SessionSource>,
    /// Only sessions that match.
    pub filter: SessionFilter,
    /// Only these sessions. Default: all.
    pub sessions: Option<BTreeSet<SessionId>>,
    excluded: Vec<ExcludedFolder>,
}

/// A pattern of folders.
#[derive(Debug, Clone)]
struct ExcludedFolder {
    folders: Regex,
    /// The project of the folder, for sessions whose folder is not known.
    project: Option<ProjectSlug>,
}

impl Default for PushSelection {
    fn default() -> Self {
        Self {
            sources: [SessionSource::Amplifier].into(),
            filter: SessionFilter::default(),
            sessions: None,
            excluded: Vec::new(),
        }
    }
}

impl PushSelection {
    setters! {
        /// Only sessions that these programs wrote.
        with_sources(sources: BTreeSet<SessionSource>);
        /// Only sessions that match.
        with_filter(filter: SessionFilter);
        /// Only these sessions.
        with_sessions(sessions: Option<BTreeSet<SessionId>>);
    }

    /// Leaves out sessions that worked in a folder that matches a pattern, or below it. `*` stands for any characters
    /// but `/`, `**` for any characters. A session whose folder is not known is left out if its project is that of a
    /// pattern without `*`, or one below it.
    ///
    /// # Errors
    ///
    /// `Validation` (`exclude`) if a pattern does not begin with `/`, `*` or a drive letter.
    pub fn without_folders(mut self, patterns: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        for pattern in patterns {
            self.excluded.push(ExcludedFolder::new(pattern.as_ref())?);
        }
        Ok(self)
    }

    /// Whether a session is pushed.
    #[must_use]
    pub fn admits(&self, session: &Session) -> bool {
        self.sources.contains(&session.source)
            && self.sessions.as_ref().is_none_or(|ids| ids.contains(&session.session_id))
            && self.filter.admits(session)
            && !self.excluded.iter().any(|folder| folder.has(session))
    }
}

impl ExcludedFolder {
    fn new(pattern: &str) -> Result<Self> {
        let given = pattern.trim().replace('\\', "/");
        let pattern = given.trim_end_matches('/');
        let has_drive = pattern.get(1..3).is_some_and(|start| start.starts_with(':'));
        if pattern.is_empty() || !(pattern.starts_with(['/', '*']) || has_drive) {
            return Err(Error::validation(
                ErrorField::Exclude,
                "must be an absolute folder, or begin with `*`",
            )
            .with("value", format_args!("{given:?}")));
        }
        let expression = regex::escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*");
        let folders = Regex::new(&format!("(?s)^{expression}(/.*)?$")).map_err(|source| {
            Error::validation(ErrorField::Exclude, "is too long a pattern").with_source(source)
        })?;
        let project = if pattern.contains('*') { None } else { ProjectSlug::of_folder(pattern).ok() };
        Ok(Self { folders, project })
    }

    fn has(&self, session: &Session) -> bool {
        if let Some(folder) = &session.working_dir {
            return self.folders.is_match(&folder.replace('\\', "/"));
        }
        let slug = session.project_slug.as_str();
        self.project.as_ref().is_some_and(|project| {
            slug.strip_prefix(project.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HostId, SessionKey, Timestamp, UserId};

    fn session(folder: Option<&str>, slug: &str) -> Session {
        let key = SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap());
        let (host, slug) = (HostId::new("laptop").unwrap(), ProjectSlug::new(slug).unwrap());
        let session = Session::new(key, host, slug, Timestamp::from_micros(0));
        Session { working_dir: folder.map(str::to_owned), ..session }
    }

    #[test]
    fn folders_are_left_out_with_everything_below_them() {
        let without =
            PushSelection::default().without_folders(["/home/ana/private/", "**/.secret*"]).unwrap();
        for (folder, expected) in [
            ("/home/ana/private", false),
            ("/home/ana/private/notes", false),
            ("/home/ana/private2", true),
            ("/home/ana/work", true),
            ("/srv/x/.secrets/y", false),
            ("/srv/x/secrets", true),
        ] {
            assert_eq!(without.admits(&session(Some(folder), "p")), expected, "{folder}");
        }
        for (slug, expected) in
            [("-home-ana-private", false), ("-home-ana-private-notes", false), ("-home-ana-work", true)]
        {
            assert_eq!(without.admits(&session(None, slug)), expected, "{slug}");
        }
        for wrong in ["", "work", "./x"] {
            assert!(PushSelection::default().without_folders([wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_sessions_of_amplifier_are_pushed_until_other_programs_are_named() {
        let other = Session { source: SessionSource::AmplifierAgent, ..session(None, "p") };
        let selection = PushSelection::default();
        assert!(selection.admits(&session(None, "p")) && !selection.admits(&other));
        let selection = selection.with_sources([SessionSource::AmplifierAgent].into());
        assert!(selection.admits(&other) && !selection.admits(&session(None, "p")));
    }
}
