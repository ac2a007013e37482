use proptest::prelude::*;
use serde_json::json;

use super::*;

mod encoded;

fn texts(role: Role, line: Value) -> Vec<(ContentType, String)> {
    let line = line.as_object().unwrap();
    extract(line, role).into_iter().map(|text| (text.content_type, text.text)).collect()
}

/// The texts of a line that has only `content`.
fn of_content(role: Role, content: Value) -> Vec<(ContentType, String)> {
    texts(role, json!({"role": role, "content": content}))
}

fn one(content_type: ContentType, text: &str) -> Vec<(ContentType, String)> {
    vec![(content_type, text.to_owned())]
}

#[test]
fn user_text_is_a_query() {
    let query = |text| one(ContentType::UserQuery, text);
    assert_eq!(of_content(Role::User, json!("Fix it")), query("Fix it"));
    let blocks = json!([{"type": "text", "text": "Fix"}, {"type": "image", "source": {"data": "aGk="}},
        {"type": "text", "text": "this"}]);
    assert_eq!(of_content(Role::User, blocks), query("Fix\n\nthis"));
    assert_eq!(of_content(Role::User, json!(["Fix", "this"])), query("Fix\n\nthis"));
}

#[test]
fn user_tool_results_are_tool_output() {
    let blocks = json!([
        {"type": "tool_result", "tool_use_id": "1", "content": "plain"},
        {"type": "tool_result", "tool_use_id": "2", "content": [{"type": "text", "text": "in a block"}]},
        {"type": "tool_result", "tool_use_id": "3", "content": {"exit": 1}},
        {"type": "tool_result", "tool_call_id": "4", "output": "Amplifier's"},
        {"type": "tool_result", "tool_use_id": "5", "content": null},
        {"type": "text", "text": "and now?"},
    ]);
    let output = "plain\n\nin a block\n\nexit: 1\n\nAmplifier's".to_owned();
    let expected = [(ContentType::UserQuery, "and now?".to_owned()), (ContentType::ToolOutput, output)];
    assert_eq!(of_content(Role::User, blocks), expected);
}

#[test]
fn assistant_text_is_a_response() {
    assert_eq!(of_content(Role::Assistant, json!("Done.")), one(ContentType::AssistantResponse, "Done."));
    let blocks = json!([{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]);
    assert_eq!(of_content(Role::Assistant, blocks), one(ContentType::AssistantResponse, "One.\n\nTwo."));
}

#[test]
fn assistant_thinking_comes_from_blocks_and_fields() {
    let thinking = |text| one(ContentType::AssistantThinking, text);
    let block =
        json!([{"type": "thinking", "thinking": "Hm.", "signature": "x", "content": ["opaque", "id"]}]);
    assert_eq!(of_content(Role::Assistant, block), thinking("Hm."));
    assert_eq!(texts(Role::Assistant, json!({"content": null, "thinking": "Hm."})), thinking("Hm."));
    let several = json!({"thinking": ["Hm.", {"type": "thinking", "thinking": "Well."}]});
    assert_eq!(texts(Role::Assistant, several), thinking("Hm.\n\nWell."));
}

#[test]
fn reasoning_is_thinking() {
    let thinking = |text| one(ContentType::AssistantThinking, text);
    let block = json!([{"type": "reasoning", "content": [{"type": "reasoning_text", "text": "A."}, "B."],
        "summary": [{"type": "summary_text", "text": "C."}], "encrypted_content": "x"}]);
    assert_eq!(of_content(Role::Assistant, block), thinking("A.\n\nB.\n\nC."));
    for reasoning in [json!("A."), json!(["A."]), json!({"content": "A."}), json!({"summary": ["A."]})] {
        assert_eq!(texts(Role::Assistant, json!({"content": "", "reasoning": reasoning})), thinking("A."));
    }
}

#[test]
fn a_thinking_block_beside_the_content_counts_once() {
    let block = json!({"type": "thinking", "thinking": "Hm.", "signature": "x"});
    let expected = [(ContentType::AssistantResponse, "Done."), (ContentType::AssistantThinking, "Hm.")];
    for content in [json!("Done."), json!([block, {"type": "text", "text": "Done."}])] {
        let found = texts(Role::Assistant, json!({"content": content, "thinking_block": block}));
        assert_eq!(found, expected.map(|(content_type, text)| (content_type, text.to_owned())));
    }
}

#[test]
fn thinking_is_found_in_all_fields_and_formats() {
    for line in [
        json!({"thinking_text": "Hm."}),
        json!({"thinking_block": {"type": "thinking", "text": "Hm."}}),
        json!({"thinking_block": {"text": "Hm."}}),
        json!({"thinking_block": "Hm."}),
        json!({"reasoning_content": "Hm."}),
        json!({"reasoning_content": [{"text": "Hm."}]}),
        json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}, {"type": "reasoning.text", "text": "Hm."}]}),
        json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}]}),
        json!({"content": [{"type": "thinking", "text": "Hm."}]}),
        json!({"content": [{"type": "thinking", "thinking_text": "Hm."}]}),
        json!({"content": [{"type": "reasoning", "reasoning": "Hm."}]}),
        json!({"content": [{"type": "reasoning", "text": "Hm."}]}),
        json!({"content": [{"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "x"}}}]}),
        json!({"content": {"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}}),
        json!({"parts": [{"thought": true, "text": "Hm."}]}),
        json!({"content": {"reasoning": "Hm."}}),
    ] {
        assert_eq!(
            texts(Role::Assistant, line.clone()),
            one(ContentType::AssistantThinking, "Hm."),
            "{line}"
        );
    }
}

#[test]
fn thinking_that_several_fields_contain_counts_once() {
    let line = json!({
        "content": [{"type": "thinking", "thinking": "First,\nthis."}, {"type": "thinking", "thinking": "Then that."}],
        "thinking": "First,\nthis.",
        "reasoning": "First, this. Then that.",
        "reasoning_content": "Then that.",
        "reasoning_details": [{"text": "First,"}, {"text": "this."}],
        "thinking_block": {"thinking": "First,\nthis."},
    });
    assert_eq!(
        texts(Role::Assistant, line),
        one(ContentType::AssistantThinking, "First,\nthis.\n\nThen that.")
    );
    let object = json!({"content": {"text": "Yes.", "thinking": "Hm."}});
    let expected = [(ContentType::AssistantResponse, "Yes."), (ContentType::AssistantThinking, "Hm.")];
    assert_eq!(
        texts(Role::Assistant, object),
        expected.map(|(content_type, text)| (content_type, text.to_owned()))
    );
    let other = json!({"content": "", "reasoning_content": "This.", "thinking_block": {"thinking": "That."}});
    assert_eq!(texts(Role::Assistant, other), one(ContentType::AssistantThinking, "This.\n\nThat."));
}

#[test]
fn text_is_found_in_all_fields_and_formats() {
    for line in [
        json!({"content": {"type": "text", "text": "Yes."}}),
        json!({"content": {"text": "Yes."}}),
        json!({"content": {"content": "Yes."}}),
        json!({"content": {"content": [{"type": "text", "text": "Yes."}]}}),
        json!({"content": {"role": "x", "parts": [{"text": "Yes."}]}}),
        json!({"content": {"content_type": "text", "parts": ["Yes."]}}),
        json!({"content": [{"type": "message", "role": "x", "content": [{"type": "output_text", "text": "Yes."}]}]}),
        json!({"content": [{"text": "Yes."}]}),
        json!({"content": [[{"type": "text", "text": "Yes."}]]}),
        json!({"content": [{"type": "text", "text": {"value": "Yes."}}]}),
        json!({"content": [{"type": "input_text", "text": "Yes."}]}),
        json!({"content": [{"type": "output_text", "text": "Yes."}]}),
        json!({"parts": [{"text": "Yes."}]}),
        json!({"content": null, "parts": ["Yes."]}),
        json!({"content": "", "text": "Yes."}),
        json!({"input_text": "Yes."}),
        json!({"output_text": "Yes."}),
        // A text that is written twice counts once.
        json!({"content": "Yes.", "parts": [{"type": "text", "text": "Yes."}], "output_text": "Yes."}),
    ] {
        for (role, content_type) in [
            (Role::User, ContentType::UserQuery),
            (Role::Assistant, ContentType::AssistantResponse),
            (Role::System, ContentType::System),
        ] {
            assert_eq!(texts(role, line.clone()), one(content_type, "Yes."), "{role} {line}");
        }
    }
    let both = json!({"content": "Yes.", "parts": [{"type": "text", "text": "Yes."}, {"type": "text", "text": "But"}]});
    assert_eq!(texts(Role::Assistant, both), one(ContentType::AssistantResponse, "Yes.\n\nBut"));
    for refusal in [
        json!({"content": null, "refusal": "No."}),
        json!({"content": [{"type": "refusal", "refusal": "No."}]}),
    ] {
        assert_eq!(texts(Role::Assistant, refusal), one(ContentType::AssistantResponse, "No."));
    }
}

#[test]
fn the_output_of_tools_is_found_in_all_fields_and_formats() {
    let response = json!({"functionResponse": {"name": "f", "response": {"output": "Done."}}});
    for line in [
        json!({"content": "Done."}),
        json!({"content": [{"type": "output_text", "text": "Done."}]}),
        json!({"content": [{"type": "input_text", "text": "Done."}, {"type": "input_image", "image_url": "x"}]}),
        json!({"content": {"content": [{"type": "text", "text": "Done."}]}}),
        json!({"content": {"parts": [response]}}),
        json!({"parts": [response]}),
        json!({"content": null, "output": "Done."}),
        json!({"result": {"success": true, "output": "Done."}}),
    ] {
        assert_eq!(texts(Role::Tool, line.clone()), one(ContentType::ToolOutput, "Done."), "{line}");
    }
    for block in [response, json!({"type": "function_call_output", "call_id": "1", "output": "Done."})] {
        assert_eq!(of_content(Role::User, json!([block])), one(ContentType::ToolOutput, "Done."), "{block}");
    }
}

#[test]
fn texts_that_version_3_did_not_find_are_recognized() {
    let of = |role, line: Value| {
        let Renewed { texts, embedded } = renewed(line.as_object().unwrap(), role, 3);
        (texts, embedded)
    };
    let thought = json!({"type": "thinking", "thinking": "Hm.", "signature": "x"});
    for same in [
        json!({"content": "text"}),
        json!({"content": null}),
        json!({"content": [thought, {"type": "text", "text": "x"}, {"type": "tool_call", "name": "bash"}], "thinking_block": thought}),
        json!({"content": "x", "thinking_block": thought}),
        json!({"content": [{"type": "tool_result", "content": [{"type": "text", "text": "x"}]}]}),
        json!({"content": "", "reasoning": {"summary": ["A."]}, "tool_calls": [{"name": "bash"}]}),
        json!({"content": [{"type": "image"}]}),
    ] {
        for role in Role::ALL {
            assert_eq!(of(role, same.clone()), (false, false), "{role} {same}");
        }
    }
    for other in [
        json!({"content": {"text": "x"}}),
        json!({"content": [{"type": "output_text", "text": "x"}]}),
        json!({"content": [{"type": "input_text", "text": "x"}]}),
        json!({"parts": [{"text": "x"}]}),
    ] {
        for role in [Role::User, Role::Assistant] {
            assert_eq!(of(role, other.clone()), (true, true), "{role} {other}");
        }
        assert_eq!(of(Role::System, other.clone()), (true, false), "{other}");
    }
    for other in
        [json!({"reasoning_content": "x"}), json!({"refusal": "x"}), json!({"thinking_block": {"text": "x"}})]
    {
        assert_eq!(of(Role::Assistant, other.clone()), (true, true), "{other}");
    }
    let blocks = json!([{"type": "output_text", "text": "x"}]);
    assert_eq!(of(Role::Tool, json!({"content": blocks})), (true, true));
    assert_eq!(
        of(Role::User, json!({"content": [{"type": "tool_result", "content": blocks}]})),
        (true, true)
    );
    assert_eq!(of(Role::Assistant, json!({"parts": [{"functionCall": {"name": "f"}}]})), (true, false));
}

/// Takes minutes if each call is compared with each other one.
#[test]
fn a_message_may_make_any_number_of_calls() {
    const CALLS: usize = 100_000;
    let call = |n: usize| json!({"type": "tool_call", "id": format!("{n}"), "name": "t", "input": {"x": n}});
    let same = |n: usize| json!({"name": "t", "arguments": {"x": n}});
    let blocks: Vec<Value> = (0..CALLS).map(call).collect();
    let beside: Vec<Value> = (0..CALLS).map(|n| if n % 2 == 0 { call(n) } else { same(n) }).collect();
    let line = json!({"content": blocks, "tool_calls": beside});
    let line = line.as_object().unwrap();
    assert_eq!(called_tools(line).len(), CALLS);
    assert_eq!(extract(line, Role::Assistant).len(), 1);
}

#[test]
fn calls_are_text_of_their_own() {
    let call = |text: &str| one(ContentType::ToolCall, text);
    let blocks = json!([
        {"type": "tool_call", "id": "1", "name": "bash", "input": {"command": "terraform destroy -auto-approve"}},
        {"type": "tool_use", "id": "2", "name": "read", "input": {"path": "a.rs"}},
    ]);
    assert_eq!(
        of_content(Role::Assistant, blocks.clone()),
        call("bash: terraform destroy -auto-approve\n\nread: a.rs")
    );
    assert!(of_content(Role::User, blocks.clone()).is_empty());
    let twice = json!({"content": blocks, "tool_calls": [{"id": "2", "tool": "read", "arguments": {"path": "a.rs"}}]});
    assert_eq!(texts(Role::Assistant, twice).len(), 1);
    let field =
        json!({"content": "I look.", "tool_calls": [{"function": {"name": "bash", "arguments": "{}"}}]});
    let expected = [(ContentType::AssistantResponse, "I look."), (ContentType::ToolCall, "bash")];
    assert_eq!(
        texts(Role::Assistant, field),
        expected.map(|(content_type, text)| (content_type, text.to_owned()))
    );
}

#[test]
fn redacted_thinking_and_images_have_no_text() {
    let blocks = json!([
        {"type": "redacted_thinking", "data": "x"},
        {"type": "image", "source": {"data": "x"}, "text": "x"},
    ]);
    assert!(of_content(Role::Assistant, blocks.clone()).is_empty());
    assert!(of_content(Role::User, blocks).is_empty());
}

#[test]
fn tool_output_is_what_a_person_reads() {
    let output = |text| one(ContentType::ToolOutput, text);
    let answer =
        json!({"error": null, "output": {"returncode": 0, "stderr": "", "stdout": "a\nb"}, "success": true});
    assert_eq!(of_content(Role::Tool, answer.clone()), output("a\nb"));
    assert_eq!(of_content(Role::Tool, json!(answer.to_string())), output("a\nb"));
    let block = json!([{"type": "tool_result", "tool_use_id": "1", "content": answer.to_string()}]);
    assert_eq!(of_content(Role::User, block.clone()), output("a\nb"));
    assert_eq!(of_content(Role::Tool, block), output("a\nb"));
    assert_eq!(of_content(Role::Tool, json!({"b": [1, "é"], "a": null})), output("b: 1, é"));
    assert_eq!(of_content(Role::Tool, json!(false)), output("false"));
}

#[test]
fn texts_with_other_terms_are_indexed_again_without_new_vectors() {
    let of = |content: &str, from| {
        let line = json!({"content": content});
        let Renewed { texts, embedded } = renewed(line.as_object().unwrap(), Role::User, from);
        (texts, embedded)
    };
    for other in ["ภาษาไทย", "ພາສາ", "ខ្មែរ", "မြန်မာ"] {
        assert_eq!((of(other, 4), of(other, 5)), ((true, false), (false, false)), "{other}");
    }
    assert_eq!(of("café Привет 東京", 3), (false, false));
    assert_eq!(of("anything", 2), (true, true), "by rules that are not known any more");
}

#[test]
fn instructions_are_system_text() {
    for role in [Role::System, Role::Developer] {
        assert_eq!(of_content(role, json!("Be brief.")), one(ContentType::System, "Be brief."));
        let blocks = json!([{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]);
        assert_eq!(of_content(role, blocks), one(ContentType::System, "Be\n\nbrief."));
    }
}

#[test]
fn blank_and_odd_content_is_nothing() {
    let odd = [
        json!(null),
        json!(""),
        json!(" \n"),
        json!([]),
        json!({}),
        json!([[]]),
        json!([null, 1, {}, [[]]]),
        json!([{"type": "text"}, {"type": "text", "text": null}, {"type": "text", "text": " "}, {"type": 5}]),
    ];
    for role in [Role::User, Role::Assistant, Role::System] {
        for content in &odd {
            assert!(of_content(role, content.clone()).is_empty(), "{role} {content}");
        }
        assert!(texts(role, json!({})).is_empty());
    }
    for content in [json!(null), json!(""), json!([]), json!({}), json!([{"type": "image"}])] {
        assert!(of_content(Role::Tool, content.clone()).is_empty(), "{content}");
    }
    assert!(texts(Role::Assistant, json!({"thinking": 5, "reasoning": {"content": 5}})).is_empty());
}

#[test]
fn keys_are_not_text() {
    let found = of_content(
        Role::Assistant,
        json!([{"type": "text", "text": "value", "citations": [{"title": "t"}]}]),
    );
    assert_eq!(found, one(ContentType::AssistantResponse, "value"));
}

#[test]
fn only_tool_output_is_cut_before_embedding_and_system_is_not_embedded() {
    let part = |content_type, text: &str, limit| {
        embeddable(&ExtractedText { content_type, text: text.to_owned() }, limit).to_owned()
    };
    assert_eq!(part(ContentType::ToolOutput, "éèà", 2), "éè");
    assert_eq!(part(ContentType::ToolOutput, "éèà", 3), "éèà");
    assert_eq!(part(ContentType::ToolOutput, "éèà", 0), "");
    assert_eq!(part(ContentType::AssistantThinking, "éèà", 2), "éèà");
    assert_eq!(part(ContentType::System, "éèà", 2), "");
    assert_eq!(part(ContentType::ToolCall, "éèà", 2), "");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        prop::sample::select(
            &["text", "thinking", "reasoning", "tool_result", "image", "output_text", "message"][..]
        )
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 5, |inner| {
        let key = prop::sample::select(
            &[
                "type",
                "text",
                "content",
                "thinking",
                "summary",
                "output",
                "error",
                "stdout",
                "x",
                "parts",
                "functionCall",
                "functionResponse",
                "thought",
            ][..],
        );
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn any_shape_is_taken(content in any_json(), thinking in any_json(), reasoning in any_json()) {
        let line = json!({"content": content, "thinking": thinking, "reasoning": reasoning, "parts": reasoning,
            "reasoning_details": thinking, "refusal": content});
        for role in Role::ALL {
            renewed(line.as_object().unwrap(), role, 3);
            let found = extract(line.as_object().unwrap(), role);
            prop_assert!(found.iter().all(|text| !text.text.trim().is_empty()));
            prop_assert!(found.windows(2).all(|pair| pair[0].content_type < pair[1].content_type));
        }
    }
}
