//! The feed of changes of a store in a file.

use std::sync::Arc;

use amplifier_session_core::backend::StorageBackend;
use amplifier_session_testkit::replaced;

use crate::support::Folder;

#[tokio::test(flavor = "multi_thread")]
async fn cursors_notice_an_older_copy() {
    let folder = Folder::new();
    let open = async || Arc::new(folder.backend().await) as Arc<dyn StorageBackend>;
    replaced::check_cursors(&folder.database(), open).await;
}
