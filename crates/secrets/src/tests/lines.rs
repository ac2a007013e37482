//! Secrets in whole lines of JSON, as they are masked before they are stored.

use amplifier_session_core::{
    Result,
    content::{Certainty, CleanTexts, IgnoredSecrets},
    model::RawJson,
};
use serde_json::{Value, json};

use super::{matrix::cases, *};

fn secrets_in_line(line: &RawJson) -> Result<Vec<SecretSpan>> {
    amplifier_session_core::content::secrets_in_line(&BuiltInRedactor, line, &mut CleanTexts::default())
}

fn mask_line(line: &RawJson) -> Result<Option<(RawJson, usize)>> {
    let ignored = IgnoredSecrets::default();
    amplifier_session_core::content::mask_line(&BuiltInRedactor, line, Certainty::Likely, &ignored)
}

/// The masked line. Checks properties that hold for every line.
fn masked_line(line: &str) -> (Value, usize) {
    let raw = RawJson::from(line);
    let mut found = secrets_in_line(&raw).unwrap();
    found.retain(|secret| secret.certainty.is_masked());
    let Some((masked, count)) = mask_line(&raw).unwrap() else {
        assert!(found.is_empty(), "{line}");
        return (raw.parse().unwrap(), 0);
    };
    assert!(!found.is_empty() && count > 0, "{line}");
    let text = masked.to_text();
    assert_eq!(text.chars().count(), line.chars().count(), "{line}\n{text}");
    assert!(mask_line(&masked).unwrap().is_none(), "{line}\n{text}");
    let left = secrets_in_line(&masked).unwrap();
    assert!(left.iter().all(|secret| !secret.certainty.is_masked()), "{line}\n{text}");
    (masked.parse().unwrap(), count)
}

/// `text` as a JSON string in which every character is escaped.
fn escaped(text: &str) -> String {
    let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    format!("\"{}\"", units.collect::<String>())
}

#[test]
fn no_combination_leaks_from_a_line() {
    let mut leaks = Vec::new();
    for (n, case) in cases().iter().enumerate() {
        let text = case.text();
        let written = if n % 5 == 0 { escaped(&text) } else { serde_json::to_string(&text).unwrap() };
        let (masked, _) = match n % 3 {
            0 => masked_line(&format!(r#"{{"role":"user","content":{written}}}"#)),
            1 => masked_line(&format!(r#"{{"role":"tool","content":[{{"type":"text","text":{written}}}]}}"#)),
            _ => {
                masked_line(&format!(r#"{{"event":"tool:post","data":{{"result":{{"output":{written}}}}}}}"#))
            }
        };
        let content = match n % 3 {
            0 => &masked["content"],
            1 => &masked["content"][0]["text"],
            _ => &masked["data"]["result"]["output"],
        };
        leaks.extend(case.leak_in(content.as_str().unwrap()));
    }
    assert!(leaks.is_empty(), "{} leak:\n{}", leaks.len(), leaks.join("\n"));
}

#[test]
fn secrets_of_all_kinds_are_masked_in_lines() {
    let github = format!("gh{}{}", "p_", random(ALNUM, 36, 3));
    let openai = format!("sk{}{}", "-proj-", random(ALNUM, 120, 10));
    let aws = format!("AK{}{}", "IA", random(UPPER, 16, 1));
    let base64 = format!("{}{}==", random(BASE64, 84, 5), "AA");
    let body = (0..4).map(|n| random(BASE64, 64, 40 + n)).collect::<Vec<_>>().join("\n");
    let pem = format!("-----BEGIN {0} KEY-----\n{body}\n-----END {0} KEY-----", "RSA PRIVATE");
    let secrets = [
        ("{}", github.as_str()),
        ("{}", openai.as_str()),
        ("aws {} there", aws.as_str()),
        ("AccountName=x;AccountKey={};EndpointSuffix=core", base64.as_str()),
        ("postgres://me:{}@db.example.com/x", "p@ss/w0rd!#"),
        ("curl -H 'Authorization: Bearer {}'", "abc.DEF-123_xyz~789+/q=="),
        ("Server=tcp:x;Password={};Encrypt=True", "aB3dE6gH9!jK"),
    ];
    let nested = |text: &str| serde_json::to_string(&json!({"stdout": text, "code": 0})).unwrap();
    for (form, secret) in secrets {
        let text = form.replace("{}", secret);
        for (levels, text) in [text.clone(), nested(&text), nested(&nested(&text))].iter().enumerate() {
            let line = json!({"role": "tool", "content": text}).to_string();
            let (masked, count) = masked_line(&line);
            let content = masked["content"].as_str().unwrap();
            assert!(count >= 1 && !content.contains(&secret[..secret.len().min(8)]), "{content}");
            // JSON in it stays JSON.
            let mut inner = content.to_owned();
            for _ in 0..levels {
                let parsed: Value = serde_json::from_str(&inner).unwrap();
                inner = parsed["stdout"].as_str().unwrap().to_owned();
            }
            assert_eq!(inner.chars().count(), form.replace("{}", secret).chars().count());
        }
    }
    for line in [
        json!({"role": "user", "content": pem}),
        json!({"role": "user", "content": pem.lines().collect::<Vec<_>>()}),
    ] {
        let (masked, _) = masked_line(&line.to_string());
        let text = masked.to_string();
        assert!(
            body.lines().all(|line| !text.contains(&line[..12]) && !text.contains(&line[52..])),
            "{text}"
        );
        assert_eq!(masked["role"], "user");
    }
}

#[test]
fn the_name_of_a_field_tells_what_it_holds() {
    let (masked, _) =
        masked_line(r#"{"event":"x","data":{"password":"hunter2!aB","token_count":17,"max_tokens":4096}}"#);
    assert_eq!(
        masked,
        json!({"event": "x", "data": {"password": "**********", "token_count": 17, "max_tokens": 4096}})
    );
    let unchanged = r#"{"role":"assistant","content":"Set API_KEY=${API_KEY} in .env","metadata":{"usage":{"input_tokens":5}}}"#;
    assert_eq!(masked_line(unchanged).1, 0);
}

/// Takes minutes if some part is not linear.
#[test]
fn large_lines_take_linear_time() {
    let github = format!("gh{}{}", "p_", random(ALNUM, 36, 3));
    for part in [github.as_str(), "\\\"", "a\nb", "\u{1}", "password=\"x1!aaaaa\" ", "\"\"", "{\"key\":"] {
        let text = format!("{part} ").repeat(200_000 / part.len());
        let line = json!({"role": "user", "content": text, "list": [part, part]}).to_string();
        assert!(masked_line(&line).0.is_object());
    }
    let many = vec!["a"; 50_000];
    assert_eq!(masked_line(&json!({"role": "user", "content": many}).to_string()).1, 0);
}

/// Masking a key that has no end uncovers the beginning of a key before it, whose end is in a later string.
#[test]
fn keys_across_strings_are_masked_at_once() {
    const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
    let open = format!(
        "-----END PRIVATE KEY-----\n{BEGIN}\n{BEGIN}\n{BEGIN}\nAKIApassword: kind: Secret\ndata:\n  "
    );
    let other = format!(
        "{BEGIN}\na0aaa0a0000aa0a00a0000aaa000aa00postgres://u:key = \"{BEGIN}\na0aaaa0aaaaa0a00a00a0a0000a000aa"
    );
    let line = json!({"role": "user", "content": [open, other], "key": {"a": open}});
    assert!(masked_line(&line.to_string()).1 > 0);
}

proptest! {
    #[test]
    fn a_masked_line_is_json_of_the_same_form(texts in prop::collection::vec(super::pieces(), 1..5)) {
        let line = json!({"role": "user", "content": texts, "key": {"a": texts.first()}});
        let (masked, _) = masked_line(&line.to_string());
        prop_assert_eq!(&masked["role"], "user");
        let texts = texts.iter().zip(masked["content"].as_array().unwrap());
        for (before, after) in texts {
            prop_assert_eq!(before.chars().count(), after.as_str().unwrap().chars().count());
        }
    }
}
