//! Reads sessions from an archive.

use amplifier_session_core::storage::{ArchiveReader, ImportOptions, ImportReport};
use serde::{Deserialize, Serialize};

use crate::{AccessRight, Api, ApiAnswer, ApiError};

/// An import of the sessions in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImportRequest {
    /// Whether to import the sessions of all users, not only the caller's own. Otherwise, those of others are refused.
    pub all_users: bool,
    /// Whether to replace sessions that already exist. Otherwise, they are refused.
    pub replace: bool,
}

impl Api<'_> {
    /// Imports the sessions that [`Self::export`] wrote. Refused sessions and broken parts of the archive are in the
    /// response, and the other sessions are imported. If the store has no user yet, it becomes the caller's.
    ///
    /// # Errors
    ///
    /// [`ApiError::MissingRight`] without the right to write, to delete if sessions are replaced, and to administer the
    /// store for sessions of all users; `Validation` (`archive`) if it is not an archive; errors of the store. The
    /// sessions before an error are imported.
    #[crate::compiled_here]
    pub async fn import(
        &self,
        request: &ImportRequest,
        archive: &mut dyn ArchiveReader,
    ) -> Result<ApiAnswer<ImportReport>, ApiError> {
        self.caller.scope_of_changes(AccessRight::Write)?;
        if request.replace {
            self.caller.scope_of_changes(AccessRight::Delete)?;
        }
        let owner = if request.all_users {
            self.caller.scope_of_all_changes()?;
            None
        } else {
            Some(self.caller.user().clone())
        };
        self.storage.users().pin_user(self.caller.user()).await?;
        // The first vectors decide on the model of the store, for all users.
        let only_known_space = self.caller.scope_of_all_changes().is_err();
        let options = ImportOptions::default()
            .with_replace(request.replace)
            .with_owner(owner)
            .with_only_known_space(only_known_space);
        let imported = self.storage.archive().import_sessions(archive, &options).await;
        // Also after an error, because the sessions before it are stored.
        self.storage.update_index().await?;
        Ok(imported?.into())
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Cursor, sync::Arc};

    use amplifier_session_core::storage::JsonLinesReader;
    use amplifier_session_testkit::{lines, prelude::*};

    use super::*;
    use crate::{ApiCaller, CallerPlace, FoundKind, Notice, Reach, operations::export::ExportRequest};

    async fn storage_of(users: &[&str]) -> SessionStorage {
        let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
        for user in users {
            let target = target_of(user, "shop", "first-1");
            let lines = whole(vec![lines::user("the cart is empty")]);
            storage.ingestion().sync_transcript_lines(&target, lines).await.unwrap();
        }
        storage
    }

    fn ana_may(rights: &[AccessRight]) -> ApiCaller {
        ApiCaller::new(user("ana")).with_reach(Reach::All).with_rights(rights.iter().copied())
    }

    async fn exported(storage: &SessionStorage, request: &ExportRequest) -> (String, Vec<Notice>) {
        let (caller, now) = (ana_may(&[AccessRight::Read]), "2026-04-04T15:30:00[UTC]".parse().unwrap());
        let api = Api { storage, caller: &caller, now: &now, place: CallerPlace::Elsewhere };
        let mut out = Vec::new();
        let answer = api.export(request, &mut out).await.unwrap();
        (String::from_utf8(out).unwrap(), answer.notices)
    }

    async fn imported(
        caller: &ApiCaller,
        request: ImportRequest,
        archive: &str,
    ) -> Result<ImportReport, ApiError> {
        let (storage, now) = (storage_of(&[]).await, "2026-04-04T15:30:00[UTC]".parse().unwrap());
        let api = Api { storage: &storage, caller, now: &now, place: CallerPlace::Elsewhere };
        let mut archive = JsonLinesReader::new(Cursor::new(archive));
        let imported = api.import(&request, &mut archive).await.map(|answer| answer.response);
        let pinned = storage.users().pinned_user().await.unwrap();
        assert_eq!(pinned, imported.is_ok().then(|| user("ana")));
        imported
    }

    #[tokio::test]
    async fn sessions_of_others_are_imported_only_with_the_right_to_administer() {
        let everyone = ExportRequest { scope: Reach::All, ..ExportRequest::default() };
        let (archive, _) = exported(&storage_of(&["ana", "ben"]).await, &everyone).await;
        let (own, all) =
            (ImportRequest::default(), ImportRequest { all_users: true, ..ImportRequest::default() });
        let writer = ana_may(&[AccessRight::Write]);
        let report = imported(&writer, own, &archive).await.unwrap();
        assert_eq!((report.sessions, report.refused.len()), (1, 1));
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<ImportReport>(&json).unwrap(), report);
        let refused = imported(&writer, all, &archive).await.unwrap_err();
        assert!(matches!(refused, ApiError::MissingRight(AccessRight::Admin)), "{refused}");
        let refused = imported(&ana_may(&[AccessRight::Read]), own, &archive).await.unwrap_err();
        assert!(matches!(refused, ApiError::MissingRight(AccessRight::Write)), "{refused}");
        let admin = ana_may(&[AccessRight::Write, AccessRight::Admin]);
        assert_eq!(imported(&admin, all, &archive).await.unwrap().sessions, 2);
    }

    #[tokio::test]
    async fn sessions_are_replaced_only_with_the_right_to_delete() {
        let (archive, _) = exported(&storage_of(&["ana"]).await, &ExportRequest::default()).await;
        let replace = ImportRequest { replace: true, ..ImportRequest::default() };
        let refused = imported(&ana_may(&[AccessRight::Write]), replace, &archive).await.unwrap_err();
        assert!(matches!(refused, ApiError::MissingRight(AccessRight::Delete)), "{refused}");
        let deleter = ana_may(&[AccessRight::Write, AccessRight::Delete]);
        assert_eq!(imported(&deleter, replace, &archive).await.unwrap().sessions, 1);
    }

    #[tokio::test]
    async fn the_model_of_a_store_is_decided_only_by_an_administrator() {
        let storage = storage_of(&["ana"]).await.with_embedding(Some(Arc::new(FakeEmbedding::new())));
        storage.vectors().embed_pending(&user("ana"), None).await.unwrap();
        let with_vectors = ExportRequest { vectors: true, ..ExportRequest::default() };
        let (archive, _) = exported(&storage, &with_vectors).await;
        let own = ImportRequest::default();
        let report = imported(&ana_may(&[AccessRight::Write]), own, &archive).await.unwrap();
        assert!(report.sessions == 1 && report.vectors == 0 && report.vectors_left_out > 0, "{report:?}");
        let admin = ana_may(&[AccessRight::Write, AccessRight::Admin]);
        let report = imported(&admin, own, &archive).await.unwrap();
        assert!(report.vectors > 0 && report.vectors_left_out == 0, "{report:?}");
    }

    #[tokio::test]
    async fn an_export_of_one_session_has_only_that_of_its_owner() {
        let storage = storage_of(&["ana", "ben"]).await;
        let one = ExportRequest { session: Some("first-1".to_owned()), ..ExportRequest::default() };
        let (archive, notices) = exported(&storage, &one).await;
        assert!(archive.contains(r#""user_id":"ana""#) && !archive.contains(r#""user_id":"ben""#));
        assert!(notices.is_empty(), "{notices:?}");
        let other = ExportRequest { project: Some("bakery".to_owned()), ..ExportRequest::default() };
        let (_, notices) = exported(&storage, &other).await;
        assert!(
            matches!(
                notices.as_slice(),
                [
                    Notice::NothingFound { what: FoundKind::ExportedSession, .. },
                    Notice::UnknownProject { .. }
                ]
            ),
            "{notices:?}"
        );
    }
}
