//! After `kill -9` at many random moments of `sync` and of `watch`, a sync makes the store equal to the folders, with
//! nothing twice and a sound index.
//!
//! Each round changes some sessions, starts the program, and kills it. The moments come from a fixed seed, but what
//! they hit depends on the machine.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use amplifier_session_storage::{
    OpenOptions, Scope, SessionStorage,
    backend::SessionQuery,
    model::UserId,
    search::{SearchMode, SearchOptions},
    storage::EventLines,
};
use amplifier_session_testkit::{Random, rounds};
use rusqlite::Connection;

use crate::support::Home;

const SESSIONS: usize = 6;

/// The number of processes to kill with each command.
fn kills() -> u32 {
    rounds(24, 400)
}

/// Session folders, and a store.
struct Installation {
    home: Home,
    random: Random,
    /// The number of prompts so far.
    prompts: usize,
    /// The last prompt of each session.
    last: [Option<String>; SESSIONS],
    runtime: tokio::runtime::Runtime,
}

impl Installation {
    fn new(seed: u64) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        Self { home: Home::new(), random: Random(seed), prompts: 0, last: Default::default(), runtime }
    }

    fn database(&self) -> PathBuf {
        self.home.path().join("store.sqlite")
    }

    fn store(&self) -> String {
        format!("sqlite:{}", self.database().display())
    }

    fn folder(&self, session: usize) -> PathBuf {
        self.home.amplifier().join(format!("projects/p{}/sessions/s{session}", session % 2))
    }

    fn append(&self, session: usize, file: &str, text: &str) {
        let path = self.folder(session).join(file);
        let mut file = fs::File::options().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Continues a random session, or rewinds it first.
    fn change(&mut self) {
        let session = self.random.below(SESSIONS);
        let folder = self.folder(session);
        fs::create_dir_all(&folder).unwrap();
        let transcript = folder.join("transcript.jsonl");
        if self.random.below(5) == 0
            && let Ok(text) = fs::read_to_string(&transcript)
        {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            fs::write(&transcript, lines[..lines.len() / 4 * 2].concat()).unwrap();
        }
        self.prompts += 1;
        let (prompt, length) = (format!("needle{}", self.prompts), self.random.length(200.0, 1.5, 100_000));
        let (question, answer) = (self.random.words(length / 8 + 1, 500), self.random.words(30, 500));
        self.append(
            session,
            "transcript.jsonl",
            &format!("{{\"role\":\"user\",\"content\":\"{prompt} {question}\"}}\n"),
        );
        for n in 0..self.random.below(4) {
            let data = self.random.words(length / 4, 500);
            let event = format!(
                "{{\"ts\":\"2026-01-05T08:0{n}:00Z\",\"event\":\"e\",\"data\":{{\"x\":\"{data}\"}}}}\n"
            );
            self.append(session, "events.jsonl", &event);
        }
        self.append(
            session,
            "transcript.jsonl",
            &format!("{{\"role\":\"assistant\",\"content\":\"{answer}\"}}\n"),
        );
        self.last[session] = Some(prompt);
    }

    /// Starts the program, kills it after `delay`, and returns whether it was still running.
    fn kill(&mut self, arguments: &[&str], delay: Duration) -> bool {
        let store = self.store();
        let arguments = [&["--store", &store, "--embedding", "none"], arguments].concat();
        let mut command = self.home.process(&arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (begun, change_at) = (Instant::now(), delay.mul_f64(self.random.part()));
        let mut is_changed = false;
        while begun.elapsed() < delay && child.try_wait().unwrap().is_none() {
            if !is_changed && begun.elapsed() > change_at {
                self.change();
                is_changed = true;
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        child.kill().unwrap();
        !child.wait().unwrap().success()
    }

    /// Syncs, and checks that the store is equal to the folders.
    fn check(&self, round: u32) {
        let connection = Connection::open(self.database()).unwrap();
        let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok", "round {round}");
        drop(connection);
        let (store, root) = (self.store(), self.home.amplifier());
        let sync = ["--store", &store, "--embedding", "none", "sync", "--root", root.to_str().unwrap()];
        let report = self.home.json(&sync);
        assert_eq!(report["failures"], serde_json::json!([]), "{report}");
        assert!(report["index_problem"].is_null(), "{report}");
        self.runtime.block_on(async {
            let storage = amplifier_session_storage::open(&store, OpenOptions::default()).await.unwrap();
            self.is_equal(&storage, round).await;
        });
    }

    async fn is_equal(&self, storage: &SessionStorage, round: u32) {
        let scope = Scope::from(UserId::new("dana").unwrap());
        let query = SessionQuery::new(scope.clone()).with_limit(SESSIONS * 2);
        let stored = storage.sessions().search_sessions(&query).await.unwrap();
        let names: BTreeSet<String> = stored.iter().map(|session| session.session_id.to_string()).collect();
        let on_disk = (0..SESSIONS).filter(|session| self.folder(*session).exists());
        assert_eq!(names, on_disk.map(|session| format!("s{session}")).collect(), "round {round}");
        for session in stored {
            let (id, number) = (&session.session_id, session.session_id.as_str()[1..].parse().unwrap());
            let messages =
                storage.reading().get_transcript_lines(&scope, id, None, usize::MAX).await.unwrap();
            let lines = EventLines::default().with_limit(usize::MAX).with_payload(true);
            let events = storage.reading().get_event_lines(&scope, id, lines).await.unwrap();
            let file = |name| fs::read_to_string(self.folder(number).join(name)).unwrap_or_default();
            let transcript: String =
                messages.iter().map(|line| line.raw.to_text().into_owned() + "\n").collect();
            let log: String = events
                .iter()
                .map(|event| event.raw.as_ref().unwrap().to_text().into_owned() + "\n")
                .collect();
            assert!(transcript == file("transcript.jsonl"), "round {round}: the transcript of {id}");
            assert!(log == file("events.jsonl"), "round {round}: the events of {id}");
            let counts = (session.message_count as usize, session.event_count as usize);
            assert_eq!(counts, (messages.len(), events.len()), "round {round}: {id}");
            // The last prompt is found once, and so are all others by the index.
            let Some(last) = &self.last[number] else { continue };
            let options = SearchOptions::new(last).with_mode(SearchMode::FullText);
            let found = storage.search().search_transcripts(&scope, &options).await.unwrap().results;
            assert_eq!(found.len(), 1, "round {round}: {last}");
        }
        // A word that many messages contain: none is found twice.
        let options = SearchOptions::new("word1 word2 word3").with_mode(SearchMode::FullText).with_limit(100);
        let found = storage.search().search_transcripts(&scope, &options).await.unwrap().results;
        let places: BTreeSet<_> = found.iter().map(|result| (&result.session_id, result.sequence)).collect();
        assert_eq!(places.len(), found.len(), "round {round}");
    }
}

/// Kills `kills` processes, and returns how many of them were still running.
fn kill_often(arguments: &[&str], seed: u64, kills: u32, longest: Option<Duration>) -> u32 {
    let mut installation = Installation::new(seed);
    let root = installation.home.amplifier();
    let arguments = [arguments, &["--root", root.to_str().unwrap()]].concat();
    (0..SESSIONS).for_each(|_| installation.change());
    installation.check(0);
    installation.change();
    let begun = Instant::now();
    let store = installation.store();
    installation.home.ok(&[&["--store", &store, "--embedding", "none", "sync"], &arguments[1..]].concat());
    let mut longest = longest.unwrap_or_default() + begun.elapsed();
    let mut killed = 0;
    for round in 1..=kills {
        for _ in 0..=installation.random.below(2) {
            installation.change();
        }
        let delay = longest.mul_f64(installation.random.part());
        if installation.kill(&arguments, delay) {
            killed += 1;
        } else {
            // The machine was slower when the time was measured.
            longest = longest.min(delay);
        }
        installation.check(round);
    }
    killed
}

/// As [`kill_often`], in several installations at the same time.
fn kill_in_parallel(arguments: &[&str], threads: u32, longest: Option<Duration>) {
    let (kills, of_thread) = (kills(), kills().div_ceil(threads));
    let killed: u32 = std::thread::scope(|scope| {
        let kill = |seed: u32| {
            let arguments = arguments.to_vec();
            scope.spawn(move || kill_often(&arguments, u64::from(seed), of_thread, longest))
        };
        let running: Vec<_> = (0..threads).map(kill).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(killed >= kills / 3, "only {killed} of {} were killed before they ended", of_thread * threads);
}

#[test]
fn syncs_killed_at_many_random_moments() {
    kill_in_parallel(&["sync"], 2, None);
}

#[cfg(feature = "watch")]
#[test]
fn watchers_killed_at_many_random_moments() {
    // Changes are written about 0.2 seconds after they are made.
    kill_in_parallel(&["watch"], 4, Some(Duration::from_millis(350)));
}
