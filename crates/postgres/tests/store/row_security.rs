//! Row level security: what a role can do that is restricted to the rows of one user.

use std::sync::Arc;

use amplifier_session_core::{
    Scope, SessionStorage,
    backend::{IndexUpdate, SessionQuery, StorageBackend, meta, prelude::*},
    model::{LineKind, SupersededPiece, SupersededReason, UserId, Visibility},
    storage::{IngestTarget, SecretsAtRest, SyncLines},
};
use amplifier_session_postgres::Postgres;
use amplifier_session_testkit::{
    Store, Subject, lines, postgres,
    store::{day, meaning, raw, target, target_of, words},
};
use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use serde_json::json;
use tokio_postgres::{Client, NoTls, error::SqlState};

use crate::support::Schema;

/// A store whose roles are restricted, opened as the role `ana`. The roles stay on the server: other tests use them.
struct Restricted(Schema);

impl Restricted {
    async fn create() -> Self {
        let schema = Schema::new();
        let users = ["ana", "ben"].map(|user| UserId::new(user).unwrap());
        let owner = schema.backend().await;
        let roles = tokio::task::spawn_blocking(move || owner.restrict_roles(&users)).await.unwrap().unwrap();
        let administrator = connect("").await;
        for statements in roles {
            let (create, grant) = statements.split_once('\n').unwrap();
            if let Err(error) = administrator.batch_execute(create).await {
                // Another test has created it, before or at the same time.
                let exists = [SqlState::DUPLICATE_OBJECT, SqlState::UNIQUE_VIOLATION];
                assert!(exists.contains(error.code().unwrap()), "{error}");
            }
            administrator.batch_execute(grant).await.unwrap();
        }
        Self(schema)
    }

    async fn as_role(&self, role: &str) -> Arc<dyn StorageBackend> {
        Arc::new(Postgres::open(self.0.config_of(role)).await.unwrap())
    }

    /// A connection of a role that uses the tables directly; of the administrator if `role` is empty.
    async fn client(&self, role: &str) -> Client {
        let client = connect(role).await;
        client.batch_execute(&format!("SET search_path TO {}, public", self.0.name())).await.unwrap();
        client
    }
}

async fn connect(role: &str) -> Client {
    let mut config: tokio_postgres::Config = postgres::url().parse().unwrap();
    if !role.is_empty() {
        config.user(role);
    }
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[async_trait]
impl Subject for Restricted {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        self.as_role("ana").await
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

/// Opens the store inside the runtime of the test.
struct Later(tokio::sync::OnceCell<Restricted>);

impl Later {
    fn new() -> Self {
        Self(tokio::sync::OnceCell::new())
    }
}

#[async_trait]
impl Subject for Later {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        self.0.get_or_init(Restricted::create).await.open().await
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

/// The promises about the work of one user. The others need rows of several.
mod work {
    use super::Later;

    amplifier_session_testkit::conformance_tests! { @with [ignore = "needs a PostgreSQL server"] Later::new();
        meta: [] + [
            a_store_records_its_version_and_writer,
            meta_values_are_compared_and_swapped,
            a_store_reports_its_locations,
        ]
        sessions: [] + [
            all_fields_of_a_session_come_back,
            metadata_comes_back_byte_for_byte,
            batched_writes_equal_single_writes,
            rows_follow_their_session_to_another_project,
            writes_are_visible_through_other_handles_at_once,
        ]
        messages: [] + [
            lines_come_back_byte_for_byte,
            a_large_message_is_stored_completely,
            rows_are_truncated_before_they_are_put,
            a_retimed_message_keeps_everything_else,
        ]
        events: [] + [
            lines_come_back_byte_for_byte,
            all_fields_of_an_event_come_back,
            a_changed_line_changes_only_its_event,
        ]
        vectors: [] + [
            a_rewritten_message_loses_its_vectors,
            vectors_come_back_bit_for_bit,
            texts_changed_by_new_rules_are_embedded_again,
        ]
        generations: [] + [
            backfill_retries_failures,
        ]
        deletion: [] + [
            no_read_returns_a_deleted_session,
            a_recreated_session_starts_empty,
        ]
        changes: [] + [
            every_write_of_a_session_is_reported,
            no_concurrent_change_is_missed,
        ]
        concurrency: [] + [
            concurrent_syncs_of_the_same_lines_store_them_once,
            concurrent_appends_lose_no_line,
            searches_succeed_during_writes,
        ]
    }
}

/// Writes rows of a user to every table: a session with a message that has no vectors, and another one that is deleted.
async fn fill(store: &Store, user: &str) {
    let kept = target_of(user, "shop", "kept");
    let says = |fruit: &str| lines::user(&format!("{user} asks for {fruit}"));
    store.embedding.refuse(Some("poison"));
    store.sync(&kept, vec![says("pears"), says("poison"), lines::user("more")]).await;
    store.sync_metadata(&kept, r#"{"name":"kept"}"#).await;
    let turn = vec![says("figs").with("metadata", json!({"turn_summary": "figs"})), lines::assistant("here")];
    let turns = target_of(user, "shop", "turns");
    store.sync(&turns, turn).await;
    let settings = store.storage.settings().clone().with_turns(true);
    let with_turns = store.storage.clone().with_settings(settings);
    with_turns.vectors().embed_pending(&turns.key.user_id, None).await.unwrap();
    let large = lines::logger_event("x").data("x".repeat(3 << 20).into());
    store.sync_events(&kept, vec![lines::logger_event("e"), large]).await;
    let gone = target_of(user, "shop", "gone");
    store.sync_text(&gone, vec![lines::user("gone")]).await;
    store.backend.delete_session(&gone.key).await.unwrap();
    store.sync(&kept, vec![says("plums"), says("poison")]).await;
    store.write(&kept, |change| change.superseded = vec![superseded(&kept)]).await;
}

/// What a session had after its second message.
fn superseded(target: &IngestTarget) -> SupersededPiece {
    SupersededPiece {
        session: target.key.clone(),
        id: "m_2".to_owned(),
        kind: LineKind::Message,
        first_sequence: 2,
        last_sequence: 2,
        lines: 1,
        bytes: 4,
        superseded_at: day(1),
        reason: SupersededReason::CutOff,
        data: b"more".to_vec(),
    }
}

/// The tables with rows of users, with their columns that can be written.
async fn tables(client: &Client, schema: &str) -> Vec<(String, Vec<String>)> {
    let sql = "SELECT c.relname::text, array_agg(a.attname::text) FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
        WHERE c.relnamespace = $1::text::regnamespace AND c.relkind = 'r'
        GROUP BY 1 ORDER BY 1";
    let rows = client.query(sql, &[&schema]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn every_table_has_only_rows_of_the_role() {
    let restricted = Arc::new(Restricted::create().await);
    for user in ["ana", "ben"] {
        fill(&Store::open(Arc::new(Role(restricted.clone(), user))).await, user).await;
    }
    let (owner, ana) = (restricted.client("").await, restricted.client("ana").await);
    let all = tables(&owner, restricted.0.name()).await;
    assert!(all.iter().all(|(_, columns)| columns.iter().any(|column| column == "user_id")), "{all:?}");
    let mut empty = Vec::new();
    for (table, columns) in all {
        let count = async |client: &Client, of: &str| -> i64 {
            client.query_one(&format!("SELECT count(*) FROM {table} WHERE {of}"), &[]).await.unwrap().get(0)
        };
        let before = count(&owner, "user_id = 'ben'").await;
        let own = count(&owner, "user_id = 'ana'").await;
        let shared = if table == "meta_entries" { count(&owner, "user_id = ''").await.min(4) } else { 0 };
        assert_eq!(count(&ana, "TRUE").await, own + shared, "{table}");
        assert_eq!(count(&ana, "user_id = 'ben'").await, 0, "{table}");
        let copied = ana.copy_out(&format!("COPY {table} TO STDOUT (FORMAT text)")).await.unwrap();
        let copied: Vec<_> = copied.try_collect().await.unwrap();
        assert_eq!(copied.len() as i64, own + shared, "{table}");
        if own == 0 {
            empty.push(table.clone());
        }

        for sql in [
            format!("DELETE FROM {table} WHERE user_id <> 'ana'"),
            format!("UPDATE {table} SET user_id = 'ana' WHERE user_id <> 'ana'"),
        ] {
            assert_eq!(ana.execute(&sql, &[]).await.unwrap(), 0, "{sql}");
        }
        let listed = columns.join(", ");
        let foreign = listed.replace("user_id", "'ben'");
        let mut refused = vec![
            format!("TRUNCATE {table}"),
            format!("DROP TABLE {table}"),
            format!("ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"),
            format!("DROP POLICY own_rows ON {table}"),
            format!("SET row_security = off; SELECT * FROM {table}"),
        ];
        if own > 0 {
            refused.push(format!("UPDATE {table} SET user_id = 'ben'"));
            refused.push(format!(
                "INSERT INTO {table} ({listed}) SELECT {foreign} FROM {table} WHERE user_id = 'ana'"
            ));
        }
        for sql in refused {
            let error = ana.batch_execute(&sql).await.unwrap_err();
            assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{sql}: {error:?}");
            ana.batch_execute("RESET row_security").await.unwrap();
        }
        assert_eq!(count(&owner, "user_id = 'ben'").await, before, "{table}");
    }
    assert!(empty.is_empty(), "tables that were not tried with rows: {empty:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn no_detour_shows_rows_of_others() {
    let restricted = Arc::new(Restricted::create().await);
    for user in ["ana", "ben"] {
        fill(&Store::open(Arc::new(Role(restricted.clone(), user))).await, user).await;
    }
    let ana = restricted.client("ana").await;
    let version = "SELECT value FROM schema_meta WHERE key = 'version'";
    let before: String = ana.query_one(version, &[]).await.unwrap().get(0);
    assert_eq!(
        ana.execute("UPDATE schema_meta SET value = '9' WHERE key = 'version'", &[]).await.unwrap(),
        0
    );
    assert_eq!(ana.query_one(version, &[]).await.unwrap().get::<_, String>(0), before);

    // What the planner knows of the values of columns.
    restricted.client("").await.batch_execute("ANALYZE sessions, transcripts, postings").await.unwrap();
    let statistics = "SELECT 1 FROM pg_stats WHERE schemaname = $1";
    assert!(ana.query(statistics, &[&restricted.0.name()]).await.unwrap().is_empty());
    assert!(
        !restricted.client("").await.query(statistics, &[&restricted.0.name()]).await.unwrap().is_empty()
    );
    let error = ana.batch_execute("COPY sessions FROM STDIN").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "{error:?}");

    // A cheap function that would see rows before the policy does.
    ana.batch_execute(
        "CREATE TEMP TABLE seen (user_id text);
         CREATE FUNCTION pg_temp.note(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS
             $$ BEGIN INSERT INTO seen VALUES ($1); RETURN TRUE; END $$;
         SELECT FROM sessions WHERE pg_temp.note(user_id);
         SELECT FROM transcripts WHERE pg_temp.note(user_id) AND role = 'user';
         SELECT FROM sessions s JOIN postings p USING (user_id) WHERE pg_temp.note(p.user_id)",
    )
    .await
    .unwrap();
    let seen = ana.query("SELECT DISTINCT user_id FROM seen", &[]).await.unwrap();
    assert_eq!(seen.iter().map(|row| row.get(0)).collect::<Vec<String>>(), ["ana"]);

    for sql in [
        "SET ROLE ben",
        "SET SESSION AUTHORIZATION ben",
        "SELECT setval('message_keys', 1)",
        "CREATE TABLE mine (x int)",
        "INSERT INTO meta_entries (user_id, key, value) VALUES ('', 'secrets', 'off')",
    ] {
        let error = ana.batch_execute(sql).await.unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{sql}: {error:?}");
    }
}

/// The store as one of its roles sees it.
struct Role(Arc<Restricted>, &'static str);

#[async_trait]
impl Subject for Role {
    async fn open(&self) -> Arc<dyn StorageBackend> {
        self.0.as_role(self.1).await
    }

    async fn open_again(&self) -> Arc<dyn StorageBackend> {
        self.open().await
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn the_library_reads_and_writes_only_rows_of_the_role() {
    let restricted = Arc::new(Restricted::create().await);
    let ana = Store::open(Arc::new(Role(restricted.clone(), "ana"))).await;
    let ben = Store::open(Arc::new(Role(restricted.clone(), "ben"))).await;
    fill(&ana, "ana").await;
    let kept = target_of("ana", "shop", "kept");
    let found = ana.search(&kept, &words("asks plums")).await.results;
    fill(&ben, "ben").await;
    let of_ben = target_of("ben", "shop", "kept");
    ben.write(&of_ben, |change| change.session.visibility = Visibility::Public).await;
    let before = ben.everything(&of_ben).await;
    assert_eq!(ana.backend.info().only_user.unwrap().as_str(), "ana");

    // Scores have statistics of own texts alone.
    assert_eq!(ana.search(&kept, &words("asks plums")).await.results, found);
    for everyone in [words("asks"), meaning("plums"), words("plums").with_limit(100)] {
        let results =
            ana.storage.search().search_transcripts(&Scope::Everyone, &everyone).await.unwrap().results;
        assert!(
            !results.is_empty() && results.iter().all(|result| result.user_id.as_str() == "ana"),
            "{results:?}"
        );
    }
    assert_eq!(ana.listed(&SessionQuery::new(Scope::Everyone)).await, ["ana/turns", "ana/kept"]);
    assert!(ana.messages(&of_ben).await.is_empty());
    assert!(!ana.backend.delete_session(&of_ben.key).await.unwrap());
    let intruding = raw(vec![lines::user("x")]);
    let refused = ana.storage.ingestion().sync_transcript_lines(&of_ben, SyncLines::whole(intruding)).await;
    assert!(refused.unwrap_err().to_string().contains("row-level security"));
    let (from, to) = (UserId::new("ana").unwrap(), UserId::new("ben").unwrap());
    assert!(ana.backend.rename_user(&from, &to).await.is_err());
    assert_eq!(ana.backend.rename_user(&to, &from).await.unwrap(), 0);

    // Each role has settings of its own, a generation of vectors and a pinned user among them.
    ana.backend.put_meta_if_absent(meta::SECRETS, "mask").await.unwrap();
    assert_eq!(ben.storage.secrets().secrets_at_rest().await.unwrap(), SecretsAtRest::Mark);
    assert_eq!(ben.storage.users().pin_user(&to).await.unwrap(), to);
    assert_eq!(ana.storage.users().pin_user(&from).await.unwrap(), from);
    ana.backend.update_index(IndexUpdate::Rebuild).await.unwrap();
    ana.storage.update_index().await.unwrap();
    for store in [&ana, &ben] {
        assert_eq!(store.backend.check_index().await.unwrap().problems, []);
    }
    assert_eq!(ben.everything(&of_ben).await, before);
    assert_eq!(ana.search(&kept, &words("asks plums")).await.results, found);

    // The owner is not restricted, and renames users.
    let owner = SessionStorage::new(Arc::new(restricted.0.backend().await));
    assert_eq!(owner.users().rename_user(&to, &UserId::new("eve").unwrap()).await.unwrap(), 2);
    assert!(ben.messages(&of_ben).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a PostgreSQL server"]
async fn users_of_a_store_keep_their_settings_when_it_is_restricted() {
    let schema = Arc::new(Schema::new());
    let store = Store::open(schema.clone()).await;
    store.sync(&target("s"), vec![lines::user("a pear")]).await;
    store.storage.users().pin_user(&UserId::new("eve").unwrap()).await.unwrap();
    let owner = schema.backend().await;
    tokio::task::spawn_blocking(move || owner.restrict_roles(&[])).await.unwrap().unwrap();
    let administrator = connect("").await;
    let sql = format!("SELECT key, value FROM {}.meta_entries WHERE user_id = 'ana'", schema.name());
    let rows = administrator.query(&sql, &[]).await.unwrap();
    let held: std::collections::BTreeMap<String, String> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(held[meta::USER_ID], "ana");
    assert!(held.contains_key(meta::EMBEDDING_SPACE) && !held.contains_key(meta::VERSION), "{held:?}");
    // The owner has those of before.
    assert_eq!(store.storage.users().pinned_user().await.unwrap().unwrap().as_str(), "eve");
    assert_eq!(store.search(&target("s"), &meaning("a pear")).await.results.len(), 1);
}
