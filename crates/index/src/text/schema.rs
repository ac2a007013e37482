//! The documents of the text index: one for each content type of a message.

use amplifier_session_core::text::{Analyzer, Tokens};
use tantivy::{
    schema::{
        FAST, Field, INDEXED, IndexRecordOption, Schema, SchemaBuilder, TextFieldIndexing, TextOptions,
    },
    tokenizer::{Token, TokenStream, Tokenizer},
};

/// The name under which [`TextTokenizer`] is registered.
pub(super) const TOKENIZER: &str = "amplifier";

/// The fields of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// The text: terms with their frequencies.
    pub(super) text: Field,
    /// The key of the message.
    pub(super) key: Field,
    pub(super) user: Field,
    pub(super) project: Field,
    pub(super) session: Field,
    /// The role and the content type as one number: [`kind`].
    pub(super) kind: Field,
    /// Microseconds since the epoch.
    pub(super) ts: Field,
}

/// Names of the fast fields.
pub(super) mod names {
    pub(in crate::text) const KEY: &str = "key";
    pub(in crate::text) const KIND: &str = "kind";
    pub(in crate::text) const TS: &str = "ts";
}

/// The schema and its fields. Nothing is stored: hits lead to the rows.
pub(super) fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let text = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqs)
        .set_fieldnorms(true);
    let fields = Fields {
        text: builder.add_text_field("text", TextOptions::default().set_indexing_options(text)),
        key: builder.add_u64_field(names::KEY, INDEXED | FAST),
        user: add_name(&mut builder, "user"),
        project: add_name(&mut builder, "project"),
        session: add_name(&mut builder, "session"),
        kind: builder.add_u64_field(names::KIND, FAST),
        ts: builder.add_i64_field(names::TS, FAST),
    };
    (builder.build(), fields)
}

/// A field that is matched as a whole.
fn add_name(builder: &mut SchemaBuilder, name: &str) -> Field {
    let whole = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_index_option(IndexRecordOption::Basic)
        .set_fieldnorms(false);
    builder.add_text_field(name, TextOptions::default().set_indexing_options(whole))
}

/// The analysis of the library, as tantivy wants it.
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
        self.token.position = self.token.position.wrapping_add(1);
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
