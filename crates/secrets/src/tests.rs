mod certainty;
mod harmless;
mod kinds;
mod lines;
mod matrix;
mod ordinary;

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;

pub(super) fn rules() -> &'static SecretRules {
    SecretRules::built_in().unwrap()
}

/// The masked `text`.
pub(super) fn masked(text: &str) -> String {
    rules().mask(text).text.into_owned()
}

/// Random letters and digits, the same for the same seed.
pub(super) fn random(alphabet: &str, length: usize, seed: u64) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| alphabet[random.usize(..alphabet.len())]).collect()
}

pub(super) const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
pub(super) const HEX: &str = "0123456789abcdef";
pub(super) const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(super) const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[test]
fn the_rules_of_gitleaks_are_unchanged() {
    let digest: String = Sha256::digest(GITLEAKS).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "e163e53b9e7e8a8511e77271e2b323ed057759542a6d988258afe3a1fa329caf");
}

#[test]
fn every_pattern_compiles() {
    let rules = SecretRules::parse(&[GITLEAKS, OWN]).unwrap();
    assert!(rules.rules.len() > 221);
    for rule in &rules.rules {
        assert!(rule.pattern.regex().is_some(), "{}", rule.id);
        for pattern in rule.allowlists.iter().flat_map(|list| &list.patterns) {
            assert!(pattern.regex().is_some(), "{}", rule.id);
        }
    }
    assert!(rules.allowlist.unwrap().patterns.iter().all(|pattern| pattern.regex().is_some()));
}

#[test]
fn every_rule_has_a_keyword_in_lower_case() {
    let rules = rules();
    let owners: std::collections::HashSet<_> = rules.owners.iter().collect();
    assert_eq!(owners.len(), rules.rules.len());
    for file in [GITLEAKS, OWN] {
        for line in file.lines().filter(|line| line.starts_with("keywords")) {
            assert_eq!(line, line.to_lowercase());
        }
    }
}

#[test]
fn the_error_about_an_invalid_file_does_not_quote_it() {
    assert!(SecretRules::parse(&["rules = 1"]).is_err());
}

#[test]
fn every_character_but_line_breaks_is_masked() {
    let key = format!("gh{}{}", "p_", random(ALNUM, 36, 1));
    assert_eq!(masked(&format!("é {key} é")), format!("é {} é", "*".repeat(40)));
    let password = "pä§wörd7";
    assert_eq!(masked(&format!("postgres://me:{password}@db/x")), "postgres://me:********@db/x");
    let key = format!(
        "-----BEGIN {0} KEY-----\n{1}\r\n{1}\n-----END {0} KEY-----",
        "PRIVATE",
        random(BASE64, 64, 2)
    );
    let expected: String = key.chars().map(|c| if matches!(c, '\n' | '\r') { c } else { '*' }).collect();
    assert_eq!(masked(&format!("{key}\n")), format!("{expected}\n"));
}

#[test]
fn secrets_are_counted_and_never_shown() {
    let (one, two) =
        (format!("gh{}{}", "p_", random(ALNUM, 36, 3)), format!("AK{}{}", "IA", random(UPPER, 16, 4)));
    let text = format!("first {one}, then {two}; again {one}");
    let found = rules().find(&text);
    assert_eq!(found.len(), 3);
    assert_eq!(text[found[0].span.clone()], one);
    assert_eq!(rules().mask(&text).secrets, 3);
    for secret in [&one, &two] {
        assert!(!format!("{found:?}").contains(secret));
        assert!(!format!("{:?}", rules()).contains(secret));
    }
}

/// Takes minutes if some part is not linear.
#[test]
fn hostile_texts_take_linear_time() {
    const BYTES: usize = 80_000;
    let begin = format!("-----BEGIN {} KEY-----", "PRIVATE");
    let parts = [
        "a",
        "\0",
        "{",
        "\\",
        "key=",
        "key = \"",
        "secret:",
        "://",
        "a://b:",
        "a://b:c@",
        "ey",
        "eyJ",
        "sk-",
        "curl -u ",
        "password\\\"",
        "bearer ",
        "data: kind: secret ",
        "AKIA",
        "é",
        "A",
        "A\n",
        "=",
        "key=A",
        "api_key=aB3dE6gH9jK2mN5pQ8",
        begin.as_str(),
        "-----begin",
        "A-----END ",
        "?token=aB3dE6gH9&",
        "gitlab",
        "xoxb-1",
        "'\"",
        "0",
        "🔑",
        "****",
        "password=",
        "password:{",
        "password: [\"a",
        "password=\"a' ",
        "--password ",
        "&amp;",
        "%25",
        "secret: |\n a",
        "secret: | a ",
        "\u{1b}[",
    ];
    for part in parts {
        let text = part.repeat(BYTES / part.len());
        let masked = rules().mask(&text);
        assert_eq!(masked.text.chars().count(), text.chars().count());
    }
}

/// Parts of secrets in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("key = \"".to_owned()),
        Just("\" ".to_owned()),
        Just("password: ".to_owned()),
        Just("postgres://u:".to_owned()),
        Just("@host/".to_owned()),
        Just("?token=".to_owned()),
        Just("Bearer ".to_owned()),
        Just("ghp_".to_owned()),
        Just("AKIA".to_owned()),
        Just("sk-".to_owned()),
        Just("ey".to_owned()),
        Just(".".to_owned()),
        Just("curl -u ".to_owned()),
        Just(format!("-----BEGIN {} KEY-----\n", "PRIVATE")),
        Just(format!("-----END {} KEY-----\n", "PRIVATE")),
        Just("kind: Secret\ndata:\n  ".to_owned()),
        Just("****".to_owned()),
        "[a-zA-Z0-9]{1,40}",
        "[A-Z2-7]{16}",
        "[a-f0-9]{32}",
        "\\PC{0,3}",
        "[ \n\r\t\0:;,=é§]{0,3}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn masking_keeps_places_and_is_idempotent(text in pieces()) {
        let once = rules().mask(&text);
        prop_assert_eq!(once.text.chars().count(), text.chars().count());
        for (before, after) in text.chars().zip(once.text.chars()) {
            prop_assert!(before == after || after == '*');
        }
        prop_assert_eq!(once.secrets == 0, once.text == text);
        let twice = rules().mask(&once.text);
        prop_assert_eq!((twice.text.as_ref(), twice.secrets), (once.text.as_ref(), 0));
    }

    #[test]
    fn a_text_without_keywords_is_not_changed(text in "[B-DF-HJ-NP-TV-Z0-9 .,;!?\n\\u{80}-\\u{ff}]{0,300}") {
        // Not an assumption: of many thousand texts, some are rejected, and a run may reject only a thousand.
        if rules().candidates(&text).next().is_some() || !rules().find(&text).is_empty() {
            return Ok(());
        }
        let masked = rules().mask(&text);
        prop_assert!(matches!(masked.text, Cow::Borrowed(_)));
        prop_assert_eq!((masked.text.as_ref(), masked.secrets), (text.as_str(), 0));
    }

    #[test]
    fn any_text_can_be_masked(text in "\\PC{0,200}") {
        let masked = rules().mask(&text);
        prop_assert_eq!(masked.text.chars().count(), text.chars().count());
    }
}
