//! Several machines that push, pull and follow at the same time.

use std::{collections::BTreeSet, sync::Arc};

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_client::HttpStore;
use amplifier_session_core::Secret;
use amplifier_session_testkit::prelude::*;

use crate::Running;

fn machine() -> SessionStorage {
    SessionStorage::new(Arc::new(MemoryBackend::new()))
}

fn remote(server: &Running) -> HttpStore {
    let token = server.token("ana", Reach::Own, &AccessRight::ALL);
    let address = format!("http://{}", server.address).parse().unwrap();
    HttpStore::new(address, &Secret::new(&token), false).unwrap()
}

async fn push(from: &SessionStorage, server: &Running) -> PushReport {
    let (to, options) = (remote(server), PushOptions::new(user("ana")));
    let report = from.exchange().push(&to, &options, &|_| {}).await.unwrap();
    assert!(report.failed.is_empty(), "{report:?}");
    report
}

async fn follow(to: &SessionStorage, server: &Running) -> PullReport {
    let options = PullOptions::new(user("ana")).with_follow(true).with_mirror_deletes(true);
    let report = to.exchange().pull(&remote(server), &options, &|_| {}).await.unwrap();
    assert!(report.failed.is_empty(), "{report:?}");
    report
}

/// Lines that no other machine writes.
fn said(who: &str, numbers: std::ops::Range<u32>) -> Vec<RawJson> {
    numbers.map(|n| lines::user(&format!("{who} {n}")).into()).collect()
}

async fn append(to: &SessionStorage, target: &IngestTarget, lines: Vec<RawJson>) {
    let stored = to.backend().get_session(&target.key).await.unwrap();
    let start = stored.map_or(0, |stored| stored.session.message_count);
    to.ingestion().sync_transcript_lines(target, SyncLines::starting_at(start, lines)).await.unwrap();
}

async fn rows(of: &SessionStorage, target: &IngestTarget) -> Vec<String> {
    let range = SequenceRange { start: 0, limit: 1_000 };
    let (mut rows, mut range) = (Vec::new(), range);
    loop {
        let page = of.backend().read_messages(&target.key, range).await.unwrap();
        if page.is_empty() {
            return rows;
        }
        rows.extend(page.iter().map(|message| message.raw.to_text().to_string()));
        range.start = rows.len() as u32;
    }
}

/// The rows and the superseded lines.
async fn all_lines(of: &SessionStorage, target: &IngestTarget) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = rows(of, target).await.into_iter().collect();
    let query = SupersededQuery::new(Scope::User(target.key.user_id.clone()))
        .with_filter(SessionFilter::default().with_session(target.key.session_id.clone()));
    let mut pages = of.superseded().superseded_lines(query);
    while let Some(page) = pages.next().await.unwrap() {
        all.extend(page.into_iter().map(|line| line.raw.to_text().to_string()));
    }
    all
}

#[tokio::test]
async fn two_machines_that_push_different_tails_at_once_lose_no_line() {
    for round in 0..rounds(6, 100) {
        let server = Running::start().await;
        let (one, two, target) = (machine(), machine(), target_of("ana", "shop", "shared-1"));
        append(&one, &target, said("both", 0..4)).await;
        push(&one, &server).await;
        follow(&two, &server).await;
        let mut written: BTreeSet<String> = rows(&one, &target).await.into_iter().collect();
        for step in 0..3 {
            let numbers = step * 10..step * 10 + 1 + (round as u32 + step) % 4;
            append(&one, &target, said("one", numbers.clone())).await;
            append(&two, &target, said("two", numbers)).await;
            written.extend(all_lines(&one, &target).await);
            written.extend(all_lines(&two, &target).await);
            tokio::join!(push(&one, &server), push(&two, &server));
            let there = all_lines(&server.storage, &target).await;
            assert!(written.is_subset(&there), "round {round}, step {step}");
        }
        let there = rows(&server.storage, &target).await;
        for machine in [&one, &two] {
            assert_eq!(
                (push(machine, &server).await.bytes, rows(machine, &target).await.len() >= 4),
                (0, true)
            );
        }
        assert_eq!(rows(&server.storage, &target).await, there, "round {round}");
    }
}

#[tokio::test]
async fn a_session_that_moves_to_another_project_moves_everywhere() {
    let (server, one, two) = (Running::start().await, machine(), machine());
    let before = target_of("ana", "shop", "moving-1");
    append(&one, &before, said("one", 0..4)).await;
    push(&one, &server).await;
    follow(&two, &server).await;
    let after = target_of("ana", "bakery", "moving-1");
    append(&one, &after, said("one", 4..5)).await;
    one.sessions().update_session(&after.key, &SessionEdit::default().set_name("moved")).await.unwrap();
    push(&one, &server).await;
    let report = follow(&two, &server).await;
    assert_eq!((report.sessions, report.messages, report.superseded), (1, 1, 0), "{report:?}");
    for storage in [&server.storage, &two] {
        let session = storage.backend().get_session(&after.key).await.unwrap().unwrap().session;
        assert_eq!((session.project_slug.as_str(), session.name.as_deref()), ("bakery", Some("moved")));
        assert_eq!(rows(storage, &after).await, rows(&one, &after).await);
    }
    assert_eq!(push(&one, &server).await.bytes, 0);
    assert_eq!(follow(&two, &server).await.sessions, 0);
}

#[tokio::test]
async fn sessions_of_a_user_who_is_renamed_on_the_server_stay_on_their_machines() {
    let (server, one, two) = (Running::start().await, machine(), machine());
    let target = target_of("ana", "shop", "mine-1");
    append(&one, &target, said("one", 0..4)).await;
    push(&one, &server).await;
    follow(&two, &server).await;
    server.storage.users().rename_user(&user("ana"), &user("eve")).await.unwrap();
    let report = follow(&two, &server).await;
    assert_eq!((report.removed.len(), report.hidden.is_empty()), (0, false), "{report:?}");
    assert_eq!(all_lines(&two, &target).await, all_lines(&one, &target).await);
    // The token is still that of the old name: its sessions are sent again, and those of the new one do not change.
    let of_eve = target_of("eve", "shop", "mine-1");
    append(&one, &target, said("one", 4..5)).await;
    push(&one, &server).await;
    assert_eq!(
        (rows(&server.storage, &target).await.len(), rows(&server.storage, &of_eve).await.len()),
        (5, 4)
    );
    follow(&two, &server).await;
    assert_eq!(rows(&two, &target).await, rows(&one, &target).await);
}

#[tokio::test]
async fn what_is_pulled_while_another_machine_pushes_is_a_beginning() {
    let server = Running::start().await;
    let (one, two, target) = (machine(), machine(), target_of("ana", "shop", "growing-1"));
    append(&one, &target, said("one", 0..2)).await;
    push(&one, &server).await;
    let write = async {
        for step in 1..12 {
            append(&one, &target, said("one", step * 100..step * 100 + 40)).await;
            push(&one, &server).await;
        }
    };
    let read = async {
        for _ in 0..12 {
            follow(&two, &server).await;
            let taken = rows(&two, &target).await;
            assert_eq!(rows(&server.storage, &target).await[..taken.len()], taken);
        }
    };
    tokio::join!(write, read);
    follow(&two, &server).await;
    assert_eq!(rows(&two, &target).await, rows(&one, &target).await);
    assert_eq!(all_lines(&two, &target).await.len(), rows(&one, &target).await.len());
}

#[tokio::test]
async fn a_session_that_shrinks_keeps_its_rows_on_the_server() {
    let (server, one, target) = (Running::start().await, machine(), target_of("ana", "shop", "shrunk-1"));
    append(&one, &target, said("one", 0..6)).await;
    push(&one, &server).await;
    server.storage.sessions().share_session(&target.key, &Sharing::public()).await.unwrap();
    // As a sync of files that lost their end: the lines are superseded on the machine.
    one.ingestion().sync_transcript_lines(&target, SyncLines::whole(said("one", 0..2))).await.unwrap();
    push(&one, &server).await;
    assert_eq!((rows(&one, &target).await.len(), rows(&server.storage, &target).await.len()), (2, 6));
    // When it goes on, the server has the same rows, and its owner finds the others.
    append(&one, &target, said("other", 0..1)).await;
    push(&one, &server).await;
    assert_eq!(rows(&server.storage, &target).await, rows(&one, &target).await);
    let all = all_lines(&one, &target).await;
    assert!(all.is_subset(&all_lines(&server.storage, &target).await));
    let path = "/v1/superseded?session=shrunk-1&scope=visible";
    let own =
        server.ben(Reach::Visible, "GET", "/v1/sessions/shrunk-1/messages?scope=visible").send().await.ok();
    assert!(!own.to_string().contains("one 4"), "{own}");
    let of_others = server.ben(Reach::Visible, "GET", path).send().await;
    assert!(!String::from_utf8_lossy(&of_others.body).contains("one 4"));
}
