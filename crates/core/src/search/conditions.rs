//! Conditions on the texts of a message, beyond the words of a query.

use std::borrow::Cow;

use super::TypedQuery;
use crate::{
    KnownPart,
    content::{ExtractedText, MessageLine},
    model::ContentTypes,
    text::{Analyzer, Phrase, WordList, bm25::count_terms, collapsed, is_unspaced_alone, query_terms},
};

/// Conditions on the texts of a message. A message must meet all of them. The default is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextConditions {
    /// Each of these phrases occurs: its words as they are written, in this order. Case, accents and what is between
    /// the words are ignored.
    pub phrases: Vec<String>,
    /// None of these words and phrases occurs. Words are compared like those of a query.
    pub excluded: Vec<String>,
    /// Also finds messages with words that begin so. This is not a condition: a message that contains another word of
    /// the query is found as well.
    pub prefixes: Vec<String>,
    /// This text occurs, character by character. Runs of white space are equal.
    pub exact: Option<String>,
    /// The message calls each of these tools, or is its output.
    pub tools: Vec<String>,
    /// The message calls a tool with each of these files or folders; the end of a path suffices.
    pub files: Vec<String>,
}

impl From<&TypedQuery> for TextConditions {
    fn from(query: &TypedQuery) -> Self {
        let TypedQuery { phrases, prefixes, excluded, .. } = query.clone();
        Self { phrases, prefixes, excluded, ..Self::default() }
    }
}

impl TextConditions {
    optional_setters! {
        /// Only messages that contain this text.
        with_exact(exact: String);
    }

    /// Only messages that call each of these tools, or that are its output.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Only messages that call a tool with each of these files.
    #[must_use]
    pub fn with_files(mut self, files: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.files = files.into_iter().map(Into::into).collect();
        self
    }

    /// Whether any message meets them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.phrases.is_empty()
            && self.excluded.is_empty()
            && self.exact.is_none()
            && self.tools.is_empty()
            && self.files.is_empty()
    }

    /// Whether most messages that an index finds for them meet them, so that few of those that are read are dropped.
    pub(crate) fn are_mostly_met(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether an index can't decide about them.
    pub(crate) fn must_be_read(&self) -> bool {
        let others = Self { tools: Vec::new(), ..self.clone() };
        !others.is_empty()
    }

    /// The tools, as an index has them.
    pub(crate) fn used_tools(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.to_ascii_lowercase()).collect()
    }

    /// Whether they are only phrases, which the index finds.
    pub(crate) fn are_phrases(&self) -> bool {
        let others = Self { phrases: Vec::new(), ..self.clone() };
        others.is_empty() && !self.phrases.is_empty()
    }
}

/// Conditions that are ready to be compared with messages.
#[derive(Debug)]
pub(crate) struct Checks {
    tools: Vec<String>,
    files: Vec<String>,
    exact: Option<String>,
    phrases: Vec<Phrase>,
    excluded_phrases: Vec<Phrase>,
    excluded_terms: Vec<String>,
    content_types: ContentTypes,
    analyzer: Analyzer,
    words: WordList,
}

impl Checks {
    /// Conditions on the texts of these types.
    pub(crate) fn new(conditions: &TextConditions, content_types: ContentTypes) -> Self {
        let phrases = |texts: &[String]| texts.iter().map(|text| Phrase::new(text)).collect();
        let is_word = |text: &&String| {
            query_terms(text).len() == 1 && Phrase::new(text).len() == 1 && !is_unspaced_alone(text)
        };
        let (words, longer): (Vec<&String>, Vec<&String>) = conditions.excluded.iter().partition(is_word);
        let excluded_terms: Vec<String> = words.into_iter().flat_map(|word| query_terms(word)).collect();
        Self {
            tools: conditions.used_tools(),
            files: conditions.files.clone(),
            exact: conditions.exact.as_deref().map(collapsed),
            phrases: phrases(&conditions.phrases),
            excluded_phrases: longer.into_iter().map(|text| Phrase::new(text)).collect(),
            analyzer: Analyzer::looking_for(&excluded_terms),
            excluded_terms,
            content_types,
            words: WordList::default(),
        }
    }

    /// Whether a message with this line meets the conditions.
    pub(crate) fn admit(&mut self, line: &MessageLine) -> bool {
        self.admit_texts(line, &line.texts())
    }

    /// As [`Self::admit`]; `texts` are those of the line.
    pub(crate) fn admit_texts(&mut self, line: &MessageLine, texts: &[ExtractedText]) -> bool {
        let uses_all = || {
            let used = line.used_tools();
            self.tools.iter().all(|tool| used.contains(tool))
        };
        if !self.tools.is_empty() && !uses_all() || !self.files.iter().all(|file| touches(line, file)) {
            return false;
        }
        let texts: Vec<&str> = texts
            .iter()
            .filter(|text| self.content_types.contains(text.content_type))
            .map(|text| text.text.as_str())
            .collect();
        let mut missing: Vec<&Phrase> = self.phrases.iter().collect();
        let mut lacks_exact = self.exact.is_some();
        for text in texts {
            if !self.excluded_terms.is_empty()
                && count_terms(&mut self.analyzer, text, &self.excluded_terms).matches()
            {
                return false;
            }
            if !missing.is_empty() || !self.excluded_phrases.is_empty() {
                self.words.read(text);
                if self.excluded_phrases.iter().any(|phrase| phrase.is_in(&self.words)) {
                    return false;
                }
                missing.retain(|phrase| !phrase.is_in(&self.words));
            }
            lacks_exact &= !self.exact.as_ref().is_some_and(|exact| collapsed(text).contains(exact));
        }
        missing.is_empty() && !lacks_exact
    }
}

/// Whether a tool call of the message has the path `file` in its arguments, or a longer path that ends so or goes on in
/// that folder. Both separators, `/` and `\`, are equal.
pub(crate) fn touches(line: &MessageLine, file: &str) -> bool {
    let file = with_slashes(file);
    let file = file.strip_prefix("./").unwrap_or(&file).trim_end_matches('/');
    !file.is_empty() && line.called_tools().iter().any(|call| has_path(&with_slashes(&call.text()), file))
}

/// The text with one kind of separator.
fn with_slashes(text: &str) -> Cow<'_, str> {
    if text.contains('\\') { text.replace('\\', "/").into() } else { text.into() }
}

fn has_path(text: &str, path: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(path).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let mut after = text.part(at + path.len()..).chars();
        let (next, second) = (after.next(), after.next());
        let goes_on = next.is_some_and(is_of_name) || next == Some('.') && second.is_some_and(is_of_name);
        !before.is_some_and(|c| is_of_name(c) || c == '.') && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{RawJson, Role, SessionSource};

    fn line(role: Role, line: &Value) -> MessageLine {
        MessageLine::stored(&RawJson::new(line.to_string()), role, SessionSource::default())
    }

    fn admits(conditions: &TextConditions, role: Role, of: &Value) -> bool {
        Checks::new(conditions, ContentTypes::searched()).admit(&line(role, of))
    }

    fn says(typed: &str, text: &str) -> bool {
        admits(&TextConditions::from(&TypedQuery::parse(typed)), Role::User, &json!({"content": text}))
    }

    #[test]
    fn phrases_are_words_in_order() {
        let text = "The connection-pool was\nexhausted; Café öffnet. 東京タワー";
        for phrase in ["Connection Pool", "pool was exhausted", "cafe offnet", "exhausted", "京タ"] {
            assert!(says(&format!("\"{phrase}\""), text), "{phrase}");
        }
        for phrase in ["pool connection", "connections pool", "connection was", "haust", "東タ"] {
            assert!(!says(&format!("\"{phrase}\""), text), "{phrase}");
        }
    }

    #[test]
    fn words_are_excluded_in_any_form() {
        for (typed, expected) in [
            ("x -test", false),
            ("x -failing", false),
            ("x -tested", false),
            ("x -\"failing test\"", true),
            ("x -\"failing tests\"", false),
            ("x -foo_bar", true),
            ("x -failing-tests", false),
            ("x -京", false),
            ("x -東京", false),
            ("x -都", true),
            ("x -🎉", false),
        ] {
            assert_eq!(says(typed, "x: Failing tests, foo 東京🎉"), expected, "{typed}");
        }
    }

    #[test]
    fn exact_texts_are_compared_character_by_character() {
        let exact = |exact: &str| TextConditions::default().with_exact(exact.to_owned());
        let line = json!({"content": "sha256:9f86d081884c\n    at com.shop.Basket(Basket.java:12)"});
        for text in ["6d081", "9f86d081884c at com", "(Basket.java:12)", "hop.Bas"] {
            assert!(admits(&exact(text), Role::User, &line), "{text}");
        }
        for text in ["9F86", "9f86d081884c  x", "basket(B"] {
            assert!(!admits(&exact(text), Role::User, &line), "{text}");
        }
    }

    #[test]
    fn a_file_is_a_path_or_its_end() {
        let calls = json!({"tool_calls": [{"tool": "bash", "arguments": {"command": "cat /home/ana/shop/src/cart.rs, ./.env"}}]});
        let calls = line(Role::Assistant, &calls);
        for file in [
            "cart.rs",
            "src/cart.rs",
            "./src/cart.rs",
            "/home/ana/shop/src/cart.rs",
            "shop/src",
            "src/",
            ".env",
        ] {
            assert!(touches(&calls, file), "{file}");
        }
        for file in ["art.rs", "cart", "cart.r", "rc/cart.rs", "lib/cart.rs", "env", "", "/"] {
            assert!(!touches(&calls, file), "{file}");
        }
        assert!(!touches(&line(Role::Assistant, &json!({"content": "cart.rs"})), "cart.rs"));
    }

    #[test]
    fn separators_are_equal() {
        let calls =
            json!({"tool_calls": [{"tool": "edit", "arguments": {"path": "C:\\my shop\\ü \"x\"\\cart.rs"}}]});
        let calls = line(Role::Assistant, &calls);
        for file in ["cart.rs", "ü \"x\"\\cart.rs", "my shop/ü \"x\"/cart.rs", "C:\\my shop", ".\\my shop\\"]
        {
            assert!(touches(&calls, file), "{file}");
        }
        assert!(!touches(&calls, "shop\\cart.rs") && !touches(&calls, "Cart.rs"));
    }

    #[test]
    fn a_tool_is_that_of_a_call_or_of_an_output() {
        let conditions = TextConditions::default().with_tools(["bash"]);
        let call = json!({"content": "", "tool_calls": [{"tool": "bash", "arguments": {}}]});
        let output = json!({"content": "done", "name": "bash"});
        assert!(admits(&conditions, Role::Assistant, &call));
        assert!(admits(&conditions, Role::Tool, &output));
        assert!(!admits(&conditions, Role::User, &output));
        assert!(!admits(&TextConditions::default().with_tools(["grep"]), Role::Assistant, &call));
    }
}
