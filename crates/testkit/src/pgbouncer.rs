//! The connection pooler PgBouncer for tests.

#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc, reason = "tests fail by panicking")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use crate::postgres::{as_user, give_to, owner, succeed};

/// A pooler on a free port of the loopback interface. It is stopped and its files are removed when this is dropped, or
/// when the process ends in any other way.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    keeper: Child,
}

impl PgBouncer {
    /// Starts it in front of a server. `mode` is its `pool_mode`, `connections` the most to the server for each role and
    /// database, and `roles` those that may use it, without a password.
    pub fn start(server: SocketAddr, mode: &str, connections: usize, roles: &[&str]) -> Self {
        let mut printed = String::new();
        // Another program may take the port before the pooler does: then it gets another one.
        for _ in 0..5 {
            match Self::try_start(server, mode, connections, roles) {
                Ok(started) => return started,
                Err(error) => printed = error,
            }
        }
        panic!("pgbouncer: {printed}");
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    fn try_start(server: SocketAddr, mode: &str, connections: usize, roles: &[&str]) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("amplifier-pgbouncer.").tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.unwrap().port();
        let (host, server_port, path) = (server.ip(), server.port(), folder.path().display());
        let settings = format!(
            "[databases]\n* = host={host} port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {path}/roles\n\
             pool_mode = {mode}\ndefault_pool_size = {connections}\nmax_client_conn = 200\n"
        );
        fs::write(folder.path().join("settings"), settings).unwrap();
        let roles: String = roles.iter().map(|role| format!("\"{role}\" \"\"\n")).collect();
        fs::write(folder.path().join("roles"), roles).unwrap();
        let program = copied(folder.path());
        // PgBouncer refuses to run as root.
        let run_as = (owner(folder.path()) == 0).then(|| give_to("nobody", folder.path()));
        let mut keeper = keeper(&program, &folder.keep(), run_as);
        let mut lines = BufReader::new(keeper.stdout.take().unwrap()).lines();
        let mut printed = String::new();
        for line in lines.by_ref().map_while(Result::ok) {
            if line.contains("process up") {
                // Otherwise it would wait for a reader, or fail.
                thread::spawn(move || lines.for_each(drop));
                return Ok(Self { port, keeper });
            }
            printed += &(line + "\n");
        }
        drop(Self { port, keeper });
        Err(printed)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// A copy of the program with its libraries in `folder`, because nobody else can read what root has downloaded.
fn copied(folder: &Path) -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/pgbouncer");
    let printed = succeed(&mut Command::new(script)).stdout;
    let program = PathBuf::from(String::from_utf8(printed).unwrap().trim_end());
    succeed(Command::new("cp").arg(&program).arg(folder.join("pgbouncer")));
    let libraries = program.with_file_name("lib");
    if program.starts_with("/usr") || !libraries.exists() {
        return folder.join("pgbouncer");
    }
    succeed(Command::new("cp").arg("-r").arg(libraries).arg(folder.join("lib")));
    folder.join("pgbouncer")
}

/// A process that runs the pooler until its standard input is closed, even if this process is killed. Then it removes
/// `folder`.
fn keeper(program: &Path, folder: &Path, run_as: Option<u32>) -> Child {
    // Only the pooler keeps the output open, so that it ends with it.
    const SCRIPT: &str = r#""$1" "$2/settings" 2>&1 & pooler=$!
        exec >/dev/null; read -r _; kill -KILL $pooler; rm -rf "$2""#;
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT, "sh"]).arg(program).arg(folder).env("LD_LIBRARY_PATH", folder.join("lib"));
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    as_user(&mut shell, Path::new("/"), run_as).spawn().unwrap()
}
