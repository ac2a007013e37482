//! tantivy alone.

use std::{ops::ControlFlow, path::Path};

use amplifier_session_core::text::Analyzer;
use amplifier_session_index::Rows;
use tantivy::{
    Index, IndexWriter, Searcher, TantivyDocument, Term,
    collector::TopDocs,
    query::{BooleanQuery, Occur, Query, TermQuery},
    schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer},
};

/// The files of a text index, opened with tantivy alone.
pub(crate) struct Yardstick {
    searcher: Searcher,
    text: Field,
    _copy: tempfile::TempDir,
}

impl Yardstick {
    /// A copy of the text index in a folder.
    pub(crate) fn open(dir: &Path) -> Self {
        let copy = tempfile::tempdir().unwrap();
        let manifest = std::fs::read_to_string(dir.join("text.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest[9..]).unwrap();
        std::fs::write(copy.path().join("meta.json"), manifest["body"]["meta"].as_str().unwrap()).unwrap();
        for entry in std::fs::read_dir(dir.join("text")).unwrap().map(Result::unwrap) {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        let index = Index::open_in_dir(copy.path()).unwrap();
        let text = index.schema().get_field("text").unwrap();
        let searcher = index.reader().unwrap().searcher();
        println!("text index: {} segments", searcher.segment_readers().len());
        Self { searcher, text, _copy: copy }
    }

    pub(crate) fn search(&self, terms: &[String], limit: usize) {
        let clause = |term: &String| {
            let term = Term::from_field_text(self.text, term);
            (Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)) as Box<dyn Query>)
        };
        let query = BooleanQuery::new(terms.iter().map(clause).collect());
        self.searcher.search(&query, &TopDocs::with_limit(limit).order_by_score()).unwrap();
    }

    /// Indexes the lines as they are, with the same analysis and no other field.
    pub(crate) fn index(rows: &mut dyn Rows) {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("words")
            .set_index_option(IndexRecordOption::WithFreqs);
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
