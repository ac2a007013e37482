//! What a sync does about faults of the file system, of the clock, and of what others do at the same time.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Mutex,
};

use amplifier_session_core::model::Timestamp;
use amplifier_session_sync::{Progress, RejectedBecause, SessionFolder, SessionOutcome, discover, sync};
use amplifier_session_testkit::lines;

use crate::fixture::{Fixture, NOW, set_modified};

const HOUR: i64 = 3_600_000_000;

#[tokio::test]
async fn a_clock_that_jumps_loses_and_repeats_nothing() {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    let set_clock = |time: &str| {
        let by = Timestamp::parse(time).unwrap().as_micros() - fixture.clock.now().as_micros();
        fixture.clock.advance(by);
    };
    let mut texts = Vec::new();
    // Back before the files were written, to the epoch, far ahead, and back.
    for time in
        ["2001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2090-01-01T00:00:00Z", "2020-01-01T00:00:00Z"]
    {
        set_clock(time);
        texts.push(format!("at {time}"));
        folder.append_transcript([lines::user(&texts[texts.len() - 1])]).unwrap();
        folder.append_events([lines::logger_event("a")]).unwrap();
        let report = fixture.sync().await;
        assert_eq!(
            (report.messages.written, report.events.written, report.failures.len()),
            (1, 1, 0),
            "{time}"
        );
        let report = fixture.sync().await;
        assert_eq!((report.messages.written, report.messages.removed, report.events.written), (0, 0, 0));
        fixture.clock.advance(-HOUR);
    }
    // Files from the future are read again each time, until the clock has passed them.
    set_modified(&folder.path().join("transcript.jsonl"), "2095-01-01T00:00:00Z");
    assert_eq!(fixture.sync().await.messages.written, 0);
    assert!(fixture.sync_and_count().await.1 > 0);
    set_clock(NOW);
    fixture.sync().await;
    assert_eq!(fixture.sync_and_count().await.1, 0);
    assert_eq!(fixture.texts().await, texts);
    assert_eq!(fixture.event_types().await.len(), texts.len());
}

/// Changes a file after its metadata was read and before it is opened.
struct Meanwhile<F>(Mutex<Option<F>>);

impl<F: FnOnce() + Send> Progress for Meanwhile<F> {
    fn begin(&self, _sessions: u64, _bytes: u64) {
        if let Some(change) = self.0.lock().unwrap().take() {
            change();
        }
    }

    fn session(&self, _folder: &SessionFolder, _outcome: SessionOutcome) {}
}

/// Syncs while `change` is made to the transcript between `stat` and `open`, and then until nothing changes.
async fn changed_meanwhile(change: impl FnOnce(PathBuf) + Send) -> Vec<String> {
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.metadata("{}").unwrap().transcript([lines::user("one"), lines::user("two")]).unwrap();
    fixture.sync().await;
    folder.append_transcript([lines::user("three")]).unwrap();
    let path = folder.path().join("transcript.jsonl");
    let meanwhile = Meanwhile(Mutex::new(Some(|| change(path))));
    sync(&fixture.storage, &fixture.options(), &meanwhile).await.unwrap();
    fixture.sync().await;
    let (report, read) = fixture.sync_and_count().await;
    assert_eq!((report.sessions.unchanged, read), (1, 0));
    fixture.texts().await
}

#[tokio::test]
async fn a_file_replaced_between_stat_and_read_is_read_as_it_is_then() {
    let line = |text: &str| lines::user(text).raw().to_text().into_owned() + "\n";
    let replaced = |path: PathBuf| {
        let other = path.with_extension("new");
        fs::write(&other, line("uno") + &line("due")).unwrap();
        fs::rename(&other, path).unwrap();
    };
    assert_eq!(changed_meanwhile(replaced).await, ["uno", "due"]);
    let appended = |path: PathBuf| {
        File::options().append(true).open(path).unwrap().write_all(line("four").as_bytes()).unwrap();
    };
    assert_eq!(changed_meanwhile(appended).await, ["one", "two", "three", "four"]);
    // A file that is gone, or not there for a moment, removes nothing.
    let removed = |path: PathBuf| fs::remove_file(path).unwrap();
    assert_eq!(changed_meanwhile(removed).await, ["one", "two"]);
}

#[tokio::test]
async fn a_folder_that_vanishes_during_a_sync_keeps_its_session() {
    let remove = |path: PathBuf| fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let fixture = Fixture::new();
    let folder = fixture.folder();
    folder.transcript([lines::user("one")]).unwrap();
    fixture.sync().await;
    folder.append_transcript([lines::user("two")]).unwrap();
    let path = folder.path().join("transcript.jsonl");
    let meanwhile = Meanwhile(Mutex::new(Some(|| remove(path))));
    let report = sync(&fixture.storage, &fixture.options(), &meanwhile).await.unwrap();
    assert_eq!((report.sessions.unchanged, report.failures.len()), (1, 0));
    assert_eq!(fixture.texts().await, ["one"]);
}

#[cfg(unix)]
mod on_unix {
    use std::{
        ffi::OsStr,
        os::unix::{ffi::OsStrExt as _, fs::symlink},
        process::Command,
    };

    use super::*;

    /// A session whose transcript cannot be read, beside one that can.
    async fn is_reported(spoil: impl Fn(&Path), reason: &str) {
        let fixture = Fixture::new();
        let folder = fixture.folder();
        folder.events([lines::logger_event("a")]).unwrap();
        spoil(&folder.path().join("transcript.jsonl"));
        fixture.session("p", "good").transcript([lines::user("one")]).unwrap();
        for _ in 0..2 {
            let report = fixture.sync().await;
            assert_eq!(report.failures.len(), 1, "{reason}");
            assert_eq!(report.failures[0].session.as_deref(), Some("s"));
            assert!(report.failures[0].error.contains(reason), "{}", report.failures[0].error);
            assert_eq!(fixture.messages("good").await.len(), 1);
        }
        // Once it can be read, it is.
        let path = folder.path().join("transcript.jsonl");
        fs::remove_file(path).unwrap();
        folder.transcript([lines::user("mended")]).unwrap();
        assert_eq!(fixture.sync().await.failures.len(), 0);
        assert_eq!(
            (fixture.texts().await, fixture.event_types().await),
            (vec!["mended".into()], vec!["a".into()])
        );
    }

    #[tokio::test]
    async fn a_pipe_in_place_of_a_file_is_reported_without_waiting_for_it() {
        let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        is_reported(pipe, "it is not a file").await;
    }

    #[tokio::test]
    async fn a_device_in_place_of_a_file_is_reported_and_not_read() {
        is_reported(|path| symlink("/dev/zero", path).unwrap(), "it is not a file").await;
    }

    #[tokio::test]
    async fn a_file_that_is_a_link_to_itself_is_reported() {
        is_reported(|path| symlink(path.file_name().unwrap(), path).unwrap(), "leads nowhere").await;
    }

    #[tokio::test]
    async fn a_session_folder_that_leads_out_of_the_root_is_reported_and_not_followed() {
        let fixture = Fixture::new();
        let folder = fixture.folder();
        folder.transcript([lines::user("one")]).unwrap();
        let sessions = folder.path().parent().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("transcript.jsonl"), lines::user("secret").raw().as_bytes()).unwrap();
        symlink(outside.path(), sessions.join("outside")).unwrap();
        // A link within the root is followed.
        let archive = fixture.home.path().join("archive");
        fs::create_dir(&archive).unwrap();
        fs::write(archive.join("transcript.jsonl"), lines::user("old").raw().as_bytes()).unwrap();
        symlink(&archive, sessions.join("inside")).unwrap();

        let found = discover(fixture.home.path()).unwrap();
        let rejected = &found.rejected[0];
        assert_eq!((found.rejected.len(), rejected.session.as_deref()), (1, Some("outside")));
        assert_eq!(rejected.because, RejectedBecause::LeadsOutside);
        let report = fixture.sync().await;
        assert_eq!((report.sessions.new, report.skipped_count, report.failures.len()), (2, 1, 0));
        assert!(report.skipped[0].reason.contains("points outside the root"), "{}", report.skipped[0].reason);
        assert!(fixture.stored("outside").await.is_none() && fixture.stored("inside").await.is_some());
    }

    #[tokio::test]
    async fn names_that_are_not_utf_8_are_reported_and_do_not_stop_the_others() {
        let fixture = Fixture::new();
        let folder = fixture.folder();
        folder.transcript([lines::user("one")]).unwrap();
        let odd = OsStr::from_bytes(b"s\xff1");
        let sessions = folder.path().parent().unwrap();
        for path in [sessions.join(odd), fixture.home.path().join("projects").join(odd).join("sessions/t")] {
            if fs::create_dir_all(&path).is_err() {
                // The file system allows no such names.
                return;
            }
            fs::write(path.join("transcript.jsonl"), lines::user("odd").raw().as_bytes()).unwrap();
        }
        // Other files in a session folder do not matter.
        fs::write(folder.path().join(odd), "x").unwrap();
        let report = fixture.sync().await;
        assert_eq!((report.sessions.new, report.skipped_count, report.failures.len()), (1, 0, 2));
        let mut named: Vec<_> = report
            .failures
            .iter()
            .map(|failure| (failure.project.as_str(), failure.session.as_deref()))
            .collect();
        named.sort_unstable();
        assert_eq!(named, [("p", Some("s\u{fffd}1")), ("s\u{fffd}1", None)]);
    }
}
