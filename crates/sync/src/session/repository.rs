//! The repository of a session.

use amplifier_session_core::{Result, model::SessionKey, storage::SessionIngest};

use super::SessionReader;

impl SessionReader<'_> {
    /// Looks up the repository of the folder that the session works in. One that names no folder has that of its parent,
    /// if this is stored already.
    pub(super) async fn repository(&mut self, ingest: &mut SessionIngest) -> Result<()> {
        let session = ingest.described();
        let found = match session.working_dir {
            Some(folder) => {
                let stored = ingest.stored().map(|stored| &stored.session);
                let is_same = stored.is_some_and(|stored| stored.working_dir.as_ref() == Some(&folder));
                let known = session.repository.clone().filter(|_| is_same);
                self.context.repositories.of(folder, known).await?
            }
            None => match session.parent_id {
                Some(parent) => {
                    let key = SessionKey::new(session.user_id, parent);
                    let parent = self.context.storage.backend().get_session(&key).await?;
                    parent.and_then(|parent| parent.session.repository).or(session.repository.clone())
                }
                None => None,
            },
        };
        self.state.set_repository_looked_up();
        if let Some(found) = found {
            self.changed |= session.repository.as_ref() != Some(&found);
            ingest.set_repository(found);
        }
        Ok(())
    }
}
