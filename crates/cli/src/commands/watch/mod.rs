//! `watch`: keeps stores up to date with session folders.

mod messages;
mod metrics;
#[cfg(feature = "client")]
mod push;

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Once},
    time::Duration,
};

use amplifier_session_api::{ApiCaller, ApiError, Notice, Reach, opening};
use amplifier_session_storage::{
    Error, ErrorField, OpenOptions, Scope, SessionStorage, StorageSettings, StoreUrl,
    backend::SessionQuery,
    model::UserId,
    open_at,
    sync::{
        SyncOptions,
        watch::{Intervals, WatchEvent, WatchOptions, WatchTarget, watch},
    },
};

use self::{messages::WatchMessages, metrics::Metrics};
use super::notify;
use crate::{
    app::App,
    args::{LogFormat, WatchArgs, WatchedArgs},
    failure::{Failure, Outcome, say_with_time as say},
    program,
    roots::roots,
    stopping::stop_signal,
};

pub(super) async fn run(app: &mut App, args: WatchArgs) -> Result<Outcome, Failure> {
    let json = args.log_format == LogFormat::Json;
    let targets = targets(app, &args.what, json)?;
    let options = options(app, &args.what)?;
    // It ends when this is dropped.
    #[cfg(feature = "client")]
    let _pushing = push::begin(app, &args.what, &sending_store(app, &args.what, json)?, json)?;
    let metrics = Arc::new(Metrics::default());
    let server = match args.what.metrics {
        Some(address) => Some(metrics::serve(metrics::listen(address).await?, Arc::clone(&metrics))),
        None => None,
    };
    let messages = WatchMessages::new(json);
    let observer = move |event: &WatchEvent<'_>| {
        metrics.add(event);
        messages.add(event);
        // A service whose store is down runs as well: it waits for the store.
        if matches!(event, WatchEvent::StoreUp { .. } | WatchEvent::StoreDown { .. }) {
            notify::ready();
        }
    };
    let stop = stop_signal()?;
    let stopping = async {
        stop.await;
        notify::stopping();
    };
    let watched = watch(targets, options, Arc::new(observer), stopping).await;
    drop(server);
    watched.map_err(|error| ended(error, &app.program()))?;
    Ok(Outcome::Done)
}

/// Why a watcher has ended.
fn ended(error: Error, program: &str) -> Failure {
    if error.context("watcher").is_none() {
        return error.into();
    }
    let hint = format!("`{program} watch status` shows it; stop it first, or watch another root or store");
    Failure::failed(error.message(), hint)
}

/// Follows the session folders in `root`, and writes to a store that is open already, until `stop` is ready: for a process
/// that does something else too. The rest is as `watch` does it without options.
#[cfg(feature = "server")]
pub(super) fn beside(
    app: &App,
    root: Vec<std::path::PathBuf>,
    storage: SessionStorage,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<impl Future<Output = Result<(), Failure>> + Send + 'static, Failure> {
    let args = WatchedArgs::of_roots(root);
    let (options, url) = (options(app, &args)?, app.store_url()?);
    let user = app.who()?.0.user_id;
    let open: WatchedStore = Arc::new(move || {
        let (storage, user) = (storage.clone(), user.clone());
        Box::pin(async move {
            warn_of_other_user(&storage, &user, false).await?;
            check_masking(&storage).await?;
            Ok(storage)
        })
    });
    let target = WatchTarget::new(url.to_string(), move || open());
    let messages = WatchMessages::new(false);
    let observer = Arc::new(move |event: &WatchEvent<'_>| messages.add(event));
    let program = app.program();
    Ok(
        async move { watch(vec![target], options, observer, stop).await.map_err(|error| ended(error, &program)) },
    )
}

/// Checks what can be checked before a watcher starts.
pub(super) fn check(app: &App, args: &WatchedArgs) -> Result<(), Failure> {
    targets(app, args, false)?;
    #[cfg(feature = "client")]
    push::pushing(app, args)?;
    options(app, args).map(drop)
}

/// Opens a store that is watched.
type WatchedStore =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<SessionStorage, Error>> + Send>> + Send + Sync>;

/// The selected store, and those of `--also-store`.
fn targets(app: &App, args: &WatchedArgs, json: bool) -> Result<Vec<WatchTarget>, Failure> {
    let mut urls = vec![app.store_url()?];
    for url in &args.also_store {
        urls.push(StoreUrl::parse(url, app.home.as_deref())?);
    }
    let options = app.open_options()?.with_embedding(app.embedding()?).with_settings(settings(app, args)?);
    let target = |url: StoreUrl| {
        let open = opener(app, &options, url.clone(), json)?;
        Ok(WatchTarget::new(url.to_string(), move || open()).with_exclusive(is_exclusive(&url)))
    };
    urls.into_iter().map(target).collect()
}

/// Whether only one process at a time can open the store for writing.
fn is_exclusive(url: &StoreUrl) -> bool {
    url.file().is_some() && url.backend().read_only
}

/// Opens the selected store to send from it, which needs no vectors.
#[cfg(feature = "client")]
fn sending_store(app: &App, args: &WatchedArgs, json: bool) -> Result<WatchedStore, Failure> {
    // It may be the first to open the store.
    opener(app, &app.open_options()?.with_settings(settings(app, args)?), app.store_url()?, json)
}

fn settings(app: &App, args: &WatchedArgs) -> Result<StorageSettings, Failure> {
    Ok(match args.events {
        Some(events) => app.settings_of_secrets()?.with_events(events.into()),
        None => app.settings()?,
    })
}

fn opener(app: &App, options: &OpenOptions, url: StoreUrl, json: bool) -> Result<WatchedStore, Failure> {
    // A user given by name owns the sessions, even if the store has sessions of other users.
    let user = match app.global.user {
        Some(_) => None,
        None => Some(app.who()?.0.user_id),
    };
    let options = options.clone();
    Ok(Arc::new(move || Box::pin(open(url.clone(), options.clone(), user.clone(), json))))
}

async fn open(
    url: StoreUrl,
    options: OpenOptions,
    user: Option<UserId>,
    json: bool,
) -> Result<SessionStorage, Error> {
    let storage = open_at(&url, options).await?;
    if let Some(reason) = storage.backend().info().read_only {
        return Err(Error::validation(ErrorField::Store, format!("the store is read-only: {reason}")));
    }
    if let Some(user) = user {
        warn_of_other_user(&storage, &user, json).await?;
    }
    check_masking(&storage).await?;
    Ok(storage)
}

/// Checks that secrets in stored lines would not be masked for the first time, which only a person can decide.
async fn check_masking(storage: &SessionStorage) -> Result<(), Error> {
    let has_sessions = || async {
        let query = SessionQuery::new(Scope::Everyone).with_limit(1);
        storage.sessions().search_sessions(&query).await.map(|found| !found.is_empty())
    };
    if storage.secrets().is_first_masking().await? && has_sessions().await? {
        let command = format!("{} sync --redact mask", program::name());
        let message = format!("the secrets in stored lines are not masked yet: run `{command}` first");
        return Err(Error::validation(ErrorField::Redact, message));
    }
    Ok(())
}

/// Warns once if the user is not the store's.
async fn warn_of_other_user(storage: &SessionStorage, user: &UserId, json: bool) -> Result<(), Error> {
    static ONCE: Once = Once::new();
    let caller = ApiCaller::new(user.clone()).with_reach(Reach::All);
    let notice = match opening::other_user(storage, &caller).await {
        Ok(notice) => notice,
        Err(ApiError::Storage(error)) => return Err(error),
        Err(refused) => return Err(Error::validation(ErrorField::UserId, refused.to_string())),
    };
    if let Some(Notice::StoreOfOtherUser { owner: Some(owner), user }) = notice {
        ONCE.call_once(|| {
            let warning = format!("the store belongs to {owner}, but you are {user}");
            if json {
                tracing::warn!(warning, "other_user")
            } else {
                say("warning", &warning);
                say("hint", &format!("pass --user {owner} to add to their sessions"));
            }
        });
    }
    Ok(())
}

fn options(app: &App, args: &WatchedArgs) -> Result<WatchOptions, Failure> {
    let (identity, host) = app.who()?;
    let exclude = app.config.list("exclude").iter().chain(&args.exclude);
    let exclude: Vec<String> = exclude.cloned().collect();
    let roots = roots(app, &args.root)?.into_iter().map(|root| {
        SyncOptions::new(root, identity.user_id.clone(), host.clone())
            .with_captures(app.config.captures())
            .with_exclude(exclude.clone())
    });
    let mut intervals = Intervals::default().with_complete(Duration::from_secs(args.compare_every * 60));
    if let Some(seconds) = args.poll {
        intervals = intervals.with_poll(Duration::from_secs(seconds));
    }
    Ok(WatchOptions::new(roots).with_intervals(intervals).with_polls(args.poll.is_some()))
}
