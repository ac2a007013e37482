//! How SQLite finds the rows of each read: through an index, whatever the size of the store.

use std::{
    ops::ControlFlow,
    sync::{Arc, Mutex, OnceLock},
};

use amplifier_session_core::{
    Result, Scope, Viewer,
    backend::{PendingQuery, SequenceRange, SessionCursor, SessionQuery},
    model::{
        ContentType, HostId, Level, MessageRef, ProjectSlug, Repository, Role, Session, SessionId,
        SessionKey, Timestamp, UserId,
    },
    search::{EventCursor, EventFilter, EventSearchOptions, SearchFilter, SessionFilter},
};
use amplifier_session_index::{RowRefs, Rows};
use amplifier_session_sql::{
    PendingRows, Query, Reader,
    backend::{Lookups, Writer},
    embedded::IndexRows,
    read,
    table::{SESSIONS, SessionRow},
    turns,
};
use rusqlite::{
    Connection,
    trace::{TraceEvent, TraceEventCodes},
};

use crate::{
    connection::{SQLITE, SqliteReader, SqliteWriter},
    functions, schema,
};

/// Steps that a read may contain besides index searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// Nothing.
    Nothing,
    /// Reads an index in order, and stops when it has enough rows.
    Walk,
    /// Sorts the rows of one session, id, prefix or parent.
    SortFew,
    /// Groups the found rows, which requires sorting them, and groups the result once more.
    Group,
    /// Reads all sessions, if everyone's were requested.
    AllSessions,
    /// Reads the last row of a table.
    Last,
    /// Reads the last row of a table, and groups the rows that were written since.
    Since,
}

type Run = fn(&Connection) -> Result<()>;

fn key() -> SessionKey {
    SessionKey::new(UserId::new("ana").unwrap(), SessionId::new("s").unwrap())
}

fn another_key() -> SessionKey {
    SessionKey::new(UserId::new("ben").unwrap(), SessionId::new("t").unwrap())
}

fn own() -> Scope {
    Scope::User(key().user_id)
}

fn visible() -> Scope {
    Viewer::new(key().user_id).with_org(Some("acme".into())).with_teams(["core"]).into()
}

fn at() -> Timestamp {
    Timestamp::from_micros(0)
}

fn range() -> SequenceRange {
    SequenceRange { start: 3, limit: 10 }
}

fn of_sessions() -> SessionFilter {
    SessionFilter::default()
}

fn in_repositories(repositories: &[&str]) -> SessionFilter {
    of_sessions().with_repositories(repositories.iter().map(|text| Repository::new(text).unwrap()))
}

fn project() -> SessionFilter {
    of_sessions().with_project(ProjectSlug::new("shop").unwrap())
}

fn session() -> SessionFilter {
    of_sessions().with_session(key().session_id)
}

fn tags() -> SessionFilter {
    of_sessions().with_tags(["red"]).with_min_turns(2)
}

fn events_of() -> EventFilter {
    EventFilter::default()
}

fn listed(
    connection: &Connection,
    scope: Scope,
    narrow: impl Fn(SessionQuery) -> SessionQuery,
) -> Result<()> {
    let cursor = SessionCursor { updated: at(), key: key() };
    let reader = SqliteReader(connection);
    read::sessions::list(&reader, &narrow(SessionQuery::new(scope.clone())))?;
    read::sessions::list(&reader, &narrow(SessionQuery::new(scope)).with_after(Some(cursor))).map(drop)
}

fn keys(connection: &Connection, scope: Scope, filter: SessionFilter) -> Result<()> {
    read::sessions::keys(&SqliteReader(connection), &scope, &filter).map(drop)
}

fn found(connection: &Connection, scope: Scope, filter: EventFilter) -> Result<()> {
    let after = EventCursor { ts: at(), event: MessageRef::new(key(), 3) };
    let reader = SqliteReader(connection);
    read::events::search(&reader, &scope, &EventSearchOptions::new(filter.clone()))?;
    read::events::search(&reader, &scope, &EventSearchOptions::new(filter).with_after(after)).map(drop)
}

fn counted(connection: &Connection, scope: Scope, filter: EventFilter) -> Result<()> {
    SqliteReader(connection).count_events(&scope, &filter).map(drop)
}

fn counted_messages(connection: &Connection, scope: Scope, filter: SearchFilter) -> Result<()> {
    read::messages::counts(&SqliteReader(connection), &scope, &filter).map(drop)
}

fn pending(connection: &Connection, rows: PendingRows) -> Result<()> {
    let of_user = PendingQuery {
        user: key().user_id,
        session: None,
        generation: 0,
        turns: true,
        after: Some(MessageRef::new(key(), 3)),
        limit: 10,
    };
    let of_session = PendingQuery { session: Some(key().session_id), after: None, ..of_user.clone() };
    run(connection, &read::messages::pending_of(SQLITE, &of_user, rows))?;
    run(connection, &read::messages::pending_of(SQLITE, &of_session, rows))
}

fn without_vectors(connection: &Connection, scope: &Scope) -> Result<()> {
    read::vectors::missing_of(&SqliteReader(connection), scope).map(drop)
}

fn of_index(
    connection: &Connection,
    read: impl Fn(&mut IndexRows<'_, SqliteReader<'_>>) -> Result<()>,
) -> Result<()> {
    read(&mut IndexRows::new(&SqliteReader(connection), &OnceLock::new()))
}

fn changes(connection: &Connection, scope: &Scope) -> Result<()> {
    let reader = SqliteReader(connection);
    let begun = read::changes::page(&reader, scope, None, 9)?;
    connection.execute("INSERT INTO revisions (nonce) VALUES (7)", []).unwrap();
    read::changes::page(&reader, scope, Some(&begun.cursor), 9).map(drop)
}

fn run<T>(connection: &Connection, query: &Query<T>) -> Result<()> {
    SqliteReader(connection).rows(query).map(drop)
}

/// Every read of the backend, by name.
fn reads() -> Vec<(&'static str, Allowed, Run)> {
    use Allowed::{AllSessions, Group, Last, Nothing, Since, SortFew, Walk};
    vec![
        ("a session", Nothing, |c| read::sessions::get(&SqliteReader(c), &key()).map(drop)),
        ("a list", Nothing, |c| listed(c, own(), |q| q)),
        ("a list of a time", Nothing, |c| {
            listed(c, own(), |q| {
                q.with_since(Some(at())).with_until(Some(at())).active_in(Some(at()), Some(at()))
            })
        }),
        ("a list of a project", Nothing, |c| listed(c, own(), |q| q.with_filter(project()))),
        ("a list of two projects", SortFew, |c| {
            let projects = || ["shop", "blog"].map(|name| ProjectSlug::new(name).unwrap());
            listed(c, own(), |q| q.with_filter(of_sessions().with_projects(projects())))
        }),
        ("a list of a repository", Nothing, |c| {
            listed(c, own(), |q| q.with_filter(in_repositories(&["github.com/acme/app"])))
        }),
        ("a list of two repositories", SortFew, |c| {
            listed(c, own(), |q| q.with_filter(in_repositories(&["github.com/acme/app", "/home/ana/app"])))
        }),
        ("a list of a bundle", Nothing, |c| {
            listed(c, own(), |q| q.with_filter(of_sessions().with_bundle("b".to_owned())))
        }),
        ("a list by tags and text", Nothing, |c| {
            listed(c, own(), |q| q.with_filter(tags()).with_text(Some("x".into())))
        }),
        ("a list of one id", SortFew, |c| listed(c, own(), |q| q.with_filter(session()))),
        ("a list of some keys", SortFew, |c| listed(c, own(), |q| q.with_keys([key(), another_key()]))),
        ("a list of everyone's by keys", SortFew, |c| {
            listed(c, Scope::Everyone, |q| q.with_keys([key(), another_key()]))
        }),
        ("a list by prefix", SortFew, |c| listed(c, own(), |q| q.with_id_prefix(Some("ab".into())))),
        ("a list of children", SortFew, |c| listed(c, own(), |q| q.with_parent(Some(key().session_id)))),
        ("a list of what is visible", Walk, |c| listed(c, visible(), |q| q)),
        ("a list of what is visible of one id", SortFew, |c| {
            listed(c, visible(), |q| q.with_filter(session()))
        }),
        ("a list of what is visible by prefix", SortFew, |c| {
            listed(c, visible(), |q| q.with_id_prefix(Some("ab".into())))
        }),
        ("a list of visible children", SortFew, |c| {
            listed(c, visible(), |q| q.with_parent(Some(key().session_id)))
        }),
        ("a list of everyone's", Walk, |c| listed(c, Scope::Everyone, |q| q)),
        ("a list of everyone's by prefix", SortFew, |c| {
            listed(c, Scope::Everyone, |q| q.with_id_prefix(Some("ab".into())))
        }),
        ("sync states", Nothing, |c| {
            run(c, &read::sessions::sync_states(&key().user_id, Some(&key().session_id), 10))
        }),
        ("keys of one's own sessions", Nothing, |c| keys(c, own(), tags())),
        ("keys of a project", Nothing, |c| keys(c, own(), project().with_tags(["red"]))),
        ("keys of a repository", Nothing, |c| keys(c, own(), in_repositories(&["github.com/acme/app"]))),
        ("keys of a bundle", Nothing, |c| keys(c, own(), of_sessions().with_bundle("b".to_owned()))),
        ("keys of visible sessions", Nothing, |c| keys(c, visible(), of_sessions())),
        ("keys of visible sessions of a project", Nothing, |c| keys(c, visible(), project())),
        ("keys of visible sessions of one id", Nothing, |c| keys(c, visible(), session())),
        ("keys of everyone's sessions", AllSessions, |c| keys(c, Scope::Everyone, tags())),
        ("message states", Nothing, |c| run(c, &read::messages::states(&key()))),
        ("messages", Nothing, |c| run(c, &read::messages::of_session_from(&key(), range()))),
        ("messages at places", Nothing, |c| {
            SqliteReader(c).messages_at(&[MessageRef::new(key(), 1)]).map(drop)
        }),
        ("messages with pending vectors", Nothing, |c| pending(c, PendingRows::Texts)),
        ("messages with pending vectors of turns", Nothing, |c| pending(c, PendingRows::Turns)),
        ("messages with pending vectors of the next generation", Nothing, |c| {
            pending(c, PendingRows::OfNext)
        }),
        ("vectors of texts", Nothing, |c| {
            SqliteReader(c).vectors_of(0, &[(MessageRef::new(key(), 1), ContentType::UserQuery)]).map(drop)
        }),
        ("vectors of turns", Nothing, |c| {
            turns::vectors_of(&SqliteReader(c), 0, &[MessageRef::new(key(), 1)]).map(drop)
        }),
        ("lines of turns", Nothing, |c| turns::lines_of(&SqliteReader(c), &key(), &[1, 2].into()).map(drop)),
        ("texts that have vectors", Nothing, |c| {
            read::vectors::texts(&SqliteReader(c), 0, &key(), range()).map(drop)
        }),
        ("messages without vectors", Walk, |c| read::vectors::missing(&SqliteReader(c), &own()).map(drop)),
        ("own messages without vectors", Nothing, |c| without_vectors(c, &own())),
        ("visible messages without vectors", Nothing, |c| without_vectors(c, &visible())),
        ("vectors counted", Group, |c| read::vectors::counts(&SqliteReader(c), &own()).map(drop)),
        ("rows of a session", Nothing, |c| read::sessions::stored_rows(&SqliteReader(c), &key()).map(drop)),
        ("event digests", Nothing, |c| run(c, &read::events::states(&key(), range(), false))),
        ("event times", Nothing, |c| run(c, &read::events::states(&key(), range(), true))),
        ("events", Nothing, |c| run(c, &read::events::page(&key(), range()))),
        ("event payloads", Nothing, |c| read::events::of_sequences(&SqliteReader(c), &key(), &[3]).map(drop)),
        ("events by id", Nothing, |c| SqliteReader(c).find_events(&key().user_id, &["e".into()]).map(drop)),
        ("newest events", Walk, |c| found(c, own(), events_of())),
        ("newest events of a time", Nothing, |c| {
            found(c, own(), events_of().with_since(at()).with_until(at()))
        }),
        ("newest events of a type", Nothing, |c| {
            found(c, own(), events_of().with_event_type("t".to_owned()))
        }),
        ("newest events about a tool", Nothing, |c| found(c, own(), events_of().with_tool("t".to_owned()))),
        ("newest errors", Nothing, |c| found(c, own(), events_of().with_level(Level::Error))),
        ("newest events of the usual level", Walk, |c| found(c, own(), events_of().with_level(Level::Info))),
        ("newest events of a category", Walk, |c| {
            found(c, own(), events_of().with_category("llm".to_owned()))
        }),
        ("newest events of a project", Walk, |c| found(c, own(), events_of().with_sessions(project()))),
        ("newest events of a session", Nothing, |c| found(c, own(), events_of().with_sessions(session()))),
        ("newest events of a visible session", SortFew, |c| {
            found(c, visible(), events_of().with_sessions(session()))
        }),
        ("newest events that are visible", Walk, |c| {
            found(c, visible(), events_of().with_tool("t".to_owned()))
        }),
        ("newest events of everyone", Walk, |c| found(c, Scope::Everyone, events_of())),
        ("events counted", Group, |c| counted(c, own(), events_of())),
        ("events of a time counted", Group, |c| counted(c, own(), events_of().with_since(at()))),
        ("events of a type counted", Group, |c| {
            counted(c, own(), events_of().with_event_type("t".to_owned()))
        }),
        ("events of a category counted", Group, |c| {
            counted(c, own(), events_of().with_category("llm".to_owned()))
        }),
        ("events about a tool counted", Group, |c| counted(c, own(), events_of().with_tool("t".to_owned()))),
        ("events of a project counted", Group, |c| counted(c, own(), events_of().with_sessions(project()))),
        ("visible events counted", Group, |c| {
            counted(c, visible(), events_of().with_category("llm".to_owned()))
        }),
        ("messages counted", Group, |c| counted_messages(c, own(), SearchFilter::default())),
        ("messages of a role counted", Group, |c| {
            counted_messages(c, own(), SearchFilter::default().with_role(Role::User).with_since(at()))
        }),
        ("visible messages counted", Group, |c| counted_messages(c, visible(), SearchFilter::default())),
        ("the revision", Last, |c| {
            of_index(c, |rows| rows.store_revision().and_then(|_| rows.nonce(3)).map(drop))
        }),
        ("newer rows", Nothing, |c| {
            of_index(c, |rows| {
                rows.messages_after(3, &mut |_| Ok(ControlFlow::Continue(())))?;
                rows.vectors_after(false, 3, &mut |_| Ok(ControlFlow::Continue(())))?;
                rows.vectors_after(true, 3, &mut |_| Ok(ControlFlow::Continue(())))?;
                rows.removed_messages_after(3).and_then(|_| rows.removed_vectors_after(true, 3)).map(drop)
            })
        }),
        ("full vectors", Nothing, |c| {
            of_index(c, |rows| {
                rows.vectors(false, &[1, 3], &mut |_, _| Ok(()))?;
                rows.vectors(true, &[1, 3], &mut |_, _| Ok(()))
            })
        }),
        ("changes of a user", Since, |c| changes(c, &own())),
        ("changes that a viewer may see", Since, |c| changes(c, &visible())),
        ("changes of everyone", Since, |c| changes(c, &Scope::Everyone)),
        ("what keys stand for", Nothing, |c| {
            of_index(c, |rows| {
                rows.message_refs(&[1, 3])?;
                rows.vector_refs(false, &[1, 3])?;
                rows.vector_refs(true, &[1, 3]).map(drop)
            })
        }),
    ]
}

/// An empty store, and the statements that were run on it.
fn store() -> (Connection, Arc<Mutex<Vec<String>>>) {
    let mut connection = Connection::open_in_memory().unwrap();
    functions::register(&connection).unwrap();
    schema::prepare(&mut connection).unwrap();
    let statements: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&statements);
    let note = move |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(statement, _) = event {
            seen.lock().unwrap().push(statement.sql().into_owned());
        }
    };
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(note)).unwrap();
    // Needed so that reading the session continues with its files.
    let (host, project) = (HostId::new("laptop").unwrap(), ProjectSlug::new("shop").unwrap());
    let session = Session::new(key(), host, project, at());
    let row =
        SessionRow { session: &session, revision: 1, skipped: "[]".into(), sync_state: None, key: None };
    put(&mut connection, &row);
    (connection, statements)
}

fn put(connection: &mut Connection, session: &SessionRow<'_>) {
    let mut writer = SqliteWriter(connection.transaction().unwrap());
    writer.insert(&SESSIONS, &session.cells()).unwrap();
    writer.0.commit().unwrap();
}

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    // Without statistics, the bound values make no difference.
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get(3).unwrap());
    }
    steps
}

fn fits(step: &str, allowed: Allowed) -> bool {
    // Lists of tags and teams, and the parts of a condition.
    let of_a_list = step.contains("VIRTUAL TABLE")
        || step.contains("SUBQUERY")
        || step.starts_with("INDEX ")
        || step == "CREATE BLOOM FILTER";
    let few_entries = step == "SCAN schema_meta";
    let searched = step.starts_with("SEARCH ") && step.contains(" USING ");
    // Only rows with the same time are sorted; all others are read in order.
    let ties = step.contains("TEMP B-TREE FOR RIGHT PART") || step.contains("TEMP B-TREE FOR LAST");
    of_a_list
        || few_entries
        || searched
        || ties
        || step == "MULTI-INDEX OR"
        || match allowed {
            Allowed::Nothing => false,
            Allowed::Walk => step.starts_with("SCAN ") && step.contains(" USING INDEX "),
            Allowed::SortFew => step == "USE TEMP B-TREE FOR ORDER BY",
            Allowed::Group => step == "USE TEMP B-TREE FOR GROUP BY" || step.ends_with(" of_messages"),
            Allowed::AllSessions => step == "SCAN s",
            Allowed::Last => step == "SCAN revisions",
            Allowed::Since => step == "SCAN revisions" || step == "USE TEMP B-TREE FOR GROUP BY",
        }
}

#[test]
fn every_read_goes_through_an_index() {
    let (connection, statements) = store();
    let mut wrong = Vec::new();
    for (name, allowed, read) in reads() {
        statements.lock().unwrap().clear();
        read(&connection).unwrap();
        let issued = std::mem::take(&mut *statements.lock().unwrap());
        assert!(!issued.is_empty(), "{name}");
        for sql in issued.iter().filter(|sql| sql.starts_with("SELECT")) {
            let steps = plan(&connection, sql);
            assert!(!steps.is_empty(), "{name}");
            let bad: Vec<_> = steps.iter().filter(|step| !fits(step, allowed)).collect();
            if !bad.is_empty() {
                wrong.push(format!("{name}: {bad:#?}\n{steps:#?}\n{sql}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
