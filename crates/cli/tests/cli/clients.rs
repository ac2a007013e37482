//! `mcp install`, `mcp uninstall`, `skill`, and what `doctor` says of clients.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{call::Ran, output::check, support::Home};

/// The program as a process, because its path is written.
fn run(home: &Home, arguments: &[&str]) -> Ran {
    home.call(arguments).run_process()
}

fn ok(home: &Home, arguments: &[&str]) -> Ran {
    let ran = run(home, arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.all());
    ran
}

/// Writes a file in the home folder.
fn put(home: &Home, name: &str, text: &str) -> PathBuf {
    let file = home.path().join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    file
}

fn read(home: &Home, name: &str) -> String {
    fs::read_to_string(home.path().join(name)).unwrap()
}

fn read_json(home: &Home, name: &str) -> Value {
    serde_json::from_str(&read(home, name)).unwrap()
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_amplifier-sessions");
/// The files of clients that are the same on every system.
const FILES: [(&str, &str); 5] = [
    ("amplifier", ".amplifier/mcp.json"),
    ("claude-code", ".claude.json"),
    ("codex", ".codex/config.toml"),
    ("cursor", ".cursor/mcp.json"),
    ("gemini-cli", ".gemini/settings.json"),
];

#[test]
fn every_client_is_connected_in_its_own_file_and_disconnected_again() {
    let home = Home::new();
    let names = FILES.map(|(name, _)| name);
    let installed = ok(&home, &[&["mcp", "install"], &names[..]].concat());
    check("mcp_install", &home, &installed.all());
    let entry = json!({"command": PROGRAM, "args": ["mcp"]});
    assert_eq!(read_json(&home, ".cursor/mcp.json"), json!({"mcpServers": {"sessions": entry}}));
    assert_eq!(read_json(&home, ".claude.json")["mcpServers"]["sessions"]["type"], "stdio");
    assert!(read(&home, ".codex/config.toml").starts_with("[mcp_servers.sessions]\ncommand = "));

    let again = ok(&home, &[&["mcp", "install", "codex"], &names[..]].concat());
    assert_eq!(again.stdout.matches("unchanged\t").count(), FILES.len(), "{}", again.all());
    check("mcp_uninstall", &home, &ok(&home, &["mcp", "uninstall"]).all());
    assert_eq!(read_json(&home, ".cursor/mcp.json"), json!({}));
    assert_eq!(read(&home, ".codex/config.toml"), "");
    check("mcp_uninstall_nothing", &home, &run(&home, &["mcp", "uninstall"]).all());
    let one = ok(&home, &["mcp", "uninstall", "codex"]);
    assert!(one.stdout.starts_with("unchanged\tcodex\t"), "{}", one.all());
}

#[test]
fn everything_else_in_a_file_stays_byte_for_byte() {
    let home = Home::new();
    let claude =
        "\u{feff}{\r\n\t\"numStartups\": 1e0,\r\n\t\"projects\": {\"/w\": {\"mcpServers\": {}}}\r\n}\r\n";
    let codex = "# mine\r\nmodel = \"m\"   # best\r\n\r\n[mcp_servers.docs]\r\ncommand = 'npx'\r\n";
    put(&home, ".claude.json", claude);
    put(&home, ".codex/config.toml", codex);
    ok(&home, &["mcp", "install", "claude-code", "codex"]);
    let text = read(&home, ".claude.json");
    assert!(
        text.starts_with(&claude[..claude.len() - 5]) && !text.replace("\r\n", "").contains('\n'),
        "{text:?}"
    );
    assert!(text.contains("\r\n\t\"mcpServers\": {\r\n\t\t\"sessions\": {\r\n\t\t\t\"type\""), "{text:?}");
    let text = read(&home, ".codex/config.toml");
    assert!(text.starts_with(codex) && !text.replace("\r\n", "").contains('\n'), "{text:?}");
    ok(&home, &["mcp", "uninstall"]);
    assert_eq!(
        (read(&home, ".claude.json"), read(&home, ".codex/config.toml")),
        (claude.into(), codex.into())
    );
}

#[test]
fn invalid_files_are_left_alone_and_no_other_file_is_written() {
    let home = Home::new();
    let cases = [
        ("claude-code", ".claude.json", "{\n  \"a\": 1,\n  \"b\" 2\n}\n", "line 3: "),
        ("claude-code", ".claude.json", "{\"mcpServers\": []}", "\"mcpServers\" is not an object"),
        ("cursor", ".cursor/mcp.json", "[]", "does not contain a JSON object"),
        ("codex", ".codex/config.toml", "a = 1\nb =\n", "line 2: "),
        ("codex", ".codex/config.toml", "mcp_servers = 1\n", "`mcp_servers` is not a table"),
    ];
    for (client, name, text, says) in cases {
        put(&home, name, text);
        for arguments in [&["mcp", "install", "gemini-cli", client][..], &["mcp", "uninstall", client]] {
            let ran = run(&home, arguments);
            assert!(ran.code == 1 && ran.stdout.is_empty(), "{}", ran.all());
            assert!(ran.stderr.contains(name) && ran.stderr.contains(says), "{}", ran.all());
            assert!(ran.stderr.contains("\nhint: "), "{}", ran.all());
        }
        assert_eq!(read(&home, name), text);
        assert!(!home.path().join(".gemini").exists());
    }
    fs::write(home.path().join(".claude.json"), b"{\"a\": \"\xff\"}").unwrap();
    let ran = run(&home, &["mcp", "install", "claude-code"]);
    assert!(ran.code == 1 && ran.stderr.contains("not UTF-8"), "{}", ran.all());
}

#[test]
fn an_entry_of_another_program_is_replaced_only_by_force() {
    let home = Home::new();
    let theirs = "{\"mcpServers\": {\"sessions\": {\"command\": \"npx\", \"args\": [\"-y\", \"other\"]}}}";
    put(&home, ".cursor/mcp.json", theirs);
    check("mcp_install_taken", &home, &run(&home, &["mcp", "install", "cursor"]).all());
    ok(&home, &["mcp", "uninstall", "cursor"]);
    assert_eq!(read(&home, ".cursor/mcp.json"), theirs);
    ok(&home, &["mcp", "install", "cursor", "--force"]);
    let entry = json!({"command": PROGRAM, "args": ["mcp"]});
    assert_eq!(read_json(&home, ".cursor/mcp.json")["mcpServers"]["sessions"], entry);
}

#[test]
fn our_own_entry_is_updated_and_keeps_its_other_settings() {
    let home = Home::new();
    let text = "[mcp_servers.sessions]\ncommand = \"/old/amplifier-sessions\" # ours\nargs = [\"mcp\"]\nstartup_timeout_sec = 20\n";
    put(&home, ".codex/config.toml", text);
    let ran = ok(&home, &["mcp", "install", "codex"]);
    assert!(ran.stdout.starts_with("updated\tcodex\t"), "{}", ran.all());
    assert_eq!(read(&home, ".codex/config.toml"), text.replace("/old/amplifier-sessions", PROGRAM));
}

#[test]
fn options_that_select_the_store_are_part_of_the_entry() {
    let home = Home::new();
    home.configure("org = \"acme\"\n");
    let args = |ran: Ran| ran.json()["clients"][0]["args"].clone();
    let print = ["mcp", "install", "codex", "--print", "--json"];
    assert_eq!(args(ok(&home, &print)), json!(["mcp"]));
    let typed = ["--store", "sqlite:~/a b.sqlite", "--user", "ana", "--scope", "visible", "--team", "web"];
    let all =
        ["--store", "sqlite:~/a b.sqlite", "--user", "ana", "--team", "web", "--scope", "visible", "mcp"];
    assert_eq!(args(ok(&home, &[&typed[..], &print].concat())), json!(all));
    let variable = home.call(&print).env("AMPLIFIER_SESSIONS_STORE", "sqlite:/v.sqlite").run_process();
    assert_eq!(args(variable), json!(["--store", "sqlite:/v.sqlite", "mcp"]));
    let mut relative = home.process(&[&["--store", "sqlite:r.sqlite"], &print[..]].concat());
    let ran = Ran::from(relative.current_dir(home.path()).output().unwrap());
    let folder = home.path().canonicalize().unwrap();
    assert_eq!(args(ran)[1], format!("sqlite:{}", folder.join("r.sqlite").display()));
    assert!(!home.path().join(".codex").exists());
}

#[cfg(feature = "postgres")]
#[test]
fn a_password_is_never_written() {
    let home = Home::new();
    for arguments in [&["mcp", "install", "codex"][..], &["mcp", "install", "codex", "--print"]] {
        let ran = run(&home, &[&["--store", "postgres://ana:geheim@db/team"], arguments].concat());
        assert!(
            ran.code != 0 && ran.stderr.contains("password") && !ran.all().contains("geheim"),
            "{}",
            ran.all()
        );
    }
    assert!(!home.path().join(".codex").exists());
}

#[test]
fn an_entry_is_printed_in_the_form_of_the_client() {
    let home = Home::new();
    for client in ["codex", "claude-code", "vscode", "amplifier"] {
        check(
            &format!("mcp_print_{client}"),
            &home,
            &ok(&home, &["mcp", "install", client, "--print"]).stdout,
        );
    }
    let view = ok(&home, &["mcp", "install", "codex", "--print", "--json"]).json();
    check("mcp_print_json", &home, &format!("{view:#}"));
    assert!(fs::read_dir(home.path()).unwrap().all(|entry| entry.unwrap().file_name() == "tmp"));
}

#[test]
fn variables_of_the_clients_move_their_files() {
    let home = Home::new();
    let to = |name: &str| home.path().join(name);
    for (client, variable, name, file) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", "c", "c/.claude.json"),
        ("codex", "CODEX_HOME", "d", "d/config.toml"),
        ("gemini-cli", "GEMINI_CLI_HOME", "g", "g/.gemini/settings.json"),
    ] {
        let call = home.call(&["mcp", "install", client]).env(variable, to(name));
        assert_eq!(call.run_process().code, 0);
        assert!(to(file).exists(), "{file}");
    }
    if cfg!(target_os = "linux") {
        let call = home.call(&["mcp", "install", "vscode"]).env("XDG_CONFIG_HOME", to("x"));
        assert_eq!(call.run_process().code, 0);
        assert!(to("x/Code/User/mcp.json").exists());
        let ran = run(&home, &["mcp", "install", "claude-desktop"]);
        assert!(ran.code == 1 && ran.stderr.contains("unknown on this machine"), "{}", ran.all());
    }
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let home = Home::new();
    let mode = |file: &PathBuf| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    let target = put(&home, "dotfiles/claude.json", "{}");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    let link = home.path().join(".claude.json");
    symlink(&target, &link).unwrap();
    ok(&home, &["mcp", "install", "claude-code", "codex"]);
    assert!(link.is_symlink() && read(&home, "dotfiles/claude.json").contains("sessions"));
    assert_eq!((mode(&target), mode(&home.path().join(".codex/config.toml"))), (0o640, 0o600));
    fs::remove_file(&target).unwrap();
    let ran = run(&home, &["mcp", "install", "claude-code"]);
    assert!(ran.code == 1 && ran.stderr.contains("a link to a file that does not exist"), "{}", ran.all());
    assert!(link.is_symlink());
}

#[cfg(unix)]
#[test]
fn the_name_is_written_if_the_client_finds_this_program_by_it() {
    let home = Home::new();
    let folder = home.path().join("bin");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(PROGRAM, folder.join("amplifier-sessions")).unwrap();
    let command = |client: &str| {
        let call = home.call(&["mcp", "install", client, "--print", "--json"]).env("PATH", &folder);
        call.run_process().json()["clients"][0]["command"].as_str().unwrap().to_owned()
    };
    assert_eq!(command("codex"), "amplifier-sessions");
    // A desktop program has another PATH.
    assert_eq!(command("cursor"), folder.join("amplifier-sessions").to_str().unwrap());
    fs::remove_file(folder.join("amplifier-sessions")).unwrap();
    fs::write(folder.join("amplifier-sessions"), "another program").unwrap();
    assert_eq!(command("codex"), PROGRAM);
}

#[test]
fn doctor_says_which_clients_are_connected() {
    let home = Home::without_vectors();
    let lines = |home: &Home| {
        let checks = ok(home, &["doctor", "--embedding", "none", "--json"]).json()["checks"].clone();
        let of_clients = checks.as_array().unwrap().iter().filter(|check| check["name"] == "mcp");
        of_clients.cloned().collect::<Vec<_>>()
    };
    assert_eq!(lines(&home), Vec::<Value>::new());
    put(&home, ".codex/auth.json", "{}");
    let hint = "`amplifier-sessions mcp install codex` connects Codex";
    let found = json!({"name": "mcp", "status": "ok", "text": "not connected: Codex", "hint": hint});
    assert_eq!(lines(&home), [found]);

    ok(&home, &["mcp", "install", "codex", "amplifier"]);
    put(&home, ".cursor/mcp.json", "{");
    put(&home, ".claude.json", "{}");
    let missing = json!({"command": "/gone/amplifier-sessions", "args": ["mcp"]});
    put(&home, ".gemini/settings.json", &json!({"mcpServers": {"sessions": missing}}).to_string());
    ok(&home, &["--store", "sqlite:~/gone.sqlite", "mcp", "install", "codex"]);
    let found = lines(&home);
    let text = |status: &str| {
        let of_status = found.iter().filter(|check| check["status"] == status);
        of_status.map(|check| check["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(text("ok"), "connected: Amplifier, Codex, Gemini CLI; not connected: Claude Code");
    check("doctor_clients", &home, &text("warning"));
}

#[test]
fn skill() {
    let home = Home::new();
    let skill = home.ok(&["skill"]);
    assert!(skill.starts_with("---\nname: amplifier-sessions\ndescription: "), "{skill}");
    home.shows("help_mcp_install", &["mcp", "install", "--help"]);
    home.shows("help_mcp_uninstall", &["mcp", "uninstall", "--help"]);
    home.shows("help_skill", &["skill", "--help"]);
}
