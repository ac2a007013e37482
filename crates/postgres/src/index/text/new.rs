//! The block of new messages.

use std::collections::{BTreeMap, HashMap};

use amplifier_session_core::{
    Result,
    content::MessageLine,
    model::ContentType,
    text::{Analyzer, bm25::stored_length},
};
use amplifier_session_sql::Columns as _;
use tokio_postgres::types::Type;

use super::block::{Posting, TextKey, encode_places, encode_postings, encode_texts, stored_term};
use crate::{columns::PgRow, connection::PgReader, copy::CopyRows};

/// The texts of new messages, by user.
#[derive(Debug, Default)]
pub(crate) struct NewTexts {
    users: BTreeMap<String, NewBlock>,
    /// How many messages are waiting for their keys.
    waiting: usize,
}

/// The key of a message.
#[derive(Debug, Clone, Copy)]
enum MessageKey {
    /// It is this one.
    Stored(i64),
    /// It is assigned when the messages are written: this one of all new keys.
    New(usize),
}

#[derive(Debug, Default)]
struct NewBlock {
    messages: Vec<MessageKey>,
    texts: Vec<NewText>,
    /// The texts that contain a term.
    terms: HashMap<String, Vec<PlacesInText>>,
}

/// A text, by its position, and the places of a term in it.
type PlacesInText = (usize, Vec<u32>);

#[derive(Debug)]
struct NewText {
    /// The position of the message.
    message: usize,
    content_type: ContentType,
    length: u32,
}

impl NewTexts {
    /// Adds a message. Without a key, it gets one when it is written.
    pub(crate) fn add(&mut self, key: Option<i64>, user: &str, line: &MessageLine) {
        let key = key.map_or(MessageKey::New(self.waiting), MessageKey::Stored);
        self.waiting += usize::from(matches!(key, MessageKey::New(_)));
        let block = match self.users.get_mut(user) {
            Some(block) => block,
            None => self.users.entry(user.to_owned()).or_default(),
        };
        block.add(key, line);
    }

    /// The largest number of messages of a user.
    pub(crate) fn messages(&self) -> usize {
        self.users.values().map(|block| block.messages.len()).max().unwrap_or_default()
    }

    /// Writes a block for each user. `keys` are those of the new messages, in the order in which they were added.
    pub(crate) fn write(self, writer: &PgReader<'_>, operation: &'static str, keys: &[i64]) -> Result<()> {
        if self.users.is_empty() {
            return Ok(());
        }
        let numbers = block_numbers(writer, operation, self.users.len())?;
        let (mut blocks, mut postings) = (block_rows(), posting_rows());
        for ((user, block), number) in self.users.iter().zip(numbers) {
            block.put(keys, user, number, &mut blocks, &mut postings);
        }
        writer.copy(operation, blocks)?;
        writer.copy(operation, postings)
    }
}

impl NewBlock {
    fn add(&mut self, key: MessageKey, line: &MessageLine) {
        let message = self.messages.len();
        self.messages.push(key);
        let (mut analyzer, mut found) = (Analyzer::new(), HashMap::new());
        for text in line.texts() {
            let length = find_terms(&mut analyzer, &text.text, &mut found);
            let position = self.texts.len();
            self.texts.push(NewText { message, content_type: text.content_type, length });
            for (term, places) in found.drain() {
                self.terms.entry(term).or_default().push((position, places));
            }
        }
    }

    fn put(&self, keys: &[i64], user: &str, number: i64, blocks: &mut CopyRows, postings: &mut CopyRows) {
        if self.texts.is_empty() {
            return;
        }
        let key = |message: usize| {
            let key = match self.messages.get(message) {
                Some(MessageKey::Stored(key)) => Some(*key),
                Some(MessageKey::New(at)) => keys.get(*at).copied(),
                None => None,
            };
            debug_assert!(key.is_some(), "a text belongs to a message of its block");
            key.unwrap_or_default()
        };
        let ids: Vec<(TextKey, u32)> = self
            .texts
            .iter()
            .map(|text| (TextKey::new(key(text.message), text.content_type), text.length))
            .collect();
        let message_keys: Vec<i64> = (0..self.messages.len()).map(key).collect();
        // Terms name texts by their positions in `ids`, so its order stays.
        let mut texts = ids.clone();
        texts.sort_unstable();
        put_block(blocks, user, number, &message_keys, &texts);
        let mut terms: Vec<(&String, &Vec<PlacesInText>)> = self.terms.iter().collect();
        terms.sort_unstable_by_key(|(term, _)| *term);
        for (term, found) in terms {
            let posting = |(position, places): &PlacesInText| {
                let (text, length) = *ids.get(*position)?;
                Some(Posting { text, frequency: places.len() as u32, length, places: places.clone() })
            };
            let mut list: Vec<Posting> = found.iter().filter_map(posting).collect();
            debug_assert_eq!(list.len(), found.len(), "a term is in texts of its block");
            list.sort_unstable();
            put_postings(postings, user, number, term, &list);
        }
    }
}

/// Adds the places of the terms of a text to `found`; returns the stored length of the text.
pub(super) fn find_terms(analyzer: &mut Analyzer, text: &str, found: &mut HashMap<String, Vec<u32>>) -> u32 {
    let (mut length, mut tokens) = (0_u32, analyzer.tokens(text));
    while tokens.advance() {
        length = length.saturating_add(1);
        match found.get_mut(tokens.term()) {
            Some(places) => places.push(tokens.place()),
            None => {
                let places = found.entry(stored_term(tokens.term()).into_owned());
                places.or_default().push(tokens.place());
            }
        }
    }
    stored_length(length)
}

/// Rows of `text_blocks`, to be added by [`put_block`].
pub(super) fn block_rows() -> CopyRows {
    let columns =
        ["user_id", "block", "first_key", "last_key", "message_count", "text_count", "token_count", "texts"];
    CopyRows::new("text_blocks", columns)
}

/// Adds a block with these messages and texts. Messages may be without texts; texts are in order.
pub(super) fn put_block(
    rows: &mut CopyRows,
    user: &str,
    number: i64,
    messages: &[i64],
    texts: &[(TextKey, u32)],
) {
    let tokens: i64 = texts.iter().map(|(_, length)| i64::from(*length)).sum();
    rows.begin(8);
    rows.text(user);
    let first = messages.iter().min().copied().unwrap_or_default();
    let last = messages.iter().max().copied().unwrap_or_default();
    for number in [number, first, last, messages.len() as i64, texts.len() as i64, tokens] {
        rows.integer(number);
    }
    rows.bytes(&encode_texts(texts));
}

/// Rows of `postings`, to be added by [`put_postings`].
pub(super) fn posting_rows() -> CopyRows {
    CopyRows::new("postings", ["user_id", "block", "term", "text_count", "data", "places"])
}

/// Adds the postings of a term in a block, which are in order.
pub(super) fn put_postings(rows: &mut CopyRows, user: &str, number: i64, term: &str, list: &[Posting]) {
    rows.begin(6);
    rows.text(user);
    rows.integer(number);
    rows.text(term);
    rows.integer(list.len() as i64);
    rows.bytes(&encode_postings(list));
    rows.bytes(&encode_places(list));
}

/// Numbers for new blocks.
pub(super) fn block_numbers(
    reader: &PgReader<'_>,
    operation: &'static str,
    count: usize,
) -> Result<Vec<i64>> {
    let sql = "SELECT nextval('text_block_numbers') FROM generate_series(1, $1)";
    let rows = reader.query(operation, sql, &[(&(count as i64), Type::INT8)])?;
    rows.iter().map(|row| PgRow(row).integer(0)).collect()
}
