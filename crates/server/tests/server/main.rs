//! The server on a loopback address and a store in memory: requests as clients write them, and the answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod access;
mod agents;
mod cases;
mod cases_of_operations;
mod changes;
mod client;
mod connections;
mod feed;
mod hook;
mod limits;
mod lists;
mod live;
mod live_client;
mod machines;
mod managing;
mod operations;
mod reading;
mod rows;
mod running;
mod scope;
mod scope_of_changes;
mod world;

use std::sync::Arc;

use amplifier_session_api::{AccessRight, Reach};
use amplifier_session_core::content::Redaction;
use amplifier_session_server::{
    NewToken, ServedStore, ServerError, ServerSettings, SessionServer, TokenFile,
};
use amplifier_session_testkit::{WordRedactor, lines, prelude::*};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::client::{Reply, Request};

/// A server that answers until it is dropped or stopped.
struct Running {
    address: std::net::SocketAddr,
    /// Where it answers requests for metrics without a token.
    metrics: Option<std::net::SocketAddr>,
    file: TokenFile,
    storage: SessionStorage,
    stop: Option<oneshot::Sender<()>>,
    stop_now: Option<oneshot::Sender<()>>,
    served: JoinHandle<Result<(), ServerError>>,
    folder: tempfile::TempDir,
}

impl Running {
    /// A server with the sessions of [`storage`].
    async fn start() -> Self {
        Self::with(storage().await, |_| {}).await
    }

    /// A server with other settings.
    async fn with(storage: SessionStorage, change: impl FnOnce(&mut ServerSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.toml"));
        // The server reads the file at its start; tokens that are made before need no waiting.
        let mut settings = ServerSettings::new("127.0.0.1:0".parse().unwrap(), file.clone());
        change(&mut settings);
        for user in ["ana", "ben"] {
            for reach in [Reach::Own, Reach::Visible, Reach::All] {
                for rights in [&[AccessRight::Read][..], &AccessRight::ALL[..]] {
                    let name = Some(token_name(user, reach, rights));
                    let new =
                        NewToken { name, reach, rights: rights.to_vec(), ..NewToken::new(self::user(user)) };
                    let new = NewToken { teams: vec!["payments".to_owned()], ..new };
                    let token = file.create(&new, storage.now()).unwrap();
                    token.save(&folder.path().join(new.name.unwrap())).unwrap();
                }
            }
        }
        let store = ServedStore::new(storage.clone()).unwrap();
        let server = SessionServer::bind(settings, store).unwrap();
        let (address, metrics) = (server.address(), server.metrics_address());
        let (stop, has_stopped) = oneshot::channel();
        let (stop_now, has_stopped_now) = oneshot::channel();
        let wait = |receiver: oneshot::Receiver<()>| async move {
            if receiver.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let served = tokio::spawn(server.run(wait(has_stopped), wait(has_stopped_now)));
        let (stop, stop_now) = (Some(stop), Some(stop_now));
        Self { address, metrics, file, storage, stop, stop_now, served, folder }
    }

    /// The token of a user with this reach, who may only read or do everything.
    fn token(&self, user: &str, reach: Reach, rights: &[AccessRight]) -> String {
        let path = self.folder.path().join(token_name(user, reach, rights));
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    /// A request of ana with all rights and their own sessions.
    fn ana(&self, method: &str, path: &str) -> Request {
        let token = self.token("ana", Reach::Own, &AccessRight::ALL);
        Request::new(self.address, method, path).header("authorization", &format!("Bearer {token}"))
    }

    /// A request of ben with this reach and all rights.
    fn ben(&self, reach: Reach, method: &str, path: &str) -> Request {
        let token = self.token("ben", reach, &AccessRight::ALL);
        Request::new(self.address, method, path).header("authorization", &format!("Bearer {token}"))
    }

    /// What ana reads.
    async fn get(&self, path: &str) -> Reply {
        self.ana("GET", path).send().await
    }
}

fn token_name(user: &str, reach: Reach, rights: &[AccessRight]) -> String {
    format!("{user}-{}-{}", reach.as_str(), rights.len())
}

/// A secret by the rules of [`storage`].
const SECRET: &str = "hunter2hunter2";

/// A store with three sessions of ana and one of ben.
async fn storage() -> SessionStorage {
    let storage = SessionStorage::new(Arc::new(MemoryBackend::new()));
    let storage = storage.with_redactor(Redaction::Off, Arc::new(WordRedactor::new([SECRET])));
    for (user, project, session) in [
        ("ana", "shop", "first-1"),
        ("ana", "shop", "second-1"),
        ("ana", "bakery", "third-1"),
        ("ben", "shop", "fourth-1"),
    ] {
        let text = vec![
            lines::user(&format!("why is the connection pool of {session} exhausted")),
            lines::assistant(&format!("the connection pool of {session} has one connection")),
        ];
        let target = target_of(user, project, session);
        storage.ingestion().sync_transcript_lines(&target, whole(text)).await.unwrap();
    }
    storage
}
