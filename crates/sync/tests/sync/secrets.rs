//! Secrets are masked before they are stored, if that was chosen.

use std::{fs, sync::Arc};

use amplifier_session_core::{
    ErrorKind, SessionStorage, StorageSettings,
    backend::{SequenceRange, SupersededQuery},
    content::Redaction,
    model::{SessionId, VectorState},
    storage::{SecretIn, SecretsAtRest},
};
use amplifier_session_sync::SyncReport;
use amplifier_session_testkit::{FakeEmbedding, WordRedactor, lines};

use crate::fixture::{Fixture, scope};

const WORD: &str = "swordfish";
const MASKED: &str = "*********";

fn redacting(storage: &SessionStorage, secrets: Option<SecretsAtRest>) -> SessionStorage {
    storage
        .clone()
        .with_redactor(Redaction::Remote, Arc::new(WordRedactor::new([WORD])))
        .with_settings(StorageSettings::default().with_secrets(secrets))
}

/// A fixture with a session that has the word in its metadata, transcript and events.
fn fixture(secrets: Option<SecretsAtRest>) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.storage = redacting(&fixture.storage, secrets);
    let folder = fixture.folder();
    folder.metadata(&format!("{{\"name\":\"about {WORD}\",\"bundle\":\"b\"}}")).unwrap();
    folder.transcript([lines::user(&format!("it is {WORD}")), lines::assistant("thanks")]).unwrap();
    // Escaped in a way that a search of the bytes would not find.
    let escaped = WORD.replace('s', "\\u0073");
    folder
        .file(
            "events.jsonl",
            format!("{{\"ts\":\"2026-01-05T08:00:00Z\",\"event\":\"a\",\"data\":{{\"x\":\"{escaped}\"}}}}\n"),
        )
        .unwrap();
    fixture
}

/// Everything that is stored of session `s`, as text.
async fn stored(fixture: &Fixture) -> String {
    let stored = fixture.stored("s").await.unwrap();
    let files = stored.metadata_files.iter().map(|file| file.raw.to_text().into_owned());
    let events = fixture.events("s").await;
    let events = events.iter().map(|line| line.raw.as_ref().unwrap().parse().unwrap().to_string());
    let all: Vec<String> = files.chain(fixture.transcript().await).chain(events).collect();
    format!("{:?} {}", stored.session, all.join("\n"))
}

fn written(report: &SyncReport) -> (u64, u64) {
    (report.messages.written, report.events.written)
}

#[tokio::test]
async fn masked_lines_are_stored_and_not_written_again() {
    let fixture = fixture(Some(SecretsAtRest::Mask));
    let report = fixture.sync().await;
    assert_eq!((written(&report), report.secrets_masked_in_store), ((2, 1), 2));
    let text = stored(&fixture).await;
    assert!(!text.contains(WORD) && text.contains(&format!("about {MASKED}")), "{text}");
    assert_eq!(fixture.texts().await, [format!("it is {MASKED}"), "thanks".to_owned()]);
    let title = fixture.stored("s").await.unwrap().session;
    assert_eq!(title.first_prompt, Some(format!("it is {MASKED}")));

    let again = fixture.sync().await;
    assert_eq!((again.sessions.unchanged, written(&again)), (1, (0, 0)));
    // The files are read again, but their lines are those of the store.
    fixture.folder().append_transcript([lines::user(WORD)]).unwrap();
    fixture.folder().file("events.jsonl", "").unwrap();
    let appended = fixture.sync().await;
    assert_eq!((written(&appended), appended.secrets_masked_in_store, appended.kept_rows), ((1, 0), 1, 1));
    assert!(!stored(&fixture).await.contains(WORD));
    let found =
        fixture.storage.secrets().session_secrets(&scope(), &SessionId::new("s").unwrap()).await.unwrap();
    assert_eq!(found.count, 0);
}

#[tokio::test]
async fn by_default_secrets_are_stored_and_listed() {
    let fixture = fixture(None);
    fixture.sync().await;
    assert_eq!(fixture.texts().await[0], format!("it is {WORD}"));
    let found =
        fixture.storage.secrets().session_secrets(&scope(), &SessionId::new("s").unwrap()).await.unwrap();
    let places: Vec<_> =
        found.secrets.iter().map(|secret| (secret.kind, secret.sequence, secret.line)).collect();
    let expected =
        [(SecretIn::Metadata, None, 1), (SecretIn::Message, Some(0), 1), (SecretIn::Event, Some(0), 1)];
    assert_eq!((found.count, places.as_slice()), (3, &expected[..]));
    assert!(found.secrets.iter().all(|secret| !secret.shown.contains(WORD)));
    let line = &fixture.transcript().await[0];
    let (start, end) = found.secrets[1].span;
    assert_eq!(&line[start as usize..end as usize], WORD);
    assert_eq!(fixture.storage.secrets().secrets_at_rest().await.unwrap(), SecretsAtRest::Mark);
}

#[tokio::test]
async fn stored_sessions_are_masked_when_that_is_chosen_even_if_their_folders_are_gone() {
    let mut fixture = fixture(None).with_embedding(Arc::new(FakeEmbedding::new()));
    fixture.sync().await;
    let (folder, away) = (fixture.folder().path().to_owned(), fixture.home.path().join("away"));
    fs::rename(&folder, &away).unwrap();
    fixture.storage = redacting(&fixture.storage, Some(SecretsAtRest::Mask)).with_embedding(None);
    assert_eq!(fixture.sync().await.secrets_masked_in_store, 2);
    let text = stored(&fixture).await;
    assert!(!text.contains(WORD) && text.contains(&format!("about {MASKED}")), "{text}");
    let messages = fixture.messages("s").await;
    assert_eq!((messages[0].vectors, messages[1].vectors), (VectorState::Pending, VectorState::Stored));

    // The store remembers it for everyone who chooses nothing, and the files are as they are stored.
    fixture.storage = redacting(&fixture.storage, None);
    fs::rename(&away, &folder).unwrap();
    assert_eq!(written(&fixture.sync().await), (0, 0));
    fixture.folder().append_transcript([lines::user(WORD)]).unwrap();
    fixture.sync().await;
    assert!(!stored(&fixture).await.contains(WORD));
}

#[tokio::test]
async fn what_was_masked_comes_back_from_the_files() {
    let mut fixture = fixture(Some(SecretsAtRest::Mask));
    fixture.sync().await;
    fixture.storage = redacting(&fixture.storage, Some(SecretsAtRest::Mark));
    let report = fixture.sync().await;
    assert_eq!(written(&report), (1, 1));
    let text = stored(&fixture).await;
    assert!(text.contains(&format!("about {WORD}")) && !text.contains(MASKED), "{text}");
    assert_eq!(written(&fixture.sync().await), (0, 0));
}

#[tokio::test]
async fn without_a_redactor_nothing_is_stored_in_a_masked_store() {
    let mut fixture = fixture(Some(SecretsAtRest::Mask));
    fixture.sync().await;
    fixture.storage = SessionStorage::new(fixture.backend.clone()).with_clock(fixture.clock.function());
    fixture.folder().append_transcript([lines::user(WORD)]).unwrap();
    assert_eq!(fixture.try_sync().await.unwrap_err().kind(), ErrorKind::Unsupported);
    let key = fixture.stored("s").await.unwrap().session.key();
    let range = SequenceRange { start: 0, limit: 10 };
    assert_eq!(fixture.storage.backend().read_messages(&key, range).await.unwrap().len(), 2);
}

#[tokio::test]
async fn superseded_lines_are_masked_too() {
    let fixture = fixture(Some(SecretsAtRest::Mark));
    fixture.sync().await;
    let first = format!("it is still {WORD}");
    fixture.folder().transcript([lines::user(&first), lines::assistant("thanks")]).unwrap();
    assert_eq!(fixture.sync().await.messages.superseded, 1);
    let superseded = async || {
        let mut lines = fixture.storage.superseded().superseded_lines(SupersededQuery::new(scope()));
        let line = lines.next().await.unwrap().unwrap().remove(0);
        assert!(lines.next().await.unwrap().is_none());
        line.raw.to_text().into_owned()
    };
    assert!(superseded().await.contains(WORD));

    let masking = redacting(&fixture.storage, Some(SecretsAtRest::Mask));
    masking.secrets().apply_secrets_setting().await.unwrap();
    let text = superseded().await;
    assert!(text.contains(MASKED) && !text.contains(WORD), "{text}");
}

#[tokio::test]
async fn lines_that_can_not_be_read_are_masked() {
    let mut fixture = Fixture::new();
    fixture.folder().file("transcript.jsonl", format!("{WORD}\n\u{ff} {WORD}\n")).unwrap();
    fixture.storage = redacting(&fixture.storage, Some(SecretsAtRest::Mask));
    fixture.sync().await;
    let mut all = fixture.storage.superseded().superseded_lines(SupersededQuery::new(scope()));
    let texts: Vec<String> =
        all.next().await.unwrap().unwrap().iter().map(|line| line.raw.to_text().into_owned()).collect();
    assert_eq!(texts, [MASKED.to_owned(), format!("\u{ff} {MASKED}")]);
}

#[tokio::test]
async fn a_purged_line_stays_masked() {
    for at_rest in [SecretsAtRest::Mark, SecretsAtRest::Off] {
        let mut fixture = fixture(Some(at_rest)).with_embedding(Arc::new(FakeEmbedding::new()));
        fixture.sync().await;
        let key = fixture.stored("s").await.unwrap().session.key();
        let found =
            fixture.storage.secrets().session_secrets(&scope(), &key.session_id).await.unwrap().secrets;
        let message = found.iter().find(|secret| secret.kind == SecretIn::Message).unwrap();
        fixture.storage = fixture.storage.with_embedding(None);
        let lines = [message.line_digest];
        assert_eq!(fixture.storage.secrets().purge_secrets(&key, &lines).await.unwrap(), 1);
        let is_purged = async || {
            assert_eq!(fixture.texts().await[0], format!("it is {MASKED}"));
            let session = fixture.stored("s").await.unwrap().session;
            assert_eq!(session.first_prompt, Some(format!("it is {MASKED}")));
            let left = fixture.storage.secrets().session_secrets(&scope(), &key.session_id).await.unwrap();
            left.secrets.iter().map(|secret| secret.kind).collect::<Vec<_>>()
        };
        assert_eq!(is_purged().await, [SecretIn::Metadata, SecretIn::Event]);
        assert_eq!(fixture.messages("s").await[0].vectors, VectorState::Pending);
        // The file still has it, and is read again from its beginning.
        assert_eq!(written(&fixture.sync().await), (0, 0));
        fixture.folder().transcript([lines::user(&format!("it is {WORD}"))]).unwrap();
        fixture.sync().await;
        assert_eq!(is_purged().await, [SecretIn::Metadata, SecretIn::Event]);
        // Repeating it changes nothing.
        assert_eq!(fixture.storage.secrets().purge_secrets(&key, &lines).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn superseded_copies_are_listed_and_purged() {
    let fixture = fixture(None);
    fixture.sync().await;
    fixture.folder().transcript([lines::user("it is nothing"), lines::assistant("thanks")]).unwrap();
    fixture.sync().await;
    let key = fixture.stored("s").await.unwrap().session.key();
    let found = fixture.storage.secrets().session_secrets(&scope(), &key.session_id).await.unwrap().secrets;
    let old = found.iter().find(|secret| secret.superseded_at.is_some()).unwrap();
    assert_eq!((old.kind, old.sequence), (SecretIn::Message, Some(0)));
    fixture.storage.secrets().purge_secrets(&key, &[old.line_digest]).await.unwrap();
    let left = fixture.storage.secrets().session_secrets(&scope(), &key.session_id).await.unwrap();
    assert!(left.secrets.iter().all(|secret| secret.superseded_at.is_none()), "{left:?}");
}

#[tokio::test]
async fn ignored_findings_are_neither_listed_nor_masked() {
    let mut fixture = fixture(None);
    fixture.sync().await;
    let id = SessionId::new("s").unwrap();
    let found = fixture.storage.secrets().session_secrets(&scope(), &id).await.unwrap();
    let digest = found.secrets[0].digest;
    let storage = fixture.storage.clone();
    assert_eq!(storage.secrets().ignore_secrets(&[digest], true).await.unwrap(), 1);
    assert_eq!(storage.secrets().ignore_secrets(&[digest], true).await.unwrap(), 0);
    let left = storage.secrets().session_secrets(&scope(), &id).await.unwrap();
    // The value in the event is written with an escape, so it is another one.
    assert_eq!((left.count, left.ignored), (1, 2));
    fixture.storage = redacting(&fixture.storage, Some(SecretsAtRest::Mask));
    assert!(fixture.storage.secrets().is_first_masking().await.unwrap());
    fixture.sync().await;
    assert!(!fixture.storage.secrets().is_first_masking().await.unwrap());
    assert_eq!(fixture.texts().await[0], format!("it is {WORD}"));
    assert_eq!(fixture.storage.secrets().ignore_secrets(&[digest], false).await.unwrap(), 1);
    assert_eq!(fixture.storage.secrets().all_session_secrets(&scope(), &id).await.unwrap().count, 2);
}
