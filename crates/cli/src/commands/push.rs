//! Sends sessions to servers, after a sync.

use std::collections::BTreeSet;

use amplifier_session_client::{HttpStore, ServerAddress};
use amplifier_session_storage::{
    Error, SessionStorage,
    model::{SessionSource, UserId},
    storage::{ExtentQuery, PushOptions, PushReport, PushSelection, RowTarget, TransferProgress},
};

use super::pushed::PushedTo;
use crate::{
    app::App,
    args::PushArgs,
    failure::{Failure, say},
    problems::message_of,
    progress::{Bar, PlannedSession},
    render::text::counted,
    server_store::connect,
};

/// The servers to which sessions are sent, and the sessions.
pub(super) struct Pushing {
    pub(super) servers: Vec<HttpStore>,
    pub(super) selection: PushSelection,
    /// Whether sessions are sent that were deleted from a server.
    include_deleted: bool,
}

/// The servers that are named or configured. Their tokens are looked up before anything is read.
pub(super) fn servers(app: &App, args: &PushArgs, include_deleted: bool) -> Result<Pushing, Failure> {
    let mut addresses = args.push.clone();
    if addresses.is_empty() {
        for text in app.config.list("push.to") {
            addresses.push(configured_server(app, text)?);
        }
    }
    let mut seen = BTreeSet::new();
    addresses.retain(|address| seen.insert(address.clone()));
    let hosts: BTreeSet<String> = addresses.iter().map(ServerAddress::host).collect();
    let is_only = hosts.len() == 1;
    let servers = addresses.into_iter().map(|address| connect(app, address, is_only));
    Ok(Pushing { servers: servers.collect::<Result<_, _>>()?, selection: selection(app)?, include_deleted })
}

impl Pushing {
    /// Sends what each server lacks of the sessions of a user. A server that fails does not keep the others from getting
    /// them.
    pub(super) async fn run(&self, storage: &SessionStorage, user: &UserId) -> Vec<PushedTo> {
        let options = PushOptions::new(user.clone())
            .with_selection(self.selection.clone())
            .with_include_deleted(self.include_deleted);
        let mut pushed = Vec::new();
        for server in &self.servers {
            if let Err(error) = say_first(storage, server, &options).await {
                pushed.push(failed(server, &error));
                continue;
            }
            let bar = Bar::new(0, "pushing {wide_bar} {pos}/{len} sessions");
            let on_progress = |progress: TransferProgress| bar.set(progress.done, progress.total);
            let sent = storage.exchange().push(server, &options, &on_progress).await;
            drop(bar);
            pushed.push(match sent {
                Ok(report) => PushedTo::new(server.address(), report),
                Err(error) => failed(server, &error),
            });
        }
        pushed
    }

    /// Lists the stored sessions that a push would send, and counts those that a sync would read first.
    pub(super) async fn preview(
        &self,
        storage: &SessionStorage,
        user: &UserId,
        to_read: &[PlannedSession],
    ) -> Vec<PushedTo> {
        let options =
            PushOptions::new(user.clone()).with_selection(self.selection.clone()).with_dry_run(true);
        let mut planned = Vec::new();
        for server in &self.servers {
            let report = storage.exchange().push(server, &options, &|_| ()).await;
            planned.push(match report {
                Ok(report) => {
                    let to_read = self.also_sent(to_read, &report);
                    PushedTo::planned(server.address(), report, to_read)
                }
                Err(error) => failed(server, &error),
            });
        }
        planned
    }

    /// The number of the sessions that would be read and may be sent then. Their folders are not known before.
    fn also_sent(&self, to_read: &[PlannedSession], report: &PushReport) -> u64 {
        let stored: BTreeSet<&str> = report.planned.iter().map(|one| one.session_id.as_str()).collect();
        let is_sent = |one: &&PlannedSession| {
            self.selection.sources.contains(&one.source) && !stored.contains(one.session.as_str())
        };
        to_read.iter().filter(is_sent).count() as u64
    }
}

fn failed(server: &HttpStore, error: &Error) -> PushedTo {
    PushedTo::failed(server.address(), message_of(error), error.hint())
}

fn configured_server(app: &App, text: &str) -> Result<ServerAddress, Failure> {
    text.parse().map_err(|error: Error| {
        let message = format!("{}: an address in push.to {}", app.config.origin("push.to"), error.message());
        Failure::wrong_use(message, "for example to = [\"https://sessions.example.com\"]")
    })
}

/// The sessions that the configuration selects.
fn selection(app: &App) -> Result<PushSelection, Failure> {
    let mut sources = BTreeSet::new();
    for name in app.config.list("push.sources") {
        sources.insert(name.parse().map_err(|_| {
            let known = SessionSource::ALL.map(SessionSource::as_str).join(", ");
            let origin = app.config.origin("push.sources");
            Failure::wrong_use(
                format!("{origin}: push.sources has {name:?}, which is no program"),
                format!("programs are {known}"),
            )
        })?);
    }
    let folders = app.config.paths("push.exclude");
    let folders = folders.iter().map(|folder| folder.to_string_lossy().into_owned());
    PushSelection::default().with_sources(sources).without_folders(folders).map_err(|error| {
        let message = format!("{}: push.exclude {}", app.config.origin("push.exclude"), error.message());
        Failure::wrong_use(message, "for example exclude = [\"/home/ana/private\", \"**/scratch\"]")
    })
}

/// Says what is sent, if this store has sent nothing to the server before.
async fn say_first(storage: &SessionStorage, server: &HttpStore, options: &PushOptions) -> Result<(), Error> {
    let query = ExtentQuery::new(options.user_id.clone(), storage.exchange().store_id().await?);
    let page = RowTarget::extents(server, &query).await?;
    if page.sessions.iter().any(|session| session.sent.is_some()) {
        return Ok(());
    }
    let dry_run = options.clone().with_dry_run(true);
    let report = storage.exchange().push(server, &dry_run, &|_| ()).await?;
    if !report.planned.is_empty() {
        say("note", &format!("first push to {}: {}", server.address(), summary_of_plan(&report)));
    }
    Ok(())
}

/// `284 sessions of 12 projects, with 9,120 messages and 40,100 events; 5 other sessions are not sent`.
fn summary_of_plan(report: &PushReport) -> String {
    let planned = &report.planned;
    let projects: BTreeSet<_> = planned.iter().map(|one| &one.project_slug).collect();
    let count = |count: fn(&amplifier_session_storage::storage::PlannedTransfer) -> u32| {
        planned.iter().map(|one| u64::from(count(one))).sum::<u64>()
    };
    let excluded = match report.excluded {
        0 => String::new(),
        1 => "; 1 other session is not sent".to_owned(),
        excluded => format!("; {} are not sent", counted(excluded, "other session")),
    };
    format!(
        "{} of {}, with {} and {}{excluded}",
        counted(planned.len() as u64, "session"),
        counted(projects.len() as u64, "project"),
        counted(count(|one| one.messages), "message"),
        counted(count(|one| one.events), "event")
    )
}
