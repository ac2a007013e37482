//! Reading old rows of any quality.

use amplifier_session_core::{Scope, backend::SessionQuery};
use amplifier_session_testkit::python_library::{MODEL, assert_upgraded};

use crate::support::{GENERATIONS, counts, in_place, left_out, opened, run, sqlite_file, sqlite_store};

/// Tables of missing extensions, payloads in chunks, and vectors that cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn other_tables_are_read_or_ignored() {
    const VIRTUAL: &str = "PRAGMA writable_schema = ON;
        INSERT INTO sqlite_schema VALUES ('table', 'transcript_embeddings', 'transcript_embeddings', 0,
            'CREATE VIRTUAL TABLE transcript_embeddings USING vss0(v(64))');
        PRAGMA writable_schema = OFF;";
    let folder = sqlite_file(1, VIRTUAL);
    in_place(&folder.old()).await.unwrap();
    assert_upgraded(&opened(folder.old()).await).await;

    let chunked =
        "CREATE TABLE event_chunks (chunk_id TEXT, event_id TEXT, chunk_index INTEGER, chunk_data TEXT);
        INSERT INTO event_chunks SELECT id || '_1', id, 1, substr(data, 31) FROM events;
        INSERT INTO event_chunks SELECT id || '_0', id, 0, substr(data, 1, 30) FROM events;
        UPDATE events SET data = NULL";
    let folder = sqlite_file(3, chunked);
    in_place(&folder.old()).await.unwrap();
    assert_upgraded(&opened(folder.old()).await).await;

    let folder = sqlite_file(2, "UPDATE transcript_vectors SET vector_json = '[NaN]'");
    let report = run(&folder.old(), sqlite_store(folder.old()), true).await.unwrap();
    assert_eq!((counts(&report)[3], left_out(&report)), (0, vec![("that can't be read", 60)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_any_quality_are_kept() {
    let more = "
        UPDATE sessions SET metadata = '{broken' WHERE user_id = 'bob';
        DELETE FROM sessions WHERE project_slug = 'proj-b';
        INSERT INTO sessions (user_id, session_id, host_id) VALUES ('', 'odd id/1', '');
        INSERT INTO transcripts (id, user_id, host_id, session_id, sequence, role, content_json, turn, ts) VALUES
            ('m1', 'carol', 'h', 'alone', 5, NULL, 'no json', 0, 'yesterday'),
            ('m2', 'carol', 'h', 'alone', 9, 'user', '{\"role\":\"user\",\"content\":\"whole line\",\"n\":1.0}', 2, NULL),
            ('m3', 'carol', 'h', 'alone', 9, 'function', NULL, NULL, '2026-03-01T00:00:00Z');
        INSERT INTO events (id, user_id, host_id, session_id, sequence, ts, lvl, event, data) VALUES
            ('e1', 'carol', 'h', 'alone', 3, NULL, 'WARNING', 'llm.request', '{\"model\":\"m\"}'),
            ('e1b', 'carol', 'h', 'events only', 0, '2026-03-01T00:00:00Z', NULL, NULL, '{\"cut off');
        INSERT INTO transcript_vectors (id, parent_id, user_id, session_id, content_type, span_end, token_count, source_text,
            vector_json, embedding_model) VALUES
            ('v1', 'm2', 'carol', 'alone', 'user_query', 0, 0, '', '[3, 4]', 'other'),
            ('v2', 'gone', 'carol', 'alone', 'user_query', 1, 1, 'x', '[3, 4]', 'other'),
            ('v3', 'm2', 'carol', 'alone', 'poem', 1, 1, 'x', '[1', 'fake-64'),
            ('v4', 'm2', 'carol', 'alone', 'user_query', 1, 1, 'x', NULL, 'fake-64');";
    let folder = sqlite_file(2, more);
    let planned = run(&folder.old(), sqlite_store(folder.old()), true).await.unwrap();
    let done = in_place(&folder.old()).await.unwrap();
    assert_eq!((planned.counts, &planned.left_out), (done.counts, &done.left_out));
    assert_eq!((counts(&done), done.pending, done.unknown_roles), ([6, 48, 14, 60], 1, 1));
    assert_eq!(
        left_out(&done),
        [("of messages that are not there", 1), ("of other (2 dimensions)", 1), ("that can't be read", 1)]
    );

    let storage = opened(folder.old()).await;
    let alone = storage
        .reading()
        .get_transcript_lines(&Scope::Everyone, &"alone".parse().unwrap(), None, 10)
        .await
        .unwrap();
    let shown: Vec<_> =
        alone.iter().map(|m| (m.sequence, m.role.as_str(), m.turn, m.raw.to_text().into_owned())).collect();
    assert_eq!(
        shown,
        [
            (0, "system", None, r#"{"role":"","content":"no json","timestamp":"yesterday"}"#.to_owned()),
            (1, "user", Some(2), r#"{"role":"user","content":"whole line","n":1.0}"#.to_owned()),
            (
                2,
                "tool",
                None,
                r#"{"role":"function","content":null,"timestamp":"2026-03-01T00:00:00.000000Z"}"#.to_owned()
            ),
        ]
    );
}

/// Amplifier's own lines name no turn, and programs that made vectors themselves named no model.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_library_did_not_know_loses_nothing() {
    for generation in GENERATIONS {
        let vectors = if generation == 1 { "transcripts" } else { "transcript_vectors" };
        let unknown = format!(
            "UPDATE transcripts SET turn = NULL; UPDATE {vectors} SET embedding_model = NULL WHERE rowid % 3 > 0"
        );
        let folder = sqlite_file(generation, &unknown);
        let done = in_place(&folder.old()).await.unwrap();
        assert_eq!((counts(&done)[3], done.pending), (60, 0));
        assert_eq!(done.space.unwrap().model, MODEL);
        let sessions = opened(folder.old())
            .await
            .sessions()
            .search_sessions(&SessionQuery::new(Scope::Everyone))
            .await
            .unwrap();
        assert!(sessions.iter().all(|session| session.turn_count == 5 && session.first_prompt.is_some()));
    }
}
