//! Chooses questions to ask of unknown sessions.

use std::collections::{BTreeMap, BTreeSet};

/// Words that do not name a topic.
const COMMON: &str = "about add after again also another because been before being below both can't change check \
    could create does doesn't doing done don't down each every file files find first from give given have help here \
    implement into it's just know last like look looks made make many more most much need needs next only other over \
    please read review run same session should show since some still such sure take tell test tests than that their \
    them then there these they thing things this those through time today under update using very want wants week were \
    what when where which while will with without work works would write year your";

/// The number of words that a question may have.
const QUESTION_WORDS: std::ops::RangeInclusive<usize> = 4..=16;

/// How many prompts are used as questions.
const PROMPTS: usize = 2;

/// The most frequent topic of `prompts` (newest first), and the newest prompts that can be used as questions.
pub(super) fn pick(prompts: &[String]) -> Vec<String> {
    let mut picked: Vec<String> = topic(prompts).into_iter().collect();
    for asked in prompts.iter().filter_map(|prompt| question(prompt)) {
        if picked.len() <= PROMPTS && !picked.contains(&asked) {
            picked.push(asked);
        }
    }
    picked
}

/// The word that is in the most prompts, if more than one has it; the longest of equally frequent words.
fn topic(prompts: &[String]) -> Option<String> {
    let mut frequency: BTreeMap<String, usize> = BTreeMap::new();
    for word in prompts.iter().flat_map(|prompt| words(prompt)) {
        *frequency.entry(word).or_default() += 1;
    }
    let frequent = frequency.into_iter().filter(|(_, count)| *count > 1);
    frequent.max_by_key(|(word, count)| (*count, word.len())).map(|(word, _)| word)
}

/// The distinct words of a prompt that may name a topic.
fn words(prompt: &str) -> BTreeSet<String> {
    let words = prompt.split(|c: char| !c.is_alphabetic() && c != '\'').map(str::to_lowercase);
    words
        .filter(|word| word.chars().count() >= 4 && !COMMON.split(' ').any(|common| common == word))
        .collect()
}

/// The first sentence of a prompt, if its length and words are those of a question.
fn question(prompt: &str) -> Option<String> {
    let sentence =
        prompt.split_inclusive(['.', '?', '!', '\n']).map(str::trim).find(|part| !part.is_empty())?;
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let is_plain = |c: char| c.is_alphanumeric() || c.is_whitespace() || "'’\"`,;:.?!-_/()".contains(c);
    let fits = QUESTION_WORDS.contains(&words.len()) && sentence.chars().all(is_plain);
    fits.then(|| words.join(" ").trim_end_matches(['.', ':', ';', ',']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(prompts: &[&str]) -> Vec<String> {
        pick(&prompts.iter().map(|prompt| (*prompt).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_topic_is_frequent_and_the_question_is_the_newest() {
        let prompts = [
            "{\"not\": \"a question\"}",
            "Why does the import of invoices fail?\n\nTrace: …",
            "Make the import faster, please.",
            "Import and invoices again",
        ];
        assert_eq!(
            picked(&prompts),
            ["import", "Why does the import of invoices fail?", "Make the import faster, please"]
        );
    }

    #[test]
    fn few_or_unusual_prompts_are_fine() {
        assert!(picked(&[]).is_empty());
        assert!(picked(&["", "   ", "ok"]).is_empty());
        assert_eq!(picked(&["Explain what borrowing means here."]), ["Explain what borrowing means here"]);
    }
}
