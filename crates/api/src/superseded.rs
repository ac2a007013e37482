//! Reads superseded lines.

use amplifier_session_core::{backend::SupersededQuery, storage::SupersededLine};

use crate::{Api, ApiError};

impl Api<'_> {
    /// The first `limit` matching lines, and whether there are more.
    pub(crate) async fn first_superseded(
        &self,
        query: SupersededQuery,
        limit: usize,
        matches: impl Fn(&SupersededLine) -> bool,
    ) -> Result<(Vec<SupersededLine>, bool), ApiError> {
        let mut all = self.storage.superseded().superseded_lines(query);
        let mut found = Vec::new();
        while let Some(lines) = all.next().await? {
            found.extend(lines.into_iter().filter(|line| matches(line)));
            if found.len() > limit {
                found.truncate(limit);
                return Ok((found, true));
            }
        }
        Ok((found, false))
    }
}
