use serde_json::json;

use super::*;

/// The text of a value, which is the same when the value is given as a string of JSON.
fn of(value: Value) -> String {
    let text = result_text(&value).into_owned();
    assert_eq!(result_text(&Value::from(value.to_string())), text, "{value}");
    text
}

#[test]
fn what_a_process_printed_is_shown_as_it_was_printed() {
    let answer = |returncode: i64, stdout: &str, stderr: &str| {
        of(
            json!({"error": null, "output": {"returncode": returncode, "stderr": stderr, "stdout": stdout}, "success": true}),
        )
    };
    assert_eq!(answer(0, "a \"quoted\"\n\tb\n", ""), "a \"quoted\"\n\tb\n");
    assert_eq!(answer(0, "out\n", "warning: x\n"), "out\nwarning: x\n");
    assert_eq!(answer(2, "", "no such file\n"), "no such file\nexit code 2");
    assert_eq!(answer(1, "", ""), "exit code 1");
    assert_eq!(answer(0, "", ""), "");
    assert_eq!(
        of(json!({"stdout": "{\"a\": 1}", "stderr": null, "exit_code": 0, "timed_out": true})),
        "{\"a\": 1}\ntimed_out: true"
    );
    assert_eq!(of(json!({"success": true, "stdout": "x", "returncode": 3})), "x\nexit code 3");
}

#[test]
fn an_output_of_text_is_that_text() {
    assert_eq!(of(json!({"output": "text \u{e9}\nmore"})), "text \u{e9}\nmore");
    assert_eq!(of(json!({"success": true, "output": "x", "error": null})), "x");
    assert_eq!(of(json!({"success": true, "output": {"result": "x"}})), "result: x");
    assert_eq!(of(json!({"success": true, "result": "x"})), "x");
    // An answer within a string within an answer.
    assert_eq!(of(json!({"output": "{\"stdout\": \"a\\nb\"}"})), "a\nb");
}

#[test]
fn errors_say_their_message() {
    assert_eq!(of(json!({"success": false, "error": {"message": "File not found: x"}})), "File not found: x");
    let error = json!({"success": false, "output": null, "error": {"type": "Timeout", "message": "too long", "after": 30}});
    assert_eq!(of(error), "Timeout: too long\nafter: 30");
    assert_eq!(of(json!({"error": "boom"})), "boom");
    assert_eq!(of(json!({"success": false, "output": "half", "error": "broke off"})), "half\nbroke off");
    assert_eq!(of(json!({"success": false, "error": null})), "failed");
    assert_eq!(of(json!({"success": true, "error": null, "output": null})), "");
}

#[test]
fn fields_of_other_outputs_are_lines() {
    assert_eq!(
        of(json!({"success": true, "output": {"bytes": 2095, "file_path": "/a/b.md", "note": null}})),
        "bytes: 2095\nfile_path: /a/b.md"
    );
    let todos = json!({"error": null, "output": {"count": 2, "todos": [
        {"content": "Bake", "status": "done"}, {"content": "Sell", "status": "pending"}]}, "success": true});
    assert_eq!(
        of(todos),
        "count: 2\ntodos:\n  - content: Bake, status: done\n  - content: Sell, status: pending"
    );
    assert_eq!(of(json!({"path": "a", "content": "one\ntwo"})), "path: a\ncontent:\none\ntwo");
    assert_eq!(of(json!({"files": ["a.rs", "b.rs"], "none": [], "more": {}})), "files: a.rs, b.rs");
    let long = json!({"of": {"a": "x".repeat(100), "b": {"c": "y".repeat(100)}}});
    assert_eq!(of(long), format!("of:\n  a: {}\n  b: c: {}", "x".repeat(100), "y".repeat(100)));
}

#[test]
fn lists_are_lines() {
    assert_eq!(of(json!(["a.rs", "b.rs"])), "a.rs\nb.rs");
    assert_eq!(
        of(json!({"output": [{"a": 1, "b": "x"}, {"a": 2}], "success": true})),
        "- a: 1, b: x\n- a: 2"
    );
    assert_eq!(of(json!([[1, 2], [3]])), "- 1, 2\n- 3");
}

#[test]
fn blocks_are_their_texts() {
    let blocks = json!([{"type": "text", "text": "one"}, {"type": "image", "data": "aGk="}, {"type": "text", "text": "two"}]);
    assert_eq!(of(blocks.clone()), "one\n\ntwo");
    assert_eq!(of(json!({"content": blocks, "isError": false})), "one\n\ntwo");
    assert_eq!(of(json!([{"type": "text", "text": "{\"output\": \"x\"}"}])), "x");
    assert_eq!(of(json!([{"type": "file", "path": "a"}])), "- type: file, path: a");
}

#[test]
fn text_and_json_that_was_laid_out_stay_as_they_are() {
    for text in
        ["", "{not json}", "plain", "{\"a\": 1} {\"b\": 2}", "{\n  \"a\": 1\n}", "[]", "{}", "[1] done", "5"]
    {
        assert_eq!(result_text(&Value::from(text)), text);
    }
    assert_eq!(result_text(&Value::from("{\n  \"output\": \"a\\nb\"\n}\n")), "a\nb");
}

#[test]
fn what_lies_deep_is_shown_as_json() {
    let mut value = json!("bottom");
    for _ in 0..60 {
        value = json!({"of": value, "long": "z".repeat(200)});
    }
    let text = result_text(&value);
    assert!(text.contains("\"of\":\"bottom\"") && text.contains("long: zz"));
    let mut value = json!("bottom");
    for _ in 0..60 {
        value = json!({"output": value});
    }
    assert!(result_text(&value).ends_with("\"bottom\"}") || result_text(&value).contains("bottom"));
}

#[test]
fn json_strings_are_unwrapped_at_any_depth() {
    let text = |content: &str| result_text(&Value::from(content)).into_owned();
    assert_eq!(text(r#""one\ntwo""#), "one\ntwo");
    let envelope = r#"{"error": null, "output": {"returncode": 0, "stdout": "quokka\n"}}"#;
    let twice = Value::from(envelope).to_string();
    assert_eq!(text(&twice), text(envelope));
    assert_eq!(text(&Value::from(twice.as_str()).to_string()), text(envelope));
    assert_eq!(text(r#""a" and "b""#), r#""a" and "b""#);
}

#[test]
fn blocks_are_unwrapped_even_if_their_json_was_laid_out() {
    let blocks = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two\n  three"}]);
    let laid_out = serde_json::to_string_pretty(&blocks).unwrap();
    assert_eq!(result_text(&Value::from(laid_out.as_str())), "one\n\ntwo\n  three");
    let nested = json!({"success": true, "output": json!({"content": [{"type": "text", "text": laid_out}]}).to_string()});
    assert_eq!(of(nested), "one\n\ntwo\n  three");
    let other = serde_json::to_string_pretty(&json!([{"type": "file", "path": "a"}])).unwrap();
    assert_eq!(result_text(&Value::from(other.as_str())), other);
}

#[test]
fn fields_that_nobody_reads_are_left_out() {
    let bash = json!({"stdout": "a\n", "stderr": "", "interrupted": false, "isImage": false});
    assert_eq!(of(bash), "a\n");
    assert_eq!(of(json!({"stdout": "a", "interrupted": true})), "a\ninterrupted: true");
    let found = json!([{"type": "web_search_result", "title": "Ovens", "url": "https://a.example",
        "encrypted_content": "Eo8", "page_age": "2 days ago"}]);
    assert_eq!(of(found), "- type: web_search_result, title: Ovens, url: https://a.example");
}

#[test]
fn links_of_a_web_search_are_lines() {
    let text = "Web search results for query: \"ovens\"\n\nLinks: [{\"title\":\"A [1m] oven\",\"url\":\"https://a.example\"},\
        {\"title\":\"B\",\"url\":\"https://b.example\"}]\n\nOvens are hot.";
    let shown = "Web search results for query: \"ovens\"\n\nLinks:\n- A [1m] oven: https://a.example\n- B: https://b.example\n\n\
        Ovens are hot.";
    assert_eq!(result_text(&Value::from(text)), shown);
    assert_eq!(of(json!([{"type": "text", "text": text}])), shown);
    for other in ["Links: none", "Links: [1, 2] and", "Links: [{\"title\": \"cut", "See the Links: "] {
        assert_eq!(result_text(&Value::from(other)), other);
    }
}
