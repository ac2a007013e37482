use serde_json::json;

use super::*;

/// Base64 of a file with this beginning, and some thousand bytes without a pattern.
fn encoded(beginning: &[u8], length: usize) -> String {
    let mut number: u32 = 7;
    let noise = std::iter::repeat_with(|| {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (number >> 24) as u8
    });
    let bytes: Vec<u8> = beginning.iter().copied().chain(noise).take(length).collect();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn png() -> String {
    encoded(b"\x89PNG\r\n\x1a\n", 3_000)
}

#[test]
fn data_uris_and_long_base64_become_notes() {
    let png = png();
    for (text, expected) in [
        (format!("data:image/png;base64,{png}"), "[image/png, 3.0 KB]"),
        (format!("![x](data:image/webp;charset=utf-8;base64,{png}) and"), "![x]([image/webp, 3.0 KB]) and"),
        (format!("data:;base64,{png}"), "[image/png, 3.0 KB]"),
        (format!("See {png}, please"), "See [image/png, 3.0 KB], please"),
        (format!("größe: {png} größe"), "größe: [image/png, 3.0 KB] größe"),
        (format!("{png} {png}"), "[image/png, 3.0 KB] [image/png, 3.0 KB]"),
        (encoded(b"no known file", 1_500_000), "[base64 data, 1.5 MB]"),
        (encoded(b"\xff\xd8\xff\xe0", 2_000), "[image/jpeg, 2.0 KB]"),
        (encoded(b"RIFF\0\0\0\0WEBP", 2_000), "[image/webp, 2.0 KB]"),
        (encoded(b"\0\0\0\x20ftypisom", 2_000), "[video/mp4, 2.0 KB]"),
        (encoded(b"%PDF-1.7", 2_000).replace('+', "-").replace('/', "_"), "[application/pdf, 2.0 KB]"),
        (format!("data:image/gif;base64,{}", encoded(b"GIF89a", 60)), "[image/gif, 60 B]"),
        (
            format!(r#"{{"media_type": "image/png", "data": "{png}"}}"#),
            r#"{"media_type": "image/png", "data": "[image/png, 3.0 KB]"}"#,
        ),
    ] {
        assert_eq!(without_base64(&text), expected, "{}", &text[..60.min(text.len())]);
    }
}

#[test]
fn base64_in_lines_is_one_file() {
    let png = png();
    for (width, line_end) in [(64, "\n"), (76, "\r\n"), (76, "\\n")] {
        let lines: Vec<&str> =
            png.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let text = format!("-----BEGIN-----\n{}\n-----END-----", lines.join(line_end));
        assert_eq!(without_base64(&text), "-----BEGIN-----\n[image/png, 3.0 KB]\n-----END-----");
    }
    let text = format!("{png}\nDone");
    assert_eq!(without_base64(&text), "[image/png, 3.0 KB]\nDone");
}

#[test]
fn other_long_words_stay() {
    let short = encoded(b"key", 700);
    let hashes = vec!["3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b"; 100].join("\n");
    let path = "/Home/user1/Projects".repeat(100);
    for text in [
        "",
        "a word",
        &short,
        &hashes,
        &path,
        &"-".repeat(5_000),
        &"ab1".repeat(2_000),
        &"A".repeat(5_000),
        "data:image/png;base64,iVBORw0KGgo=",
    ] {
        assert!(matches!(without_base64(text), Cow::Borrowed(same) if same == text), "{text}");
    }
}

#[test]
fn only_notes_are_no_words() {
    let png = png();
    let has_words = |text: &str| ReadableText::of(text).has_words;
    assert!(!has_words(&format!(" {png}\n{png}\n")) && !has_words(" "));
    assert!(
        has_words(&format!("a {png}"))
            && has_words(&format!("{png} a"))
            && has_words(&format!("{png} a {png}"))
    );
}

#[test]
fn files_in_blocks_have_notes() {
    let note = |block: Value| note_about_file(block.as_object().unwrap());
    let png = png();
    let uri = format!("data:image/png;base64,{png}");
    for block in [
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}),
        json!({"type": "image", "data": png, "mimeType": "image/png"}),
        json!({"type": "image_url", "image_url": {"url": uri}}),
        json!({"type": "input_image", "image_url": uri}),
        json!({"inlineData": {"mimeType": "image/png", "data": png}}),
        json!({"type": "document", "source": {"type": "base64", "data": png}}),
    ] {
        assert_eq!(note(block.clone()).as_deref(), Some("[image/png, 3.0 KB]"), "{block}");
    }
    for block in
        [json!({"type": "image"}), json!({"type": "image_url", "image_url": {"url": "https://x/y.png"}})]
    {
        assert_eq!(note(block), None);
    }
}
