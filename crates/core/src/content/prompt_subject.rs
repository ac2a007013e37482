//! The subject of a prompt: the part that tells a session from others.

/// The words of prompts that say nothing about their subject, in lower case: greetings, thanks, answers, and requests to
/// go on or to keep what was done.
const EMPTY_WORDS: &str = "\
    hi hello hey hiya yo howdy there claude good morning afternoon evening day how are you thanks thank thx \
    cheers much so very lot a test testing ping hallo guten tag morgen danke hola buenas gracias bonjour \
    salut merci ciao grazie ola olá obrigado hej tack привет спасибо 你好 您好 谢谢 こんにちは ありがとう 안녕하세요 สวัสดี \
    สวัสดีครับ สวัสดีค่ะ ok okay yes yeah yep no nope sure right great nice cool perfect done go on ahead \
    continue proceed resume next again please pls and do it now then commit push this that these the all my \
    changes everything them up open draft pr";

/// The words of a line that introduces a plan, in lower case.
const OPENING_WORDS: &str = "\
    implement execute follow apply do build start begin complete carry out work use read through here is are \
    below above following attached approved this that these the my our your a of on to with for me i we you \
    please can could would want now let's exactly detailed as";

/// Nouns of a line that introduces a plan, of which it must have one.
const PLANS: &str = "\
    plan plans task tasks spec specification steps step-by-step instructions design requirements ticket issue \
    implementation proposal";

/// A longer line says more than that a plan follows.
const MOST_WORDS: usize = 12;

/// Headings that say nothing about the subject of the text below them, in lower case.
const EMPTY_HEADINGS: [&str; 24] = [
    "plan",
    "implementation plan",
    "the plan",
    "implementation",
    "task",
    "tasks",
    "goal",
    "goals",
    "objective",
    "context",
    "overview",
    "summary",
    "background",
    "introduction",
    "description",
    "problem",
    "request",
    "prompt",
    "instructions",
    "specification",
    "spec",
    "design",
    "requirements",
    "title",
];

/// Beginnings of texts that programs insert as if the user had typed them.
const INSERTED: [&str; 1] = ["Operation stopped by hook"];

/// The part of a prompt that says what it is about: the heading with which it begins, or else its text after a line that
/// only introduces a plan. `None` if it says nothing: it is a greeting, thanks, or only keeps the work going.
pub(super) fn prompt_subject(prompt: &str) -> Option<&str> {
    let mut rest = prompt.trim();
    if INSERTED.iter().any(|start| rest.starts_with(start)) || names_skill(rest) {
        return None;
    }
    while let Some((line, below)) = rest.split_once('\n')
        && is_opening(line)
        && says_something(below)
    {
        rest = below.trim_start();
    }
    subject_below(rest).or_else(|| (says_something(rest) && !is_opening(rest)).then_some(rest))
}

/// The first heading, if `text` begins with one. Headings that say nothing are skipped.
fn subject_below(text: &str) -> Option<&str> {
    let mut rest = text;
    let mut has_heading = false;
    loop {
        let (line, below) = rest.split_once('\n').unwrap_or((rest, ""));
        let below = below.trim_start();
        match heading(line, below) {
            Some(heading) if says_something(heading) && !is_empty_heading(heading) => return Some(heading),
            Some(_) => has_heading = true,
            // A line without letters, such as a rule.
            None if !line.chars().any(char::is_alphanumeric) => {}
            None => return (has_heading && says_something(rest)).then_some(rest),
        }
        if below.is_empty() {
            return None;
        }
        rest = below;
    }
}

/// The text of a Markdown heading, without a label such as `Plan:`.
fn heading<'a>(line: &'a str, below: &str) -> Option<&'a str> {
    let marks = line.chars().take_while(|c| *c == '#').count();
    let text = line.trim_start_matches('#');
    let is_underlined = || {
        let under = below.lines().next().unwrap_or_default().trim_end();
        under.len() >= 3 && under.chars().all(|c| c == '=') && line.chars().any(char::is_alphanumeric)
    };
    let is_heading = (1..=6).contains(&marks) && text.starts_with([' ', '\t']) || is_underlined();
    let text = text.trim().trim_end_matches('#').trim();
    let is_bold = |text: &&str| !text.contains("**");
    let text =
        text.strip_prefix("**").and_then(|text| text.strip_suffix("**")).filter(is_bold).unwrap_or(text);
    let unlabelled = text.split_once(": ").filter(|(label, _)| is_empty_heading(label));
    is_heading.then(|| unlabelled.map_or(text, |(_, text)| text.trim()))
}

fn is_empty_heading(heading: &str) -> bool {
    let heading = heading.trim_end_matches(':').trim().to_lowercase();
    EMPTY_HEADINGS.contains(&heading.as_str())
}

/// Whether a line only introduces a plan: `Implement the following plan:`.
fn is_opening(line: &str) -> bool {
    let words: Vec<String> = words(line).take(MOST_WORDS + 1).collect();
    words.len() <= MOST_WORDS
        && words.iter().any(|word| is_one_of(word, PLANS))
        && words.iter().all(|word| [OPENING_WORDS, PLANS, EMPTY_WORDS].iter().any(|all| is_one_of(word, all)))
}

/// Whether a text has a word that is neither a number nor one of [`EMPTY_WORDS`].
fn says_something(text: &str) -> bool {
    words(text).any(|word| word.chars().any(char::is_alphabetic) && !is_one_of(&word, EMPTY_WORDS))
}

fn is_one_of(word: &str, words: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// The words in lower case, without punctuation around them.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| c.is_whitespace() || ",;，、。".contains(c));
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Whether the text only names a skill: a slash command was replaced by it.
fn names_skill(text: &str) -> bool {
    text.starts_with("Invoke the ") && text.contains(" skill and follow it exactly")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_plan_is_its_heading() {
        for opening in [
            "Implement the following plan:",
            "Please implement this plan exactly:",
            "implement the plan below.",
            "Here is the approved plan:\n\nImplement the following plan:",
        ] {
            for (plan, subject) in [
                ("# Fix the oven\n\n## Context\n\nIt is cold.", "Fix the oven"),
                ("# Plan: Fix the oven\nIt is cold.", "Fix the oven"),
                ("## Implementation Plan: **Fix** the oven ##\n", "**Fix** the oven"),
                ("# **Fix the oven**", "Fix the oven"),
                ("# Plan\n\n## Context\n\nThe oven is cold.\nFix it.", "The oven is cold.\nFix it."),
                ("# Plan\n\n## Fix the oven\n\nIt is cold.", "Fix the oven"),
                ("---\n\nFix the oven\n============\n", "Fix the oven"),
                ("1. Fix the oven\n2. Bake", "1. Fix the oven\n2. Bake"),
                ("#5 is cold", "#5 is cold"),
                ("# 2026: ovens", "2026: ovens"),
            ] {
                let prompt = format!("{opening}\n\n{plan}");
                assert_eq!(prompt_subject(&prompt), Some(subject.trim()), "{prompt}");
            }
        }
    }

    #[test]
    fn other_prompts_are_their_own_subject() {
        for prompt in [
            "Fix the oven",
            "Implement the plan in docs/plan.md",
            "hello world in Rust",
            "commit this to the branch of the oven",
            "你好，烤箱坏了",
            "- a\n# b",
        ] {
            assert_eq!(prompt_subject(prompt), Some(prompt), "{prompt}");
        }
        assert_eq!(prompt_subject("# Fix the oven\n\nIt is cold."), Some("Fix the oven"));
        assert_eq!(prompt_subject("# Context\n\nIt is cold."), Some("It is cold."));
    }

    #[test]
    fn greetings_and_answers_say_nothing() {
        for prompt in [
            "hi",
            "Hello there!",
            "hey 👋",
            "Good morning, Claude",
            "thanks",
            "Thank you so much!",
            "yes and yes",
            "ok, go on",
            "Commit this",
            "commit this, push, open draft PR",
            "181",
            "commit and push all changes, please",
            "你好！",
            "สวัสดีครับ",
            "?",
            "…",
            "# Hi",
            "Implement the following plan:",
            "please continue with the next task",
            "Operation stopped by hook: x",
            "Invoke the a:b skill and follow it exactly as presented to you",
        ] {
            assert_eq!(prompt_subject(prompt), None, "{prompt}");
        }
    }
}
