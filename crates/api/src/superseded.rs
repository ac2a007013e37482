//! Reads superseded lines.

use amplifier_session_core::{backend::SupersededQuery, storage::SupersededLine};

use crate::{Api, ApiError};

impl Api<'_> {
    /// The first `limit` matching lines after `skip` others, or fewer if they are long, and whether there are more.
    pub(crate) async fn first_superseded(
        &self,
        query: SupersededQuery,
        mut skip: usize,
        limit: usize,
        matches: impl Fn(&SupersededLine) -> bool,
    ) -> Result<(Vec<SupersededLine>, bool), ApiError> {
        let mut all = self.storage.superseded().superseded_lines(query);
        let (mut found, mut page) = (Vec::new(), self.page());
        while let Some(lines) = all.next().await? {
            for line in lines.into_iter().filter(|line| matches(line)) {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                let bytes = line.raw.as_bytes().len();
                if found.len() == limit || !page.has_room(bytes) {
                    return Ok((found, true));
                }
                page.add(bytes)?;
                found.push(line);
            }
        }
        Ok((found, false))
    }
}
