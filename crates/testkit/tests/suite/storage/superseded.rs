//! Superseded lines: listing, reading, searching, removing, exporting and importing them.

use amplifier_session_testkit::prelude::*;

on_both_stores![
    sessions_with_superseded_lines_are_summed_up,
    superseded_messages_are_found_by_words,
    superseded_lines_are_pruned_by_session_project_and_age,
    archives_contain_superseded_lines,
];

/// Stores a transcript as a sync of a file does.
async fn replace(store: &Store, target: &IngestTarget, lines: Vec<Line>) -> IngestReport {
    let mut ingest = store.storage.ingestion().ingest(target.clone()).await.unwrap();
    ingest.begin_transcript(0).await.unwrap();
    let lines: Vec<RawJson> = lines.into_iter().map(Line::raw).collect();
    let mut differs = false;
    for (at, line) in lines.iter().enumerate() {
        if !differs && ingest.differs(LineKind::Message, line.as_bytes()) {
            differs = true;
            let lines = lines[at..].iter().map(|line| Digest::of(line.as_bytes())).collect();
            ingest.supersede(LineKind::Message, &Remaining { lines, ..Remaining::default() });
        }
        ingest.transcript_line(line.clone(), day(1)).await.unwrap();
    }
    if !differs {
        ingest.supersede(LineKind::Message, &Remaining::default());
    }
    ingest.end_transcript(Extent::Whole);
    ingest.commit().await.unwrap()
}

fn talk() -> Vec<Line> {
    vec![
        lines::user("where is the teapot"),
        lines::thinking("a teapot", "the teapot is in the cupboard"),
        lines::assistant("or on the shelf, with the kettle"),
    ]
}

/// A session that has lost its last two messages, within a turn.
pub(super) async fn lossy(store: &Store, target: &IngestTarget) {
    replace(store, target, talk()).await;
    let report = replace(store, target, talk()[..1].to_vec()).await;
    assert_eq!((report.messages_removed, report.messages_superseded), (2, 2));
}

async fn all(store: &Store, scope: impl Into<Scope>) -> Vec<SupersededLine> {
    let mut lines = store.storage.superseded().superseded_lines(SupersededQuery::new(scope));
    let mut found = Vec::new();
    while let Some(lines) = lines.next().await.unwrap() {
        found.extend(lines);
    }
    found
}

async fn sessions_with_superseded_lines_are_summed_up(store: Store) {
    for session in ["a", "b"] {
        lossy(&store, &target(session)).await;
    }
    store.sync(&target("whole"), vec![lines::user("hello")]).await;
    replace(&store, &target("b"), vec![lines::user("another beginning")]).await;
    let found = store.storage.superseded().superseded_sessions(&SupersededQuery::new(ana())).await.unwrap();
    let shown: Vec<_> = found.iter().map(|of| (of.session_id.as_str(), of.messages, of.events)).collect();
    assert_eq!(shown, [("a", 2, 0), ("b", 3, 0)]);
    let reasons: Vec<_> = found[1].reasons.iter().copied().collect();
    assert_eq!(reasons, [SupersededReason::HeadLost, SupersededReason::CutOff]);
    assert!(found[1].first_superseded_at < found[1].last_superseded_at);
    let of_a: u64 = talk()[1..].iter().map(|line| line.clone().raw().as_bytes().len() as u64).sum();
    assert_eq!(found[0].bytes, of_a);
    let lines = all(&store, ana()).await;
    let sequences: Vec<_> =
        lines.iter().map(|line| (line.session_id.as_str(), line.sequence, line.turn)).collect();
    let expected =
        [("a", 1, Some(1)), ("a", 2, Some(1)), ("b", 0, Some(1)), ("b", 1, Some(1)), ("b", 2, Some(1))];
    assert_eq!(sequences, expected);
    assert_eq!(lines[1].raw, talk()[2].clone().raw());
}

async fn superseded_messages_are_found_by_words(store: Store) {
    lossy(&store, &target("s")).await;
    let search = async |scope: Scope, query: &str| {
        let found =
            store.storage.superseded().search_superseded(&scope, &SearchOptions::new(query)).await.unwrap();
        found.into_iter().map(|found| found.result.sequence).collect::<Vec<_>>()
    };
    assert_eq!(search(ana(), "kettles").await, [2]);
    // Of each message its best text.
    assert_eq!(search(ana(), "teapot").await, [1]);
    assert_eq!(search(ana(), "kettle cupboard").await.len(), 2);
    assert!(search(ana(), "where").await.is_empty() && search(ana(), "spoon").await.is_empty());
    assert!(search(Scope::User(target_of("ben", "p", "s").key.user_id), "teapot").await.is_empty());
    assert!(store.find(&target("s"), "kettle").await.is_empty());
    let found =
        store.storage.superseded().search_superseded(&ana(), &SearchOptions::new("kettle")).await.unwrap();
    let json = serde_json::to_value(&found[0]).unwrap();
    assert_eq!(
        (&json["superseded"], &json["reason"], &json["role"]),
        (&json!(true), &json!("cut_off"), &json!("assistant"))
    );
    assert_eq!(found[0].result.project, target("s").project_slug);
    assert!(found[0].result.snippet.contains("kettle"));
}

async fn superseded_lines_are_pruned_by_session_project_and_age(store: Store) {
    let (a, b, other) = (target("a"), target("b"), target_of("ana", "other", "c"));
    for target in [&a, &b, &other] {
        lossy(&store, target).await;
    }
    let bens = target_of("ben", "p", "a");
    lossy(&store, &bens).await;
    let middle = all(&store, ana()).await.iter().map(|line| line.superseded_at).nth(2).unwrap();
    let user = a.key.user_id.clone();
    let left = async || {
        let lines = all(&store, Scope::Everyone).await;
        lines.iter().map(|line| format!("{}/{}", line.user_id, line.session_id)).collect::<Vec<_>>()
    };
    let everything = PruneOptions::default().with_dry_run(true);
    let report = store.storage.superseded().prune_superseded(&user, &everything).await.unwrap();
    assert_eq!((report.sessions.len(), report.messages, report.events), (3, 6, 0));
    assert_eq!(left().await.len(), 8);
    let of_other = SessionFilter::default().with_project(other.project_slug.clone());
    let prune = async |options: PruneOptions| {
        store.storage.superseded().prune_superseded(&user, &options).await.unwrap().messages
    };
    assert_eq!(prune(PruneOptions::default().with_until(middle)).await, 2);
    assert_eq!(prune(PruneOptions::default().with_filter(of_other)).await, 2);
    assert_eq!(left().await, ["ana/b", "ana/b", "ben/a", "ben/a"]);
    let sessions = vec![a.key.session_id.clone(), b.key.session_id.clone()];
    assert_eq!(prune(PruneOptions::default().with_sessions(sessions)).await, 2);
    assert_eq!(prune(PruneOptions::default()).await, 0);
    assert_eq!(left().await, ["ben/a", "ben/a"]);
}

async fn archives_contain_superseded_lines(store: Store) {
    lossy(&store, &target("s")).await;
    store.sync(&target("whole"), vec![lines::user("hello")]).await;
    let export = async |storage: &SessionStorage| {
        let mut archive = Vec::new();
        let mut writer = JsonLinesWriter::new(&mut archive);
        let report = storage
            .archive()
            .export_sessions(&Scope::Everyone, SessionFilter::default(), &mut writer)
            .await
            .unwrap();
        assert_eq!((report.sessions, report.superseded), (2, 2));
        archive
    };
    let archive = export(&store.storage).await;
    let records = String::from_utf8(archive.clone()).unwrap();
    assert_eq!(records.lines().filter(|line| line.contains(r#""record":"superseded""#)).count(), 2);
    let copy = SessionStorage::new(std::sync::Arc::new(MemoryBackend::new()));
    for replace in [false, true] {
        let options = ImportOptions::default().with_replace(replace);
        let mut reader = JsonLinesReader::new(archive.as_slice());
        let report = copy.archive().import_sessions(&mut reader, &options).await.unwrap();
        assert_eq!((report.sessions, report.superseded, report.broken.len()), (2, 2, 0));
        assert_eq!(export(&copy).await, archive, "replace: {replace}");
    }
}
