//! `--store http://…`: every command that reads, searches or edits prints the same with a server as with a store that it
//! has opened, and so do errors.

use std::{fs, path::Path};

use crate::{
    call::Ran,
    serve::Server,
    superseded::{FLAKY, lossy_with},
    support::{Home, copy},
};

pub(crate) const TOKEN: &str = "AMPLIFIER_SESSIONS_TOKEN";
/// Makes the program print as on a terminal of this width.
const TERMINAL: &str = "AMPLIFIER_SESSIONS_FORCE_TTY";

/// The same store twice: in a file, and behind a server.
pub(crate) struct Twins {
    pub(crate) home: Home,
    pub(crate) file: String,
    server: Server,
    pub(crate) token: String,
    _other: Home,
}

impl Twins {
    pub(crate) fn new() -> Self {
        let (home, other) = (lossy_with("local"), Home::new());
        let file = home.path().join("twin.sqlite");
        copy_store(&home, &file);
        copy_store(&home, &other.amplifier().join("sessions.sqlite"));
        let create = ["token", "create", "--reach", "all", "--rights", "read,write,delete,admin"];
        let token = other.ok(&create).trim().to_owned();
        let server = Server::with_model(&other);
        let file = format!("sqlite:{}", file.display());
        Self { home, file, server, token, _other: other }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Runs a command on a store, and puts a word in place of the store and of today's times.
    fn run(&self, store: &str, arguments: &[&str], terminal: bool) -> Ran {
        let arguments = [arguments, &["--store", store]].concat();
        let call = self.home.call(&arguments).env(TOKEN, &self.token).env("TZ", "Europe/Berlin");
        let call = if terminal { call.env(TERMINAL, "100") } else { call };
        let Ran { code, stdout, stderr } = call.run();
        let same = |text: String| without_times_of_today(&text.replace(store, "STORE"));
        let stderr = same_hint(&unwrapped(&same(stderr)));
        Ran { code, stdout: without_places(&same(stdout)), stderr }
    }

    /// Runs a command on both, in a pipe, as JSON and on a terminal. Returns where it prints something else.
    fn differences(&self, line: &str) -> Vec<String> {
        let arguments: Vec<&str> = words(line);
        let json = [&arguments[..], &["--json"]].concat();
        let forms = [(&arguments, false), (&json, false), (&arguments, true)];
        forms.iter().filter_map(|(arguments, terminal)| self.difference(arguments, *terminal)).collect()
    }

    /// What a command prints on both, if it is not the same.
    fn difference(&self, arguments: &[&str], terminal: bool) -> Option<String> {
        let (here, there) =
            (self.run(&self.file, arguments, terminal), self.run(&self.url(), arguments, terminal));
        let (here, there) = (here.all(), there.all());
        (here != there).then(|| format!("{arguments:?}\n--- here\n{here}\n--- there\n{there}\n"))
    }
}

/// A server reads no files, so after a deletion the machine that has them is told to send them.
fn same_hint(text: &str) -> String {
    text.replace(" --store STORE sync", " sync").replace(" --push STORE` sends", "` reads")
}

/// Copies the default store of a home with its index.
fn copy_store(home: &Home, to: &Path) {
    let folder = to.parent().unwrap();
    fs::create_dir_all(folder).unwrap();
    let name = to.file_name().unwrap().to_str().unwrap();
    for entry in fs::read_dir(home.amplifier()).unwrap() {
        let from = entry.unwrap().path();
        let Some(end) = from.file_name().unwrap().to_str().unwrap().strip_prefix("sessions.sqlite") else {
            continue;
        };
        let to = folder.join(format!("{name}{end}"));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

/// The words of a command line, where `'` quotes.
fn words(line: &str) -> Vec<&str> {
    line.split('\'')
        .enumerate()
        .flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() })
        .collect()
}

/// A message on a terminal breaks where the address of the store ends.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Without the files of the store and their sizes, which a server does not tell.
fn without_places(text: &str) -> String {
    let is_place = |line: &str| {
        ["place\t", "store ", "index "].iter().any(|start| line.starts_with(start))
            && line.contains("twin.sqlite")
    };
    let mut lines: String = text.split_inclusive('\n').filter(|line| !is_place(line)).collect();
    if let Some((before, rest)) = lines.split_once("\"places\":[")
        && let Some((_, after)) = rest.split_once(']')
    {
        lines = format!("{before}\"places\":[]{}", after.strip_prefix(']').unwrap_or(after));
    }
    lines
}

/// The text without times of today: both stores are changed one after the other.
fn without_times_of_today(text: &str) -> String {
    let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let mut parts = text.split(&today);
    let mut without = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        without.push_str("TODAY");
        without.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || "T:.Z+".contains(c)));
    }
    without
}

/// The commands that read.
const READING: &[&str] = &[
    "search 'flaky checkout test'",
    "search 'flaky checkout test' --full --max-chars 80",
    "search 'flaky checkout test' --mode full-text --group none",
    "search 'how do two workers not take the same row' --mode semantic --group none",
    "search 'flaky checkout test' --explain",
    "search 'flaky checkout test' --in tool --limit 3",
    "search 'flaky checkout test' --list",
    "search 'flaky checkout test' --budget 400",
    "search 'flaky checkout test' --session 38e6",
    "search 'role:user flaky after:2026-01-01 before:2030-01-01 -checkout'",
    "search 'tool:bash file:nowhere.rs flaky'",
    "search 'tag:none flaky'",
    "search 'before:someday flaky'",
    "search 'flaky checkout' --exact",
    "search 'xyzzy plugh'",
    "search 'flaky' --unit turn",
    "search 'flaky' --unit turn --group none",
    "search 'flaky checkout test' --superseded",
    "search 'flaky' --since 5y --until today --project shop --min-turns 1",
    "search 'flaky' --project nothing-like-this",
    "search 'flaky' --scope all",
    "search 'flaky' --since 2030-01-01 --until 2029-01-01",
    "search 'flaky' --since someday",
    "search 'flaky' --limit 0",
    "search 'flaky' --budget 3",
    "search --file checkout",
    "timeline flaky",
    "timeline 'flaky' --by week",
    "sessions",
    "sessions --limit 2",
    "sessions --tree",
    "sessions --sort cost",
    "sessions flaky",
    "sessions nothing like this",
    "sessions --tag none",
    "sessions --since monday",
    "sessions --scope visible",
    "sessions --superseded",
    "sessions --by project --since 2016-01-01",
    "sessions --by project --since yesterday",
    "show latest",
    "show 38e6",
    "show 38e6 --full --no-thinking",
    "show 38e6 --limit 2 --from 1",
    "show 38e6 --from 9999",
    "show 38e6 --budget 300",
    "show 38e6#4",
    "show 38e6#4 --command",
    "show 38e6#4 --raw",
    "show 38e6#9999",
    "show 38e6 --events",
    "show 38e6 --events --full",
    "show 38e6 --superseded",
    "show 38e6 --superseded --events",
    "show nothing-like-this",
    "show 38e6 --turn 1",
    "show 38e6#4 --turn",
    "show 38e6 --turn 99",
    "show 38e6#4 --context --before 1",
    "show 38e6 --turn 1 --context",
    "show 38e6 --context",
    "files 38e6",
    "files 38e6 --changed",
    "events --limit 3",
    "events --limit 3 --full",
    "events --level error",
    "events --type tool",
    "events --text nothing-like-this",
    "events --session 38e6 --superseded --full",
    "events --after nothing",
    "stats",
    "stats --all",
    "stats --by month --since 10y",
    "stats --session 38e6",
    "stats --project nothing-like-this",
    "tag",
    "tag 38e6",
    "secrets",
    "secrets 38e6",
    "embeddings",
    "embeddings --session 38e6",
    "verify --gaps",
];

/// The commands that change, in this order.
const CHANGING: &[&str] = &[
    "tag 38e6 incident payments",
    "tag 38e6 --remove incident never-there",
    "tag 38e6 x --remove x",
    "tag",
    "edit 38e6 --name Flaky --description 'about a test'",
    "edit 38e6",
    "edit 38e6 --reset name --name x",
    "edit nothing-like-this --name x",
    "share 38e6 --team payments",
    "share 38e6 --private",
    "sessions flaky",
    "secrets --purge 38e6#1 --yes",
    "secrets --ignore 38e6#1",
    "rewind 38e6 --to-turn 1 --dry-run",
    "rewind 38e6 --to-turn 1",
    "rewind 38e6 --to-turn 99 --yes",
    "rewind 38e6 --to-turn 1 --yes",
    "show 38e6 --limit 100",
    "delete --superseded --dry-run",
    "delete --superseded --yes",
    "delete 38e6 --dry-run",
    "delete 38e6",
    "delete 38e6 --yes",
    "delete 38e6 --yes",
    "delete --older-than 3650d --dry-run",
    "delete --older-than -1d",
    "user rename nobody-1 nobody-2",
    "sessions",
];

#[test]
fn what_is_read_is_the_same_with_a_server() {
    let twins = Twins::new();
    let different: Vec<String> = READING.iter().flat_map(|line| twins.differences(line)).collect();
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    assert!(FLAKY.starts_with("38e6"));
}

#[test]
fn what_is_changed_is_the_same_with_a_server() {
    for more in [&["--json"][..], &[]] {
        let twins = Twins::new();
        let differ = |line: &&str| twins.difference(&[&words(line)[..], more].concat(), false);
        let different: Vec<String> = CHANGING.iter().filter_map(differ).collect();
        assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
    }
}

#[test]
fn an_export_from_a_server_is_the_archive_of_its_store() {
    let twins = Twins::new();
    let out = twins.home.path().join("sessions.jsonl");
    let export = |store: &str| {
        let arguments = ["export", "--out", out.to_str().unwrap(), "--vectors"];
        let ran = twins.run(store, &arguments, false);
        (ran.all(), fs::read_to_string(&out).unwrap())
    };
    let (here, there) = (export(&twins.file), export(&twins.url()));
    assert_eq!(here.0, there.0);
    assert!(here.1 == there.1 && here.1.lines().count() > 100, "{}", here.1.lines().count());
    let stdout = |store: &str| twins.run(store, &["export", "--out", "-", "--session", FLAKY], false).all();
    assert_eq!(stdout(&twins.file), stdout(&twins.url()));
    let none = |store: &str| twins.run(store, &["export", "--out", "-", "--project", "no-such"], false).all();
    assert_eq!(none(&twins.file), none(&twins.url()));
    let others = twins.run(&twins.url(), &["export", "--out", "-", "--scope", "all"], false);
    assert!(others.code == 1 && others.stderr.contains("only your own sessions"), "{}", others.all());
}

#[test]
fn a_token_limits_what_a_command_does() {
    let twins = Twins::new();
    let with = |rights: &str, arguments: &[&str]| {
        let token = twins._other.ok(&["token", "create", "--rights", rights]);
        let url = twins.url();
        let arguments = [arguments, &["--store", &url]].concat();
        twins.home.call(&arguments).env(TOKEN, token.trim()).run()
    };
    let all = with("read", &["sessions", "--scope", "all"]);
    assert!(all.code == 1 && all.stderr.contains("scope all is not allowed, only own"), "{}", all.all());
    let tag = with("read", &["tag", FLAKY, "x"]);
    assert!(tag.code == 1 && tag.stderr.contains("no right to write"), "{}", tag.all());
    let delete = with("read,write", &["delete", FLAKY, "--yes"]);
    assert!(delete.code == 1 && delete.stderr.contains("--rights read,write,delete"), "{}", delete.all());
    assert_eq!(with("read", &["show", FLAKY]).code, 0);
    let tags = with("read", &["tag", FLAKY]);
    assert_eq!((tags.code, tags.stdout.as_str()), (0, "tests\nci\n"), "{}", tags.stderr);
    let unknown = twins.home.call(&["sessions", "--store", &twins.url()]).env(TOKEN, "ams_x").run();
    assert!(unknown.code == 1 && unknown.stderr.contains("does not know the token"), "{}", unknown.all());
    let user = with("read", &["user"]);
    assert!(user.stdout.contains(&format!("the token for {}", twins.server.address)), "{}", user.all());
}

#[test]
fn doctor_needs_no_session_folder_with_a_server() {
    let (twins, home) = (Twins::new(), Home::new());
    let ran = home.call(&["doctor", "--store", &twins.url()]).env(TOKEN, &twins.token).run();
    assert!(ran.code == 0 && ran.stdout.contains("ok\tstore\t"), "{}", ran.all());
}

#[test]
fn a_hint_repeats_no_option_that_has_no_effect() {
    let home = Home::with_samples();
    home.ok(&["sync", "--embedding", "none"]);
    let ran = home.run(&["share", "no-such", "--team", "web"]);
    assert!(ran.code == 1 && ran.stderr.contains("amplifier-sessions sessions`"), "{}", ran.all());
}

#[test]
fn what_needs_the_store_itself_says_where_to_run_it() {
    let home = Home::with_samples();
    let url = "https://sessions.example.com";
    for (line, hint) in [
        ("sync", "sync --push https://sessions.example.com"),
        ("import x.jsonl", "sync --push"),
        ("backup x.sqlite", "copy --from"),
        ("verify", "on the machine of the server"),
        ("salvage --to x.sqlite", "on the machine of the server"),
        ("upgrade", "on the machine of the server"),
        ("embeddings backfill", "on the machine of the server"),
        ("config init", "on the machine of the server"),
    ] {
        let ran = home.call(&[&words(line)[..], &["--store", url]].concat()).env(TOKEN, "ams_x").run();
        assert_eq!(ran.code, 2, "{line}: {}", ran.all());
        assert!(unwrapped(&ran.stderr).contains(hint), "{line}: {}", ran.stderr);
    }
    for option in [&["--user", "ben"][..], &["--embedding", "none"], &["--read-only"]] {
        let ran = home.call(&[&["sessions", "--store", url], option].concat()).env(TOKEN, "ams_x").run();
        assert!(ran.code == 2 && ran.stderr.contains("can't be used with a server"), "{}", ran.all());
    }
    let none = home.run(&["sessions", "--store", url]);
    assert!(none.code == 1 && none.stderr.contains(TOKEN), "{}", none.all());
    let plain = home.call(&["sessions", "--store", "http://192.0.2.1"]).env(TOKEN, "ams_x").run();
    assert!(plain.stderr.contains("--allow-http"), "{}", plain.all());
}
