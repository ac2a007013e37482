//! Editing a session: name, description, tags, and visibility.

use crate::{
    Error, ErrorField, Result,
    backend::{SessionChange, StorageBackendExt, StoredSession},
    metadata::Metadata,
    model::{MetadataFile, Session, SessionField, SessionKey, Visibility},
    storage::store::SessionCatalog,
    text::composed,
};

/// Changes to the fields that a user can set. Later syncs do not change fields that were set.
///
/// ```
/// use amplifier_session_core::storage::SessionEdit;
///
/// let edit = SessionEdit::default().set_name("Payment retries").add_tags(["incident"]);
/// assert!(!edit.is_empty());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionEdit {
    steps: Vec<EditStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum EditStep {
    Name(Option<String>),
    Description(Option<String>),
    Tags(Vec<String>),
    AddTags(Vec<String>),
    RemoveTags(Vec<String>),
    Reset(SessionField),
}

impl SessionEdit {
    /// Sets the name; `None` or white space clears it.
    #[must_use]
    pub fn set_name<'a>(self, name: impl Into<Option<&'a str>>) -> Self {
        self.with(EditStep::Name(given(name.into()).map(|name| composed(&name).into_owned())))
    }

    /// Sets the description; `None` or white space clears it.
    #[must_use]
    pub fn set_description<'a>(self, description: impl Into<Option<&'a str>>) -> Self {
        self.with(EditStep::Description(given(description.into())))
    }

    /// Sets all tags.
    #[must_use]
    pub fn set_tags(self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with(EditStep::Tags(collected(tags)))
    }

    /// Adds tags, without duplicates.
    #[must_use]
    pub fn add_tags(self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with(EditStep::AddTags(collected(tags)))
    }

    /// Removes tags, if present.
    #[must_use]
    pub fn remove_tags(self, tags: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with(EditStep::RemoveTags(collected(tags)))
    }

    /// Discards the user's value: the field follows the session's files, now and after later syncs.
    #[must_use]
    pub fn reset(self, field: SessionField) -> Self {
        self.with(EditStep::Reset(field))
    }

    /// Whether the edit changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn with(mut self, step: EditStep) -> Self {
        self.steps.push(step);
        self
    }

    fn apply(&self, stored: &StoredSession) -> Result<Session> {
        self.apply_to(&stored.session, &stored.metadata_files)
    }

    /// The session with these metadata files after the edit.
    pub(in crate::storage) fn apply_to(&self, session: &Session, files: &[MetadataFile]) -> Result<Session> {
        let mut session = session.clone();
        for step in &self.steps {
            let field = match step {
                EditStep::Name(name) => {
                    session.name.clone_from(name);
                    SessionField::Name
                }
                EditStep::Description(description) => {
                    session.description.clone_from(description);
                    SessionField::Description
                }
                EditStep::Tags(tags) => {
                    session.tags.clear();
                    add_tags(&mut session.tags, tags)?;
                    SessionField::Tags
                }
                EditStep::AddTags(tags) => {
                    add_tags(&mut session.tags, tags)?;
                    SessionField::Tags
                }
                EditStep::RemoveTags(tags) => {
                    session.tags.retain(|tag| tags.iter().all(|removed| removed.trim() != tag));
                    SessionField::Tags
                }
                EditStep::Reset(field) => {
                    // The field follows the metadata files again, so it no longer counts as edited.
                    reset(&mut session, *field, &Metadata::read(files)?);
                    continue;
                }
            };
            session.edited.insert(field);
        }
        check_length(ErrorField::Name, session.name.as_deref(), 500)?;
        check_length(ErrorField::Description, session.description.as_deref(), 10_000)?;
        Ok(session)
    }
}

/// Sets one field from the files. Others do not change, because a session may have been created without files.
fn reset(session: &mut Session, field: SessionField, files: &Metadata) {
    session.edited.remove(&field);
    let mut described = session.clone();
    files.apply(&mut described);
    match field {
        SessionField::Name => session.name = described.name,
        SessionField::Description => session.description = described.description,
        SessionField::Tags => session.tags = described.tags,
    }
}

fn given(text: Option<&str>) -> Option<String> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn collected(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    names.into_iter().map(|name| composed(&name.into()).into_owned()).collect()
}

fn add_tags(tags: &mut Vec<String>, added: &[String]) -> Result<()> {
    for tag in added.iter().map(|tag| tag.trim()) {
        if tag.is_empty() || tag.chars().any(char::is_control) {
            return Err(Error::validation(
                ErrorField::Tags,
                "a tag must not be empty or contain control characters",
            ));
        }
        check_length(ErrorField::Tags, Some(tag), 100)?;
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    Ok(())
}

fn check_length(field: ErrorField, text: Option<&str>, most: usize) -> Result<()> {
    if text.is_some_and(|text| text.chars().nth(most).is_some()) {
        return Err(Error::validation(field, format!("must be at most {most} characters")));
    }
    Ok(())
}

/// Who can see a session besides its owner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sharing {
    /// The visibility.
    pub visibility: Visibility,
    /// The teams, for [`Visibility::Team`].
    pub team_ids: Vec<String>,
    /// The organisation, for [`Visibility::Org`].
    pub org_id: Option<String>,
}

impl Sharing {
    /// Shares with nobody.
    #[must_use]
    pub fn private() -> Self {
        Self::default()
    }

    /// Shares with the members of these teams.
    #[must_use]
    pub fn teams(team_ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { visibility: Visibility::Team, team_ids: collected(team_ids), org_id: None }
    }

    /// Shares with the members of an organisation.
    #[must_use]
    pub fn org(org_id: impl Into<String>) -> Self {
        Self {
            visibility: Visibility::Org,
            team_ids: Vec::new(),
            org_id: Some(composed(&org_id.into()).into_owned()),
        }
    }

    /// Shares with everyone who can read the store.
    #[must_use]
    pub fn public() -> Self {
        Self { visibility: Visibility::Public, ..Self::default() }
    }

    fn validate(&self) -> Result<()> {
        let is_blank = |text: &String| text.trim().is_empty();
        if self.team_ids.iter().any(is_blank)
            || (self.visibility == Visibility::Team && self.team_ids.is_empty())
        {
            return Err(Error::validation(
                ErrorField::TeamIds,
                "must name at least one team, and no name may be empty",
            ));
        }
        if self.org_id.as_ref().is_some_and(is_blank)
            || (self.visibility == Visibility::Org && self.org_id.is_none())
        {
            return Err(Error::validation(ErrorField::OrgId, "must not be empty"));
        }
        Ok(())
    }
}

impl SessionCatalog<'_> {
    /// Changes the fields that a user can set, on behalf of the owner. Returns the changed session.
    ///
    /// # Errors
    ///
    /// `SessionNotFound`; `Validation` if a name (500 characters), description (10,000) or tag (100) is too long or
    /// a tag is empty; errors of the backend.
    pub async fn update_session(self, key: &SessionKey, edit: &SessionEdit) -> Result<Session> {
        self.change_session(key, |stored| edit.apply(stored)).await
    }

    /// Sets who can see a session besides its owner, on behalf of the owner. [`Session::shared_at`] records when it was
    /// first shared. Returns the changed session.
    ///
    /// # Errors
    ///
    /// `SessionNotFound`; `Validation` if teams or organisation are missing; errors of the backend.
    pub async fn share_session(self, key: &SessionKey, sharing: &Sharing) -> Result<Session> {
        sharing.validate()?;
        let now = self.store.now();
        let share = |stored: &StoredSession| {
            let mut session = stored.session.clone();
            session.visibility = sharing.visibility;
            session.team_ids.clone_from(&sharing.team_ids);
            session.org_id.clone_from(&sharing.org_id);
            if sharing.visibility != Visibility::Private {
                session.shared_at = session.shared_at.or(Some(now));
            }
            Ok(session)
        };
        self.change_session(key, share).await
    }

    async fn change_session(
        self,
        key: &SessionKey,
        change: impl Fn(&StoredSession) -> Result<Session>,
    ) -> Result<Session> {
        self.store
            .retry_conflicts(|| async {
                let stored = self.store.backend.get_session(key).await?;
                let stored = stored.ok_or_else(|| Error::session_not_found(&key.session_id))?;
                self.store.check_unchanged(&stored.session)?;
                let session = change(&stored)?;
                if session != stored.session {
                    self.store
                        .backend
                        .write_one(SessionChange::new(session.clone(), Some(stored.version)))
                        .await?;
                }
                Ok(session)
            })
            .await
    }
}
