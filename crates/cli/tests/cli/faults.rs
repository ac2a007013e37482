//! What `sync` does if the store cannot be written, if files cannot be read, and if others work at the same time.

use std::{
    fs,
    process::{Command, Stdio},
    sync::mpsc::Sender,
};

use amplifier_session_storage::{
    OpenOptions,
    model::{HostId, UserId},
    sync::{Progress, SyncOptions, sync},
};

use rusqlite::Connection;
use serde_json::Value;

use crate::{call::Ran, support::Home};

/// A home folder with some sessions of a few kilobytes.
fn home() -> Home {
    let home = Home::new();
    for n in 0..12 {
        home.write_session("shop", &format!("s{n}"), &transcript(n, 6));
    }
    home
}

fn transcript(session: usize, count: usize) -> String {
    let line = |n: usize| {
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        let text = format!("message{n} of session{session} {}", "basket ledger ".repeat(n * 40));
        serde_json::json!({"role": role, "content": text}).to_string() + "\n"
    };
    (0..count).map(line).collect()
}

/// The texts of some sessions in a store, as far as they can be read.
fn stored(home: &Home, store: &str) -> Vec<(usize, Vec<Value>)> {
    let shown = |n: usize| {
        let ran = home.run(&["show", &format!("s{n}"), "--max-chars", "0", "--store", store, "--json"]);
        let texts = |shown: Value| {
            let messages = shown["messages"].as_array().unwrap();
            messages.iter().map(|message| message["message"]["content"].clone()).collect()
        };
        (ran.code == 0).then(|| (n, texts(ran.json())))
    };
    [0, 3, 5, 8, 11].into_iter().filter_map(shown).collect()
}

fn count(file: &std::path::Path) -> i64 {
    let connection = Connection::open(file).unwrap();
    assert_eq!(
        connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(),
        "ok"
    );
    connection.query_row("SELECT count(*) FROM transcripts", [], |row| row.get(0)).unwrap()
}

const SYNC: [&str; 3] = ["sync", "--embedding", "none"];

/// A limit of the size of files stands for a full disk: SQLite and the index get the error from `write` in both cases.
#[cfg(unix)]
#[test]
fn a_sync_to_a_full_disk_says_so_and_the_next_one_completes_it() {
    let home = home();
    let file = home.path().join("kept.sqlite");
    let store = format!("sqlite:{}", file.display());
    home.ok(&[&SYNC[..], &["--store", &store, "--newest", "4"]].concat());
    for n in 4..12 {
        home.write_session("shop", &format!("s{n}"), &transcript(n, 60));
    }
    let before = count(&file);
    let program = home.process(&[&SYNC[..], &["--store", &store]].concat());
    // In blocks of 512 bytes or 1 KiB: a little more than the file has.
    let mut limited = Command::new("sh");
    let blocks = fs::metadata(&file).unwrap().len() / 1024 + 16;
    limited.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"")).arg("sh");
    limited.arg(program.get_program()).args(program.get_args()).env_clear();
    limited.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = Ran::from(limited.output().unwrap());
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(ran.stderr.contains("error: ") && !ran.stderr.contains("panicked"), "{}", ran.all());
    assert!(count(&file) >= before, "nothing was lost");
    // With room, it is completed.
    home.ok(&[&SYNC[..], &["--store", &store]].concat());
    assert_eq!(count(&file), 4 * 6 + 8 * 60);
    let again = home.json(&[&SYNC[..], &["--store", &store]].concat());
    assert_eq!(
        (&again["messages"]["written"], &again["sessions"]["failed"]),
        (&Value::from(0), &Value::from(0))
    );
}

#[cfg(unix)]
#[test]
fn files_without_permissions_are_reported_and_removed_from_nothing() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = home();
    home.ok(&SYNC);
    let folder = |n: usize| home.amplifier().join(format!("projects/shop/sessions/s{n}"));
    let set_mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for n in [1, 2, 3] {
        home.write_session("shop", &format!("s{n}"), &transcript(n, 8));
    }
    // A file that can only be read is read; one that can't be, and a folder that can't be, are reported.
    set_mode(&folder(1).join("transcript.jsonl"), 0o400);
    set_mode(&folder(1), 0o500);
    set_mode(&folder(2).join("transcript.jsonl"), 0o000);
    set_mode(&folder(3), 0o000);
    let command = home.process(&[&SYNC[..], &["--json"]].concat());
    let ran = Ran::from(crate::read_only::without_rights_of_root(&command).output().unwrap());
    for n in [1, 2, 3] {
        set_mode(&folder(n), 0o700);
    }
    assert_eq!(ran.code, 1, "{}", ran.all());
    let report = ran.json();
    let mut failed: Vec<&str> = report["failures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| failure["session"].as_str().unwrap())
        .collect();
    failed.sort_unstable();
    assert_eq!(
        (failed, &report["messages"]["written"]),
        (vec!["s2", "s3"], &Value::from(2)),
        "{}",
        ran.all()
    );
    assert_eq!(report["messages"]["removed"], 0);
    set_mode(&folder(2).join("transcript.jsonl"), 0o600);
    assert_eq!(home.json(&SYNC)["messages"]["written"], 4);
}

/// Whatever page is damaged, a sync ends with a message, and what could be read before can be read afterwards.
#[test]
fn a_damaged_page_costs_no_other_rows() {
    let home = home();
    let kept = home.path().join("kept.sqlite");
    home.ok(&[&SYNC[..], &["--store", &format!("sqlite:{}", kept.display())]].concat());
    Connection::open(&kept).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    home.write_session("shop", "s0", &transcript(0, 9));
    home.write_session("shop", "s5", &transcript(5, 9));
    let (bytes, page) = (fs::read(&kept).unwrap(), 8192);
    let pages = bytes.len() / page;
    let file = home.path().join("damaged.sqlite");
    let store = format!("sqlite:{}", file.display());
    let (mut reported, mut readable) = (0, 0);
    // The first page is the header, without which it is no database.
    for damaged in (1..pages).step_by(pages.div_ceil(6)) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{suffix}", file.display()));
        }
        let mut bytes = bytes.clone();
        bytes[damaged * page..(damaged + 1) * page].fill(0xa5);
        fs::write(&file, bytes).unwrap();
        let before = stored(&home, &store);
        let ran = home.run(&[&SYNC[..], &["--store", &store]].concat());
        assert!(matches!(ran.code, 0 | 1) && !ran.stderr.contains("panicked"), "{}", ran.all());
        if ran.code == 1 {
            assert!(ran.stderr.contains("error: ") || ran.stderr.contains("can't be"), "{}", ran.all());
            reported += 1;
        }
        let after = stored(&home, &store);
        readable += before.len();
        for (session, messages) in before {
            let found = after.iter().find(|(other, _)| *other == session).map(|(_, messages)| messages);
            let is_changed = [0, 5].contains(&session);
            let is_same = found.is_some_and(|found| is_changed || *found == messages);
            assert!(is_same, "page {damaged}: session s{session} is gone after {}", ran.all());
        }
    }
    assert!(reported > 0, "no damage was noticed");
    assert!(readable > 5, "almost everything was damaged");
}

/// Says when a sync has begun.
struct Begun(Sender<()>);

impl Progress for Begun {
    fn begin(&self, _sessions: u64, _bytes: u64) {
        self.0.send(()).unwrap();
    }
}

#[test]
fn a_sync_waits_while_another_process_has_locked_the_store() {
    let home = home();
    let file = home.path().join("kept.sqlite");
    let store = format!("sqlite:{}", file.display());
    home.ok(&[&SYNC[..], &["--store", &store, "--newest", "1"]].concat());
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (user, host) = (UserId::new("dana").unwrap(), HostId::new("here").unwrap());
    let options = SyncOptions::new(home.amplifier(), user, host);
    let syncing = runtime.spawn(async move {
        let storage = amplifier_session_storage::open(&store, OpenOptions::default()).await?;
        sync(&storage, &options, &Begun(begun)).await
    });
    has_begun.recv().unwrap();
    // Nothing can be written, and it does not give up before a minute has passed.
    assert!(!syncing.is_finished());
    connection.execute_batch("ROLLBACK").unwrap();
    let report = runtime.block_on(syncing).unwrap().unwrap();
    assert_eq!((report.sessions.new, report.sessions.failed), (11, 0));
    assert_eq!(count(&file), 12 * 6);
}

#[test]
fn two_syncs_at_once_store_everything_once() {
    let home = home();
    let store = format!("sqlite:{}", home.path().join("both.sqlite").display());
    let start = || {
        let mut command = home.process(&[&SYNC[..], &["--store", &store]].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for round in 0..3 {
        for n in 0..12 {
            home.write_session("shop", &format!("s{n}"), &transcript(n, 6 + 2 * round));
        }
        let both = [start(), start()];
        for child in both {
            let ran = Ran::from(child.wait_with_output().unwrap());
            assert_eq!(ran.code, 0, "{}", ran.all());
        }
        assert_eq!(count(&home.path().join("both.sqlite")), 12 * (6 + 2 * round as i64));
    }
    let one = format!("sqlite:{}", home.path().join("one.sqlite").display());
    home.ok(&[&SYNC[..], &["--store", &one]].concat());
    let (both, one) = (stored(&home, &store), stored(&home, &one));
    assert_eq!(both.len(), 5);
    assert!(both == one, "the two stores differ");
}

/// The system sends a signal that ends programs that do not handle it.
#[cfg(unix)]
#[test]
fn a_limit_on_the_size_of_files_is_reported_like_a_full_disk() {
    let home = Home::with_samples();
    let program = home.process(&["sync"]);
    let mut limited = Command::new("/bin/sh");
    limited
        .args(["-c", "ulimit -f 600; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args());
    limited.env_clear().stdin(Stdio::null());
    limited.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = Ran::from(limited.output().unwrap());
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(ran.stderr.contains("a file has reached the size limit of the process"), "{}", ran.all());
    home.ok(&["sync"]);
    assert_eq!(home.json(&["verify"])["sessions"], 12);
}
