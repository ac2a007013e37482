//! `show --editor`.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::support::{Home, SYNCED};

const MESSAGE: &str = "7f3c9a52#4";

/// The name, the permissions and the content of the file that an editor gets, and the rest of the run.
fn edited(home: &Home, arguments: &[&str]) -> (String, u32, String) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display();
    // As a variable may have it: a function with an argument.
    let editor = format!(
        "copy() {{ cp -p \"$2\" '{out}'; echo \"$1 $(basename \"$2\")\" > '{out}/.name'; }}; copy --wait"
    );
    let ran = home.call(arguments).env("PATH", std::env::var_os("PATH").unwrap()).env("EDITOR", editor).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.all());
    let name = fs::read_to_string(folder.path().join(".name")).unwrap();
    let name = name.trim().strip_prefix("--wait ").unwrap().to_owned();
    let file = folder.path().join(&name);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    (name, mode & 0o777, fs::read_to_string(file).unwrap())
}

#[test]
fn an_editor_gets_what_a_pipe_gets() {
    for (arguments, ending) in [
        (&[][..], "md"),
        (&["--turn"], "md"),
        (&["--context"], "md"),
        (&["--raw"], "json"),
        (&["--json"], "json"),
    ] {
        let show = [&["show", MESSAGE], arguments].concat();
        let (name, mode, text) = edited(&SYNCED, &[&show[..], &["--editor"]].concat());
        assert_eq!((name, mode), (format!("7f3c9a52-4.{ending}"), 0o600));
        assert_eq!(text, SYNCED.ok(&show), "{arguments:?}");
    }
    let left = fs::read_dir(SYNCED.path().join("tmp")).unwrap().flatten();
    let left: Vec<_> =
        left.filter(|file| file.file_name().to_string_lossy().contains("unfinished")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_editor_gets_all_of_a_long_message_and_only_the_commands_if_asked() {
    let home = Home::new();
    let long = "word ".repeat(2_000);
    let call = r#"{"role":"assistant","content":[{"type":"tool_call","id":"1","name":"bash","input":{"command":"git add .\ngit commit"}}]}"#;
    let lines = format!("{{\"role\":\"user\",\"content\":\"{long}\"}}\n{call}\n");
    home.write_session("-home-dana-app", "7f3c9a52-6d1e-4b8f-9a07-c2e54d81b3f7", &lines);
    home.ok(&["sync", "--embedding", "none"]);
    assert!(edited(&home, &["show", "latest#0", "--editor"]).2.contains(long.trim()));
    let (name, _, text) = edited(&home, &["show", "latest#1", "--command", "--editor"]);
    assert_eq!((name.as_str(), text.as_str()), ("latest-1.sh", "git add .\ngit commit\n"));
}

#[test]
fn errors_of_editors_are_said() {
    let run = |arguments: &[&str], editor: &str| {
        let call = SYNCED.call(arguments).env("PATH", std::env::var_os("PATH").unwrap());
        let ran = if editor.is_empty() { call.run() } else { call.env("VISUAL", editor).run() };
        (ran.code, ran.stderr)
    };
    let show = ["show", MESSAGE, "--editor"];
    let (code, stderr) = run(&show, "no-such-editor --wait");
    let said = "error: the editor `no-such-editor --wait` could not be started: ";
    assert!(
        code == 1 && stderr.starts_with(said) && stderr.contains("hint: set VISUAL or EDITOR"),
        "{stderr}"
    );
    let (code, stderr) = run(&show, "false");
    assert!(code == 1 && stderr.starts_with("error: the editor `false` failed: "), "{stderr}");
    let (code, stderr) = run(&show, "");
    assert!(code == 1 && stderr.starts_with("error: no editor is set"), "{stderr}");
    // Nothing is opened if there is nothing to show.
    let (code, stderr) = run(&["show", "7f3c9a52#99999", "--editor"], "false");
    assert!(code == 3 && !stderr.contains("editor"), "{stderr}");
}
