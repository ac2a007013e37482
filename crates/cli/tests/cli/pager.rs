//! The pager, on a pseudo-terminal.

use std::{
    fs::File,
    io::{ErrorKind, Read as _},
    path::PathBuf,
    process::Command,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::support::{Home, SYNCED};

/// A pager that marks the beginning and the end of its text.
const MARKING: &str = "echo [; cat; echo ]; :";
const MESSAGE: &str = "7f3c9a52#4";

/// The screen and the exit code of a run on a terminal of 80 columns.
fn on_terminal(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> (String, i32) {
    let mut command = home.process(arguments);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    for (name, value) in variables {
        command.env(name, value);
    }
    run_on_terminal(command)
}

fn run_on_terminal(mut command: Command) -> (String, i32) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(PathBuf::from(name)).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let stream = || terminal.try_clone().unwrap();
    let mut child = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap();
    // The last handles of this process, so that the end of the program is that of its output.
    drop((terminal, command));
    let mut screen = Vec::new();
    let mut controller = File::from(controller);
    let mut part = [0; 4096];
    loop {
        match controller.read(&mut part) {
            Ok(0) => break,
            Ok(read) => screen.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Linux reports the end of a terminal as an error.
            Err(_) => break,
        }
    }
    let code = child.wait().unwrap().code().unwrap_or(-1);
    (String::from_utf8(screen).unwrap().replace("\r\n", "\n"), code)
}

#[test]
fn output_goes_through_the_pager() {
    for arguments in [
        &["show", MESSAGE][..],
        &["show", MESSAGE, "--context"],
        &["show", MESSAGE, "--turn"],
        &["search", "webhook"],
        &["timeline", "webhook"],
        &["sessions"],
        &["files", "7f3c9a52"],
        &["events", "--limit", "2"],
        &["stats", "--all"],
        &["--help"],
        &["help", "search"],
    ] {
        let (screen, code) = on_terminal(&SYNCED, arguments, &[("PAGER", MARKING)]);
        assert!(screen.contains("[\n") && screen.contains("\n]\n"), "{arguments:?}: {screen}");
        assert_eq!(code, 0, "{screen}");
    }
    for arguments in [
        &["show", MESSAGE, "--json"][..],
        &["show", MESSAGE, "--no-pager"],
        &["--no-pager", "--help"],
        &["user"],
        &["doctor"],
        &["show", "nowhere"],
    ] {
        let (screen, _) = on_terminal(&SYNCED, arguments, &[("PAGER", MARKING)]);
        assert!(!screen.contains("[\n"), "{arguments:?}: {screen}");
    }
    // A pipe that is treated as a terminal is not one.
    let piped = SYNCED.call(&["show", MESSAGE]).env("AMPLIFIER_SESSIONS_FORCE_TTY", "80");
    assert!(!piped.env("PAGER", MARKING).run_process().stdout.contains("[\n"));
}

#[test]
fn variables_and_the_configuration_choose_the_pager() {
    let home = Home::without_vectors();
    let screen = |variables: &[(&str, &str)]| on_terminal(&home, &["show", MESSAGE], variables).0;
    let own = ("AMPLIFIER_SESSIONS_PAGER", "echo own; cat; :");
    let general = ("PAGER", "echo general; cat; :");
    assert!(screen(&[own, general]).starts_with("own\n"));
    assert!(screen(&[general]).starts_with("general\n"));
    for off in ["", "cat", " "] {
        let plain = screen(&[("AMPLIFIER_SESSIONS_PAGER", off), general]);
        assert_eq!(plain, screen(&[("PAGER", off)]), "{plain}");
        assert!(plain.contains("#4") && !plain.contains("general"), "{plain}");
    }
    assert!(!screen(&[("TERM", "dumb"), general]).contains("general"));
    home.configure("pager = \"echo configured; cat; :\"\n");
    assert!(screen(&[general]).starts_with("configured\n"));
    assert!(screen(&[own, general]).starts_with("own\n"));
    let help = on_terminal(&home, &["help", "show"], &[general]).0;
    assert!(help.starts_with("configured\n"), "{help}");
}

#[test]
fn less_keeps_colours_and_quits_if_the_text_fits() {
    let options = |variables: &[(&str, &str)]| {
        let variables = [variables, &[("PAGER", "echo options $LESS; cat; :")]].concat();
        on_terminal(&SYNCED, &["show", MESSAGE], &variables).0
    };
    let screen = options(&[]);
    assert!(screen.starts_with("options FRX\n") && screen.contains("\x1b[1m"), "{screen}");
    assert!(options(&[("LESS", "-S")]).starts_with("options -S\n"));
}

#[test]
fn messages_stay_visible_after_the_output() {
    let arguments = ["show", "7f3c9a52", "--limit", "2"];
    let (screen, code) = on_terminal(&SYNCED, &arguments, &[("PAGER", MARKING)]);
    let (output, messages) = screen.split_once("\n]\n").unwrap();
    assert!(output.contains("#1") && !output.contains("note:"), "{screen}");
    assert!(messages.starts_with("note: showing 2 of") && code == 0, "{screen}");
}

#[test]
fn a_pager_that_ends_early_is_no_error() {
    let arguments = ["events", "--limit", "1000", "--since", "2020-01-01"];
    for pager in ["head -1", "true", "false"] {
        let (screen, code) = on_terminal(&SYNCED, &arguments, &[("PAGER", pager)]);
        assert!(code == 0 && !screen.contains("error"), "{pager}: {screen}");
    }
}

#[test]
fn without_the_pager_the_output_is_plain() {
    let (plain, _) = on_terminal(&SYNCED, &["show", MESSAGE], &[("PAGER", "")]);
    let (screen, code) = on_terminal(&SYNCED, &["show", MESSAGE], &[("PAGER", "no-such-pager -x")]);
    let warning = "warning: the pager `no-such-pager -x` could not be started: ";
    assert!(screen.starts_with(warning) && screen.ends_with(&plain) && code == 0, "{screen}");
    // There need not be a `less`.
    let (screen, code) = on_terminal(&SYNCED, &["show", MESSAGE], &[("PATH", "/nowhere")]);
    assert!(screen == plain && code == 0, "{screen}");
    let (screen, code) = on_terminal(&SYNCED, &["show", MESSAGE], &[("PAGER", "'no such pager'")]);
    assert!(screen.contains("hint: --no-pager prints the output without a pager") && code == 0, "{screen}");
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let (screen, code) = on_terminal(&SYNCED, &["search", "xylophone-quartz", "--mode", "full-text"], &[]);
    assert_eq!(code, 3, "{screen}");
    let (screen, code) =
        on_terminal(&SYNCED, &["show", "7f3c9a52", "--limit", "none"], &[("PAGER", MARKING)]);
    assert!(code == 2 && !screen.contains("[\n"), "{screen}");
}

#[test]
fn an_interrupt_is_for_the_pager() {
    // External programs take long enough for the signal to arrive before the pager ends.
    let pager = "cat >/dev/null; for i in 1 2 3 4 5; do kill -INT $PPID; done; \
                 for i in 1 2 3 4 5 6 7 8 9; do ls / >/dev/null; done; echo survived; :";
    let (screen, code) = on_terminal(&SYNCED, &["show", MESSAGE], &[("PAGER", pager)]);
    assert!(screen.contains("survived") && code == 0, "{screen}");
}
