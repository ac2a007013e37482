//! The stems of words that begin or end in a given way.
//!
//! An index contains stems, and a stem may be shorter than the beginning that was typed: `authenti*` means
//! `authentication`, whose stem is `authent`.

use std::collections::BTreeSet;

use super::stems::Stems;

/// Endings that the English stemmer removes or replaces, and combinations of them.
#[rustfmt::skip]
static ENDINGS: &[&str] = &[
    "", "ability", "able", "ably", "al", "ally", "ance", "ances", "ant", "ate", "ated", "ates", "ating", "ation",
    "ational", "ations", "ative", "ator", "ators", "e", "ed", "ement", "ence", "ences", "ency", "ent", "er", "ers", "es",
    "ful", "fulness", "ibility", "ible", "ic", "ical", "ically", "icate", "ication", "ications", "ied", "ies", "ing",
    "ings", "ion", "ional", "ions", "ism", "ist", "ities", "ity", "ive", "ively", "iveness", "ization", "izations", "ize",
    "ized", "izer", "izers", "izes", "izing", "less", "ly", "ment", "ments", "ness", "or", "ors", "ous", "ously",
    "ousness", "s", "tion", "tional", "y",
];

/// A beginning of a word that makes the stemmer treat what follows as its end.
const LONG_BEGINNING: &str = "bacodifu";

/// The stems of English words that begin with `beginning` (in lower case), if the stem does not begin so. Empty unless
/// `beginning` consists of ASCII letters.
pub(crate) fn shorter_stems(beginning: &str) -> BTreeSet<String> {
    completed(beginning).filter(|stem| !stem.starts_with(beginning)).collect()
}

/// What the stems of words that contain `part` (in lower case) contain instead. The last letters may be missing.
pub(crate) fn stems_of_part(part: &str) -> BTreeSet<String> {
    let after = |stem: String| stem.strip_prefix(LONG_BEGINNING).map(str::to_owned);
    let long = format!("{LONG_BEGINNING}{part}");
    let stems = completed(&long).filter_map(after);
    stems.filter(|stem| stem.len() > 2 && !stem.starts_with(part)).collect()
}

/// What the stems of words that end with `end` (in lower case) end with.
pub(crate) fn stems_of_end(end: &str) -> BTreeSet<String> {
    let mut stems = Stems::new();
    let mut ends = BTreeSet::from([end.to_owned()]);
    if end.bytes().all(|byte| byte.is_ascii_lowercase()) {
        let mut word = format!("{LONG_BEGINNING}{end}");
        stems.stem(&mut word);
        ends.extend(word.strip_prefix(LONG_BEGINNING).map(str::to_owned));
        let mut word = end.to_owned();
        stems.stem(&mut word);
        ends.insert(word);
    }
    ends.retain(|end| !end.is_empty());
    ends
}

/// The stems of the words that differ from `word` (in lower case) by one letter after the first: another one, one more,
/// one less, or two neighbours that are swapped. A typo may change the stem of a word beyond recognition. Empty unless
/// `word` consists of ASCII letters.
pub(crate) fn stems_of_typos(word: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return found;
    }
    let mut stems = Stems::new();
    let mut add = |head: &str, middle: &str, tail: &str| {
        let mut other = format!("{head}{middle}{tail}");
        if other != word {
            stems.stem(&mut other);
            found.insert(other);
        }
    };
    for at in 1..=word.len() {
        let (head, tail) = word.split_at(at);
        let after = |count: usize| tail.get(count..);
        if let Some(rest) = after(1) {
            add(head, "", rest);
        }
        if let Some((rest, swapped)) = after(2).zip(tail.get(..2)) {
            add(head, &swapped.chars().rev().collect::<String>(), rest);
        }
        for letter in 'a'..='z' {
            let mut buffer = [0; 4];
            let letter = letter.encode_utf8(&mut buffer);
            add(head, letter, tail);
            if let Some(rest) = after(1) {
                add(head, letter, rest);
            }
        }
    }
    found
}

/// The stems of `beginning` with each ending that continues it.
fn completed(beginning: &str) -> impl Iterator<Item = String> {
    let mut stems = Stems::new();
    let is_word = !beginning.is_empty() && beginning.bytes().all(|byte| byte.is_ascii_lowercase());
    let endings = ENDINGS.iter().filter(move |_| is_word);
    let rests = endings.flat_map(move |ending| {
        let split = |at: usize| ending.split_at_checked(at);
        let continues = |(typed, _): &(&str, &str)| beginning.ends_with(typed);
        let rests: Vec<&str> =
            (0..=ending.len()).filter_map(split).filter(continues).map(|(_, rest)| rest).collect();
        rests
    });
    rests.map(move |rest| {
        let mut word = format!("{beginning}{rest}");
        stems.stem(&mut word);
        word
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::query_terms;

    #[test]
    fn each_beginning_of_a_word_leads_to_its_stem() {
        for word in [
            "authentication",
            "running",
            "happiness",
            "configuration",
            "relational",
            "vectorization",
            "retries",
            "hoping",
            "connections",
            "databases",
            "usefulness",
            "deployment",
            "tests",
            "usable",
        ] {
            let stem = query_terms(word).remove(0);
            for end in 3..=word.len() {
                let beginning = &word[..end];
                assert!(
                    stem.starts_with(beginning) || shorter_stems(beginning).contains(&stem),
                    "{beginning} {stem}"
                );
            }
        }
        assert!(shorter_stems("x86").is_empty() && shorter_stems("").is_empty());
        assert!(!shorter_stems("authenti").contains("auth"));
    }

    #[test]
    fn a_word_with_a_typo_leads_to_the_stem_of_the_word() {
        for (typed, meant) in [
            ("idempotqency", "idempotency"),
            ("authenticqtion", "authentication"),
            ("gateawys", "gateways"),
            ("retriess", "retries"),
            ("databasess", "databases"),
            ("configurqtion", "configuration"),
        ] {
            assert!(stems_of_typos(typed).contains(&query_terms(meant)[0]), "{typed}");
        }
        assert!(!stems_of_typos("idempotqency").contains("idl"));
        assert!(stems_of_typos("größe").is_empty() && stems_of_typos("").is_empty());
        assert!(stems_of_typos(&"a".repeat(1_000)).len() < 60_000);
    }

    #[test]
    fn parts_and_ends_of_words_lead_to_their_stems() {
        let stem = query_terms("nullpointerexception").remove(0);
        for part in ["nullpoint", "pointerexc", "exceptio", "erexception"] {
            let is_found =
                stem.contains(part) || stems_of_part(part).iter().any(|part| stem.contains(part.as_str()));
            assert!(is_found, "{part}");
        }
        for end in ["exception", "ception"] {
            assert!(stems_of_end(end).iter().any(|end| stem.ends_with(end.as_str())), "{end}");
        }
    }
}
