//! The files that a session read and changed.

use amplifier_session_core::content::UsedFile;
use amplifier_session_testkit::prelude::*;

on_both_stores![files_of_a_session_are_listed_relative_to_its_folder, files_stay_in_scope];

fn call(tool: &str, path: &str) -> Line {
    lines::tool_call(tool, json!({"file_path": path}))
}

/// The files of session `s` of ana: path, number of calls and failures, first and last message.
async fn files(store: &Store) -> Vec<String> {
    let session = target("s").key.session_id;
    let found = store.storage.reading().used_files(&ana(), &session).await.unwrap();
    assert!(found.damaged.is_empty());
    let shown = |file: &UsedFile| {
        let UsedFile { path, used, times, failed, first, last, .. } = file;
        format!("{} {path} {times}/{failed} {first}..{last}", used.as_str())
    };
    found.rows.iter().map(shown).collect()
}

/// Files are listed relative to the folder of the session, over all pages of its messages.
async fn files_of_a_session_are_listed_relative_to_its_folder(store: Store) {
    let target = target("s");
    store.create(&target, |session| session.working_dir = Some("/home/ana/shop".to_owned())).await;
    store.sync_text(&target, vec![lines::user("hello"), call("bash", "a.rs")]).await;
    assert!(files(&store).await.is_empty());
    let mut conversation =
        vec![lines::user("hello"), call("read_file", "/home/ana/shop/a.rs"), lines::tool("1")];
    for _ in 0..10 {
        conversation.extend([call("edit_file", "a.rs"), lines::tool("Error: no match")]);
    }
    conversation.extend([call("edit_file", "./a.rs"), lines::tool("ok"), call("write_file", "/etc/hosts")]);
    store.sync_text(&target, conversation).await;
    let expected = ["changed a.rs 1/10 23..23", "changed /etc/hosts 1/0 25..25", "read a.rs 1/0 1..1"];
    assert_eq!(files(&store).await, expected);
}

/// Files of a session that the reader may not see are not listed.
async fn files_stay_in_scope(store: Store) {
    store.sync(&target("s"), vec![call("read_file", "a.rs")]).await;
    let session = target("s").key.session_id;
    let found = store.storage.reading().used_files(&scope(&target_of("ben", "p", "s")), &session).await;
    assert_eq!(found.unwrap_err().kind(), ErrorKind::SessionNotFound);
}
