//! Lines that are easily corrupted in a store.

use amplifier_session_core::model::{RawJson, Role};

/// JSON members, as bytes, that must come back unchanged. Each is valid after invalid Unicode is replaced.
const MEMBERS: [(&str, &[u8]); 14] = [
    ("numbers as written", br#""a":1.0,"b":1e5,"c":12345678901234567890,"d":-0.0,"e":1E+2,"f":123456789012345678901234567890.10"#),
    ("order of keys", br#""zeta":1,"alpha":{"y":1,"b":2},"mid":3"#),
    ("accents, written and escaped", "\"a\":\"café\",\"b\":\"caf\\u00e9\"".as_bytes()),
    ("quotes and backslashes", br#""a":"say \"hi\" to C:\\dir\\ and 'x'; -- $1 ? :a @b","b\\\"c":"\/""#),
    ("line separators", "\"a\":\"one\u{2028}two\u{2029}three\u{85}four\\n\\r\\t\"".as_bytes()),
    ("emoji, written and escaped", "\"a\":\"👍🏽 👩‍👩‍👧\",\"b\":\"\\ud83d\\ude00\"".as_bytes()),
    ("an escaped NUL", br#""a":"x\u0000y""#),
    ("a lone surrogate", br#""a":"x\ud800y","b":"\udc00""#),
    ("a byte that is no UTF-8", b"\"a\":\"caf\xe9 \xff\""),
    ("unknown fields", br#""x_unknown":{"nested":[1,[2,{"deep":null}],true]},"":"empty key""#),
    ("a key twice", br#""a":1,"a":2,"role":"user""#),
    ("white space", b"  \"a\" :\t[ 1 , 2 ]  "),
    ("names of columns", br#""id":7,"user_id":"nobody","session_id":"none","sequence":-1,"vector":[0.5]"#),
    ("no text at all", br#""a":null"#),
];

/// Transcript lines with awkward members, each with a name for the difficulty.
pub fn awkward_messages() -> Vec<(&'static str, RawJson)> {
    awkward(b"{\"role\":\"user\",\"content\":\"hello\",", b"}")
}

/// Transcript lines with the names of roles and the fields that other programs and providers use, each with the nearest
/// role. Each has the word `pelican` in one text.
pub fn messages_in_other_formats() -> Vec<(Role, RawJson)> {
    OTHER_FORMATS.iter().map(|(role, line)| (*role, RawJson::from(*line))).collect()
}

const OTHER_FORMATS: [(Role, &str); 24] = [
    (Role::User, r#"{"role":"User", "content":"a pelican"}"#),
    (Role::User, r#"{"content":"a pelican","role":"human"}"#),
    (Role::User, r#"{"role":"user","content":[{"type":"input_text","text":"a pelican"}]}"#),
    (Role::User, r#"{"role":"user","content":{"type":"text","text":"a pelican"}}"#),
    (Role::User, r#"{"role":"user","content":{"content_type":"text","parts":["a pelican",1.10]}}"#),
    (Role::User, r#"{"role":"user","parts":[{"text":"a pelican"}]}"#),
    (Role::User, r#"{"role":"user","content":null,"input_text":"a pelican"}"#),
    (
        Role::User,
        r#"{"role":"user","content":[{"type":"text","text":{"value":"a pelican","annotations":[]}}]}"#,
    ),
    (Role::Assistant, r#"{"role":"ai","content":"a pelican"}"#),
    (Role::Assistant, r#"{"role":"AI","content":{"text":"a pelican"}}"#),
    (Role::Assistant, r#"{"role":"model","parts":[{"text":"a pelican"}]}"#),
    (Role::Assistant, r#"{"role":"assistant","content":[{"type":"output_text","text":"a pelican"}]}"#),
    (Role::Assistant, r#"{"role":"assistant","output_text":"a pelican"}"#),
    (Role::Assistant, r#"{"role":"assistant","content":[{"type":"refusal","refusal":"no pelican"}]}"#),
    (Role::Assistant, r#"{"role":"assistant","content":null,"refusal":"no pelican"}"#),
    (Role::Assistant, r#"{"role":"assistant","content":"","thinking_text":"a pelican"}"#),
    (
        Role::Assistant,
        r#"{"role":"assistant","content":"","thinking_block":{"type":"thinking","text":"a pelican"}}"#,
    ),
    (Role::Assistant, r#"{"role":"assistant","content":"","reasoning_content":"a pelican"}"#),
    (
        Role::Assistant,
        r#"{"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.text","text":"a pelican"}]}"#,
    ),
    (
        Role::Assistant,
        r#"{"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.summary","summary":"a pelican"}]}"#,
    ),
    (Role::Assistant, r#"{"role":"model","parts":[{"thought":true,"text":"a pelican"}]}"#),
    (Role::Tool, r#"{"role":"function","name":"zoo","content":"a pelican"}"#),
    (
        Role::Tool,
        r#"{"role":"function","parts":[{"functionResponse":{"name":"zoo","response":{"output":"a pelican"}}}]}"#,
    ),
    (Role::Tool, r#"{"role":"tool","content":[{"type":"output_text","text":"a pelican"}]}"#),
];

/// Event lines with awkward members in their payload.
pub fn awkward_events() -> Vec<(&'static str, RawJson)> {
    awkward(b"{\"event\":\"tool:call\",\"ts\":\"2026-01-05T08:00:00Z\",\"data\":{", b"}}")
}

/// Metadata files with awkward members.
pub fn awkward_metadata() -> Vec<(&'static str, RawJson)> {
    awkward(b"{\n  \"name\": \"n\",\n  ", b"\n}\n")
}

fn awkward(before: &[u8], after: &[u8]) -> Vec<(&'static str, RawJson)> {
    MEMBERS.iter().map(|(name, members)| (*name, RawJson::new([before, *members, after].concat()))).collect()
}
