//! Chooses questions to ask of unknown sessions.

use std::collections::BTreeSet;

/// Words that do not name a topic.
const COMMON: &str = "about add after again also another because been before being below both branch can't change changes \
    check code could create does doesn't doing done don't down each every file files find first from give given going \
    have help here implement into it's just know last like line look looks made make many more most much need needs next \
    okay only other output over please question read review right run same seems session should show since some still such \
    sure take tell test tests than that their them then there these they thing things think this those through time today \
    under understand update using very want wants week were what what's when where which while will with without work \
    working works would write wrong year yes your";

/// Words that begin a question for a reason, a way or a place: its answer explains something.
const ASKS: [&str; 7] = ["why", "how", "what", "where", "when", "which", "who"];
/// Words that begin other questions. "Can you" and "could we" ask for an action.
const ASKS_WHETHER: [&str; 10] = ["is", "are", "was", "were", "do", "does", "did", "has", "have", "should"];
/// Words that refer to what was said before.
const REFERENCES: [&str; 8] = ["this", "that", "these", "those", "it", "its", "they", "them"];

/// The number of words that a question may have.
const QUESTION_WORDS: std::ops::RangeInclusive<usize> = 4..=16;
/// No word of a question is longer; names in code and hashes are.
const LONGEST_WORD: usize = 20;

/// Questions that make sense without their sessions: at most one of each session, the best first. `sessions` are the
/// prompts of sessions, the newest first.
pub(super) fn pick(sessions: &[Vec<String>]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut picked = Vec::new();
    for prompts in sessions {
        let questions = prompts.iter().flat_map(|prompt| sentences_of(prompt)).filter_map(question);
        let new = questions.filter(|(_, question)| !seen.contains(&question.to_lowercase()));
        // Of equally good ones, the first.
        if let Some(best) = new.min_by_key(|(explains, _)| !explains) {
            seen.insert(best.1.to_lowercase());
            picked.push(best);
        }
    }
    // Stable: the newest first, of equally good ones.
    picked.sort_by_key(|(explains, _)| !explains);
    picked.into_iter().map(|(_, question)| question).collect()
}

/// The sentences of a text. A name such as `config.json` does not end a sentence.
fn sentences_of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        let is_end =
            |at: usize| rest.get(at + 1..).is_some_and(|after| after.starts_with(char::is_whitespace));
        let end = rest.match_indices(['.', '?', '!']).map(|(at, _)| at).find(|at| is_end(*at));
        let (sentence, after) = rest.split_at_checked(end.map_or(rest.len(), |at| at + 1))?;
        rest = after.trim_start();
        (!sentence.is_empty()).then_some(sentence)
    })
}

/// A sentence, if it is a question that names a topic, and whether its answer explains something.
fn question(sentence: &str) -> Option<(bool, String)> {
    let words: Vec<&str> = sentence.strip_suffix('?')?.split_whitespace().collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let [first, second, ..] = lower.as_slice() else { return None };
    let explains = ASKS.contains(&first.as_str());
    let asks = explains || (ASKS_WHETHER.contains(&first.as_str()) && second != "you");
    let topics = words.iter().filter(|word| is_topic(word)).count();
    let fits = asks
        && QUESTION_WORDS.contains(&words.len())
        && topics >= if explains { 2 } else { 3 }
        && words.iter().all(|word| is_plain(word))
        && !lower.iter().any(|word| REFERENCES.contains(&word.as_str()));
    fits.then(|| (explains, format!("{}?", words.join(" "))))
}

/// Whether a word is one that people say: no link, path, name in code, number of an issue or hash. An apostrophe would
/// make the command hard to read, in which the question is quoted.
fn is_plain(word: &str) -> bool {
    let word = word.trim_matches(['(', ')', ',', ';', '–']);
    let is_word = word.chars().all(|c| c.is_alphabetic() || c == '-');
    let is_number = word.len() <= 4 && word.chars().all(|c| c.is_ascii_digit());
    (is_word || is_number) && word.chars().count() <= LONGEST_WORD
}

/// Whether a word may name a topic.
fn is_topic(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    word.chars().count() >= 4 && !COMMON.split_whitespace().any(|common| common == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(sessions: &[&[&str]]) -> Vec<String> {
        let owned = |prompts: &&[&str]| prompts.iter().map(|prompt| (*prompt).to_owned()).collect();
        pick(&sessions.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn questions_for_an_explanation_are_first_and_then_the_newest() {
        let sessions: [&[&str]; 4] = [
            &["The dashboard is empty. Should invoices appear under pending payments?"],
            &[
                "Two customers were charged twice. Where can a second charge come from? Don't change anything.",
            ],
            &[
                "Is the import of invoices slow again?",
                "Why does the import of invoices fail? See import.log.",
            ],
            &["why does the import of invoices fail?"],
        ];
        assert_eq!(
            picked(&sessions),
            [
                "Where can a second charge come from?",
                "Why does the import of invoices fail?",
                "Should invoices appear under pending payments?"
            ]
        );
    }

    #[test]
    fn what_makes_no_sense_alone_is_not_asked() {
        for prompt in [
            "",
            "ok",
            "why?",
            "fix the failing tests",
            "can you look at the comments on the PR and fix them?",
            "do you have access to the payments dashboard?",
            "what does this do here?",
            "how does it line up with our payments page?",
            "main branch tests failing - why? https://example.com/runs/1",
            "why does https://example.com/invoices/17 return nothing?",
            "why is cmd/entire/cli/config.go exported twice?",
            "wingman.lock and config.json should be ignored?",
            "why does ENT-207 break the payments page?",
            "what changed between 0bdbfa06acf1473a and the payments release?",
            "{\"question\": \"why does the import of invoices fail?\"}",
        ] {
            assert!(picked(&[&[prompt]]).is_empty(), "{prompt}");
        }
    }
}
