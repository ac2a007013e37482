//! Compares the index with the rows that it is derived from.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use amplifier_session_core::{
    Result,
    backend::{IndexCheck, IndexProblem},
    model::MessageRef,
};

use crate::{
    error::PartError,
    index::SearchIndex,
    part::{IndexPart, PartFolder},
    rows::Rows,
    updater::RowRefs,
};

/// Number of keys that are looked up at a time.
const LOOKED_UP: usize = 1_000;

/// A part whose entries can be compared with rows. An entry is a key and a checksum of its data in the index.
pub(crate) trait CheckedPart: IndexPart {
    /// Compares all files with their checksums.
    fn check_files(&self) -> Result<(), PartError>;

    /// Calls `each` with every entry.
    fn entries(&self, each: &mut dyn FnMut(u64, u64)) -> Result<(), PartError>;

    /// Calls `each` with every row: its key, its revision, and the checksums of the entries that it should have.
    fn rows(rows: &mut dyn Rows, each: &mut dyn FnMut(u64, u64, &[u64])) -> Result<()>;

    /// The keys of rows that were removed after a revision.
    fn removed_after(rows: &mut dyn Rows, revision: u64) -> Result<Vec<u64>>;

    /// The messages of rows, in the order of their keys.
    fn messages(rows: &mut dyn RowRefs, keys: &[u64]) -> Result<Vec<Option<MessageRef>>>;
}

/// The checksum of an entry.
pub(crate) fn checksum(fields: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    fields.hash(&mut hasher);
    hasher.finish()
}

/// A set of entries: their number, and a checksum that does not depend on their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Entries {
    count: u64,
    sum: u64,
}

impl Entries {
    fn of(entries: &[u64]) -> Self {
        let mut all = Self::default();
        entries.iter().for_each(|entry| all.add(*entry));
        all
    }

    fn add(&mut self, entry: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(entry);
    }
}

impl SearchIndex {
    /// Compares the index with the rows: its files with their checksums, and its entries with the rows that it should
    /// contain. Rows that are newer than the index do not count as a difference. Reads all rows.
    ///
    /// # Errors
    ///
    /// Errors of `rows`.
    pub fn check(&self, rows: &mut dyn RowRefs) -> Result<IndexCheck> {
        let (mut check, (text, vectors, turns)) = (IndexCheck::default(), self.parts());
        let _lock = self.lock_files();
        check.messages = check_part(text, rows, &mut check)?;
        check.vectors = check_part(vectors, rows, &mut check)? + check_part(turns, rows, &mut check)?;
        Ok(check)
    }
}

/// Compares a part with its rows; returns their number.
fn check_part<P: CheckedPart>(
    part_folder: &PartFolder<P>,
    rows: &mut dyn RowRefs,
    check: &mut IndexCheck,
) -> Result<u64> {
    let view = part_folder.view_for_search(rows)?;
    let mut count = 0;
    let Some(part) = view.part else {
        P::rows(rows, &mut |_, _, _| count += 1)?;
        // There is no index yet.
        if count > 0 {
            debug_assert!(view.reason.is_some(), "a part is left out for a reason");
            check.add(IndexProblem { message: None, reason: view.reason.unwrap_or_default() });
        }
        return Ok(count);
    };
    let upto = part.store_revision().revision;
    // The index may still contain these, and searches leave them out.
    let mut changed: HashSet<u64> = P::removed_after(rows, upto)?.into_iter().collect();
    let (mut expected, mut found) = (Entries::default(), Entries::default());
    P::rows(rows, &mut |key, revision, entries| {
        count += 1;
        if revision > upto {
            check.newer += 1;
            changed.insert(key);
        } else {
            entries.iter().for_each(|entry| expected.add(checksum((key, entry))));
        }
    })?;
    let read = part.check_files().and_then(|()| {
        part.entries(&mut |key, entry| {
            if !changed.contains(&key) {
                found.add(checksum((key, entry)));
            }
        })
    });
    match read {
        Err(error) => {
            let reason = error.reason(P::NAME);
            check.add(IndexProblem { message: None, reason });
        }
        Ok(()) if found == expected => {}
        Ok(()) => name_differences(&*part, rows, &changed, check)?,
    }
    Ok(count)
}

/// Adds the rows that differ from the entries.
fn name_differences<P: CheckedPart>(
    part: &P,
    rows: &mut dyn RowRefs,
    changed: &HashSet<u64>,
    check: &mut IndexCheck,
) -> Result<()> {
    let upto = part.store_revision().revision;
    let mut found: HashMap<u64, Entries> = HashMap::new();
    let read = part.entries(&mut |key, entry| {
        if !changed.contains(&key) {
            found.entry(key).or_default().add(entry);
        }
    });
    if let Err(error) = read {
        check.add(IndexProblem { message: None, reason: error.reason(P::NAME) });
        return Ok(());
    }
    let mut differing: Vec<(u64, String)> = Vec::new();
    P::rows(rows, &mut |key, revision, entries| {
        let found = found.remove(&key).unwrap_or_default();
        let expected = Entries::of(entries);
        // Later rows belong to the tail, not to the part.
        if revision <= upto && found != expected {
            differing.push((key, reason::<P>(found, expected)));
        }
    })?;
    // The entries that are left have no row.
    let mut without_row: Vec<u64> = found.into_keys().collect();
    without_row.sort_unstable();
    let of_nothing =
        without_row.into_iter().map(|key| (key, format!("it is in the {}, but not in the store", P::NAME)));
    differing.extend(of_nothing);
    for differing in differing.chunks(LOOKED_UP) {
        let keys: Vec<u64> = differing.iter().map(|(key, _)| *key).collect();
        for (message, (_, reason)) in P::messages(rows, &keys)?.into_iter().zip(differing) {
            check.add(IndexProblem { message, reason: reason.clone() });
        }
    }
    Ok(())
}

fn reason<P: IndexPart>(found: Entries, expected: Entries) -> String {
    let name = P::NAME;
    match (found.count, expected.count) {
        (0, _) => format!("it is not in the {name}"),
        (found, expected) if found == expected => format!("the {name} has different values for it"),
        (found, expected) => format!("the {name} has {found} entries for it instead of {expected}"),
    }
}
