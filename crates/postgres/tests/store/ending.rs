//! A runtime that ends while calls still run.

use std::{
    io::Read as _,
    net::TcpListener,
    panic,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use amplifier_session_core::config::Settings;
use amplifier_session_postgres::{Postgres, PostgresConfig};
use tokio::sync::oneshot;

/// Sends when it is dropped.
struct Dropped(mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// The server accepts connections, and never answers.
#[test]
fn a_runtime_may_end_while_connections_are_made() {
    let panics = Arc::new(AtomicUsize::new(0));
    panic::set_hook({
        let panics = panics.clone();
        Box::new(move |panic| {
            eprintln!("{panic}");
            panics.fetch_add(1, Ordering::SeqCst);
        })
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("//ana@{}/team", listener.local_addr().unwrap());
    let config = PostgresConfig::new(&address, &Settings::default()).unwrap();
    let (ending, ends) = mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tokio::spawn(async move {
                let _dropped = Dropped(ending);
                let _ = Postgres::open(config).await;
            });
            stopped.await.unwrap();
        });
        // Waits for the thread on which the connection is made.
        drop(runtime);
    });
    let (mut server, _) = listener.accept().unwrap();
    // The connection is being made: this is its first message.
    server.read_exact(&mut [0; 8]).unwrap();
    stop.send(()).unwrap();
    ends.recv().unwrap();
    drop((server, listener));
    ended.join().unwrap();
    assert_eq!(panics.load(Ordering::SeqCst), 0);
}
