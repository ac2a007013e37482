use std::borrow::Cow;

use super::*;
use crate::content::Masked;

/// Finds `k` followed by digits, `PRIVATE…END`, and values of `pin`.
#[derive(Debug)]
struct Keys;

impl Redactor for Keys {
    fn mask<'a>(&self, text: &'a str) -> Result<Masked<'a>> {
        Ok(Masked { text: Cow::Borrowed(text), secrets: 0 })
    }

    fn find(&self, text: &str) -> Result<Vec<SecretSpan>> {
        let mut found = Vec::new();
        for (start, _) in text.match_indices("k\"\\7") {
            found.push((start, start + 4));
        }
        for (start, _) in text.match_indices('k') {
            let digits = text[start + 1..].bytes().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 2 {
                found.push((start, start + 1 + digits));
            }
        }
        if let (Some(start), Some(end)) = (text.find("PRIVATE"), text.find("END")) {
            found.push((start, end + 3));
        }
        if let Some(at) = text.find("\"pin\":") {
            let digits = text[at + 6..].bytes().take_while(|byte| !matches!(byte, b',' | b'}')).count();
            found.push((at + 6, at + 6 + digits));
        }
        found.sort_unstable();
        Ok(found
            .into_iter()
            .map(|(start, end)| SecretSpan {
                rule: "key".to_owned(),
                certainty: Certainty::Likely,
                span: start..end,
            })
            .collect())
    }
}

fn masked_line(line: &RawJson) -> Result<Option<(RawJson, usize)>> {
    mask_line(&Keys, line, Certainty::Likely, &IgnoredSecrets::default())
}

fn found_in(line: &RawJson) -> Result<Vec<SecretSpan>> {
    secrets_in_line(&Keys, line, &mut CleanTexts::default())
}

fn masked(line: &str) -> String {
    match masked_line(&RawJson::from(line)).unwrap() {
        Some((masked, _)) => String::from_utf8(masked.into_bytes()).unwrap(),
        None => line.to_owned(),
    }
}

#[test]
fn every_character_of_a_secret_is_masked_as_it_is_written() {
    for (line, expected) in [
        (r#"{"a":"x k123 y"}"#, r#"{"a":"x **** y"}"#),
        (r#"{"a":"\u006b\u0031\u0032\u0033"}"#, r#"{"a":"\u002a\u002a\u002a\u002a"}"#),
        (r#"{"k12345":1}"#, r#"{"******":1}"#),
        (r#"{"a":"é k\"\\7 é"}"#, r#"{"a":"é *\/\/* é"}"#),
        (r#"{"a":"PRIVATE\nab\r\n\ud83d\ude00éEND"}"#, r#"{"a":"*******\n**\r\n\ud83d\udd12****"}"#),
        (r#"{"a":"{\"b\": \"k123\"}"}"#, r#"{"a":"{\"b\": \"****\"}"}"#),
        (r#"{"pin":4521.5,"b":7}"#, r#"{"pin":1111.1,"b":7}"#),
        (r#"{"pin":true}"#, r#"{"pin":true}"#),
        (r#"{"pin":{}}"#, r#"{"pin":{}}"#),
    ] {
        assert_eq!(masked(line), expected);
        assert_eq!(masked(expected), expected, "masking is idempotent");
        let (before, after) =
            (RawJson::from(line).parse().unwrap(), RawJson::from(expected).parse().unwrap());
        assert_eq!(before.as_object().unwrap().len(), after.as_object().unwrap().len());
        assert_eq!(line.chars().count(), expected.chars().count());
    }
}

#[test]
fn a_secret_in_several_strings_is_masked_in_their_values() {
    assert_eq!(masked(r#"{"a":["PRIVATE","x","END"]}"#), r#"{"a":["*******","*","***"]}"#);
    assert_eq!(masked(r#"{"a":"PRIVATE","b":"END","c":"d"}"#), r#"{"a":"*******","b":"***","c":"d"}"#);
    // The kind of the line does not change.
    let line = r#"{"content":"PRIVATE ab","role":"user","x":"END"}"#;
    assert_eq!(masked(line), r#"{"content":"**********","role":"user","x":"END"}"#);
}

#[test]
fn long_strings_are_searched_by_themselves() {
    let long = "é".repeat(LONG);
    let line = format!(r#"{{"a":"{long} k123 \u006b456","pin":4521,"b":"k789{long}"}}"#);
    let expected = format!(r#"{{"a":"{long} **** \u002a***","pin":1111,"b":"****{long}"}}"#);
    assert_eq!(masked(&line), expected);
}

#[test]
fn bytes_that_are_not_utf8_stay() {
    let line = RawJson::new(b"{\"a\":\"\xff k123 \xe9\"}".to_vec());
    let (masked, count) = masked_line(&line).unwrap().unwrap();
    assert_eq!((masked.as_bytes(), count), (&b"{\"a\":\"\xff **** \xe9\"}"[..], 1));
    let line = RawJson::new(b"{\"a\":\"PRIVATE \xff END\"}".to_vec());
    assert_eq!(masked_line(&line).unwrap().unwrap().0.as_bytes(), b"{\"a\":\"********\xff****\"}");
}

#[test]
fn places_are_those_in_the_line() {
    let line = RawJson::from(r#"{"a":"\u006b123","b":["k456",{"c":"k789"}]}"#);
    let found = found_in(&line).unwrap();
    let written: Vec<_> = found
        .iter()
        .map(|secret| std::str::from_utf8(&line.as_bytes()[secret.span.clone()]).unwrap())
        .collect();
    assert_eq!(written, ["\\u006b123", "k456", "k789"]);
    let (masked, count) = masked_line(&line).unwrap().unwrap();
    assert_eq!(count, 3);
    assert!(found_in(&masked).unwrap().is_empty());
}

#[test]
fn ignored_and_less_certain_findings_stay() {
    let line = RawJson::from(r#"{"a":"k1234 k5678"}"#);
    let ignored = IgnoredSecrets::from_iter([IgnoredSecrets::digest("key", b"k5678")]);
    let (masked, count) = mask_line(&Keys, &line, Certainty::Likely, &ignored).unwrap().unwrap();
    assert_eq!((masked.to_text().as_ref(), count), (r#"{"a":"***** k5678"}"#, 1));
    assert!(mask_line(&Keys, &line, Certainty::Certain, &ignored).unwrap().is_none());
}

/// Counts the bytes that it searches.
#[derive(Debug, Default)]
struct Counting(std::sync::atomic::AtomicUsize);

impl Redactor for Counting {
    fn mask<'a>(&self, text: &'a str) -> Result<Masked<'a>> {
        Keys.mask(text)
    }

    fn find(&self, text: &str) -> Result<Vec<SecretSpan>> {
        let searched = text.bytes().filter(|byte| *byte != b' ').count();
        self.0.fetch_add(searched, std::sync::atomic::Ordering::Relaxed);
        Keys.find(text)
    }
}

#[test]
fn a_text_that_recurs_is_searched_once() {
    let (counting, mut clean) = (Counting::default(), CleanTexts::default());
    let mut search = |line: String| {
        let found = secrets_in_line(&counting, &RawJson::from(line.as_str()), &mut clean).unwrap().len();
        (found, counting.0.swap(0, std::sync::atomic::Ordering::Relaxed))
    };
    let text = "a".repeat(1_000);
    assert_eq!(search(format!(r#"{{"a":"{text}"}}"#)), (0, 2_008));
    assert_eq!(search(format!(r#"{{"a":"{text}"}}"#)), (0, 8));
    // Another name of the field may make it a secret.
    assert_eq!(search(format!(r#"{{"b":"{text}"}}"#)), (0, 2_008));
    for _ in 0..2 {
        assert_eq!(search(format!(r#"{{"a":"{text} k1234"}}"#)).0, 1);
        assert_eq!(search(format!(r#"{{"pin":"{text}"}}"#)).0, 1);
    }
}
