//! The state that all commands share: the store, the user and the time.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use amplifier_session_api::{
    AccessRight, Api, ApiCaller, CallerPlace, Notice, Reach, opening,
    remote::{OperationServer, SkippedSessions},
};
use amplifier_session_storage::{
    Error, OpenOptions, Scope, SessionStorage, StorageSettings, StoreUrl,
    config::Configuration,
    embedding::{EmbeddingProvider, check_provider},
    identity::{Sources, UserIdentity},
    model::{HostId, UserId},
    search::SessionFilter,
};
use jiff::{Zoned, tz::TimeZone};

use crate::{
    args::{GlobalArgs, PlaceArgs, ScopeArg},
    environment::Environment,
    failure::{Failure, say},
    file,
    opened::OpenedStore,
    out::Out,
    program::{self, TypedProgram},
    server_store, words,
};

/// One run of the program.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) environment: Arc<Environment>,
    pub(crate) global: GlobalArgs,
    /// The configuration.
    pub(crate) config: Configuration,
    /// The output.
    pub(crate) out: Out,
    /// When the program began, in the local time zone, or with `--utc` in UTC.
    pub(crate) now: Zoned,
    /// The user's home folder.
    pub(crate) home: Option<PathBuf>,
    /// Why the configuration can't be read. Only `doctor` can run then.
    pub(crate) config_error: Option<Error>,
}

/// The user for whom commands read and write.
#[derive(Debug)]
pub(crate) struct CurrentUser {
    /// The id.
    pub(crate) user_id: String,
    /// Where the id comes from.
    pub(crate) source: String,
    /// The teams.
    pub(crate) teams: Vec<String>,
    /// The organisation.
    pub(crate) org: Option<String>,
}

/// A store opened for writing, and its user.
#[derive(Debug)]
pub(crate) struct StoreWriter {
    pub(crate) storage: SessionStorage,
    pub(crate) user: UserId,
    pub(crate) host: HostId,
}

impl App {
    pub(crate) fn new(environment: Arc<Environment>, global: GlobalArgs, config: Configuration) -> Self {
        let out = Out::new(&environment, global.json, global.color);
        let home = environment.home.clone();
        let is_utc = global.utc || environment.now.time_zone().is_unknown();
        let zone = if is_utc { TimeZone::UTC } else { environment.now.time_zone().clone() };
        let now = environment.now.with_time_zone(zone);
        Self { environment, global, config, out, now, home, config_error: None }
    }

    /// Warns if the variable `TZ` has no time zone that is known.
    pub(crate) fn warn_of_unknown_zone(&self) {
        if let Some(name) = self.environment.variable("TZ").filter(|name| !name.is_empty())
            && self.environment.now.time_zone().is_unknown()
            && !self.global.utc
        {
            say("warning", &format!("TZ={name} is not a known time zone; days and times are in UTC"));
        }
    }

    /// The configured settings of a store.
    pub(crate) fn settings(&self) -> Result<StorageSettings, Failure> {
        Ok(self.settings_of_secrets()?.with_events(self.config.event_detail()?))
    }

    /// The settings of a command that stores lines, but does not read event logs.
    pub(crate) fn settings_of_secrets(&self) -> Result<StorageSettings, Failure> {
        Ok(StorageSettings::default().with_secrets(self.config.secrets_at_rest()?))
    }

    /// The user and the host.
    pub(crate) fn who(&self) -> Result<(UserIdentity, HostId), Failure> {
        Ok((self.identity()?, self.host()?))
    }

    /// This machine.
    pub(crate) fn host(&self) -> Result<HostId, Failure> {
        Ok(self.sources().host_id()?)
    }

    fn identity(&self) -> Result<UserIdentity, Failure> {
        Ok(self.sources().user()?)
    }

    /// Opens the selected store, which must exist, to read the sessions that `--scope` selects. A concurrent sync gives
    /// priority to this reader.
    pub(crate) async fn reader(&self) -> Result<OpenedStore, Failure> {
        let reader = self.patient_reader().await?;
        reader.prioritize();
        Ok(reader)
    }

    /// As [`App::reader`], for commands that take long themselves.
    pub(crate) async fn patient_reader(&self) -> Result<OpenedStore, Failure> {
        let reader = self.open_reader(false).await?;
        if let Ok(storage) = reader.storage() {
            self.note_read_only(storage);
        }
        Ok(reader)
    }

    /// As [`App::reader`], for commands that report a read-only store in their results. `with_embedding` also opens the
    /// embedding provider.
    pub(crate) async fn silent_reader(&self, with_embedding: bool) -> Result<OpenedStore, Failure> {
        let reader = self.open_reader(with_embedding).await?;
        reader.prioritize();
        Ok(reader)
    }

    /// As [`App::patient_reader`], for commands that do not care whether the store can be written.
    pub(crate) async fn open_reader(&self, with_embedding: bool) -> Result<OpenedStore, Failure> {
        let caller = self.caller()?;
        let scope = self.scope(&caller)?;
        if let Some(server) = self.server()? {
            self.global.check_groups_for_server()?;
            return Ok(self.opened_there(server, scope, caller));
        }
        let storage = self.existing_storage(with_embedding).await?;
        if scope != Scope::Everyone {
            self.warn_of_other_user(&storage, caller.user()).await?;
        }
        Ok(OpenedStore::here(storage, scope, caller))
    }

    /// Opens the selected store if it is a file that exists: for shell completion, which prints no errors.
    pub(crate) async fn for_completion(&self) -> Option<OpenedStore> {
        let caller = self.caller().ok()?;
        let scope = self.scope(&caller).ok()?;
        let url = self.store_url().ok()?;
        if !url.file()?.exists() {
            return None;
        }
        // Only one process at a time can open such a file for writing.
        let read_only = self.global.read_only || url.backend().read_only;
        let options = self.open_options().ok()?.with_existing(true).with_read_only(read_only);
        let storage = self.open(&url, options).await.ok()?;
        Some(OpenedStore::here(storage, scope, caller))
    }

    /// Opens the selected store, which must exist, to change the user's own sessions: `--scope` applies only to
    /// reading.
    /// `with_embedding` also opens the embedding provider.
    pub(crate) async fn editor(&self, with_embedding: bool) -> Result<OpenedStore, Failure> {
        let caller = self.caller()?;
        let scope = caller.scope_of_changes(AccessRight::Write)?;
        if let Some(server) = self.server()? {
            return Ok(self.opened_there(server, scope, caller));
        }
        let storage = self.existing_storage(with_embedding).await?;
        check_writable(&storage)?;
        self.warn_of_other_user(&storage, caller.user()).await?;
        Ok(OpenedStore::here(storage, scope, caller))
    }

    /// Opens the selected store, which must exist, to read the user's own sessions, regardless of `--scope`.
    /// `with_embedding` also opens the embedding provider.
    pub(crate) async fn own_reader(&self, with_embedding: bool) -> Result<OpenedStore, Failure> {
        let caller = self.caller()?;
        let scope = caller.scope(Reach::Own)?;
        if let Some(server) = self.server()? {
            return Ok(self.opened_there(server, scope, caller));
        }
        let storage = self.existing_storage(with_embedding).await?;
        self.note_read_only(&storage);
        self.warn_of_other_user(&storage, caller.user()).await?;
        Ok(OpenedStore::here(storage, scope, caller))
    }

    /// Opens the selected store, which must exist, to change what belongs to all users. Does not warn if it is another
    /// user's.
    pub(crate) async fn administrator(&self) -> Result<OpenedStore, Failure> {
        let caller = self.caller()?;
        let scope = caller.scope_of_all_changes()?;
        if let Some(server) = self.server()? {
            return Ok(self.opened_there(server, scope, caller));
        }
        let storage = self.existing_storage(false).await?;
        check_writable(&storage)?;
        Ok(OpenedStore::here(storage, scope, caller))
    }

    fn opened_there(&self, server: Arc<dyn OperationServer>, scope: Scope, caller: ApiCaller) -> OpenedStore {
        let skipped = SkippedSessions::default();
        self.out.asks_of_server(&skipped);
        OpenedStore::there(server, skipped, scope, caller)
    }

    /// The server that has the selected store, if one has it.
    fn server(&self) -> Result<Option<Arc<dyn OperationServer>>, Failure> {
        let Some(server) = server_store::selected(self)? else { return Ok(None) };
        self.global.check_for_server()?;
        Ok(Some(server))
    }

    /// Whether a server has the selected store.
    pub(crate) fn has_server(&self) -> Result<bool, Failure> {
        server_store::is_selected(self)
    }

    pub(crate) async fn existing_storage(&self, with_embedding: bool) -> Result<SessionStorage, Failure> {
        check_provider(self.config.text("embedding").unwrap_or("local"))?;
        // Reading a model from a folder takes time, and most commands need no model.
        let provider = if with_embedding { self.embedding()? } else { None };
        self.check_existence()?;
        let url = self.store_url()?;
        let options = self.open_options()?.with_embedding(provider).with_existing(true);
        self.open(&url, options).await
    }

    /// Opens the store at `url`.
    pub(crate) async fn open(&self, url: &StoreUrl, options: OpenOptions) -> Result<SessionStorage, Failure> {
        let storage = amplifier_session_storage::open_at(url, options).await?;
        self.out.asks_of(&storage);
        Ok(storage)
    }

    /// Opens the named DuckDB store, which must exist, for SQL queries in the scope of `--scope`.
    #[cfg(feature = "duckdb-system")]
    pub(crate) async fn sql_reader(
        &self,
    ) -> Result<(amplifier_session_storage::duckdb::sql::SqlReader, Scope), Failure> {
        let caller = self.caller()?;
        let scope = self.scope(&caller)?;
        let url = self.store_url()?;
        let Some(file) = url.file().filter(|_| url.backend().sql) else {
            let hint = format!(
                "`{} --store duckdb:~/.amplifier/sessions.duckdb sync` creates one from your session folders; `copy` copies this store to one",
                program::name()
            );
            return Err(Failure::wrong_use(format!("`sql` needs a DuckDB store; {url} is not one"), hint));
        };
        self.check_existence()?;
        let reader = amplifier_session_storage::duckdb::sql::SqlReader::open(file).await?;
        if scope != Scope::Everyone {
            let storage = SessionStorage::new(Arc::new(reader.backend().clone()));
            self.warn_of_other_user(&storage, caller.user()).await?;
        }
        Ok((reader, scope))
    }

    /// The API, for requests of `caller` on this machine.
    pub(crate) fn api<'a>(&'a self, storage: &'a SessionStorage, caller: &'a ApiCaller) -> Api<'a> {
        Api { storage, caller, now: &self.now, place: self.place() }
    }

    fn place(&self) -> CallerPlace<'_> {
        CallerPlace::Here { home: self.home.as_deref() }
    }

    /// The user, who may do everything: the store is theirs, or a server checks their rights.
    pub(crate) fn caller(&self) -> Result<ApiCaller, Failure> {
        let GlobalArgs { team, org, .. } = &self.global;
        let teams = team.iter().map(|team| team.trim()).filter(|team| !team.is_empty());
        let user = self.identity()?.user_id;
        let caller = ApiCaller::new(user).with_teams(teams).with_org(org.clone());
        Ok(caller.with_reach(Reach::All).with_rights(AccessRight::ALL))
    }

    /// The scope of `--scope`.
    fn scope(&self, caller: &ApiCaller) -> Result<Scope, Failure> {
        let scope = self.global.scope;
        if scope != ScopeArg::Visible && self.global.typed_groups() {
            let message = format!("--team and --org have no effect with --scope {}", scope.as_str());
            return Err(Failure::wrong_use(message, "--scope visible reads what is shared with them"));
        }
        Ok(caller.scope(scope.into())?)
    }

    /// Opens the selected store, and creates it if it does not exist.
    pub(crate) async fn writer(&self, settings: StorageSettings) -> Result<StoreWriter, Failure> {
        let writer = self.writer_on(&self.store_url()?, settings).await?;
        check_writable(&writer.storage)?;
        Ok(writer)
    }

    /// Opens the store at `url`, and creates it if it does not exist. Does not check whether it can be written.
    pub(crate) async fn writer_on(
        &self,
        url: &StoreUrl,
        settings: StorageSettings,
    ) -> Result<StoreWriter, Failure> {
        let (UserIdentity { user_id: user, .. }, host) = self.who()?;
        let storage = self.storage(url, settings).await?;
        self.warn_of_other_user(&storage, &user).await?;
        Ok(StoreWriter { storage, user, host })
    }

    /// The store at `url`, for any user. It is created if it does not exist. Turns are embedded if the model is on this
    /// machine.
    pub(crate) async fn storage(
        &self,
        url: &StoreUrl,
        settings: StorageSettings,
    ) -> Result<SessionStorage, Failure> {
        let options = self.open_options()?.with_embedding(self.embedding()?).with_settings(settings);
        Ok(with_turns(self.open(url, options).await?, None))
    }

    /// The URL of a store in a temporary folder.
    pub(crate) fn temporary_store(folder: &Path) -> Result<StoreUrl, Failure> {
        Ok(StoreUrl::parse(&format!("sqlite:{}", folder.join("sessions.sqlite").display()), None)?)
    }

    /// The options with which all commands open stores.
    pub(crate) fn open_options(&self) -> Result<OpenOptions, Failure> {
        Ok(OpenOptions::default()
            .with_redaction(self.config.redaction()?)
            .with_read_only(self.global.read_only)
            .with_configuration(self.config.clone()))
    }

    /// Checks that the store exists. If that can't be determined, the backend reports why.
    pub(crate) fn store_exists(&self) -> Result<bool, Failure> {
        let url = self.store_url()?;
        Ok(url.file().is_none_or(|file| file.try_exists().unwrap_or(true)))
    }

    /// The embedding provider.
    pub(crate) fn embedding(&self) -> Result<Option<Arc<dyn EmbeddingProvider>>, Failure> {
        let provider = self.config.embedding()?;
        if let Some(address) = self.config.plain_http_address() {
            say(
                "warning",
                &format!("texts are sent to {address} over plain http://, where others can read them"),
            );
        }
        Ok(provider)
    }

    /// The name of the program with the options that select store and sessions, for hints.
    pub(crate) fn program(&self) -> String {
        program::name() + &self.global.typed_again()
    }

    /// The name of the program with options that were typed.
    pub(crate) fn typed_program(&self) -> TypedProgram {
        TypedProgram {
            name: self.program(),
            with_embedding: self.program_with_embedding(),
            with_store: program::name() + &self.global.store_typed_again(),
        }
    }

    /// Prints notices of the API.
    pub(crate) fn say_notices(&self, notices: &[Notice]) {
        words::say_notices(&self.typed_program(), notices);
    }

    /// The notices that are also in a response, as its field `notices`.
    pub(crate) fn in_response(&self, notices: &[Notice]) -> Vec<String> {
        words::in_response(&self.typed_program(), notices)
    }

    /// As [`Self::program`], with the options of the embedding provider.
    pub(crate) fn program_with_embedding(&self) -> String {
        program::name() + &self.global.typed_again_with_embedding()
    }

    /// The sessions of projects and a repository: see [`Api::sessions_of_any`].
    pub(crate) async fn sessions_of(
        &self,
        reader: &OpenedStore,
        PlaceArgs { projects, repo }: &PlaceArgs,
    ) -> Result<SessionFilter, Failure> {
        let mut notices = Vec::new();
        let repo = repo.repo.as_deref();
        let api = reader.api_here(self)?;
        let found = api.sessions_of_any(&reader.scope, projects, repo, &mut notices).await;
        self.say_notices(&notices);
        Ok(found?)
    }

    /// Warns if the repository or the project of `filter` has no sessions: it may be mistyped.
    pub(crate) async fn warn_of_unknown_project(
        &self,
        reader: &OpenedStore,
        filter: &SessionFilter,
    ) -> Result<(), Failure> {
        self.say_notices(&reader.api_here(self)?.unknown_names(&reader.scope, filter).await?);
        Ok(())
    }

    /// Names a user with sessions if this user has none.
    pub(crate) async fn hint_at_others(&self, reader: &OpenedStore) -> Result<(), Failure> {
        let notice = reader.api_here(self)?.only_others(&reader.scope).await?;
        self.say_notices(notice.as_slice());
        Ok(())
    }

    fn sources(&self) -> Sources {
        let variable = |name: &str| self.environment.variable(name).map(str::to_owned);
        Sources::new(self.home.as_deref(), variable).with_configured_user(self.global.user.clone())
    }

    /// Refuses to overwrite the store with output.
    pub(crate) fn check_out(&self, out: &Path) -> Result<(), Failure> {
        if file::is_stdout(out) || self.has_server()? {
            return Ok(());
        }
        let url = self.store_url()?;
        if url.file().is_some_and(|store| file::belongs_to(store, out)) {
            let message = format!("{} belongs to the store", out.display());
            return Err(Failure::wrong_use(message, "choose another file"));
        }
        Ok(())
    }

    pub(crate) fn store_url(&self) -> Result<StoreUrl, Failure> {
        Ok(StoreUrl::parse(&self.global.store, self.home.as_deref())?)
    }

    /// Checks that the store exists: reading must not create an empty one.
    pub(crate) fn check_existence(&self) -> Result<(), Failure> {
        if self.store_exists()? {
            return Ok(());
        }
        let hint = format!("run `{} sync` to read the sessions in ~/.amplifier", self.program());
        Err(Failure::failed(format!("no store at {}", self.store_url()?), hint))
    }

    /// Warns if the user is not the store's. Fails if the store refuses the rows of this user.
    async fn warn_of_other_user(&self, storage: &SessionStorage, user: &UserId) -> Result<(), Failure> {
        let caller = ApiCaller::new(user.clone()).with_reach(Reach::All);
        let notice = opening::other_user(storage, &caller).await?;
        // A user who was typed is meant.
        if self.global.user.is_none() {
            self.say_notices(notice.as_slice());
        }
        Ok(())
    }

    /// Notes that the store is read-only, if it is.
    fn note_read_only(&self, storage: &SessionStorage) {
        self.say_notices(opening::read_only(storage, self.place()).as_slice());
    }
}

/// Fails if the store is read-only, before any work is done.
pub(crate) fn check_writable(storage: &SessionStorage) -> Result<(), Failure> {
    let info = storage.backend().info();
    let Some(reason) = info.read_only else { return Ok(()) };
    let hint = if info.places.iter().all(|place| place.files.is_empty()) {
        "use a server and a role that allow writing, or pass another --store"
    } else {
        "make the file and its folder writable, or pass another --store"
    };
    Err(Failure::failed(format!("the store is read-only: {reason}"), hint))
}

/// The storage, set to embed turns or not: by default, if the model is on this machine.
pub(crate) fn with_turns(storage: SessionStorage, choice: Option<bool>) -> SessionStorage {
    let is_local = storage.embedding().is_some_and(|provider| provider.is_local());
    let settings = storage.settings().clone().with_turns(choice.unwrap_or(is_local));
    storage.with_settings(settings)
}
