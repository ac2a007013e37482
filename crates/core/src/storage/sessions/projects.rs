//! Finds a project by the name or folder that a person types.

use std::collections::{BTreeSet, HashMap};

use regex::Regex;

use super::PAGE;
use crate::{
    Error, ErrorField, Result, Scope,
    backend::SessionQuery,
    model::{ProjectSlug, Session, SessionKey},
    search::SessionFilter,
    storage::store::SessionCatalog,
    text::composed,
};

/// How many generations of sub-agents are followed to find the folder of a session.
const DEEPEST: usize = 64;

impl SessionCatalog<'_> {
    /// The project with the slug `name`, or with `name` as a unique part of its slug, ignoring case. `None` if `scope`
    /// has no such project.
    ///
    /// # Errors
    ///
    /// `Validation` with the candidates if several match; errors of the backend.
    pub async fn find_project(self, scope: &Scope, name: &str) -> Result<Option<ProjectSlug>> {
        let Ok(slug) = ProjectSlug::new(name) else { return Ok(None) };
        if self.has_project(scope, &slug).await? {
            return Ok(Some(slug));
        }
        let part = slug.as_str().to_lowercase();
        let mut found = self.project_slugs(scope).await?;
        found.retain(|slug| slug.as_str().to_lowercase().contains(&part));
        match found.len() {
            0 | 1 => Ok(found.pop_first()),
            _ => Err(Error::validation(ErrorField::ProjectSlug, several(name, &found))),
        }
    }

    /// The projects that a person means with `name`:
    ///
    /// - the project with this slug;
    /// - if `name` has a `*` or a `?`, those whose slug or its end, after a hyphen, matches the pattern;
    /// - otherwise the only one whose slug ends with `name`, after a hyphen, or else all that contain it.
    ///
    /// Case does not matter, except in a whole slug.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn find_projects(self, scope: &Scope, name: &str) -> Result<NamedProjects> {
        let Ok(slug) = ProjectSlug::new(name) else { return Ok(NamedProjects::default()) };
        if self.has_project(scope, &slug).await? {
            return Ok(NamedProjects { slugs: [slug].into(), is_whole: true });
        }
        let mut slugs = self.project_slugs(scope).await?;
        if let Some(pattern) = pattern(slug.as_str()) {
            slugs.retain(|slug| pattern.is_match(slug.as_str()));
            return Ok(NamedProjects { slugs, is_whole: true });
        }
        let part = slug.as_str().to_lowercase();
        slugs.retain(|slug| slug.as_str().to_lowercase().contains(&part));
        let mut ends = slugs.iter().filter(|slug| is_end(&slug.as_str().to_lowercase(), &part));
        if let (Some(only), None) = (ends.next(), ends.next()) {
            slugs = [only.clone()].into();
        }
        Ok(NamedProjects { slugs, is_whole: false })
    }

    async fn has_project(self, scope: &Scope, slug: &ProjectSlug) -> Result<bool> {
        let filter = SessionFilter::default().with_project(slug.clone());
        let query = SessionQuery::new(scope.clone()).with_filter(filter).with_limit(1);
        Ok(!self.search_sessions(&query).await?.is_empty())
    }

    /// The slugs of all projects with sessions in `scope`.
    async fn project_slugs(self, scope: &Scope) -> Result<BTreeSet<ProjectSlug>> {
        let mut slugs = BTreeSet::new();
        let query = SessionQuery::new(scope.clone()).with_limit(PAGE);
        let add = |page: Vec<Session>| slugs.extend(page.into_iter().map(|session| session.project_slug));
        self.store.each_page(query, add).await?;
        Ok(slugs)
    }

    /// The sessions that ran in `folder`, an absolute path: those of the project with the folder's slug, or else those of
    /// another project whose sessions ran there. `None` if there are neither.
    ///
    /// # Errors
    ///
    /// Errors of the backend.
    pub async fn project_of_folder(self, scope: &Scope, folder: &str) -> Result<Option<FolderProject>> {
        let folder = same_path(folder);
        let mut moved = None;
        if let Ok(slug) = ProjectSlug::of_folder(&folder) {
            let found = self.sessions_of_folder(scope, &slug, &folder).await?;
            if found.is_certain {
                return Ok(Some(found.project));
            }
            moved = Some(found.project).filter(|_| found.has_sessions);
        }
        let mut slug = None;
        let look = |page: Vec<Session>| {
            let ran_there =
                |session: &Session| session.working_dir.as_deref().map(same_path).as_ref() == Some(&folder);
            slug =
                slug.take().or_else(|| page.into_iter().find(ran_there).map(|session| session.project_slug));
        };
        self.store.each_page(SessionQuery::new(scope.clone()).with_limit(PAGE), look).await?;
        Ok(match slug {
            Some(slug) => Some(self.sessions_of_folder(scope, &slug, &folder).await?.project),
            None => moved,
        })
    }

    /// The sessions of a project that ran in `folder`.
    async fn sessions_of_folder(
        self,
        scope: &Scope,
        slug: &ProjectSlug,
        folder: &str,
    ) -> Result<FolderSessions> {
        let filter = SessionFilter::default().with_project(slug.clone());
        let query = SessionQuery::new(scope.clone()).with_filter(filter).with_limit(PAGE);
        Ok(FolderSessions::among(&self.all_sessions(query).await?, slug, folder))
    }
}

/// The projects that a name selects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NamedProjects {
    /// Their slugs.
    pub slugs: BTreeSet<ProjectSlug>,
    /// Whether the name is a whole slug or a pattern, and not a part of a slug.
    pub is_whole: bool,
}

/// The slugs that a name with `*` or `?` selects: in whole, or from the beginning of a part after a hyphen.
fn pattern(name: &str) -> Option<Regex> {
    if !name.contains(['*', '?']) {
        return None;
    }
    let parts = name.chars().map(|c| match c {
        '*' => ".*".to_owned(),
        '?' => ".".to_owned(),
        c => regex::escape(c.encode_utf8(&mut [0; 4])),
    });
    Regex::new(&format!("(?is)^(?:.*-)?{}$", parts.collect::<String>())).ok()
}

/// Whether `slug` ends with `part`, in whole or after a hyphen.
fn is_end(slug: &str, part: &str) -> bool {
    slug.strip_suffix(part)
        .is_some_and(|before| before.is_empty() || before.ends_with('-') || part.starts_with('-'))
}

/// The sessions of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderProject {
    /// The project.
    pub slug: ProjectSlug,
    /// Its sessions that ran in the folder.
    pub sessions: SessionFilter,
    /// The other folders in which sessions of the project ran, if `sessions` leaves out some.
    pub others: BTreeSet<String>,
}

/// The sessions of a project, judged by the folder that they ran in.
struct FolderSessions {
    project: FolderProject,
    /// Whether the project has sessions of the folder.
    has_sessions: bool,
    /// Whether nothing says that they ran elsewhere.
    is_certain: bool,
}

impl FolderSessions {
    /// Several folders may have the same slug: `/my-app` and `/my/app`. Only the folder in which a session ran says which
    /// of them is meant. A session that does not name it, or that ran in a folder with another slug (because it was moved),
    /// belongs to the folder with the slug of its project, unless several have it.
    fn among(sessions: &[Session], slug: &ProjectSlug, folder: &str) -> Self {
        let has_slug = |dir: &str| ProjectSlug::of_folder(dir).is_ok_and(|of| of == *slug);
        let is_named_after = has_slug(folder);
        let by_key: HashMap<SessionKey, &Session> =
            sessions.iter().map(|session| (session.key(), session)).collect();
        let folders: Vec<Option<String>> =
            sessions.iter().map(|session| folder_of(session, &by_key)).collect();
        let is_other = |dir: &&String| **dir != *folder && (has_slug(dir) || !is_named_after);
        let others: BTreeSet<String> = folders.iter().flatten().filter(is_other).cloned().collect();
        let mut filter = SessionFilter::default().with_project(slug.clone());
        let (mut has_sessions, mut is_certain) = (false, false);
        for (session, dir) in sessions.iter().zip(&folders) {
            let ran_there = dir.as_deref() == Some(folder);
            let may_have = is_named_after && others.is_empty();
            if ran_there || may_have {
                has_sessions = true;
                is_certain |= ran_there || dir.is_none();
            } else {
                filter = filter.excluding(session.key());
            }
        }
        let project = FolderProject { slug: slug.clone(), sessions: filter, others };
        Self { project, has_sessions, is_certain }
    }
}

/// The folder that a session ran in, or else the one of its parent.
fn folder_of(session: &Session, all: &HashMap<SessionKey, &Session>) -> Option<String> {
    let mut session = session;
    for _ in 0..DEEPEST {
        if let Some(folder) = &session.working_dir {
            return Some(same_path(folder));
        }
        let parent = session.parent_id.clone()?;
        session = all.get(&SessionKey::new(session.user_id.clone(), parent))?;
    }
    None
}

/// A path in the form in which paths are compared: composed, and without a trailing separator.
fn same_path(path: &str) -> String {
    composed(path.trim_end_matches(['/', '\\'])).into_owned()
}

fn several(name: &str, found: &BTreeSet<ProjectSlug>) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<&str> = found.iter().take(SHOWN).map(ProjectSlug::as_str).collect();
    let more = if found.len() > SHOWN { ", …" } else { "" };
    format!("the project name {name:?} is ambiguous: {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_from_the_beginning_of_a_part() {
        let matches = |name: &str, slug: &str| pattern(name).is_some_and(|pattern| pattern.is_match(slug));
        for (name, slug) in [
            ("shop-*", "-home-dana-shop-web"),
            ("Shop-*", "-home-dana-shop-web"),
            ("*web", "-home-dana-shop-web"),
            ("-home-*-web", "-home-dana-shop-web"),
            ("sho?", "-home-dana-shop"),
            ("*", "default"),
            ("a.b*", "-home-a.b"),
        ] {
            assert!(matches(name, slug), "{name} {slug}");
        }
        for (name, slug) in [
            ("shop-*", "-home-dana-workshop-web"),
            ("shop-*", "-home-dana-shop"),
            ("sho?", "-home-dana-shop-web"),
            ("a.b*", "-home-axb"),
            ("shop", "-home-dana-shop"),
        ] {
            assert!(!matches(name, slug), "{name} {slug}");
        }
    }

    #[test]
    fn an_end_begins_after_a_hyphen() {
        for (slug, part) in
            [("-home-shop", "shop"), ("-home-shop", "-shop"), ("shop", "shop"), ("-a-b", "a-b")]
        {
            assert!(is_end(slug, part), "{slug} {part}");
        }
        assert!(!is_end("-home-workshop", "shop") && !is_end("-home-shop-web", "shop"));
    }
}
