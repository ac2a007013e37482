//! Sets the name and the description of a session.

use amplifier_session_core::{model::SessionField, storage::SessionEdit};
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Api, ApiAnswer, ApiError, InvalidRequest, views::ChangedView};

/// Changes to fields of a session. A sync does not change what is set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditRequest {
    /// The address of the session.
    pub session: String,
    /// The new name, at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The new description, at most 10,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Fields to make empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clear: Vec<SessionField>,
    /// Fields that follow the session's files again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reset: Vec<SessionField>,
}

impl EditRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::NothingToChange`]; [`InvalidRequest::FieldGivenTwice`].
    pub fn check(&self) -> Result<(), ApiError> {
        let set = [
            (SessionField::Name, self.name.is_some()),
            (SessionField::Description, self.description.is_some()),
        ];
        let set = set.into_iter().filter_map(|(field, is_set)| is_set.then_some(field));
        let mut named: Vec<SessionField> = Vec::new();
        for field in set.chain(self.clear.iter().copied()).chain(self.reset.iter().copied()) {
            if named.contains(&field) {
                return Err(InvalidRequest::FieldGivenTwice(field).into());
            }
            named.push(field);
        }
        if named.is_empty() {
            return Err(InvalidRequest::NothingToChange.into());
        }
        Ok(())
    }

    fn edit(&self) -> SessionEdit {
        let mut edit = SessionEdit::default();
        if let Some(name) = &self.name {
            edit = edit.set_name(name.as_str());
        }
        if let Some(description) = &self.description {
            edit = edit.set_description(description.as_str());
        }
        edit = self.clear.iter().fold(edit, |edit, field| match field {
            SessionField::Name => edit.set_name(None),
            SessionField::Description => edit.set_description(None),
            SessionField::Tags => edit.set_tags(Vec::<String>::new()),
        });
        self.reset.iter().fold(edit, |edit, field| edit.reset(*field))
    }
}

impl Api<'_> {
    /// Changes fields of one of the caller's sessions.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid or the right to write is missing; `Validation` if a text is too long;
    /// `SessionNotFound`; errors of the store.
    #[crate::compiled_here]
    pub async fn edit(&self, request: &EditRequest) -> Result<ApiAnswer<ChangedView>, ApiError> {
        let scope = self.caller.scope_of_changes(AccessRight::Write)?;
        request.check()?;
        let mut notices = Vec::new();
        let session = self.find(&scope, &request.session, &mut notices).await?.session;
        let session = self.storage.sessions().update_session(&session.key(), &request.edit()).await?;
        Ok(ApiAnswer { response: ChangedView::from(&session), notices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_changed_at_most_once() {
        let name = || Some("Payment retries".to_owned());
        let checked = |request: EditRequest| request.check();
        assert!(checked(EditRequest { name: name(), ..EditRequest::default() }).is_ok());
        let tags = vec![SessionField::Tags];
        assert!(checked(EditRequest { name: name(), clear: tags, ..EditRequest::default() }).is_ok());
        for twice in [
            EditRequest { name: name(), reset: vec![SessionField::Name], ..EditRequest::default() },
            EditRequest { clear: vec![SessionField::Name; 2], ..EditRequest::default() },
        ] {
            let refused = checked(twice);
            assert!(matches!(
                refused,
                Err(ApiError::Invalid(InvalidRequest::FieldGivenTwice(SessionField::Name)))
            ));
        }
        let nothing = checked(EditRequest::default());
        assert!(matches!(nothing, Err(ApiError::Invalid(InvalidRequest::NothingToChange))));
    }
}
