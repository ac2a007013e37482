//! What to ask of sessions that nobody told us anything about.

use std::collections::{BTreeMap, BTreeSet};

/// Words that say nothing about a topic.
const COMMON: &str = "about after again also because been before being both could does doesn doing done down each \
    every from given have here into just like look looks make many more most much need needs only other over please \
    same should show some still such than that their them then there these they thing this those through under using \
    very want wants were what when where which while will with without work works would write your";

/// A question may be so many words long.
const QUESTION_WORDS: std::ops::RangeInclusive<usize> = 4..=16;

/// Up to two questions: the topic that comes up in most of `prompts` (newest first), and the newest prompt that can
/// be asked as it stands.
pub(super) fn pick(prompts: &[String]) -> Vec<String> {
    let asked = prompts.iter().filter_map(|prompt| question(prompt)).next();
    let mut picked: Vec<String> = topic(prompts).into_iter().collect();
    picked.extend(asked);
    picked
}

/// The two words that most prompts have, as long as several have them.
fn topic(prompts: &[String]) -> Option<String> {
    let mut frequency: BTreeMap<String, usize> = BTreeMap::new();
    for word in prompts.iter().flat_map(|prompt| words(prompt)) {
        *frequency.entry(word).or_default() += 1;
    }
    let mut frequent: Vec<(String, usize)> = frequency.into_iter().filter(|(_, count)| *count > 1).collect();
    frequent.sort_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
    let topic: Vec<String> = frequent.into_iter().take(2).map(|(word, _)| word).collect();
    (!topic.is_empty()).then(|| topic.join(" "))
}

/// The distinct words of a prompt that say something.
fn words(prompt: &str) -> BTreeSet<String> {
    let words = prompt.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase);
    words
        .filter(|word| word.chars().count() >= 4 && !COMMON.split(' ').any(|common| common == word))
        .collect()
}

/// The first sentence of a prompt, if it has the length of a question and the words of one.
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
    fn the_topic_comes_up_often_and_the_question_is_the_newest() {
        let prompts = [
            "{\"not\": \"a question\"}",
            "Why does the import of invoices fail?\n\nTrace: …",
            "Make the import faster, please.",
            "Import and invoices again",
        ];
        assert_eq!(picked(&prompts), ["import invoices", "Why does the import of invoices fail?"]);
    }

    #[test]
    fn few_or_odd_prompts_are_no_problem() {
        assert!(picked(&[]).is_empty());
        assert!(picked(&["", "   ", "ok"]).is_empty());
        assert_eq!(picked(&["Explain what borrowing means here."]), ["Explain what borrowing means here"]);
    }
}
