//! Texts in conversations that are not secrets.

use super::*;

fn assert_untouched(text: &str) {
    let found = rules().find(text);
    assert!(found.is_empty(), "{found:?} in {text}");
}

#[test]
fn ordinary_texts_are_not_masked() {
    let identifiers = [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "index 83db48f..bf2a3c1 100644",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "session 550e8400-e29b-41d4-a716-446655440000 was resumed",
        "{\"id\": \"550e8400-e29b-41d4-a716-446655440000\", \"parent\": null}",
        "at 2026-01-05T08:00:00.000000Z, 1767600000",
        "md5 d41d8cd98f00b204e9800998ecf8427e",
        "toolu_01A09q90qw90lq917835lq9",
    ];
    let code = [
        "let token = self.tokens.next().ok_or(Error::Eof)?;",
        "def get_api_key(name: str) -> str:\n    return os.environ[name]",
        "api_key = os.environ[\"OPENAI_API_KEY\"]",
        "const password = process.env.DB_PASSWORD;",
        "password: ${DB_PASSWORD}",
        "SECRET_KEY=${{ secrets.SECRET_KEY }}",
        "for (key, value) in map.iter() { println!(\"{key} = {value}\"); }",
        "items.sort(key=lambda item: item.created_at)",
        "SELECT key, value FROM settings WHERE key = 'theme'",
        "use std::collections::hash_map::Entry;",
        "#[serde(rename_all = \"camelCase\")]",
        "git@github.com:owner/repository.git",
        "https://example.com:8443/path?page=2&sort=asc#top",
        "https://user@example.com/",
        "postgres://user:password@localhost/db",
        "postgres://user:${PASSWORD}@localhost/db",
        "http://[::1]:8080/a:b@c",
        "-----BEGIN CERTIFICATE-----\nMIIBszCCARwCCQ",
        "grep -n 'BEGIN RSA' key.pem",
        "<div class=\"sk-circle-fade-dot sk-chase\">",
        "task-runner disk-usage risk-assessment-for-the-second-quarter",
        "Bearer authentication is described below.",
        "the keyboard shortcut, the primary key, a monkey",
    ];
    let sentences = [
        "The webhook handler retries on a timeout, but the idempotency key is lost between attempts.",
        "Please rotate the access token every ninety days, and keep the password in the vault.",
        "Authentication failed: the API key was rejected (401).",
        "Der Schlüssel liegt unter der Matte; das Passwort steht auf dem Zettel.",
        "密码和令牌都在保险库里。",
        "secret: nobody knows",
        "\0\0\0",
        "",
    ];
    identifiers.iter().chain(&code).chain(&sentences).for_each(|text| assert_untouched(text));
}

#[test]
fn the_header_of_a_key_in_a_sentence_masks_nothing_else() {
    let header = format!("-----BEGIN {} KEY-----", "PRIVATE");
    assert_untouched(&format!("A file that starts with `{header}` holds a key, so never commit it."));
}

#[test]
fn images_are_not_masked() {
    let image = random(BASE64, 20_000, 60);
    assert_untouched(&format!("data:image/png;base64,{image}=="));
    assert_untouched(&format!("{{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"{image}\"}}"));
}
