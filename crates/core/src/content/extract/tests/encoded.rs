//! Base64 in messages, which is no text.

use super::*;

/// Base64 of this many bytes.
fn base64(length: usize) -> String {
    let bytes: Vec<u8> = (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes)
}

#[test]
fn base64_is_no_text_of_any_role() {
    let data = base64(3_000);
    let note = "[base64 data, 3.0 KB]";
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let seen = format!("See {note}");
    assert_eq!(of_content(Role::User, json!(format!("See {data}"))), one(ContentType::UserQuery, &seen));
    assert_eq!(of_content(Role::System, json!(format!("See {data}"))), one(ContentType::System, &seen));
    let output = json!({"output": {"data": data, "path": "a.png"}}).to_string();
    assert_eq!(
        of_content(Role::Tool, json!(output)),
        one(ContentType::ToolOutput, &format!("data: {note}\npath: a.png"))
    );
    let call = json!([{"type": "tool_call", "name": "save", "input": {"path": "a.png", "content": data}}]);
    assert_eq!(
        of_content(Role::Assistant, call),
        one(ContentType::ToolCall, &format!("save: a.png\n· {note}"))
    );
    let thinking = json!({"content": [{"type": "thinking", "thinking": format!("See {data}")}],
        "thinking_block": {"thinking": format!("See  {data}")}});
    assert_eq!(texts(Role::Assistant, thinking), one(ContentType::AssistantThinking, &seen));
    // Nothing else.
    let text = json!({"type": "text", "text": data});
    for content in [json!(data), json!([image, text]), json!([image])] {
        for role in [Role::User, Role::Assistant, Role::Tool, Role::System] {
            assert_eq!(of_content(role, content.clone()), [], "{role}");
        }
    }
}

#[test]
fn files_are_shown_as_notes() {
    let data = base64(3_000);
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let shown = |role: Role, content: Value| {
        let line = json!({"content": content});
        let shown = shown_texts(line.as_object().unwrap(), role).into_iter();
        shown.map(|text| (text.content_type, text.text)).collect::<Vec<_>>()
    };
    let note = "[image/png, 3.0 KB]";
    assert_eq!(shown(Role::User, json!(data)), one(ContentType::UserQuery, "[base64 data, 3.0 KB]"));
    assert_eq!(
        shown(Role::User, json!([{"type": "text", "text": "Look:"}, image])),
        one(ContentType::UserQuery, &format!("Look:\n\n{note}"))
    );
    assert_eq!(
        shown(Role::Tool, json!([image, {"type": "text", "text": "ok"}])),
        one(ContentType::ToolOutput, &format!("ok\n\n{note}"))
    );
    let result = json!([{"type": "tool_result", "tool_use_id": "1", "content": [image]}]);
    assert_eq!(shown(Role::User, result), one(ContentType::ToolOutput, note));
    assert_eq!(shown(Role::User, json!([{"type": "image"}])), []);
}

#[test]
fn only_texts_with_base64_are_derived_again() {
    let data = base64(3_000);
    let of = |role, content: Value| {
        let line = json!({"content": content});
        let Renewed { texts, embedded } = renewed(line.as_object().unwrap(), role, 4);
        (texts, embedded)
    };
    assert_eq!(of(Role::User, json!(format!("See {data}"))), (true, true));
    assert_eq!(of(Role::System, json!(format!("See {data}"))), (true, false));
    let call = json!([{"type": "tool_call", "name": "save", "input": {"content": data}}]);
    assert_eq!(of(Role::Assistant, call), (true, false));
    assert_eq!(of(Role::User, json!("See it")), (false, false));
    let image = json!([{"type": "image", "source": {"type": "base64", "data": data}}]);
    assert_eq!(of(Role::User, image), (false, false));
}
