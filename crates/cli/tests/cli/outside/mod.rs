//! Tests that read files from outside the project, in the folder that `AMPLIFIER_TEST_DATA` names. `.ci/outside` runs
//! them. Each repeats on real files what another test promises for the project's own.

mod python_library;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use crate::{restore::come_back, support::Home};

/// A file or folder of the data from outside.
fn data(name: &str) -> PathBuf {
    let folder =
        env::var_os("AMPLIFIER_TEST_DATA").unwrap_or_else(|| panic!("AMPLIFIER_TEST_DATA is not set"));
    let path = Path::new(&folder).join(name);
    assert!(path.exists(), "{} does not exist", path.display());
    path
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "reads files from outside: see .ci/outside"]
async fn sessions_as_amplifier_writes_them_come_back() {
    come_back(&data("real-shape"), 1).await;
    come_back(&data("amplifier-sessions"), 2).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "reads files from outside: see .ci/outside"]
async fn hundreds_of_sessions_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let archive = data("coding-sessions/sessions.tar.xz");
    let status = Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(folder.path()).status();
    assert!(status.unwrap().success());
    come_back(&folder.path().join("amplifier"), 284).await;
}

#[test]
#[ignore = "reads files from outside: see .ci/outside"]
fn files_of_a_session_as_amplifier_writes_it_are_listed() {
    let (shared, home) = (data("real-shape"), Home::new());
    home.ok(&["sync", "--root", shared.to_str().unwrap(), "--embedding", "none"]);
    assert_eq!(home.ok(&["files", "latest"]), "changed\tfold-crumb.md\t1\t0\t56997d35#13\t56997d35#13\n");
}

#[test]
#[ignore = "reads files from outside: see .ci/outside"]
fn sessions_as_amplifier_writes_them_verify_clean() {
    let shared = data("real-shape");
    let root = shared.to_str().unwrap();
    let home = Home::new();
    for detail in ["full", "summary", "none"] {
        let store = format!("sqlite:~/{detail}.sqlite");
        home.ok(&["sync", "--root", root, "--events", detail, "--store", &store]);
        let report = home.json(&["verify", "--root", root, "--store", &store]);
        assert_eq!((&report["sessions"], &report["on_disk"]), (&json!(1), &json!(1)), "{detail}");
    }
}
