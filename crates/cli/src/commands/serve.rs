//! `serve`: answers over HTTP.

use amplifier_session_server::{
    NewToken, ProxySignIn, ServedStore, ServerError, ServerSettings, SessionServer, StorageQuota, TlsFiles,
    TokenFile,
};
use amplifier_session_storage::{SessionStorage, model::Timestamp};

use super::{notify, token::token_file};
use crate::{
    app::{App, with_turns},
    args::ServeArgs,
    failure::{Failure, Outcome, say},
};

pub(super) async fn run(app: &mut App, args: ServeArgs) -> Result<Outcome, Failure> {
    #[cfg(feature = "watch")]
    let watched_root = args.watch.then(|| args.root.clone());
    let settings = settings(app, args)?;
    settings.check()?;
    let storage = open(app).await?;
    #[cfg(feature = "watch")]
    let (stop_watching, is_over) = tokio::sync::oneshot::channel::<()>();
    #[cfg(feature = "watch")]
    let watching = watched_root
        .map(|root| super::watch::beside(app, root, storage.clone(), async { drop(is_over.await) }))
        .transpose()?;
    let store = ServedStore::new(storage)?;
    make_first_token(app, &settings.tokens)?;
    // Signals that come before it answers count too.
    let (stop, stop_now) = signals()?;
    let server = SessionServer::bind(settings, store)?;
    app.out.line(&server.url())?;
    app.out.finish()?;
    if let Some(address) = server.metrics_address() {
        say("note", &format!("metrics are at http://{address}/metrics"));
    }
    notify::ready();
    let stop = async {
        stop.await;
        notify::stopping();
    };
    let served = server.run(stop, stop_now);
    #[cfg(feature = "watch")]
    let served = beside(watching, stop_watching, served);
    served.await?;
    Ok(Outcome::Done)
}

/// Serves beside a watcher, if there is one. If one of them ends, both do.
#[cfg(feature = "watch")]
async fn beside(
    watching: Option<impl Future<Output = Result<(), Failure>> + Send + 'static>,
    stop_watching: tokio::sync::oneshot::Sender<()>,
    served: impl Future<Output = Result<(), ServerError>>,
) -> Result<(), Failure> {
    let Some(watching) = watching else { return Ok(served.await?) };
    // A task of its own, so that comparing folders does not keep the server from accepting connections.
    let mut watching = tokio::spawn(watching);
    let failed =
        |error: tokio::task::JoinError| Failure::without_hint(format!("the watcher has ended: {error}"));
    tokio::select! {
        served = served => {
            drop(stop_watching);
            served?;
            watching.await.map_err(failed)?
        }
        ended = &mut watching => ended.map_err(failed)?,
    }
}

fn settings(app: &App, args: ServeArgs) -> Result<ServerSettings, Failure> {
    let mut settings = ServerSettings::new(args.listen, token_file(app, args.tokens)?);
    settings.public_url = args.public_url;
    settings.tls = args.tls_cert.zip(args.tls_key).map(|(certificate, key)| TlsFiles { certificate, key });
    settings.behind_proxy = args.behind_proxy;
    settings.trusted_proxies = args.trusted_proxy;
    settings.audit_log = args.audit_log;
    settings.metrics = args.metrics;
    settings.quota = StorageQuota { sessions: args.quota_sessions, rows: args.quota_rows };
    if let Some(name) = args.user_header {
        let header = name.parse().map_err(|_| {
            Failure::wrong_use(
                format!("{name:?} is not the name of a header"),
                "for example x-forwarded-user",
            )
        })?;
        let rights = args.user_rights.into_iter().map(Into::into).collect();
        settings.proxy_sign_in = Some(ProxySignIn { header, reach: args.user_reach.into(), rights });
    }
    Ok(settings)
}

/// Opens the store, without priority over other handles: the server would keep it for as long as it runs, and delay each write.
async fn open(app: &App) -> Result<SessionStorage, Failure> {
    let options = app.open_options()?.with_embedding(app.embedding()?).with_settings(app.settings()?);
    let storage = with_turns(app.open(&app.store_url()?, options).await?, None);
    if let Some(user) = &storage.backend().info().only_user {
        let message = format!("this role of the database reads and writes only sessions of {user}");
        return Err(Failure::failed(message, "connect as a role that row level security does not restrict"));
    }
    Ok(storage)
}

/// Without a file of tokens, makes one with a token for this user, and saves the token where only they can read it.
fn make_first_token(app: &App, file: &TokenFile) -> Result<(), Failure> {
    if file.path().exists() {
        return Ok(());
    }
    let Some(home) = &app.home else { return Ok(()) };
    let new = NewToken { name: Some("server-token".to_owned()), ..NewToken::new(app.who()?.0.user_id) };
    let now = Timestamp::from_micros(app.now.timestamp().as_microsecond());
    let folder = home.join(".amplifier");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("server-token");
    let token = file.create(&new, now)?;
    token.save(&path)?;
    say("note", &format!("your token is in {}; `token create` makes others", path.display()));
    Ok(())
}

/// Two futures: the first is ready after a signal to stop, the other after the next one.
fn signals() -> Result<(impl Future<Output = ()> + Send, impl Future<Output = ()> + Send), Failure> {
    let mut signals = StopSignals::listen()?;
    let (first, has_first) = tokio::sync::oneshot::channel();
    let (second, has_second) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        signals.next().await;
        // Nobody waits any more if the server has failed.
        let _ = first.send(());
        signals.next().await;
        let _ = second.send(());
    });
    let wait = |receiver: tokio::sync::oneshot::Receiver<()>| async move {
        let _ = receiver.await;
    };
    Ok((wait(has_first), wait(has_second)))
}

/// The signals to stop.
#[cfg(unix)]
struct StopSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopSignals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// The signal to stop.
#[cfg(not(unix))]
struct StopSignals;

#[cfg(not(unix))]
impl StopSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // Without the signal handler, it runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        match error.hint() {
            Some(hint) => Self::failed(error.to_string(), hint),
            None => Self::without_hint(error.to_string()),
        }
    }
}
