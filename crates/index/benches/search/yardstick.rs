//! Indexing with tantivy alone.

use std::ops::ControlFlow;

use amplifier_session_core::text::Analyzer;
use amplifier_session_index::Rows;
use tantivy::{
    Index, IndexWriter, TantivyDocument,
    schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer},
};

/// Indexes the lines as they are, with the same analysis and no other field.
pub(crate) fn index_texts(rows: &mut dyn Rows) {
    let mut schema = Schema::builder();
    let indexing =
        TextFieldIndexing::default().set_tokenizer("words").set_index_option(IndexRecordOption::WithFreqs);
    let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(indexing));
    let dir = tempfile::tempdir().unwrap();
    let index = Index::create_in_dir(dir.path(), schema.build()).unwrap();
    index.tokenizers().register("words", TextAnalyzer::builder(Words::default()).build());
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 50_000_000).unwrap();
    rows.messages_after(0, &mut |row| {
        let mut document = TantivyDocument::default();
        document.add_text(text, std::str::from_utf8(&row.raw).unwrap());
        writer.add_document(document).unwrap();
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    writer.commit().unwrap();
    writer.wait_merging_threads().unwrap();
}

#[derive(Clone, Default)]
struct Words(Analyzer);

struct WordStream<'a>(amplifier_session_core::text::Tokens<'a>, Token);

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        WordStream(self.0.tokens(text), Token::default())
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        let more = self.0.advance();
        if more {
            self.1.text.clear();
            self.1.text.push_str(self.0.term());
            self.1.position = self.1.position.wrapping_add(1);
        }
        more
    }

    fn token(&self) -> &Token {
        &self.1
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.1
    }
}
