//! How certain findings are, and what is none.

use amplifier_session_core::content::Certainty::{self, Certain, Likely, Possible};

use super::*;

fn certainties(text: &str) -> Vec<Certainty> {
    rules().find(text).into_iter().map(|secret| secret.certainty).collect()
}

#[test]
fn known_forms_are_certain() {
    for secret in [
        format!("gh{}{}", "p_", random(ALNUM, 36, 1)),
        format!("AK{}{}", "IA", random(UPPER, 16, 2)),
        format!("ey{}.ey{}.{}", random(ALNUM, 30, 3), random(ALNUM, 60, 4), random(ALNUM, 43, 5)),
        format!("am{}{}_{}_{}", "s_", random(ALNUM, 8, 21), random(ALNUM, 43, 22), random(HEX, 8, 23)),
        format!("-----BEGIN {0} KEY-----\n{1}\n{1}\n-----END {0} KEY-----", "PRIVATE", random(BASE64, 64, 6)),
    ] {
        for text in
            [secret.clone(), format!("API_KEY={secret}"), format!("{{\"a\": \"see {secret} there\"}}")]
        {
            assert_eq!(certainties(&text), [Certain], "{text}");
        }
    }
}

#[test]
fn telling_names_with_odd_values_are_likely() {
    let key = random(ALNUM, 32, 7);
    for text in [
        format!("API_KEY={key}"),
        format!("\"token\": \"{key}\""),
        "password = \"hunter2\"".to_owned(),
        "DB_PASS=aB3!dE6#".to_owned(),
        "postgres://me:swordfish@db.acme.test/x".to_owned(),
        "postgres://me:aB3!dE6#@localhost/x".to_owned(),
        "secret: \"correct horse battery staple\"".to_owned(),
        "password = \"purple-monkey-dishwasher-lamp\"".to_owned(),
        "password: 'Xy(9)z!kQ'".to_owned(),
        "MOLLIE_KEY=test_dHar4XY7LxsDOtmnkVtjNVWXLSlXsM".to_owned(),
        "client_secret: 550e8400-e29b-41d4-a716-446655440000".to_owned(),
    ] {
        assert_eq!(certainties(&text), [Likely], "{text}");
    }
}

#[test]
fn words_and_examples_are_only_possible() {
    for text in [
        "password = \"swordfish\"",
        "DB_PASSWORD=swordfish",
        "api_key = \"test-key-123\"",
        "password: \"test1234\"",
        "POSTHOG_API_KEY=phc_xxxxxx",
        "API_KEY=sk-1234567890abcdef",
        "postgres://postgres:postgres@localhost:5432/app",
        "postgres://app:app@db/app",
        "sessionKey: \"key-123\"",
        "token = \"550e8400-e29b-41d4-a716-446655440000\"",
    ] {
        let found = certainties(text);
        assert!(found == [Possible] || found.is_empty(), "{found:?} {text}");
        assert_eq!(masked(text), text);
    }
    let header = format!("-----BEGIN OPENSSH {} KEY-----", "PRIVATE");
    let cut = format!(
        "{header}\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\nREDACTED\n{}",
        header.replace("BEGIN", "END")
    );
    assert_eq!(certainties(&cut), [Possible]);
}

/// Kinds of ordinary text in sessions that look like assignments of secrets.
#[test]
fn ordinary_text_is_no_finding() {
    let texts = [
        // Names of tests.
        "--- PASS: TestParse/empty_input_-_returns_2 (0.00s)",
        "    --- PASS: TestHTTP2_ServerPush (13.48s)",
        "PASS: TestID_Path/#00",
        "PASS tests/test_login.py::test_token[utf8-1]",
        "All tests pass: `just check --all 2`",
        "These calls pass `\"Big Model\"` as a string",
        "update the hook and pass to SaveState\n5. done",
        "This would pass: `user.Save2()`",
        // Paths.
        "pwd: /home/me/My-Project_v2+x/src",
        "PWD=/private/var/folders/3k/x7_8dj2n/T/tmp.Xk9dPq2L",
        "{\"pwd\": \"C:\\\\Users\\\\me\\\\x9\"}",
        "OLDPWD=~/w0rk/b2#b",
        "{\"private_key\": \"./certs/dev-2.pem\"}",
        "secret: ../keys/k3y!.txt",
        // Code.
        "otpKey = generateKey(user.id2)",
        "const otpKey = `otp:${user.email}`;",
        "const resetKey = `reset:${id}:v2`",
        "secret = vault.read(\"app/db2\")",
        "const MODE_PASS = 0x030;",
        "KeyPassword: X509KeyPasswordOptions,",
        "let token = parser2.next(kind)?;",
        // Emphasis and other prose.
        "the key is **random**",
        "The secret: **not in the repository**",
        "The key is: **`FilesTouched` is cleared**",
        "the password is *required*",
        "Restored cache from key: tool.cache-Linux-2927-82752a906b5296f3484eae9b30f5e30e24e24fe4",
        // Templates.
        "password: ${{ secrets.DB_PASSWORD_2 }}",
        "API_KEY: ${{ secrets.X }}",
        "https://x-access-token:${GH_TOKEN}@git.example.com/${REPO}.git",
        "token: {{ .Values.auth.token2 }}",
        "password=<%= ENV['P2'] %>",
        // Words.
        "apiKey = \"disabled\"",
        "token: required",
        "secret: Unchanged",
        "test.secret: Staging=? Worktree=?",
    ];
    let found: Vec<_> =
        texts.iter().map(|text| (certainties(text), text)).filter(|(found, _)| !found.is_empty()).collect();
    assert!(found.is_empty(), "{found:#?}");
}
