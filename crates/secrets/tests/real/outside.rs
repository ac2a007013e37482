//! Findings in real sessions, compared with what a person judged. Reads files from outside the project, in the folder that
//! `AMPLIFIER_TEST_DATA` names: see `.ci/outside`.

use std::{collections::HashMap, env, fs, path::Path, process::Command};

use amplifier_session_core::{
    content::{CleanTexts, secrets_in_line},
    model::{Digest, RawJson},
};
use amplifier_session_secrets::BuiltInRedactor;

/// A finding, without its value.
struct Finding {
    digest: String,
    is_masked: bool,
    /// The rule and the place.
    place: String,
}

fn places(findings: &[&Finding]) -> String {
    findings.iter().map(|finding| format!("\n{}", finding.place)).collect()
}

/// The findings in a line of a file.
fn findings(line: &[u8], place: &str, found: &mut Vec<Finding>) {
    let raw = RawJson::new(line);
    for secret in secrets_in_line(&BuiltInRedactor, &raw, &mut CleanTexts::default()).unwrap() {
        let parts = [secret.rule.as_bytes(), b"\0", &line[secret.span.clone()], b"\0", place.as_bytes()];
        found.push(Finding {
            digest: Digest::of(&parts.concat()).into(),
            is_masked: secret.certainty.is_masked(),
            place: format!("{} at {place}, {:?}", secret.rule, secret.span),
        });
    }
}

/// The findings in all files of sessions in `folder`.
fn findings_in(folder: &Path, found: &mut Vec<Finding>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            findings_in(&path, found);
            continue;
        }
        let session = folder.file_name().unwrap().to_str().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = fs::read(&path).unwrap();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("jsonl") => {
                for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
                    findings(line, &format!("{session}/{name}:{}", at + 1), found);
                }
            }
            Some("json") => findings(&bytes, &format!("{session}/{name}:1"), found),
            _ => {}
        }
    }
}

#[test]
#[ignore = "reads files from outside: see .ci/outside"]
fn what_is_masked_in_real_sessions_is_secret() {
    let data = env::var_os("AMPLIFIER_TEST_DATA").unwrap_or_else(|| panic!("AMPLIFIER_TEST_DATA is not set"));
    let archive = Path::new(&data).join("coding-sessions/sessions.tar.xz");
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(folder.path()).status();
    assert!(status.unwrap().success());
    let mut found = Vec::new();
    findings_in(folder.path(), &mut found);

    let lines = include_str!("outside_labels.txt").lines().filter(|line| !line.starts_with('#'));
    let labels: HashMap<&str, &str> = lines.filter_map(|line| line.split_once(' ')).collect();
    let unknown: Vec<_> = found.iter().filter(|finding| !labels.contains_key(&*finding.digest)).collect();
    assert!(unknown.is_empty(), "nobody has judged these findings: {}", places(&unknown));

    let masked: Vec<_> = found.iter().filter(|finding| finding.is_masked).collect();
    let is_harmless = |finding: &&Finding| labels[&*finding.digest] == "harmless";
    let harmless: Vec<_> = masked.iter().copied().filter(is_harmless).collect();
    assert!(harmless.len() * 20 < masked.len(), "these would be masked: {}", places(&harmless));
    // Overlapping findings have one rule, so a secret may have several labels.
    assert!(masked.len() - harmless.len() >= 3, "secrets are not masked: {}", places(&masked));
}
