//! Comparing the blocks with the rows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use amplifier_session_core::{
    Result,
    backend::{IndexCheck, IndexProblem},
    model::{MessageRef, SessionId, SessionKey, UserId},
    text::Analyzer,
};
use amplifier_session_sql::{Columns, Query, Reader as _, number};
use tokio_postgres::types::Type;

use super::{
    block::{Posting, TextKey, decode_postings, decode_texts},
    new::find_terms,
    removed::RemovedKeys,
    update::messages_of,
};
use crate::{
    columns::PgRow,
    connection::{Parameter, PgReader},
};

const OPERATION: &str = "check_index";

/// How many messages are compared at once.
const COMPARED: usize = 512;

/// Compares every block with the messages that it has, and finds messages that no block has. `reader` reads one snapshot.
pub(crate) fn check(reader: &PgReader<'_>) -> Result<IndexCheck> {
    let removed = RemovedKeys::read(reader, OPERATION)?;
    let (mut check, mut indexed) = (IndexCheck::default(), HashSet::new());
    for row in reader.query(OPERATION, "SELECT user_id, block FROM text_blocks", &[])? {
        let (user, block) = (PgRow(&row).text(0)?, PgRow(&row).integer(1)?);
        check_block(reader, (&user, block), &removed, &mut check, &mut indexed)?;
    }
    for (key, message) in without_texts(reader, &indexed)? {
        check.add(IndexProblem {
            message: Some(message),
            reason: format!("no block has its texts (key {key})"),
        });
    }
    Ok(check)
}

type Terms = BTreeMap<String, BTreeSet<Posting>>;

fn check_block(
    reader: &PgReader<'_>,
    (user, block): (&String, i64),
    removed: &RemovedKeys,
    check: &mut IndexCheck,
    indexed: &mut HashSet<i64>,
) -> Result<()> {
    let of_block: [Parameter<'_>; 2] = [(user, Type::TEXT), (&block, Type::INT8)];
    let sql = "SELECT texts FROM text_blocks WHERE user_id = $1 AND block = $2";
    let mut texts: Vec<(TextKey, u32)> = Vec::new();
    for row in reader.query(OPERATION, sql, &of_block)? {
        texts.extend(decode_texts(PgRow(&row).bytes_ref(0)?)?);
    }
    let mut stored = Terms::new();
    let sql = "SELECT term, data, places FROM postings WHERE user_id = $1 AND block = $2";
    for row in reader.query(OPERATION, sql, &of_block)? {
        let postings = decode_postings(PgRow(&row).bytes_ref(1)?, PgRow(&row).bytes_ref(2)?)?;
        // Texts of removed messages stay in their block until the next update.
        let kept = postings.into_iter().filter(|posting| !removed.have(posting.text));
        stored.entry(PgRow(&row).text(0)?).or_default().extend(kept);
    }
    stored.retain(|_, postings| !postings.is_empty());
    let keys: BTreeSet<i64> =
        texts.iter().filter(|(text, _)| !removed.have(*text)).map(|(text, _)| text.key()).collect();
    check.messages += keys.len() as u64;
    let keys: Vec<i64> = keys.into_iter().collect();
    let mut expected = Terms::new();
    for keys in keys.chunks(COMPARED) {
        let messages = messages_of(reader, keys)?;
        for key in keys {
            match messages.get(key).filter(|message| message.user == *user) {
                Some(message) => add_terms(*key, message, &mut expected),
                None => check.add(IndexProblem {
                    message: None,
                    reason: format!("block {block} has texts of a message that does not exist (key {key})"),
                }),
            }
        }
    }
    indexed.extend(keys);
    forget_unknown_places(&mut stored, &mut expected);
    if stored != expected {
        let differs = |term: &&String| stored.get(*term) != expected.get(*term);
        let terms: BTreeSet<&String> = stored.keys().chain(expected.keys()).filter(differs).collect();
        let reason = format!("{} terms of block {block} differ from the texts of its messages", terms.len());
        check.add(IndexProblem { message: None, reason });
    }
    Ok(())
}

fn add_terms(key: i64, message: &super::update::IndexedMessage, terms: &mut Terms) {
    let (mut analyzer, mut found) = (Analyzer::new(), HashMap::new());
    for text in message.line.texts() {
        let length = find_terms(&mut analyzer, &text.text, &mut found);
        let id = TextKey::new(key, text.content_type);
        for (term, places) in found.drain() {
            let posting = Posting { text: id, frequency: places.len() as u32, length, places };
            terms.entry(term).or_default().insert(posting);
        }
    }
}

/// Leaves out the places of terms of which some are unknown, because an earlier version indexed them.
fn forget_unknown_places(stored: &mut Terms, expected: &mut Terms) {
    let forget = |postings: &mut BTreeSet<Posting>| {
        let without = std::mem::take(postings).into_iter();
        *postings = without.map(|posting| Posting { places: Vec::new(), ..posting }).collect();
    };
    for (term, postings) in stored {
        if postings.iter().any(|posting| posting.places.is_empty()) {
            forget(postings);
            expected.get_mut(term).into_iter().for_each(forget);
        }
    }
}

/// The messages with texts that no block has.
fn without_texts(reader: &PgReader<'_>, indexed: &HashSet<i64>) -> Result<Vec<(i64, MessageRef)>> {
    let sql = "SELECT key, user_id, session_id, sequence FROM transcripts";
    let decode = |row: &dyn Columns| {
        let session = SessionKey::new(UserId::new(row.text(1)?)?, SessionId::new(row.text(2)?)?);
        Ok((row.integer(0)?, MessageRef::new(session, number(row, 3)?)))
    };
    let mut missing = reader.rows(&Query::new(OPERATION, sql, [], decode))?;
    missing.retain(|(key, _)| !indexed.contains(key));
    let mut without = Vec::new();
    for some in missing.chunks(COMPARED) {
        let keys: Vec<i64> = some.iter().map(|(key, _)| *key).collect();
        let messages = messages_of(reader, &keys)?;
        let has_texts = |key: &i64| {
            let message = messages.get(key);
            message.is_some_and(|of| !of.line.texts().is_empty())
        };
        without.extend(some.iter().filter(|(key, _)| has_texts(key)).cloned());
    }
    Ok(without)
}
