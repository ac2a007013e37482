//! Values with names, as people type them.

/// Names for the same value: those of stored content types, and a breakdown of statistics. The second is that of choices.
const SYNONYMS: [(&str, &str); 4] = [
    ("user_query", "user"),
    ("assistant_response", "assistant"),
    ("assistant_thinking", "thinking"),
    ("event", "event_type"),
];

/// The value among `values` that `typed` names. Case does not matter, and `-` is the same as `_`: the command line
/// has `full-text`, and JSON `full_text`.
#[must_use]
pub fn typed_choice<'a>(values: &[&'a str], typed: &str) -> Option<&'a str> {
    let typed = typed.replace('-', "_");
    let named =
        |name: &str| values.iter().copied().find(|value| value.replace('-', "_").eq_ignore_ascii_case(name));
    let synonym = || SYNONYMS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&typed));
    named(&typed).or_else(|| named(synonym()?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_all_faces() {
        let modes = ["hybrid", "full_text"];
        for typed in ["full_text", "full-text", "Full-Text", "FULL_TEXT"] {
            assert_eq!(typed_choice(&modes, typed), Some("full_text"));
        }
        assert_eq!(
            typed_choice(&["amplifier", "amplifier-agent"], "amplifier_agent"),
            Some("amplifier-agent")
        );
        assert_eq!(typed_choice(&["project", "event_type"], "event"), Some("event_type"));
        assert_eq!(typed_choice(&["user", "tool_call"], "user_query"), Some("user"));
        assert_eq!(typed_choice(&["user", "tool_call"], "tool-call"), Some("tool_call"));
        for typed in ["", "telepathy", "full", "full text", "event"] {
            assert_eq!(typed_choice(&modes, typed), None);
        }
    }
}
