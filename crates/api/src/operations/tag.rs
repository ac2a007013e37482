//! Adds tags to a session, and removes tags.

use amplifier_session_core::{storage::SessionEdit, text::composed};
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Api, ApiAnswer, ApiError, InvalidRequest, Notice, Reach, views::ChangedView};

/// Changes to the tags of a session. Once they are changed, a sync does not change them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagRequest {
    /// The address of the session.
    pub session: String,
    /// Tags to add, at most 100 characters each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Tags to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

impl TagRequest {
    /// Checks everything that needs no store.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::TagAddedAndRemoved`].
    pub fn check(&self) -> Result<(), ApiError> {
        let removed = normalized(&self.remove);
        match normalized(&self.add).into_iter().find(|tag| removed.contains(tag)) {
            Some(tag) => Err(InvalidRequest::TagAddedAndRemoved { tag }.into()),
            None => Ok(()),
        }
    }

    /// Whether there are tags to add or to remove.
    #[must_use]
    pub fn is_change(&self) -> bool {
        !self.add.is_empty() || !self.remove.is_empty()
    }
}

/// Tags as they are stored.
fn normalized(tags: &[String]) -> Vec<String> {
    tags.iter().map(|tag| composed(tag.trim()).into_owned()).collect()
}

impl Api<'_> {
    /// Adds and removes tags of one of the caller's sessions. A request without tags only reads the session.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the request is invalid, or if the right to write is missing (without tags, to read);
    /// `Validation` if a tag is empty, too long, or has control characters; `SessionNotFound`; errors of the store.
    #[crate::compiled_here]
    pub async fn tag(&self, request: &TagRequest) -> Result<ApiAnswer<ChangedView>, ApiError> {
        let scope = if request.is_change() {
            self.caller.scope_of_changes(AccessRight::Write)?
        } else {
            self.caller.scope(Reach::Own)?
        };
        request.check()?;
        let mut notices = Vec::new();
        let mut session = self.find(&scope, &request.session, &mut notices).await?.session;
        if request.is_change() {
            let (add, remove) = (normalized(&request.add), normalized(&request.remove));
            let missing = remove.iter().filter(|tag| !session.tags.contains(tag)).cloned();
            notices.extend(missing.map(|tag| Notice::TagNotFound { tag }));
            let mut edit = SessionEdit::default();
            if !remove.is_empty() {
                edit = edit.remove_tags(remove);
            }
            if !add.is_empty() {
                edit = edit.add_tags(add);
            }
            session = self.storage.sessions().update_session(&session.key(), &edit).await?;
        }
        Ok(ApiAnswer { response: ChangedView::from(&session), notices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_not_added_and_removed() {
        let request = |add: &str, remove: &str| TagRequest {
            add: vec![add.to_owned()],
            remove: vec![remove.to_owned()],
            ..TagRequest::default()
        };
        assert!(request("a", "b").check().is_ok());
        // The same letter, composed and decomposed.
        let refused = request("caf\u{e9}", " cafe\u{301}").check();
        assert!(matches!(refused, Err(ApiError::Invalid(InvalidRequest::TagAddedAndRemoved { .. }))));
    }
}
