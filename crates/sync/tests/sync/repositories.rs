//! The repositories that sessions worked in. Needs `git`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use amplifier_session_core::{
    backend::{SessionChange, StorageBackendExt, StoredSyncState},
    model::{Repository, RepositoryKind, Session},
};
use amplifier_session_sync::{NoProgress, RepositoryNames, RestoreOptions, SyncReport, restore};
use amplifier_session_testkit::lines;
use serde_json::{Value, json};

use crate::fixture::{Fixture, scope};

const ADDRESS: &str = "https://ana:secret@github.com/Acme/App.git";
const APP: &str = "github.com/acme/app";
/// The first commit that [`Folders::commit`] makes.
const FIRST: &str = "commit:fcf0395b10ab70c8ca4ffc8661b958fdf8bf6a28";

/// A folder for repositories, beside the session folders of a fixture.
struct Folders {
    fixture: Fixture,
    root: PathBuf,
}

impl Folders {
    fn new() -> Self {
        let fixture = Fixture::new();
        let root = fixture.home.path().canonicalize().unwrap().join("code");
        fs::create_dir(&root).unwrap();
        Self { fixture, root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Runs `git` in a folder, in an environment that makes the same commits everywhere.
    fn git(&self, folder: &str, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.current_dir(self.path(folder)).args(arguments).env_clear();
        git.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        git.env("HOME", &self.root).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_ALLOW_PROTOCOL", "file");
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Ana").env(format!("GIT_{who}_EMAIL"), "ana@example.org");
            git.env(format!("GIT_{who}_DATE"), "2026-01-05T08:00:00Z");
        }
        let ran = git.output().unwrap();
        assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    fn init(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
        self.git(name, &["init", "--quiet", "--initial-branch", "main"]);
    }

    fn commit(&self, name: &str) {
        self.git(name, &["commit", "--quiet", "--allow-empty", "--message", "one"]);
    }

    fn remote(&self, name: &str, remote: &str, address: &str) {
        self.git(name, &["remote", "add", remote, address]);
    }

    /// Writes a session, and what its metadata says.
    fn session(&self, id: &str, metadata: &Value) {
        let folder = self.fixture.session("p", id);
        folder.transcript([lines::user("knead")]).unwrap().metadata(&metadata.to_string()).unwrap();
    }

    /// Writes a session that works in a folder.
    fn session_in(&self, id: &str, folder: &str) {
        self.session(id, &json!({"working_dir": self.text(folder)}));
    }

    async fn dry_run(&self) -> SyncReport {
        self.fixture.sync_with(self.fixture.options().with_dry_run(true)).await
    }

    async fn repository(&self, id: &str) -> Option<String> {
        self.fixture.stored(id).await.unwrap().session.repository.map(String::from)
    }

    /// The repository of a new session that works in a folder.
    async fn of_new(&self, folder: &str) -> Option<String> {
        let id = folder.replace('/', "-");
        self.session_in(&id, folder);
        self.fixture.sync().await;
        self.repository(&id).await
    }
}

#[tokio::test]
async fn the_address_unites_clones_work_trees_and_subfolders() {
    let folders = Folders::new();
    folders.init("app");
    folders.commit("app");
    folders.remote("app", "origin", ADDRESS);
    folders.git("app", &["worktree", "add", "--quiet", "../tree", "-b", "tree"]);
    fs::create_dir_all(folders.path("app/src/deep")).unwrap();
    folders.init("clone");
    folders.remote("clone", "upstream", "git@github.com:other/app.git");
    folders.remote("clone", "origin", "git@github.com:acme/app.git");
    for folder in ["app", "tree", "app/src/deep", "clone", "app/.git"] {
        assert_eq!(folders.of_new(folder).await.as_deref(), Some(APP), "{folder}");
    }
    let dump = format!("{:?}", folders.fixture.stored("app").await.unwrap());
    assert!(!dump.contains("secret"), "{dump}");
    // A work tree whose folder is gone is in the repository around it, if there is one.
    assert_eq!(folders.of_new("app/.worktrees/gone").await.as_deref(), Some(APP));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folders.path("app"), folders.path("link")).unwrap();
        assert_eq!(folders.of_new("link").await.as_deref(), Some(APP));
    }
}

#[tokio::test]
async fn other_remotes_are_used_if_origin_has_no_address() {
    let folders = Folders::new();
    folders.init("app");
    folders.commit("app");
    folders.remote("app", "origin", "/srv/git/app.git");
    assert_eq!(folders.of_new("app").await.as_deref(), Some(FIRST));
    folders.remote("app", "a-fork", "ssh://git@gitlab.com:2222/ana/app");
    folders.session_in("again", "app");
    folders.fixture.sync().await;
    assert_eq!(folders.repository("again").await.as_deref(), Some("gitlab.com/ana/app"));
}

#[tokio::test]
async fn nested_repositories_and_submodules_are_their_own() {
    let folders = Folders::new();
    for (name, address) in [("outer", "git@h.org:a/outer"), ("inner", "git@h.org:a/inner")] {
        folders.init(name);
        folders.commit(name);
        folders.remote(name, "origin", address);
    }
    folders.init("outer/nested");
    folders.remote("outer/nested", "origin", "git@h.org:a/nested");
    let inner = folders.text("inner");
    folders.git("outer", &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &inner, "sub"]);
    assert_eq!(folders.of_new("outer").await.as_deref(), Some("h.org/a/outer"));
    assert_eq!(folders.of_new("outer/nested").await.as_deref(), Some("h.org/a/nested"));
    // The submodule was added from a folder, which is no address.
    assert_eq!(folders.of_new("outer/sub").await.as_deref(), Some(FIRST));
    folders.git("outer/sub", &["remote", "set-url", "origin", "git@h.org:a/inner"]);
    folders.session_in("again", "outer/sub");
    folders.fixture.sync().await;
    assert_eq!(folders.repository("again").await.as_deref(), Some("h.org/a/inner"));
}

#[tokio::test]
async fn without_an_address_the_first_commit_unites_what_was_moved() {
    let folders = Folders::new();
    folders.init("app");
    folders.commit("app");
    folders.git("app", &["commit", "--quiet", "--allow-empty", "--message", "two"]);
    folders.git("app", &["worktree", "add", "--quiet", "../tree", "-b", "tree"]);
    folders.git("app", &["clone", "--quiet", "--bare", ".", "../bare.git"]);
    for folder in ["app", "tree", "bare.git"] {
        assert_eq!(folders.of_new(folder).await.as_deref(), Some(FIRST), "{folder}");
    }
    folders.git("app", &["worktree", "remove", "../tree"]);
    fs::rename(folders.path("app"), folders.path("moved")).unwrap();
    assert_eq!(folders.of_new("moved").await.as_deref(), Some(FIRST));
    let url = format!("file://{}", folders.text("moved"));
    folders.git("moved", &["clone", "--quiet", "--depth", "1", &url, "../shallow"]);
    let shallow = folders.of_new("shallow").await;
    assert_eq!(shallow, Some(folders.text("shallow")), "its first commit is not known");
}

#[tokio::test]
async fn without_a_commit_it_is_the_root_of_the_work_tree_or_the_folder() {
    let folders = Folders::new();
    folders.init("new");
    fs::create_dir_all(folders.path("new/src")).unwrap();
    assert_eq!(folders.of_new("new/src").await, Some(folders.text("new")));
    fs::create_dir(folders.path("plain")).unwrap();
    for plain in ["plain", "gone"] {
        assert_eq!(folders.of_new(plain).await, Some(folders.text(plain)));
    }
    for (n, text) in ["src", "", "/", "~/app"].into_iter().enumerate() {
        folders.session(&format!("r{n}"), &json!({"working_dir": text}));
        folders.fixture.sync().await;
        assert_eq!(folders.repository(&format!("r{n}")).await, None, "{text:?}");
    }
}

#[tokio::test]
async fn a_damaged_repository_is_its_folder() {
    let folders = Folders::new();
    folders.init("around");
    folders.remote("around", "origin", ADDRESS);
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("empty", |git| fs::create_dir(git).unwrap()),
        ("pointer", |git| fs::write(git, "gitdir: ../nowhere\n").unwrap()),
        ("nonsense", |git| fs::write(git, b"\xff\0").unwrap()),
        ("headless", |git| {
            fs::create_dir_all(git.join("objects")).unwrap();
            fs::write(git.join("HEAD"), "\0").unwrap();
            fs::write(git.join("config"), b"[remote \"origin\"\n\xff").unwrap();
        }),
    ];
    for (name, damage) in damages {
        let name = format!("around/{name}");
        fs::create_dir(folders.path(&name)).unwrap();
        damage(&folders.path(&name).join(".git"));
        assert_eq!(folders.of_new(&name).await, Some(folders.text(&name)));
    }
}

#[tokio::test]
async fn what_is_known_is_not_replaced_by_less() {
    let folders = Folders::new();
    folders.init("app");
    assert_eq!(folders.of_new("app").await, Some(folders.text("app")));
    let again = async |id: &str, line: &str| {
        folders.fixture.session("p", id).transcript([lines::user("knead"), lines::user(line)]).unwrap();
        folders.fixture.sync().await;
        folders.repository(id).await
    };
    folders.commit("app");
    assert_eq!(again("app", "commit").await.as_deref(), Some(FIRST));
    folders.remote("app", "origin", ADDRESS);
    assert_eq!(again("app", "remote").await.as_deref(), Some(APP));
    folders.git("app", &["remote", "set-url", "origin", "git@h.org:a/b"]);
    assert_eq!(again("app", "renamed").await.as_deref(), Some("h.org/a/b"));
    folders.git("app", &["remote", "remove", "origin"]);
    assert_eq!(again("app", "no remote").await.as_deref(), Some("h.org/a/b"));
    fs::remove_dir_all(folders.path("app/.git")).unwrap();
    assert_eq!(again("app", "no repository").await.as_deref(), Some("h.org/a/b"));
    fs::remove_dir(folders.path("app")).unwrap();
    assert_eq!(again("app", "no folder").await.as_deref(), Some("h.org/a/b"));
    folders.init("other");
    folders.session_in("app", "other");
    folders.fixture.sync().await;
    assert_eq!(folders.repository("app").await, Some(folders.text("other")), "it works elsewhere now");
}

#[tokio::test]
async fn a_sub_agent_without_a_folder_has_the_repository_of_its_parent() {
    let folders = Folders::new();
    folders.init("app");
    folders.remote("app", "origin", ADDRESS);
    assert_eq!(folders.of_new("app").await.as_deref(), Some(APP));
    folders.session("agent", &json!({"parent_id": "app"}));
    folders.session("orphan", &json!({"parent_id": "unknown"}));
    folders.fixture.sync().await;
    assert_eq!(folders.repository("agent").await.as_deref(), Some(APP));
    assert_eq!(folders.repository("orphan").await, None);
}

/// As sessions that an earlier version stored.
#[tokio::test]
async fn stored_sessions_get_their_repository_with_the_next_sync() {
    let folders = Folders::new();
    folders.init("app");
    folders.session_in("s", "app");
    folders.session("without", &json!({}));
    folders.fixture.sync().await;
    folders.remote("app", "origin", ADDRESS);
    for id in ["s", "without"] {
        let stored = folders.fixture.stored(id).await.unwrap();
        let files = stored.sync_state.as_ref().unwrap().files.clone();
        let earlier = files.replace(r#","repository_looked_up":true"#, "");
        assert_ne!(earlier, files);
        let session = Session { repository: None, ..stored.session };
        let mut change = SessionChange::new(session, Some(stored.version));
        change.sync_state = Some(StoredSyncState::of(earlier));
        folders.fixture.storage.backend().write_one(change).await.unwrap();
    }
    assert_eq!(folders.dry_run().await.sessions.changed, 2);
    let (report, read) = folders.fixture.sync_and_count().await;
    assert_eq!((report.sessions.changed, report.sessions.unchanged, read), (1, 1, 0), "{report:?}");
    assert_eq!(folders.repository("s").await.as_deref(), Some(APP));
    assert_eq!(folders.fixture.sync().await.sessions.unchanged, 2);
    assert_eq!(folders.dry_run().await.sessions.unchanged, 2);
}

#[tokio::test]
async fn a_restored_session_has_its_repository_again() {
    let folders = Folders::new();
    folders.init("app");
    folders.remote("app", "origin", ADDRESS);
    assert_eq!(folders.of_new("app").await.as_deref(), Some(APP));
    let to = tempfile::tempdir().unwrap();
    let options = RestoreOptions::new(to.path(), scope());
    restore(&folders.fixture.storage, &options, &NoProgress).await.unwrap();
    fs::remove_dir_all(folders.path("app")).unwrap();
    fs::remove_dir_all(folders.fixture.home.path().join("projects")).unwrap();
    fs::rename(to.path().join("projects"), folders.fixture.home.path().join("projects")).unwrap();
    folders.fixture.sync().await;
    assert_eq!(folders.repository("app").await.as_deref(), Some(APP));
}

#[tokio::test]
async fn a_folder_has_all_names_of_its_repository() {
    let folders = Folders::new();
    folders.init("app");
    folders.commit("app");
    folders.remote("app", "origin", ADDRESS);
    let app = RepositoryNames::around(folders.path("app")).await.unwrap();
    let names: Vec<(&str, RepositoryKind)> =
        app.names.iter().map(|name| (name.as_str(), name.kind())).collect();
    let root = folders.text("app");
    let expected = [
        (root.as_str(), RepositoryKind::Folder),
        (FIRST, RepositoryKind::FirstCommit),
        (APP, RepositoryKind::Address),
    ];
    assert_eq!((app.is_git, names), (true, expected.to_vec()));
    fs::create_dir(folders.path("plain")).unwrap();
    let plain = RepositoryNames::around(folders.path("plain")).await.unwrap();
    assert_eq!(
        (plain.is_git, plain.names),
        (false, [Repository::new(folders.text("plain")).unwrap()].into())
    );
}
