//! Sessions and lines by the addresses that people type.

use amplifier_session_core::{Scope, storage::Addressed};

use crate::{Api, ApiError, Notice};

impl Api<'_> {
    /// The session and the line that `address` names. Adds a notice if `latest` had to leave a session out.
    pub(crate) async fn find(
        &self,
        scope: &Scope,
        address: &str,
        notices: &mut Vec<Notice>,
    ) -> Result<Addressed, ApiError> {
        let mut found = self.storage.sessions().find_address(scope, address).await?;
        notices.extend(found.notice.take().map(|text| Notice::Sentence { text }));
        Ok(found)
    }
}
