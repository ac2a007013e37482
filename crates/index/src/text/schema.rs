//! The documents of the text index: one for each content type of a message.

use amplifier_session_core::{
    model::{ContentType, Role},
    text::{Analyzer, Tokens},
};
use tantivy::{
    schema::{
        FAST, Field, INDEXED, IndexRecordOption, Schema, SchemaBuilder, TextFieldIndexing, TextOptions,
    },
    tokenizer::{Token, TokenStream, Tokenizer},
};

/// The name of [`TextTokenizer`] in tantivy.
pub(super) const TOKENIZER: &str = "amplifier";

/// The fields of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct DocumentFields {
    /// The text, as terms with their frequencies and places.
    pub(super) text: Field,
    /// The key of the message.
    pub(super) key: Field,
    /// The key of its session.
    pub(super) session_key: Field,
    pub(super) user: Field,
    pub(super) project: Field,
    pub(super) session: Field,
    /// The tools that the message uses, in lower case: none, one or several.
    pub(super) tool: Field,
    /// The role and the content type as one number; see [`kind`].
    pub(super) kind: Field,
    /// Microseconds since the epoch.
    pub(super) ts: Field,
}

/// The names of the fast fields.
pub(super) mod names {
    pub(in crate::text) const KEY: &str = "key";
    pub(in crate::text) const SESSION_KEY: &str = "session_key";
    pub(in crate::text) const KIND: &str = "kind";
    pub(in crate::text) const TS: &str = "ts";
}

/// The schema and its fields. No field is stored: results are read from the rows.
pub(super) fn schema() -> (Schema, DocumentFields) {
    let mut builder = Schema::builder();
    let text = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions)
        .set_fieldnorms(true);
    let fields = DocumentFields {
        text: builder.add_text_field("text", TextOptions::default().set_indexing_options(text)),
        key: builder.add_u64_field(names::KEY, INDEXED | FAST),
        session_key: builder.add_u64_field(names::SESSION_KEY, INDEXED | FAST),
        user: add_name(&mut builder, "user"),
        project: add_name(&mut builder, "project"),
        session: add_name(&mut builder, "session"),
        tool: add_name(&mut builder, "tool"),
        kind: builder.add_u64_field(names::KIND, FAST),
        ts: builder.add_i64_field(names::TS, FAST),
    };
    (builder.build(), fields)
}

/// A field that must match exactly.
fn add_name(builder: &mut SchemaBuilder, name: &str) -> Field {
    let whole = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false);
    builder.add_text_field(name, TextOptions::default().set_indexing_options(whole))
}

/// Encodes a role and a content type as one number.
pub(super) fn kind(role: Role, content_type: ContentType) -> u64 {
    (role as u64) << 8 | u64::from(content_type.code())
}

/// Decodes a [`kind`].
pub(super) fn from_kind(kind: u64) -> Option<(Role, ContentType)> {
    let role = Role::ALL.get(usize::try_from(kind >> 8).ok()?)?;
    Some((*role, ContentType::from_code((kind & 0xff) as u8)?))
}

/// The library's text analysis as a tokenizer for tantivy.
#[derive(Debug, Clone, Default)]
pub(super) struct TextTokenizer {
    analyzer: Analyzer,
}

/// The tokens of one text.
pub(super) struct TextTokens<'a> {
    tokens: Tokens<'a>,
    token: Token,
}

impl Tokenizer for TextTokenizer {
    type TokenStream<'a> = TextTokens<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TextTokens<'a> {
        TextTokens { tokens: self.analyzer.tokens(text), token: Token::default() }
    }
}

impl TokenStream for TextTokens<'_> {
    fn advance(&mut self) -> bool {
        if !self.tokens.advance() {
            return false;
        }
        let range = self.tokens.range();
        (self.token.offset_from, self.token.offset_to) = (range.start, range.end);
        // Not the number of the token: see `TermPhrase`.
        self.token.position = self.tokens.place() as usize;
        self.token.text.clear();
        self.token.text.push_str(self.tokens.term());
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_round_trip() {
        for role in Role::ALL {
            for content_type in ContentType::ALL {
                assert_eq!(from_kind(kind(role, content_type)), Some((role, content_type)));
            }
        }
        assert_eq!(from_kind(u64::MAX), None);
    }

    #[test]
    fn a_changed_analysis_is_a_changed_format() {
        // An index contains terms of the analysis with which it was made. If this test fails because the analysis has
        // changed, also increase `TextPart::FORMAT`.
        let text = "Don't cafés RE-TRIED naïve_ID 9f86d081 running 東京 straße e\u{301}t\u{e9}s x86_64 👍";
        let mut tokenizer = TextTokenizer::default();
        let mut stream = tokenizer.token_stream(text);
        let (mut terms, mut places) = (Vec::new(), Vec::new());
        while stream.advance() {
            terms.push(stream.token().text.clone());
            places.push(stream.token().position);
        }
        let expected = "don t cafe re tri naiv id 9f86d081 run 東京 京 strass ete x86 64 👍";
        assert_eq!(terms.join(" "), expected);
        let forms: Vec<usize> = places.iter().map(|place| place % 8).collect();
        assert_eq!(forms, [0, 0, 1, 0, 2, 4, 0, 0, 3, 0, 0, 4, 1, 0, 0, 0]);
        assert!(places.iter().enumerate().all(|(number, place)| place / 8 == number));
    }
}
